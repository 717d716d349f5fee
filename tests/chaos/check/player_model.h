/*
 * player_model: what one player is to the callers of a history: gold, one document, one session. It
 * says whether an operation can have taken place on a player as it stood, with the answer that its
 * caller got. Pure; knows nothing of time or of who called.
 */
#ifndef TESTS_CHAOS_CHECK_PLAYER_MODEL_H
#define TESTS_CHAOS_CHECK_PLAYER_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
/*    deed     name      what it is */
#define DEED_TABLE(X)                                                                 \
    X(GRANT,  "grant")  /* gold comes from nowhere */                                 \
    X(SPEND,  "spend")  /* gold goes for good */                                      \
    X(SEND,   "send")   /* gold leaves for somebody's mailbox */                      \
    X(CLAIM,  "claim")  /* gold of a mail arrives */                                  \
    X(SAVE,   "save")   /* the document is replaced; under a fence, or without one */ \
    X(READ,   "read")   /* everything is read, linearizably */                        \
    X(JOIN,   "join")   /* a session begins */                                \
    X(LEAVE,  "leave")  /* it ends, and saves */
/* clang-format on */

#define DEED_ENUM(deed, name) DEED_##deed,
enum deed { DEED_TABLE(DEED_ENUM) DEED_COUNT };
#undef DEED_ENUM

/* What the caller was told. OPEN: nothing; it may have taken place, may yet, or never. */
enum outcome { OUTCOME_OPEN, OUTCOME_OK, OUTCOME_REFUSED };

/* Why nothing was done, as far as it says something about the player. */
enum refusal_reason { REFUSED_OTHERWISE, REFUSED_FUNDS, REFUSED_SESSION_LOST };

struct player_state {
    int64_t gold;
    int64_t document; /* 0: none. */
    uint64_t version; /* How often the document was saved. */
    uint64_t fence;   /* Of the last session; 0: there was none. */
    bool held;        /* By that session, which has not ended it. */
};

/* A field with `has_` is compared only if the answer told it. */
struct deed_done {
    enum deed deed;
    enum outcome outcome;
    enum refusal_reason reason;
    int64_t gold;     /* How much: GRANT, SPEND, SEND, CLAIM. > 0. */
    int64_t document; /* To save: SAVE, LEAVE. > 0, or 0: LEAVE saves nothing. */
    uint64_t fence;   /* The session's: SAVE (0: without one), LEAVE. JOIN: the one it was given. */
    bool has_gold_after, has_document_after, has_version_after;
    int64_t gold_after;
    int64_t document_after;
    uint64_t version_after;
};

/* Whether it can have taken place on `state`; then *ret_state is what came of it (may be `state`).
 * An open one can whenever the player allows it. */
bool player_step(const struct player_state *state, const struct deed_done *done,
                 struct player_state *ret_state);

/* Whether so much gold can be away for a while; then it is. */
bool player_take(struct player_state *state, int64_t gold);

/* "grant"; never NULL. */
const char *deed_name(enum deed deed);
/* Whether there is such a deed. */
bool deed_find(const char *name, enum deed *ret_deed);

#endif
