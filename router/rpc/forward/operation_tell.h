/*
 * operation_tell: what a node says of an operation, told as the public API does: the stored answer
 * as the message that it is, the stored refusal with its outcome, action and facts.
 */
#ifndef ROUTER_RPC_FORWARD_OPERATION_TELL_H
#define ROUTER_RPC_FORWARD_OPERATION_TELL_H

#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

/*
 * `answer`: what a node answered to GetOperation or ResolveOperation (method_answer); not changed.
 * `request`: either's, whose entity and op_id the refusal names. The response of `method` in the
 * arena, which must outlive it, as must `request`; NULL: the answer cannot be read. A result that
 * cannot be read, or of a method that this router does not know, is left out.
 */
ProtobufCMessage *operation_tell(const struct method_info *method, struct slice answer,
                                 const ProtobufCMessage *request, struct arena *arena);

/* The field of OperationStatus's oneof `result` for the answers of `method`; NULL: there is none.
 */
const ProtobufCFieldDescriptor *operation_result_field(const struct method_info *method);

#endif
