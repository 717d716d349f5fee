/*
 * handshakes: begins TLS handshakes that wait at a turnstile: TURNSTILE_TURN_MAX at the end of a
 * round, and no more than its share of the loop's time. The rest waits for the next round.
 */
#ifndef RUNTIME_LOOP_HANDSHAKES_H
#define RUNTIME_LOOP_HANDSHAKES_H

#include "runtime/base/turnstile.h"
#include "runtime/loop/loop.h"

#define HANDSHAKES_PERIOD_MS 2u /* Between rounds, while some wait. */

struct handshakes {
    struct loop *loop;
    struct turnstile *turnstile;
    /* Its turn has come; turnstile_spend tells what it took. The place may leave meanwhile. */
    void (*begin)(void *user, struct turnstile_place *place);
    void *user;
    struct loop_hook hook;
    struct loop_timer timer;
};

/* The first four fields are set. */
void handshakes_start(struct handshakes *handshakes);
void handshakes_stop(struct handshakes *handshakes);
/* One waits since now. */
void handshakes_arm(struct handshakes *handshakes);

#endif
