/*
 * client: calls to a Holdfast router from C, in JSON: blocking, one call
 * at a time per client. Calls are repeated under the same op_id when their outcome is unknown, as
 * long as the caller's deadline allows and the method allows it; a client never turns "unknown"
 * into "failed". DESIGN sections 6 and 10.
 */
#ifndef CLIENT_SDK_CLIENT_H
#define CLIENT_SDK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/sdk/client_result.h"
#include "runtime/base/buf.h"

#define CLIENT_ANSWER_BYTES_MAX (16u * 1024u * 1024u)

struct client;

struct client_options {
    const char *endpoint; /* "http://127.0.0.1:7400" */
    const char *api_key;  /* Sent as a bearer token; NULL: none. */
    const char *ca_file;  /* For https; NULL: the system's. */
    uint32_t deadline_ms; /* Of a whole call, retries included; 0: 10000. */
    bool plain_json;      /* Calls take and give plain JSON (docs/json.md), not protobuf's. */
};

/* ERR_INVALID: no endpoint. Call once per thread. */
NODISCARD err client_new(const struct client_options *options, struct client **ret_client);
void client_free(struct client *client);

/*
 * Calls "holdfast.v1.LedgerService/Grant" (or, shorter, "LedgerService/Grant") with a JSON request.
 * `body` is replaced. The error's `action` decides: RETRY_SAME is waited out (retryAfterMs, and up
 * to 20 % of jitter) and the call repeated as long as the deadline allows. What is
 * unknown, or could not be sent, is repeated with 1 s base, 8 s cap and +-20 % jitter, three times
 * in all. Once a try was unknown, only an answer, the outcome REFUSED or OPERATION_ID_MISMATCH
 * makes the call known: all other errors speak of their own try only.
 *
 * A method that client_may_repeat refuses ends with CLIENT_UNKNOWN when one try was unknown.
 */
enum client_result client_call(struct client *client, const char *method, const char *json,
                               struct buf *body);

/*
 * Whether a call of it whose outcome is unknown may be sent again. False: it carries no op_id, and
 * could do more than it did, as a second deletion deletes what was written in between; or this
 * client does not know the method. Read first, and decide again. It is what routers go by
 * (idl/method.h).
 */
bool client_may_repeat(const char *method);

struct client_stream {
    const char *method; /* One that answers with a stream: "AdminService/WatchIncidents". */
    const char *json;   /* The request. */
    /* Called for each message, which is borrowed. False ends the stream. */
    bool (*message)(void *user, struct slice json);
    void *user;
    uint32_t silence_ms; /* Nothing for so long, rounded up to seconds: it is broken. Above the
                          * heartbeats' distance. */
};

/*
 * Reads a stream until it ends. Nothing is repeated here: go on with the last message's cursor.
 *
 * CLIENT_OK: it ended well, or `message` ended it. CLIENT_REFUSED and CLIENT_LATER: it ended with
 * the error in `body`, maybe after messages. CLIENT_UNKNOWN: it broke off, or ended with an error
 * that is not a router's; `body` says why.
 */
enum client_result client_stream(struct client *client, const struct client_stream *stream,
                                 struct buf *body);

/* A fresh UUIDv7 for `op_id`. */
void client_op_id(char ret_text[37]);

#endif
