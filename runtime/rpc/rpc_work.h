/*
 * rpc_work: a large answer is decoded, encoded and packed by a thread beside the loop, so that
 * other calls do not wait for it (one of 1.2 MB takes milliseconds, packed tens of them).
 * RPC_WORK_THREADS at once; callers take turns. Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_WORK_H
#define RUNTIME_RPC_RPC_WORK_H

#include "runtime/rpc/rpc_payload.h"

#define RPC_WORK_BYTES_MIN 65536u /* Shorter ones the loop makes itself. */

/* What became of it. */
struct rpc_worked {
    err e;                           /* ERR_OK, or why the bytes could not be decoded. */
    const ProtobufCMessage *message; /* NULL: it was not decoded. */
    struct buf *body;                /* Finished. */
    bool packed;
};

/*
 * `response`: protobuf of the method's response, taken over; counted in the server's budget for
 * answers until `done`, which ends the call. The call's caller may go meanwhile: the request was
 * answered by its handler, who is not told. A call whose caller is gone is not worked on once its
 * turn comes; `done` is called all the same.
 */
void rpc_work_start(struct rpc_call *call, struct buf *response, bool may_pack,
                    void (*done)(struct rpc_call *call, const struct rpc_worked *worked));
/* The same of what the thread has `source` put. */
void rpc_work_start_from(struct rpc_call *call, const struct buf_source *source, bool may_pack,
                         void (*done)(struct rpc_call *call, const struct rpc_worked *worked));
/* The call's caller is gone: what waits is given up at once. */
void rpc_work_cancel(struct rpc_call *call);
/* `idle(user)` once no call is worked on, at once or later. */
void rpc_work_when_idle(struct rpc_server *server, void (*idle)(void *user), void *user);
/* CHECKs that none is. */
void rpc_work_deinit(struct rpc_server *server);

#endif
