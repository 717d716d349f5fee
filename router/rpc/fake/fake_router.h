/*
 * fake_router: for tests: a router whose nodes are the test's (fake_cluster.h), whose etcd is not
 * there, and whose caller is the test. Every error is held against idl/method_errors.h.
 */
#ifndef ROUTER_RPC_FAKE_FAKE_ROUTER_H
#define ROUTER_RPC_FAKE_FAKE_ROUTER_H

#include "router/rpc/fake/fake_cluster.h"
#include "router/rpc/router.h"

#define FAKE_SHARDS 4u

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct fake_cluster *fake;
    struct router router;
    struct request request;
    struct arena arena;
    struct session_secrets secrets;
    uint32_t answers;
    uint32_t finished;
    Holdfast__V1__ErrorCode code; /* Of the answer; UNSPECIFIED: success. */
    char field[64];
    char limit[256];
    char trace[TRACE_TEXT_SIZE];
    char entity[64];
    char op_id[64];
    struct buf response; /* Encoded. */
};

/* cmocka's setup and teardown: *state is a struct fixture. */
int fake_router_setup(void **state);
int fake_router_teardown(void **state);
/* A call of a client with all scopes, of a method whose deadline is so far away; the answer comes
 * in the fixture. `player`: of a player's token instead; NULL: none. */
void fake_router_call(struct fixture *f, uint32_t method, const ProtobufCMessage *message,
                      uint64_t deadline_ms, const char *player);

#endif
