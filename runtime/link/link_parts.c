/* Large answers of a peer come in parts, as fast as there is credit for them (out_queue.h). */
#include <string.h>

#include "runtime/link/link_private.h"

#define DECRYPT_NS_A_BYTE                                                                          \
    2u /* As measured for tls_config.c; it is done before a part is known.                         \
        */

void link_take_response(struct link *link)
{
    if (link->outstanding > link->held)
        link->outstanding--;
    if (link->held > 0) {
        link->urgent = true;
        link_mark_dirty(link);
    }
}

/* New credit for the peer, now and then: what it sent was taken, with all that came of it. */
static void give_credit(struct link *link)
{
    struct link_hub *hub = link->hub;
    uint64_t wait_ms;

    if (link->parts_taken < OUT_CREDIT_BYTES / 2)
        return;
    wait_ms = large_pace_wait_ms(&hub->pace, loop_clock_ns());
    if (wait_ms > 0) {
        if (!loop_timer_is_running(&hub->pace_timer))
            loop_timer_start(&hub->pace_timer, wait_ms);
        return;
    }
    link_append(link, &(struct frame){ .kind = FRAME_CREDIT, .request_id = link->parts_taken });
    link->parts_taken = 0;
}

void link_pace_over(void *user)
{
    struct link_hub *hub = user;

    loop_timer_stop(&hub->pace_timer); /* One that still waits may begin it again. */
    for (uint32_t i = 0; i < hub->link_count_max; i++) {
        if (hub->slots[i] != NULL && hub->slots[i]->state == LINK_READY)
            give_credit(hub->slots[i]);
    }
}

/* Processor time, not what passed meanwhile: others may have had the processor. */
static void take_large(struct link *link, const struct frame *frame)
{
    struct link_hub *hub = link->hub;
    uint64_t begun_ns = loop_thread_ns();

    link_take_response(link);
    link->handlers.frame(link->handlers.user, link, frame);
    large_pace_spend(&hub->pace, loop_clock_ns(), loop_thread_ns() - begun_ns);
}

void link_take_part(struct link *link, struct slice bytes)
{
    uint64_t wire_count = link->wire_count;
    struct frame frame;
    err e = ERR_OK;

    link->parts_taken += bytes.size;
    if (link->parts_taken > OUT_CREDIT_BYTES) {
        link_lose(link, LINK_CLOSED_ERROR, "more parts than there is credit for");
        return;
    }
    if (link->tls != NULL)
        large_pace_spend(&link->hub->pace, loop_clock_ns(), bytes.size * DECRYPT_NS_A_BYTE);
    memcpy(frame_decoder_reserve(&link->parts, bytes.size), bytes.data, bytes.size);
    frame_decoder_commit(&link->parts, bytes.size);
    while (e == ERR_OK) {
        e = frame_decoder_next(&link->parts, &frame);
        if (e == ERR_OK && frame.kind != FRAME_RESPONSE) {
            link_lose(link, LINK_CLOSED_ERROR, "a part of what is no response");
        } else if (e == ERR_OK) {
            link->hub->stats.frames_in++;
            take_large(link, &frame);
        } else if (e != ERR_NEED) {
            link_lose(link, LINK_CLOSED_ERROR, link->parts.error);
        }
        if (link->wire_count != wire_count || link->state != LINK_READY)
            return;
    }
    give_credit(link);
}

void link_take_credit(struct link *link, uint64_t bytes)
{
    if (!out_queue_credit(&link->out, bytes))
        link_lose(link, LINK_CLOSED_ERROR, "more credit than there were parts");
    else if (link_queued_bytes(link) > 0)
        link_mark_dirty(link);
}
