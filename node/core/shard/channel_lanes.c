#include "node/core/shard/channel_lanes.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/channel/channel_row.h"
#include "runtime/base/check.h"

#define RETRY_MS_MIN  50u
#define RETRY_MS_MAX  2000u
#define FAILURES_SEEN 6u
#define TOKEN_PLACE   16u /* Below it in a token: the destination. */
#define WORD_BITS     64u

void channel_lanes_clear(struct channel_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        buf_deinit(&lanes->list[i].settle);
    channel_settles_clear(&lanes->settles);
    lanes->settles.logged_index = 0;
    for (uint32_t i = 0; i < lanes->woken_words; i++)
        lanes->woken[i] = 0;
    lanes->count = 0;
    lanes->blocked = 0;
    lanes->scanned = 0;
    lanes->scan_blocked = false;
    lanes->wanted = false;
    lanes->oldest_ms = 0;
}

void channel_lanes_deinit(struct channel_lanes *lanes)
{
    channel_lanes_clear(lanes);
    buf_deinit(&lanes->settles.bytes);
    free(lanes->list);
    free(lanes->woken);
    *lanes = (struct channel_lanes){ 0 };
}

static void set_woken(struct channel_lanes *lanes, uint32_t destination)
{
    uint32_t words = destination / WORD_BITS + 1;

    CHECK(destination <= UINT16_MAX);
    if (lanes->woken_words < words) {
        lanes->woken = mem_realloc(lanes->woken, sizeof *lanes->woken * words);
        while (lanes->woken_words < words)
            lanes->woken[lanes->woken_words++] = 0;
    }
    lanes->woken[destination / WORD_BITS] |= 1ull << destination % WORD_BITS;
}

/* The place of the lane, or where it would be. */
static uint32_t place_of(const struct channel_lanes *lanes, uint32_t destination)
{
    uint32_t low = 0;
    uint32_t high = lanes->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lanes->list[middle].destination < destination)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: there is none. */
static struct channel_lane *lane_find(struct channel_lanes *lanes, uint32_t destination)
{
    uint32_t place = place_of(lanes, destination);

    if (place == lanes->count || lanes->list[place].destination != destination)
        return NULL;
    return &lanes->list[place];
}

struct channel_lane *channel_lanes_get(struct channel_lanes *lanes, uint32_t destination)
{
    uint32_t place = place_of(lanes, destination);

    if (place < lanes->count && lanes->list[place].destination == destination)
        return &lanes->list[place];
    if (lanes->count == lanes->capacity) {
        lanes->capacity = lanes->capacity > 0 ? lanes->capacity * 2 : 8;
        lanes->list = mem_realloc(lanes->list, sizeof *lanes->list * lanes->capacity);
    }
    struct channel_lane *lane = &lanes->list[place];
    memmove(lane + 1, lane, sizeof *lane * (lanes->count - place));
    lanes->count++;
    *lane = (struct channel_lane){ .destination = destination, .batch_max = CHANNEL_BATCH_MAX };
    set_woken(lanes, destination);
    return lane;
}

uint64_t channel_lanes_token(struct channel_lanes *lanes, const struct channel_lane *lane)
{
    return ++lanes->tokens << TOKEN_PLACE | lane->destination;
}

struct channel_lane *channel_lanes_find_token(struct channel_lanes *lanes, uint64_t token)
{
    struct channel_lane *lane = lane_find(lanes, (uint32_t)(token & UINT16_MAX));

    return lane != NULL && token != 0 && lane->token == token ? lane : NULL;
}

void channel_lane_wake(struct channel_lanes *lanes, struct channel_lane *lane)
{
    lane->idle = false;
    lane->telling = false;
    set_woken(lanes, lane->destination);
}

struct channel_lane *channel_lanes_take_woken(struct channel_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->woken_words; i++) {
        if (lanes->woken[i] == 0)
            continue;
        uint32_t bit = (uint32_t)__builtin_ctzll(lanes->woken[i]);
        lanes->woken[i] &= lanes->woken[i] - 1;
        struct channel_lane *lane = lane_find(lanes, i * WORD_BITS + bit);
        CHECK(lane != NULL);
        return lane;
    }
    return NULL;
}

void channel_lane_set_blocked(struct channel_lanes *lanes, struct channel_lane *lane, bool blocked)
{
    if (blocked && !lane->blocked)
        lanes->blocked++;
    else if (!blocked && lane->blocked)
        lanes->blocked--;
    lane->blocked = blocked;
}

void channel_lane_tell(struct channel_lane *lane, uint64_t tell_ms)
{
    lane->tell_ms = tell_ms;
    lane->telling |= lane->idle;
    lane->idle = false;
}

void channel_lanes_settled(struct channel_lanes *lanes, uint64_t tell_ms)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (lanes->list[i].idle && lanes->list[i].token == 0)
            channel_lane_tell(&lanes->list[i], tell_ms);
    }
}

void channel_settles_clear(struct channel_settles *settles)
{
    buf_clear(&settles->bytes);
    settles->items = 0;
}

void channel_lanes_look_again(struct channel_lanes *lanes)
{
    lanes->scanned = 0;
    for (uint32_t i = 0; i < lanes->count; i++)
        channel_lane_wake(lanes, &lanes->list[i]);
}

void channel_lane_again(struct channel_lanes *lanes, struct channel_lane *lane, uint64_t retry_ms)
{
    CHECK(lane->again_seq > 0);
    if (lane->sent_to >= lane->again_seq)
        lane->sent_to = lane->again_seq - 1;
    lane->again_seq = 0;
    lane->retry_ms = retry_ms;
    channel_lane_wake(lanes, lane);
    lanes->wanted = true;
}

void channel_lane_fail(struct channel_lanes *lanes, struct channel_lane *lane, uint64_t now_ms)
{
    uint64_t wait_ms = (uint64_t)RETRY_MS_MIN << lane->failures;

    lane->token = 0;
    lane->sent_to = 0;
    lane->again_seq = 0;
    channel_lane_wake(lanes, lane);
    lane->retry_ms = now_ms + (wait_ms < RETRY_MS_MAX ? wait_ms : RETRY_MS_MAX);
    if (lane->failures < FAILURES_SEEN)
        lane->failures++;
    lanes->retried += lane->records;
    lanes->wanted = true;
}

void channel_lane_answered(struct channel_lane *lane, bool answered)
{
    if (!answered && lane->batch_max > 1)
        lane->batch_max /= 2;
    else if (answered && lane->batch_max < CHANNEL_BATCH_MAX)
        lane->batch_max *= 2;
}

static void check_lane(const struct channel_lanes *lanes, const struct channel_lane *lane)
{
    CHECK(IMPLIES(lane->token != 0, (lane->token & UINT16_MAX) == lane->destination));
    CHECK(lane->token >> TOKEN_PLACE <= lanes->tokens);
    CHECK(lane->failures <= FAILURES_SEEN);
    CHECK(lane->batch_max > 0 && lane->batch_max <= CHANNEL_BATCH_MAX);
    CHECK(lane->again_seq == 0); /* It stands while an answer is taken in. */
}

/* Every lane that was woken is there. */
static void check_woken(const struct channel_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->woken_words; i++) {
        for (uint64_t left = lanes->woken[i]; left != 0; left &= left - 1) {
            uint32_t destination = i * WORD_BITS + (uint32_t)__builtin_ctzll(left);
            uint32_t place = place_of(lanes, destination);
            CHECK(place < lanes->count);
            CHECK(lanes->list[place].destination == destination);
        }
    }
}

void channel_lanes_check(const struct channel_lanes *lanes, uint32_t shard_count)
{
    uint32_t blocked = 0;

    CHECK(lanes->count <= lanes->capacity);
    CHECK(lanes->scanned <= shard_count);
    CHECK((lanes->settles.items == 0) == (lanes->settles.bytes.size == 0));
    for (uint32_t i = 0; i < lanes->count; i++) {
        const struct channel_lane *lane = &lanes->list[i];
        CHECK(lane->destination < shard_count);
        CHECK(IMPLIES(i > 0, lane[-1].destination < lane->destination));
        check_lane(lanes, lane);
        blocked += lane->blocked;
    }
    CHECK(blocked == lanes->blocked);
    check_woken(lanes);
}
