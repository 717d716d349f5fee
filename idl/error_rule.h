/*
 * error_rule: what each ErrorCode asks of the caller, in one table. The encoders of errors fill in
 * from here what the maker of an error left out: so each error that leaves the service has its
 * outcome and its action, and none that may pass tells its caller that waiting does not help.
 * docs/operations.md has the same table for callers, made from this one by tools/error_tables.py.
 */
#ifndef IDL_ERROR_RULE_H
#define IDL_ERROR_RULE_H

#include "holdfast/v1/error.pb-c.h"

/* What becomes of the request if nothing else changes. */
enum error_course {
    ERROR_REFUSED, /* Refused. The same request fares no better until something else changes. */
    ERROR_PASSES,  /* Nothing was done. The same request may succeed after a pause. */
    ERROR_UNKNOWN  /* It may have been carried out. The same request finds out. */
};

/* clang-format off */
/*    code, course, action if it is open, action if it is final, retry_after_ms when the maker names
 *    none, what the caller does */
#define ERROR_RULES(X) \
    X(UNSPECIFIED,           ERROR_UNKNOWN, RETRY_SAME,   FIX,           500,   "a code this router does not know: send the same again") \
    X(INVALID_ARGUMENT,      ERROR_REFUSED, FIX,          REREAD,        0,     "a bug in the request: `field`, `limit` and `value` say which; fix it") \
    X(NOT_FOUND,             ERROR_REFUSED, FIX,          REREAD,        0,     "what it names is not there: check the name") \
    X(SESSION_LOCKED,        ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 1000,  "wait `retry_after_ms`; if it is refused raise `attempt`, else send the same again") \
    X(SESSION_LOST,          ERROR_REFUSED, STOP_WRITING, STOP_WRITING,  0,     "stop writing for this player") \
    X(VERSION_CONFLICT,      ERROR_REFUSED, REREAD,       REREAD,        0,     "read again, decide again: a new operation") \
    X(INSUFFICIENT_FUNDS,    ERROR_REFUSED, REREAD,       RAISE_ATTEMPT, 0,     "tell the player; raise `attempt` to ask again") \
    X(ITEM_NOT_HELD,         ERROR_REFUSED, REREAD,       RAISE_ATTEMPT, 0,     "tell the player; raise `attempt` to ask again") \
    X(CAPACITY_FULL,         ERROR_REFUSED, REREAD,       RAISE_ATTEMPT, 0,     "make room; raise `attempt` to ask again") \
    X(THROTTLED,             ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 1000,  "nothing was done: wait, send the same again") \
    X(SCHEMA_TOO_NEW,        ERROR_REFUSED, FIX,          FIX,           0,     "update this server; what is stored is newer") \
    X(QUARANTINED,           ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 60000, "nothing was done, and a person must act: keep the request, send the same again") \
    X(OPERATION_ID_MISMATCH, ERROR_REFUSED, NEVER,        NEVER,         0,     "never repeat it; alert: two requests share one id") \
    X(OPERATION_EXPIRED,     ERROR_REFUSED, NEVER,        NEVER,         0,     "never applied from now on; if an earlier try may have been, look in the ledger") \
    X(OPERATION_ABORTED,     ERROR_REFUSED, NEVER,        NEVER,         0,     "never carried out: a new id is a new operation") \
    X(TXN_CONFLICT,          ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 50,    "nothing was done: wait, send the same again") \
    X(VERSION_LOST,          ERROR_REFUSED, REREAD,       REREAD,        0,     "read again without `at_least`, and take what it says") \
    X(OUTCOME_UNKNOWN,       ERROR_UNKNOWN, RETRY_SAME,   FIX,           500,   "it may have been carried out: send the same again, or ResolveOperation with `seal`") \
    X(UNAVAILABLE,           ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 500,   "nothing was done: wait, send the same again") \
    X(UNAUTHENTICATED,       ERROR_REFUSED, FIX,          FIX,           0,     "nothing was done: mend the key, then send the same again") \
    X(PERMISSION_DENIED,     ERROR_REFUSED, FIX,          FIX,           0,     "use an authority, or a key, that may do this") \
    X(UNIMPLEMENTED,         ERROR_REFUSED, FIX,          FIX,           0,     "call a method that this version has, as its page says") \
    X(INTERNAL,              ERROR_REFUSED, FIX,          FIX,           0,     "a bug of ours, and nothing was written: report its `trace_id`") \
    X(DEADLINE_EXCEEDED,     ERROR_PASSES,  RETRY_SAME,   RAISE_ATTEMPT, 100,   "nothing was done: wait, send the same again with more time") \
    X(SERVER_EXPIRED,        ERROR_REFUSED, REGISTER,     REGISTER,      0,     "register again; all sessions of this incarnation are lost") \
    X(ALREADY_REVERSED,      ERROR_REFUSED, NEVER,        NEVER,         0,     "it is done, by `about.entry`") \
    X(NOT_REVERSIBLE,        ERROR_REFUSED, NEVER,        NEVER,         0,     "carry out the opposite operation instead") \
    X(RESERVATION_CLOSED,    ERROR_REFUSED, NEVER,        NEVER,         0,     "it is done, by `about.entry`; with `about.came_back` reserve again, with `about.on_its_way` raise `attempt` later") \
    X(RESERVATION_EXPIRED,   ERROR_REFUSED, NEVER,        NEVER,         0,     "reserve again: what it held is back, or about to be") \
    X(TOO_LARGE,             ERROR_REFUSED, FIX,          FIX,           0,     "nothing was done: send less at once") \
    X(CANCELED,              ERROR_UNKNOWN, RETRY_SAME,   FIX,           500,   "the caller went away: ask again under the same op_id") \
    X(OUT_OF_RANGE,          ERROR_REFUSED, REREAD,       REREAD,        0,     "begin again from the start of the list")
/* clang-format on */

struct error_rule {
    enum error_course course;
    Holdfast__V1__Action open;  /* What the caller does if nothing was recorded. */
    Holdfast__V1__Action final; /* ... and about the recorded outcome of its attempt. */
    uint32_t retry_after_ms;    /* 0: waiting does not help. Above 0 exactly for what may pass. */
};

/* Codes that this build does not know have the rule of UNSPECIFIED. */
const struct error_rule *error_rule_get(Holdfast__V1__ErrorCode code);

/*
 * `detail`, whole: with its outcome and action, and with a retry_after_ms for what may pass. Its
 * maker sets `outcome` for what is recorded (REFUSED), and need not otherwise. What is refused
 * keeps the retry_after_ms that was recorded. Doing it twice changes nothing. Texts are shared with
 * `detail`.
 */
Holdfast__V1__ErrorDetail error_complete(const Holdfast__V1__ErrorDetail *detail);

/* "session_locked" and "raise_attempt", as headers have them; "unspecified" for what this build
 * does not know. */
#define ERROR_WORD_SIZE 24u
struct error_words {
    char code[ERROR_WORD_SIZE];
    char action[ERROR_WORD_SIZE];
};
struct error_words error_words_of(const Holdfast__V1__ErrorDetail *detail);

#endif
