/*
 * h2_peer: an HTTP/2 client for the tests of this folder, over a raw socket driven from the
 * server's own thread. Not part of programs.
 */
#ifndef RUNTIME_RPC_H2_PEER_H
#define RUNTIME_RPC_H2_PEER_H

#include <nghttp2/nghttp2.h>

#include "runtime/rpc/http_fixture.h"

#define STREAMS_MAX 64u

/* What a stream's answer was. */
struct answer {
    int32_t stream_id;
    struct buf headers; /* "name: value\n", trailers too. */
    struct buf body;
    bool closed;
    uint32_t error_code;
};

struct peer {
    struct client client;
    nghttp2_session *session;
    struct answer answers[STREAMS_MAX];
    size_t answer_count;
    unsigned closed_count;
    bool went_away;
    struct slice sending; /* Of the request being sent. */
};

void peer_connect(struct fixture *f, struct peer *peer);
void peer_close(struct peer *peer);
/* Sends what waits. */
void peer_flush(struct peer *peer);
/* Reads what has come, and answers its PINGs and SETTINGS. */
void peer_take(struct peer *peer);
nghttp2_nv nv(const char *name, const char *value);
/* One POST, `extra` a header name and value or NULL; returns its answer-to-be. */
struct answer *peer_call(struct peer *peer, const char *path, const char *type, struct slice body,
                         const char *const extra[2]);
/* Until the answer is complete; NULL: until the server closes. */
bool peer_await(struct fixture *f, struct peer *peer, struct answer *answer);
/* A line of its headers or trailers: "name: value\n". */
bool answer_has(struct answer *answer, const char *line);
bool body_is(const struct answer *answer, struct slice expected);

#endif
