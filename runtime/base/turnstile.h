/*
 * turnstile: who may have a place at a port, and who gives one up. Connections that have not
 * proved themselves (no valid key, no finished HELLO, no whole request yet) make room for others:
 * first those that did nothing whole, the oldest first; what has proved itself stays. An address
 * has a share of the places, and a part of all is kept for addresses that proved themselves lately.
 * DESIGN section 11.
 *
 * It also queues TLS handshakes, which cost the loop a millisecond each: by tokens of the address
 * and of the port, and within a share of the loop's time.
 *
 * Pure: time is told, and nothing is closed here. Every decision follows from the calls before it
 * alone, but for `seed`, which only spreads the table.
 */
#ifndef RUNTIME_BASE_TURNSTILE_H
#define RUNTIME_BASE_TURNSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/address.h"

#define TURNSTILE_KNOWN_MS    600000u /* An address is known for so long after it proved itself. */
#define TURNSTILE_REMEMBERED  4096u   /* Addresses without a connection that are still known. */
#define TURNSTILE_WAITING_MAX 1024u   /* Handshakes that wait; more drop the oldest of the       */
                                      /* address that has most.                                 */
#define TURNSTILE_TURN_MAX    4u      /* Handshakes begun in one turn of the loop. */
#define TURNSTILE_ACCEPTS_MAX 8u      /* Connections accepted in one turn: a crowd must not put */
                                      /* one out before what it sent can be read.              */
#define TURNSTILE_SHARE_MS_MAX 20u    /* Of the loop's time, saved up for handshakes. */

/*    enumerator     text            meaning */
#define TURNSTILE_CAUSES(X)                                                                        \
    X(ADDRESS_CAP, "address_cap", "the address has its share of connections")                      \
    X(FULL, "full", "all places are taken, or kept for addresses that proved themselves")          \
    X(UNPROVEN_CAP, "unproven_cap", "too many connections have not proved themselves yet")         \
    X(HANDSHAKES, "handshakes", "more TLS handshakes waited than there is room for")               \
    X(TIMEOUT, "timeout", "it did not prove itself in time")                                       \
    X(BAD_START, "bad_start", "it did not begin as this port's protocol does")

enum turnstile_cause {
#define TURNSTILE_ENUM(enumerator, text, meaning) TURNSTILE_##enumerator,
    TURNSTILE_CAUSES(TURNSTILE_ENUM)
#undef TURNSTILE_ENUM
        TURNSTILE_CAUSE_COUNT
};

const char *turnstile_cause_text(enum turnstile_cause cause);

/* Zero of a maximum: no such limit. */
struct turnstile_limits {
    uint32_t places_max; /* Not 0. */
    uint32_t address_max;
    uint32_t unproven_max;
    uint32_t unproven_address_max;
    uint32_t reserved;         /* Of places_max: for known addresses alone. */
    uint32_t handshakes_per_s; /* A second's worth may come at once, as of the next. */
    uint32_t handshakes_address_per_s;
    uint32_t handshake_percent;    /* Of the loop's time. */
    struct address_ranges proxies; /* No limit of an address holds for these. */
    uint64_t seed;
};

struct turnstile_stats {
    uint64_t places;                         /* Gauge. */
    uint64_t unproven;                       /* Gauge. */
    uint64_t waiting;                        /* Gauge: handshakes. */
    uint64_t refused[TURNSTILE_CAUSE_COUNT]; /* New ones turned away, and older ones put out. */
    uint64_t handshakes;
    uint64_t handshakes_resumed;
    uint64_t handshake_us; /* The loop's time that they took. */
};

struct turnstile_address;

enum turnstile_state { TURNSTILE_OUT, TURNSTILE_UNPROVEN, TURNSTILE_PROVEN };

/* One connection's place: part of the connection, zeroed before `enter`. */
struct turnstile_place {
    struct turnstile_address *address;
    enum turnstile_state state;
    bool waiting; /* For its handshake. */
    bool tried;   /* It did something whole. */
    /* Among all that are unproven, among those of its address, among those that wait. */
    struct turnstile_place *next[3];
    struct turnstile_place *previous[3];
};

struct turnstile;

/* Copies the limits. */
struct turnstile *turnstile_new(const struct turnstile_limits *limits);
/* Every place has left. NULL is allowed. */
void turnstile_free(struct turnstile *turnstile);
const struct turnstile_stats *turnstile_stats(const struct turnstile *turnstile);

struct turnstile_visit {
    struct address address;
    uint64_t now_ms; /* Of a clock that never goes back. */
    /* A connection that has proved itself and has nothing to do, for longest: of this place's
     * address, or of any for NULL. NULL: there is none, or it may not go yet. May be NULL itself.
     */
    struct turnstile_place *(*idle)(void *user, const struct turnstile_address *address);
    void *user;
};

/* False: there is no place, for *ret_cause; `place` stays out. True: it has one, unproven, and
 * *ret_victim, if not NULL, has left for *ret_cause: the caller closes that connection. An idle one
 * that had proved itself goes only for an address that is known. */
bool turnstile_enter(struct turnstile *turnstile, struct turnstile_place *place,
                     const struct turnstile_visit *visit, struct turnstile_place **ret_victim,
                     enum turnstile_cause *ret_cause);
/* Out again; allowed for one that is out. */
void turnstile_leave(struct turnstile *turnstile, struct turnstile_place *place);
/* It has proved itself: now, or once more. Its address is known from now on. */
void turnstile_prove(struct turnstile *turnstile, struct turnstile_place *place, uint64_t now_ms);
/* An unproven one did something whole, such as a request for which no key is needed, or a handshake
 * that has begun: it goes after those that did not, and counts as the newest of those that did. */
void turnstile_touch(struct turnstile *turnstile, struct turnstile_place *place);
/* Whether the address proved itself within TURNSTILE_KNOWN_MS. */
bool turnstile_is_known(const struct turnstile_address *address, uint64_t now_ms);
/* Counts one that went for a reason of the caller's: TIMEOUT, BAD_START. */
void turnstile_count(struct turnstile *turnstile, enum turnstile_cause cause);

/* ---- handshakes ---- */

/* Its handshake waits from now on. *ret_dropped: NULL, or one that has waited in vain and has left:
 * the caller closes it. */
void turnstile_wait(struct turnstile *turnstile, struct turnstile_place *place,
                    struct turnstile_place **ret_dropped);
/* The next that may begin: addresses that have a token take turns, and each other turn is for known
 * ones if any of them waits; of an address the newest. NULL: none waits, or none may now. */
struct turnstile_place *turnstile_next(struct turnstile *turnstile, uint64_t now_us);
/* What a step of a handshake took of the loop. */
void turnstile_spend(struct turnstile *turnstile, uint64_t took_us, uint64_t now_us);
/* A handshake was completed. */
void turnstile_completed(struct turnstile *turnstile, bool resumed);

#endif
