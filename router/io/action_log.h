/*
 * action_log: who did what, in the router's log, by the id of the API key (or a certificate's name)
 * and the address: every call that was refused for what its caller is or sent (`request.refused`),
 * and every action of an operator (`admin.action`). Nothing of a key's text, of a token or of a
 * player is in a line. Floods are one line a minute for each cause: a code (or method) and a
 * caller.
 */
#ifndef ROUTER_IO_ACTION_LOG_H
#define ROUTER_IO_ACTION_LOG_H

#include "router/rpc/request/request.h"
#include "runtime/base/log.h"

#define ACTION_LOG_SLOTS    512u
#define ACTION_LOG_EVERY_MS 60000u

/* Of a cause of lines. Few causes share one, and then one line: so a minute has ACTION_LOG_SLOTS
 * lines at most, however many callers there are. */
struct action_slot {
    uint64_t logged_ms; /* Its last line; 0: none yet. */
    uint32_t withheld;  /* Since then. */
};

/* Zeros, with a log: nothing was told yet. Of one thread. */
struct action_log {
    const struct log *log;
    struct action_slot slots[ACTION_LOG_SLOTS];
};

/* Of a call that ended. `code_text`: "permission_denied", "ok". `now_ms`: of a clock that never
 * goes back. */
void action_log_finished(struct action_log *actions, const struct request *request,
                         Holdfast__V1__ErrorCode code, const char *code_text, uint64_t now_ms);

/* "permission_denied"; success is "ok". */
#define ACTION_CODE_TEXT_SIZE 40u
void action_code_text(Holdfast__V1__ErrorCode code, char ret_text[ACTION_CODE_TEXT_SIZE]);

/* Of a request that its door sent away. */
struct action_refusal {
    const char *why;    /* "unknown_key" */
    const char *method; /* Its name. */
    const char *key;    /* The id of its key; "": it has none that is known. */
    const char *peer;   /* "10.0.0.1:5123" */
};
void action_log_refused(struct action_log *actions, const struct action_refusal *refusal,
                        uint64_t now_ms);
/* The same of a call that ended before there was a request, with that code for its `why`; nothing,
 * if it was for our trouble. */
void action_log_code(struct action_log *actions, const struct action_refusal *refusal,
                     Holdfast__V1__ErrorCode code, uint64_t now_ms);

#endif
