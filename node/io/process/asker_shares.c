#include "node/io/process/asker_shares.h"

#include <stdlib.h>

#include "runtime/base/caller_share.h"
#include "runtime/base/check.h"

struct leaving {
    struct large_read large;
    struct link_mark mark;
};

struct asker_shares {
    struct asker_shares_options options;
    struct caller_shares *places;
    struct large_reads *large;
    struct leaving *leaving;
    uint32_t leaving_count;
    uint64_t looked_ms; /* When it was last seen which of them have left. */
};

struct asker_shares *asker_shares_new(const struct asker_shares_options *options)
{
    struct asker_shares *shares = mem_zalloc(sizeof *shares);

    shares->options = *options;
    shares->places = caller_shares_new();
    shares->large = large_reads_new();
    shares->leaving = mem_zalloc(sizeof *shares->leaving * ASKER_LEAVING_MAX);
    return shares;
}

void asker_shares_free(struct asker_shares *shares)
{
    if (shares == NULL)
        return;
    for (uint32_t i = 0; i < shares->leaving_count; i++)
        large_reads_end(shares->large, &shares->leaving[i].large, 0);
    caller_shares_free(shares->places);
    large_reads_free(shares->large);
    free(shares->leaving);
    free(shares);
}

static void forget_left(struct asker_shares *shares)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < shares->leaving_count; i++) {
        const struct leaving *leaving = &shares->leaving[i];
        if (shares->options.has_left(shares->options.user, &leaving->mark))
            large_reads_end(shares->large, &leaving->large, 0);
        else
            shares->leaving[kept++] = *leaving;
    }
    shares->leaving_count = kept;
}

static struct large_read large_of(const struct asked *asked)
{
    return (struct large_read){ asked->asker, asked->method, asked->expected_bytes };
}

/* What has left is looked for when room is wanted, once a millisecond: there may be many. */
static bool begin_large(struct asker_shares *shares, struct asked *asked, uint64_t share_bytes,
                        uint64_t now_ms)
{
    struct large_read large = large_of(asked);
    bool begun = large_reads_begin(shares->large, &large, share_bytes);

    if (!begun && shares->looked_ms != now_ms) {
        shares->looked_ms = now_ms;
        forget_left(shares);
        begun = large_reads_begin(shares->large, &large, share_bytes);
    }
    asked->expected_bytes = begun ? large.expected_bytes : 0;
    return begun;
}

enum asker_verdict asker_begin(struct asker_shares *shares, struct asked *asked,
                               const struct asker_limits *limits, uint64_t now_ms)
{
    CHECK(!asked->holds_place && asked->expected_bytes == 0);
    if (asked->asker == 0)
        return ASKER_ADMITTED;
    if (!caller_share_take(shares->places, asked->asker, 1, limits->places))
        return ASKER_HOLDS_PLACES;
    if (asked->reads && !begin_large(shares, asked, limits->bytes, now_ms)) {
        caller_share_give(shares->places, asked->asker, 1);
        return ASKER_HOLDS_BYTES;
    }
    asked->holds_place = true;
    return ASKER_ADMITTED;
}

static void end_large(struct asker_shares *shares, const struct asked *asked, uint64_t bytes,
                      const struct link_mark *mark)
{
    struct large_read large = large_of(asked);

    if (shares->leaving_count == ASKER_LEAVING_MAX)
        forget_left(shares);
    if (mark == NULL || bytes < LARGE_READ_BYTES || shares->leaving_count == ASKER_LEAVING_MAX) {
        large_reads_end(shares->large, &large, mark != NULL ? bytes : 0);
        return;
    }
    large_reads_answered(shares->large, &large, bytes);
    shares->leaving[shares->leaving_count++] = (struct leaving){ large, *mark };
}

void asker_end(struct asker_shares *shares, struct asked *asked, uint64_t bytes,
               const struct link_mark *mark)
{
    if (!asked->holds_place)
        return;
    caller_share_give(shares->places, asked->asker, 1);
    if (asked->reads)
        end_large(shares, asked, bytes, mark);
    *asked = (struct asked){ 0 };
}

uint64_t asker_places(const struct asker_shares *shares, uint16_t asker)
{
    return caller_share_held(shares->places, asker);
}

uint64_t asker_bytes(const struct asker_shares *shares, uint16_t asker)
{
    return large_reads_held(shares->large, asker);
}
