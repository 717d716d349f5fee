/*
 * session_guard: checks the session tokens of a request and takes their MACs off, so that nodes and
 * logs see the form that they always knew (session_token.h). Pure.
 *
 * A token whose MAC is missing, or is not that of its player's session, becomes one that no player
 * ever has. So the node refuses it as it refuses any token that is not the session's, whatever the
 * numbers in it say, each element of a batch for itself, and a repetition finds what the first call
 * did. What is no token at all stays as it is: the node says so.
 */
#ifndef ROUTER_CORE_SESSION_GUARD_H
#define ROUTER_CORE_SESSION_GUARD_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/session_token.h"

/* Why tokens were not believed. */
enum session_guard_reason { SESSION_GUARD_NO_MAC, SESSION_GUARD_WRONG_MAC, SESSION_GUARD_REASONS };

struct session_guard {
    const struct session_secrets *secrets; /* May hold none yet. */
    uint64_t refused[SESSION_GUARD_REASONS];
};

struct session_guard_found {
    bool changed; /* An authority was; so the message has to be encoded again. */
    bool system;  /* One is system:<scope>. */
    bool admin;   /* One is system:admin. */
};

/*
 * Changes the authorities of `message` in place; texts are in `arena`.
 *
 * ERR_UNAVAILABLE: the message names a session, and no secret is known yet; ERR_INVALID: it is
 * nested too deep. *ret_detail says so.
 */
NODISCARD err session_guard_message(struct session_guard *guard, const ProtobufCMessage *message,
                                    struct arena *arena, struct session_guard_found *ret_found,
                                    Holdfast__V1__ErrorDetail *ret_detail);

/* Of a heartbeat: ERR_OK: the token is genuine; *ret_token is what it says. ERR_INVALID: it is no
 * token, or not believed. A secret is known (CHECK). */
NODISCARD err session_guard_token(struct session_guard *guard, struct slice player,
                                  struct slice text, struct session_token *ret_token);

/*
 * *ret_answer: the encoded StartSessionResponse `answer` of a node, with the MAC that belongs to
 * its token; in `arena`. A secret is known (CHECK). ERR_CORRUPT: `answer` cannot be read.
 */
NODISCARD err session_guard_sign(const struct session_guard *guard, struct slice player,
                                 struct slice answer, struct arena *arena,
                                 struct slice *ret_answer);

#endif
