#include "runtime/loop/handshakes.h"

static void begin_some(void *user)
{
    struct handshakes *handshakes = user;

    for (uint32_t i = 0; i < TURNSTILE_TURN_MAX; i++) {
        struct turnstile_place *place =
            turnstile_next(handshakes->turnstile, loop_clock_ns() / 1000);
        if (place == NULL)
            break;
        handshakes->begin(handshakes->user, place);
    }
    if (turnstile_stats(handshakes->turnstile)->waiting > 0)
        loop_timer_start(&handshakes->timer, HANDSHAKES_PERIOD_MS);
}

void handshakes_start(struct handshakes *handshakes)
{
    loop_hook_init(&handshakes->hook, handshakes->loop, begin_some, handshakes);
    loop_timer_init(&handshakes->timer, handshakes->loop, begin_some, handshakes);
}

void handshakes_stop(struct handshakes *handshakes)
{
    loop_hook_disarm(&handshakes->hook);
    loop_timer_stop(&handshakes->timer);
}

void handshakes_arm(struct handshakes *handshakes)
{
    if (!loop_timer_is_running(&handshakes->timer))
        loop_hook_arm(&handshakes->hook);
}
