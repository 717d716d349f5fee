#include "runtime/link/out_queue.h"

#include "runtime/base/check.h"

#define KEEP_BYTES_MAX 1048576u /* Larger buffers are given back once empty. */
#define LENGTH_SIZE    4u

/* Of earlier versions: see link_flow.c, give_credit. */
_Static_assert(OUT_WINDOW_BYTES >= OUT_CREDIT_BYTES / 2, "no peer would ever give new credit");

void out_queue_use_parts(struct out_queue *queue)
{
    CHECK(!queue->parts);
    queue->parts = true;
    queue->credit = OUT_CREDIT_BYTES;
}

bool out_queue_credit(struct out_queue *queue, uint64_t bytes)
{
    if (!queue->parts || bytes > OUT_CREDIT_BYTES - queue->credit)
        return false;
    queue->credit += bytes;
    return true;
}

enum out_lane out_queue_lane(const struct out_queue *queue, uint8_t frame_kind, size_t body_bytes)
{
    if (frame_kind == FRAME_RESPONSE && queue->parts && body_bytes > OUT_PART_BYTES)
        return OUT_LARGE;
    bool of_a_call =
        frame_kind == FRAME_REQUEST || frame_kind == FRAME_RESPONSE || frame_kind == FRAME_CANCEL;

    return of_a_call ? OUT_CALLS : OUT_SYSTEM;
}

size_t out_queue_lane_bytes(const struct out_queue *queue, enum out_lane lane)
{
    return queue->lanes[lane].bytes.size - queue->lanes[lane].at;
}

size_t out_queue_bytes(const struct out_queue *queue)
{
    size_t total = 0;

    for (int i = 0; i < OUT_LANES; i++)
        total += out_queue_lane_bytes(queue, (enum out_lane)i);
    return total;
}

static void check(const struct out_queue *queue)
{
    CHECK(queue->flying <= queue->counted);
    CHECK(queue->budget != NULL || queue->counted == 0);
    CHECK(queue->credit <= OUT_CREDIT_BYTES);
    CHECK(queue->parts || out_queue_lane_bytes(queue, OUT_LARGE) == 0);
    for (int i = 0; i < OUT_LANES; i++) {
        CHECK(queue->lanes[i].at <= queue->lanes[i].frame_end);
        CHECK(queue->lanes[i].frame_end <= queue->lanes[i].bytes.size);
    }
}

static void make_room(struct out_lane_bytes *lane)
{
    if (lane->at == 0 || lane->at < lane->bytes.size / 2)
        return;
    buf_consume(&lane->bytes, lane->at);
    lane->frame_end -= lane->at;
    lane->at = 0;
}

size_t out_queue_push(struct out_queue *queue, const struct frame *frame)
{
    enum out_lane number = out_queue_lane(queue, frame->kind, frame->body.size);
    struct out_lane_bytes *lane = &queue->lanes[number];

    make_room(lane);
    size_t before = lane->bytes.size;
    frame_encode(&lane->bytes, frame);
    size_t size = lane->bytes.size - before;
    if (number != OUT_SYSTEM && queue->budget != NULL) {
        budget_take(queue->budget, size);
        queue->counted += size;
    }
    check(queue);
    return size;
}

/* Where the frame that begins at `at` ends. */
static size_t end_of_frame(const struct out_lane_bytes *lane, size_t at)
{
    CHECK(at + LENGTH_SIZE <= lane->bytes.size);
    return at + LENGTH_SIZE + load_u32(lane->bytes.data + at);
}

/* How many more bytes of large answers may be on their way. */
static size_t window_of(const struct out_queue *queue)
{
    uint64_t flying = OUT_CREDIT_BYTES - queue->credit;

    return flying < OUT_WINDOW_BYTES ? (size_t)(OUT_WINDOW_BYTES - flying) : 0;
}

/* Of large answers: they are one stream, whose frames need not be told apart here. */
static struct slice next_part(const struct out_queue *queue)
{
    const struct out_lane_bytes *lane = &queue->lanes[OUT_LARGE];
    size_t size = lane->bytes.size - lane->at;

    size = size < OUT_PART_BYTES ? size : OUT_PART_BYTES;
    size = size < window_of(queue) ? size : window_of(queue);
    return (struct slice){ lane->bytes.data + lane->at, size };
}

static enum out_lane next_lane(const struct out_queue *queue)
{
    const struct out_lane_bytes *calls = &queue->lanes[OUT_CALLS];

    if (calls->at < calls->frame_end)
        return OUT_CALLS;
    if (out_queue_lane_bytes(queue, OUT_SYSTEM) > 0)
        return OUT_SYSTEM;
    bool large = window_of(queue) > 0 && out_queue_lane_bytes(queue, OUT_LARGE) > 0;
    bool small = out_queue_lane_bytes(queue, OUT_CALLS) > 0;
    return large && (queue->large_turn || !small) ? OUT_LARGE : OUT_CALLS;
}

struct slice out_queue_next(const struct out_queue *queue, size_t bytes_max,
                            enum out_lane *ret_lane)
{
    enum out_lane number = next_lane(queue);
    const struct out_lane_bytes *lane = &queue->lanes[number];
    size_t end = lane->frame_end;

    *ret_lane = number;
    if (number == OUT_LARGE)
        return next_part(queue);
    /* An unfinished frame goes alone, since the system's lane comes behind it. */
    if (number == OUT_SYSTEM || lane->at == lane->frame_end) {
        size_t next = end;
        while (next < lane->bytes.size) {
            next = end_of_frame(lane, next);
            if (next - lane->at > bytes_max && end > lane->at)
                break;
            end = next;
        }
    }
    size_t size = end - lane->at < bytes_max ? end - lane->at : bytes_max;
    return (struct slice){ lane->bytes.data + lane->at, size };
}

void out_queue_taken(struct out_queue *queue, enum out_lane number, size_t size)
{
    struct out_lane_bytes *lane = &queue->lanes[number];

    CHECK(size <= lane->bytes.size - lane->at);
    lane->at += size;
    while (lane->frame_end < lane->at)
        lane->frame_end = end_of_frame(lane, lane->frame_end);
    if (number == OUT_LARGE) {
        CHECK(size <= queue->credit);
        queue->credit -= size;
    }
    if (number != OUT_SYSTEM)
        queue->large_turn = number == OUT_CALLS;
    if (number != OUT_SYSTEM && queue->budget != NULL)
        queue->flying += size;
    if (lane->at == lane->bytes.size) {
        lane->at = 0;
        lane->frame_end = 0;
        buf_clear(&lane->bytes);
        if (lane->bytes.capacity > KEEP_BYTES_MAX)
            buf_deinit(&lane->bytes);
    }
    check(queue);
}

static void give(struct out_queue *queue, uint64_t bytes)
{
    CHECK(bytes <= queue->counted);
    if (bytes > 0)
        budget_give(queue->budget, bytes);
    queue->counted -= bytes;
}

void out_queue_written(struct out_queue *queue)
{
    uint64_t flying = queue->flying;

    queue->flying = 0;
    give(queue, flying);
    check(queue);
}

void out_queue_clear(struct out_queue *queue)
{
    give(queue, queue->counted);
    queue->flying = 0;
    queue->parts = false;
    queue->large_turn = false;
    queue->credit = 0;
    for (int i = 0; i < OUT_LANES; i++) {
        buf_deinit(&queue->lanes[i].bytes);
        queue->lanes[i] = (struct out_lane_bytes){ 0 };
    }
    check(queue);
}
