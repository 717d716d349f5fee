#include "load_grant.h"

#include <sys/random.h>
#include <time.h>

#include "runtime/base/check.h"

/* splitmix64, seeded by the kernel so that two runs never share an op_id. */
uint64_t load_random(void)
{
    static _Thread_local uint64_t state;

    if (state == 0)
        CHECK(getrandom(&state, sizeof state, 0) == sizeof state);
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void load_op_id(char ret_text[UUID_TEXT_SIZE])
{
    struct timespec now;
    uint64_t random[2] = { load_random(), load_random() };
    struct uuid uuid;

    clock_gettime(CLOCK_REALTIME, &now);
    uuid = uuid_v7_make((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                        (const uint8_t *)random);
    uuid_print(&uuid, ret_text);
}

unsigned load_player(const struct load_options *options)
{
    return (unsigned)(load_random() % options->players);
}

struct load_grant load_grant_next(const struct load_options *options, struct load_history *history)
{
    struct load_grant grant;

    if (options->repeat > 0 && history->has_acknowledged && history->repeats == 0 &&
        load_random() % options->repeat == 0) {
        history->repeats++;
        return history->acknowledged;
    }
    grant.player = load_player(options);
    load_op_id(grant.op_id);
    if (!history->has_sent)
        history->sent = grant;
    history->has_sent = true;
    return grant;
}

void load_grant_answered(struct load_history *history, bool carried_out)
{
    if (carried_out && history->has_sent) {
        history->acknowledged = history->sent;
        history->has_acknowledged = true;
    }
    history->has_sent = false;
    history->repeats = 0;
}
