#include "node/io/process/earlier_life.h"

#include <stdio.h>
#include <string.h>

#include "node/store/datadir.h"

#define TRY_EVERY_MS 50u

bool earlier_life_wait(struct earlier_life *life, struct loop_timer *timer, const char *why)
{
    uint64_t now_ms = loop_now_ms(life->loop);
    const char *behind = strrchr(why, ':');

    if (life->until_ms == 0) {
        life->until_ms = now_ms + EARLIER_LIFE_PATIENCE_MS;
        log_event(life->log, LOG_WARN, "node.waits_for_directory", LOG_S("why", why),
                  LOG_N("patience_ms", EARLIER_LIFE_PATIENCE_MS));
    }
    if (now_ms >= life->until_ms)
        return false;
    snprintf(life->why, sizeof life->why, "the data directory is%s",
             behind != NULL ? behind + 1 : why);
    loop_timer_start(timer, TRY_EVERY_MS);
    return true;
}

bool earlier_life_wait_for_port(struct earlier_life *life, struct loop_timer *timer,
                                const char *path, const char *port)
{
    uint64_t now_ms = loop_now_ms(life->loop);
    char text[DATADIR_ERROR_BYTES];

    if (datadir_is_held(path, text))
        return earlier_life_wait(life, timer, text);
    if (life->ports_until_ms == 0) {
        life->ports_until_ms = now_ms + EARLIER_LIFE_PORTS_MS;
        log_event(life->log, LOG_WARN, "node.waits_for_port", LOG_S("port", port),
                  LOG_N("patience_ms", EARLIER_LIFE_PORTS_MS));
    }
    if (now_ms >= life->ports_until_ms)
        return false;
    snprintf(life->why, sizeof life->why, "the %s is taken", port);
    loop_timer_start(timer, TRY_EVERY_MS);
    return true;
}

void earlier_life_end(struct earlier_life *life)
{
    life->why[0] = 0;
}
