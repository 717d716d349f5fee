/*
 * node_form: the few requests that nodes know in another form than callers do. Pure. It is made
 * before anything else looks at the request, so that defaults, rights, admission and routes are
 * those of any other one of that form.
 *
 *   Swap         both sides in one message, the home player in field 1 (SwapGoodsRequest)
 *   DeliverMail  a batch with a request for each recipient (DeliverToPlayersRequest)
 *   ClaimName, ReleaseName, FindByName  a transaction, or a profile's read (name_form.h)
 */
#ifndef ROUTER_CORE_NODE_FORM_H
#define ROUTER_CORE_NODE_FORM_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

/*
 * *ret_message is `message`, or its other form: in `arena`, with texts and lists of `message`,
 * which has to live as long.
 *
 * ERR_INVALID: DeliverMail names no recipient or too many, or what each of them would get is too
 * large; a name is none, or is written by a transaction of a caller's own; *ret_detail says so.
 */
NODISCARD err node_form_make(const struct method_info *method, const ProtobufCMessage *message,
                             struct arena *arena, const ProtobufCMessage **ret_message,
                             Holdfast__V1__ErrorDetail *ret_detail);

/* What an error says of a field of the other form, said of the caller's: `field`, and `message`,
 * which begins with it. `message`: as it was made, or NULL (txn_field.h). */
void node_form_tell(const struct method_info *method, const ProtobufCMessage *message,
                    struct arena *arena, Holdfast__V1__ErrorDetail *detail);

#endif
