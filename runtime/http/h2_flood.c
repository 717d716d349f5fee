#include "runtime/http/h2_flood.h"

#include <string.h>

#define PREFACE_BYTES       24u
#define RESET_BURST         20u /* Times resets_per_s. */
#define CONTROL_BURST       4u  /* Times controls_per_s. */
#define FLAG_END_STREAM     0x1u
#define FLAG_PADDED         0x8u
#define PADDING_MAX         256u /* With its own length: such a frame may bring no body. */
#define UPDATES_PER_DATA    2u   /* One of the stream, one of the connection. */
#define UPDATES_PER_REQUEST 2u
#define UPDATES_MAX         20000u

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_WINDOW_UPDATE = 8,
    FRAME_CONTINUATION = 9
};

/* One more of what may come `per_s` times a second. False: too many have come. */
static bool bucket_take(struct http_bucket *bucket, uint64_t now_ms, uint64_t per_s, uint64_t burst)
{
    uint64_t earned_milli = (now_ms - bucket->since_ms) * per_s;

    bucket->spent_milli -= earned_milli < bucket->spent_milli ? earned_milli : bucket->spent_milli;
    bucket->since_ms = now_ms;
    if (bucket->spent_milli + 1000 > per_s * burst * 1000)
        return false;
    bucket->spent_milli += 1000;
    return true;
}

static void allow_updates(struct h2_flood *flood, uint32_t count)
{
    if (flood->window_updates < UPDATES_MAX)
        flood->window_updates += count;
}

static bool is_control(struct h2_flood *flood, uint32_t length)
{
    uint8_t flags = flood->head[4];

    switch (flood->head[3]) {
    case FRAME_DATA:
        return (length == 0 || ((flags & FLAG_PADDED) != 0 && length <= PADDING_MAX)) &&
               (flags & FLAG_END_STREAM) == 0;
    case FRAME_HEADERS:
        allow_updates(flood, UPDATES_PER_REQUEST);
        return false;
    case FRAME_CONTINUATION: /* nghttp2 takes few of them. */
    case FRAME_RST_STREAM:   /* Counted when its stream closes. */
        return false;
    case FRAME_WINDOW_UPDATE:
        if (flood->window_updates == 0)
            return true;
        flood->window_updates--;
        return false;
    default:
        return true;
    }
}

static bool take_control(struct h2_flood *flood, const struct h2_rates *rates)
{
    return bucket_take(&flood->controls, rates->now_ms, rates->controls_per_s, CONTROL_BURST);
}

/* A frame's head is whole. */
static bool take_head(struct h2_flood *flood, const struct h2_rates *rates)
{
    const uint8_t *head = flood->head;

    flood->payload_left = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    flood->head_size = 0;
    return !is_control(flood, flood->payload_left) || take_control(flood, rates);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool h2_flood_receive(struct h2_flood *flood, const struct h2_rates *rates, struct slice bytes)
{
    size_t at = smaller(bytes.size, PREFACE_BYTES - flood->preface_seen);
    bool good = true;

    flood->preface_seen += (uint8_t)at;
    while (at < bytes.size && good) {
        size_t left = bytes.size - at;
        if (flood->payload_left > 0) {
            size_t part = smaller(left, flood->payload_left);
            flood->payload_left -= (uint32_t)part;
            at += part;
            continue;
        }
        size_t part = smaller(left, H2_FRAME_HEAD_BYTES - flood->head_size);
        memcpy(flood->head + flood->head_size, bytes.data + at, part);
        flood->head_size += (uint8_t)part;
        at += part;
        if (flood->head_size == H2_FRAME_HEAD_BYTES)
            good = take_head(flood, rates);
    }
    return good;
}

void h2_flood_sent_data(struct h2_flood *flood)
{
    allow_updates(flood, UPDATES_PER_DATA);
}

bool h2_flood_reset(struct h2_flood *flood, const struct h2_rates *rates)
{
    return bucket_take(&flood->resets, rates->now_ms, rates->resets_per_s, RESET_BURST);
}

bool h2_flood_refused(struct h2_flood *flood, const struct h2_rates *rates)
{
    return take_control(flood, rates);
}
