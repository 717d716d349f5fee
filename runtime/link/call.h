/*
 * call: requests and responses over links, on both sides. A call has exactly one outcome, told
 * once. Nothing is ever sent twice: repeating is for the layer that owns the op_id (DESIGN
 * section 6). One object serves any number of links of one hub.
 *
 * Wire it up: pass every frame to calls_frame and every close to calls_closed.
 */
#ifndef RUNTIME_LINK_CALL_H
#define RUNTIME_LINK_CALL_H

#include "runtime/link/link.h"

#define CALLS_MAX            65536u /* Default bound of calls waiting for an answer. */
#define CALLS_MAX_MAX        1048576u
#define CALLS_REQUESTS_MAX   65536u /* Default bound of requests waiting for our answer. */
#define CALL_DEADLINE_MS_MAX 600000u
#define CALL_SMALL_BYTES     4096u /* Answers up to this always find room, within reason. */
#define CALL_TICK_MS         8u    /* Deadlines are seen up to this late. */

struct calls;

/* `result`:
 *   ERR_OK            the peer answered: `response->status`, `response->body` (borrowed)
 *   ERR_TIMEOUT       deadline passed; outcome unknown
 *   ERR_DISCONNECTED  the link died after the request was handed to it; outcome unknown
 *   ERR_CLOSED        the link died before; it was not carried out
 *   ERR_FULL, ERR_UNAVAILABLE  the peer refused to start: overloaded, or no such method
 * response is NULL unless ERR_OK. */
typedef void call_done(void *user, err result, const struct frame *response);

/* Where to send an answer; plain data, may be kept, copied, carried to another thread and back. */
struct call_reply {
    struct link_ref link;
    uint64_t request_id;
    uint8_t trace[FRAME_TRACE_SIZE];
    uint32_t took_us; /* Ours to fill in before call_answer, or 0: what we spent on it. */
    /* Ours to fill in: the answer says what became of a write, so it may take the part of the
     * link's room that is kept for such answers (link_has_reserve). */
    bool is_outcome;
};

struct calls_options {
    struct link_hub *hub;
    struct loop *loop;
    uint32_t calls_max;    /* 0: CALLS_MAX; at most CALLS_MAX_MAX. */
    uint32_t requests_max; /* 0: CALLS_REQUESTS_MAX. */
    /* A request came. Every one must be answered once, now or later, by call_answer. NULL: all
     * are answered FRAME_STATUS_NO_METHOD. */
    void (*request)(void *user, struct link *link, const struct frame *frame,
                    const struct call_reply *reply);
    /* The caller lost interest; the answer, still due, will be ignored. May be NULL. */
    void (*cancel)(void *user, const struct call_reply *reply);
    void *user;
};

NODISCARD err calls_new(const struct calls_options *options, struct calls **ret_calls);
/* Calls still open get no callback. NULL is allowed. */
void calls_free(struct calls *calls);

/* Returns true if the frame was REQUEST, RESPONSE or CANCEL, that is, was dealt with. */
bool calls_frame(struct calls *calls, struct link *link, const struct frame *frame);
/* From the link's `closed` handler: every call over it ends. */
void calls_closed(struct calls *calls, struct link *link);

struct call_request {
    uint16_t method;
    uint8_t priority;
    uint16_t asker;       /* Whose key it is for (runtime/cluster/wire.h); 0: none. */
    uint32_t deadline_ms; /* 1..CALL_DEADLINE_MS_MAX; sent along as the budget. */
    const uint8_t *trace; /* FRAME_TRACE_SIZE bytes or NULL. */
    struct slice body;    /* Copied. */
    call_done *done;      /* Never called from inside call_start. */
    void *user;
};

/* ret_call (may be NULL) is for call_cancel. On error nothing
 * was queued and `done` will not be called: ERR_FULL (calls_max or the link's queue),
 * ERR_UNAVAILABLE (link not ready), ERR_TOO_LARGE, ERR_INVALID (deadline). */
NODISCARD err call_start(struct calls *calls, struct link *link, const struct call_request *request,
                         uint64_t *ret_call);
/* `done` will not be called any more, and the peer is told. The outcome is unknown. False: there
 * is no such call (any more). */
bool call_cancel(struct calls *calls, uint64_t call);

/* Answers. ERR_CLOSED: that connection is gone and the answer was dropped; ERR_TOO_LARGE: nothing
 * was sent, answer with something smaller; ERR_FULL: likewise, since more than CALL_SMALL_BYTES of
 * body would pass the bound (or with is_outcome, the reserve) of a link that is not read fast
 * enough. On the loop's thread. */
NODISCARD err call_answer(struct calls *calls, const struct call_reply *reply, uint16_t status,
                          struct slice body);

/* Calls waiting for an answer; requests waiting for ours. */
uint32_t calls_open(const struct calls *calls);
uint32_t calls_requests_open(const struct calls *calls);

#endif
