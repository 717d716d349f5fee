/*
 * plain_router: for tests: a router with a loop, a caller and the nodes of fake_cluster.h, and with
 * nothing else; fake_router.h has etcd, game servers and session tokens, too. Requests to it are
 * the test's, as many at once as the test has a plain_ask for. Not part of programs.
 */
#ifndef ROUTER_RPC_FAKE_PLAIN_ROUTER_H
#define ROUTER_RPC_FAKE_PLAIN_ROUTER_H

#include "router/rpc/fake/fake_cluster.h"
#include "router/rpc/router.h"

/* One request of a client with all scopes. Zeros before it is sent. A test that keeps more of the
 * answer has a struct of its own, which begins with this one. */
struct plain_ask {
    struct request request; /* Its origin is this ask. */
    struct arena arena;     /* Until plain_router_deinit. */
    unsigned answers;       /* Errors are counted; replies are the test's to count. */
    Holdfast__V1__ErrorCode code;
    const char *player;     /* Of a player's token; NULL: it has an API key. */
    struct plain_ask *next; /* The one sent before, of the same router. */
};

struct plain_router {
    struct loop *loop;
    struct fake_cluster fake;
    struct router router;
    const struct request_door *door; /* The test sets it before plain_router_send. */
    struct plain_ask *asks;          /* Those sent, the last one first. */
};

/* `plain` is zeros. This fills in the options' cluster, loop, map, port and caller, and a log that
 * tells errors alone if they have no log. */
void plain_router_init(struct plain_router *plain, uint32_t shards,
                       const struct router_options *options);
/* Cancels the sent asks that have no answer, and frees the arenas of all. */
void plain_router_deinit(struct plain_router *plain);
/* Answers every open call of the cluster with an empty message. */
void plain_router_answer_all(struct plain_router *plain);
/* Sends a copy of the message, the first time or after the ask's answer: then its answers are
 * counted from 0 again. */
void plain_router_send(struct plain_router *plain, struct plain_ask *ask, enum method_id method,
                       const ProtobufCMessage *message, uint32_t wait_ms);

/* A door's way to fail: counts the answer and keeps its code. */
void plain_ask_fail(struct request *request, const Holdfast__V1__ErrorDetail *detail);
/* The message in those bytes, in the arena; NULL: the bytes are not such a message. */
void *plain_message_read(const ProtobufCMessageDescriptor *type, struct slice bytes,
                         struct arena *arena);
/* A copy of a message, in the arena. */
void *plain_message_copy(const ProtobufCMessage *message, struct arena *arena);

#endif
