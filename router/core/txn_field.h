/*
 * txn_field: a node refuses a transaction for one player, and names fields of that player's part
 * (refusal.proto); here they become the fields of what the caller sent, and STOP_WRITING names the
 * player whose session is lost. Pure.
 */
#ifndef ROUTER_CORE_TXN_FIELD_H
#define ROUTER_CORE_TXN_FIELD_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

/* `message`: in the form that nodes get (node_form.h); NULL: it could not be read. Of other methods
 * than ExecuteTransaction and Swap the player is left out: their callers know of no transaction.
 * Texts in `arena`. */
void txn_field_tell(const struct method_info *method, const ProtobufCMessage *message,
                    struct arena *arena, Holdfast__V1__ErrorDetail *detail);

#endif
