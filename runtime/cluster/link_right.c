#include "runtime/cluster/link_right.h"

#include "idl/method.h"
#include "runtime/base/check.h"

/* Of internal methods: who sends them to whom. Public ones follow from their route. */
static const struct internal_right {
    uint16_t method;
    uint8_t to, from, also_from; /* `also_from` 0: no other. */
} internal_rights[] = {
    { METHOD_CHANNEL_DELIVER, ROLE_NODE, ROLE_NODE, 0 },
    { METHOD_RENEW_TOKENS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_ITEM_HISTORY, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_GET_PARTIALS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_PULL_PARTIALS, ROLE_NODE, ROLE_NODE, 0 },
    { METHOD_FORGET_PARTIALS, ROLE_NODE, ROLE_NODE, 0 },
    { METHOD_GET_SHARD_TOP, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_LIST_SHARD_EVENTS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_LIST_EVENT_NEWS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_LIST_NODE_ONLINE, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_GET_NODE_CLOCK, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_SWAP_GOODS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_READ_SETTLED, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_DELIVER_TO_PLAYER, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_LIST_NODE_INCIDENTS, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_GET_NODE_LOAD, ROLE_NODE, ROLE_ROUTER, 0 },
    { METHOD_GET_NODE_STATUS, ROLE_NODE, ROLE_ROUTER, ROLE_COORDINATOR },
    { METHOD_APPLY_POLICY, ROLE_NODE, ROLE_ROUTER, ROLE_COORDINATOR },
    { METHOD_DEFINE, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_GET_DEFINED, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_EXPIRE_SERVER, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_MEMBER_STATE, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_TAKE_CUT, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_AUDIT_SEARCH, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_CONTAIN_PLAYER, ROLE_NODE, ROLE_COORDINATOR, 0 },
    { METHOD_REPORT_OWNER, ROLE_COORDINATOR, ROLE_NODE, 0 },
    { METHOD_CHANGE_DEFINITION, ROLE_COORDINATOR, ROLE_ROUTER, 0 },
    { METHOD_FIND_DEFINITIONS, ROLE_COORDINATOR, ROLE_ROUTER, 0 },
    { METHOD_GET_COORDINATOR_STATUS, ROLE_COORDINATOR, ROLE_ROUTER, 0 },
};

static bool may_ask_internal(uint8_t self, uint8_t peer, uint16_t method)
{
    for (size_t i = 0; i < ARRAY_SIZE(internal_rights); i++) {
        const struct internal_right *right = &internal_rights[i];
        if (right->method == method && right->to == self && peer != 0 &&
            (right->from == peer || right->also_from == peer))
            return true;
    }
    return false;
}

/* Nodes answer those of shards, and batches that go whole; the router's own and others that it
 * splits stay with it. */
static bool is_of_a_shard(const struct method_info *method)
{
    return method->route == METHOD_MUTATION || method->route == METHOD_READ ||
           method->route == METHOD_SHARD || method->route == METHOD_SHARD_WRITE ||
           method->route == METHOD_GATHER || method->route == METHOD_MEMBER_READ ||
           method->route == METHOD_MEMBER_WRITE || method->route == METHOD_SHARD_VIEW ||
           method_goes_whole(method);
}

static bool may_ask_something(uint8_t self, uint8_t peer)
{
    switch (self) {
    case ROLE_NODE:
        return peer == ROLE_NODE || peer == ROLE_ROUTER || peer == ROLE_COORDINATOR;
    case ROLE_ROUTER:
        return peer == ROLE_CLIENT;
    case ROLE_COORDINATOR:
        return peer == ROLE_NODE || peer == ROLE_ROUTER;
    default:
        return false;
    }
}

static bool may_ask(uint8_t self, uint8_t peer, uint16_t number)
{
    const struct method_info *method = method_find(number);

    if (method == NULL) /* Of a later program, perhaps: it is told that there is none here. */
        return may_ask_something(self, peer);
    if (method->internal)
        return may_ask_internal(self, peer, number);
    if (self == ROLE_ROUTER)
        return peer == ROLE_CLIENT;
    return self == ROLE_NODE && peer == ROLE_ROUTER && is_of_a_shard(method);
}

bool link_right(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method)
{
    switch (kind) {
    case FRAME_REQUEST:
        return may_ask(self, peer, method);
    case FRAME_CANCEL:
        return may_ask_something(self, peer); /* And give up what they asked. */
    case FRAME_MESSAGE:                       /* Replication. */
        return self == ROLE_NODE && peer == ROLE_NODE;
    default:
        return true;
    }
}
