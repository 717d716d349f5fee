#include "node/core/channel_lanes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define RETRY_MS_MIN  50u
#define RETRY_MS_MAX  2000u
#define FAILURES_SEEN 6u

void channel_lanes_clear(struct channel_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        buf_deinit(&lanes->list[i].settle);
    channel_settles_clear(&lanes->settles);
    lanes->count = 0;
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
    *lanes = (struct channel_lanes){ 0 };
}

struct channel_lane *channel_lanes_get(struct channel_lanes *lanes, uint32_t destination)
{
    uint32_t low = 0;
    uint32_t high = lanes->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lanes->list[middle].destination == destination)
            return &lanes->list[middle];
        if (lanes->list[middle].destination < destination)
            low = middle + 1;
        else
            high = middle;
    }
    if (lanes->count == lanes->capacity) {
        lanes->capacity = lanes->capacity > 0 ? lanes->capacity * 2 : 8;
        lanes->list = mem_realloc(lanes->list, sizeof *lanes->list * lanes->capacity);
    }
    struct channel_lane *lane = &lanes->list[low];
    memmove(lane + 1, lane, sizeof *lane * (lanes->count - low));
    lanes->count++;
    *lane = (struct channel_lane){ .destination = destination };
    return lane;
}

struct channel_lane *channel_lanes_find_token(struct channel_lanes *lanes, uint64_t token)
{
    for (uint32_t i = 0; i < lanes->count && token != 0; i++) {
        if (lanes->list[i].token == token)
            return &lanes->list[i];
    }
    return NULL;
}

void channel_lane_wake(struct channel_lane *lane)
{
    lane->idle = false;
    lane->telling = false;
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
        channel_lane_wake(&lanes->list[i]);
}

void channel_lane_fail(struct channel_lanes *lanes, struct channel_lane *lane, uint64_t now_ms)
{
    uint64_t wait_ms = (uint64_t)RETRY_MS_MIN << lane->failures;

    lane->token = 0;
    lane->sent_to = 0;
    channel_lane_wake(lane);
    lane->retry_ms = now_ms + (wait_ms < RETRY_MS_MAX ? wait_ms : RETRY_MS_MAX);
    if (lane->failures < FAILURES_SEEN)
        lane->failures++;
    lanes->retried += lane->records;
    lanes->wanted = true;
}
