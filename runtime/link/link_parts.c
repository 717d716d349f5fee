/* Large answers of a peer come in parts, as fast as there is credit for them (out_queue.h). */
#include <string.h>

#include "runtime/link/link_private.h"

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
    if (link->parts_taken < OUT_CREDIT_BYTES / 2)
        return;
    link_append(link, &(struct frame){ .kind = FRAME_CREDIT, .request_id = link->parts_taken });
    link->parts_taken = 0;
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
    memcpy(frame_decoder_reserve(&link->parts, bytes.size), bytes.data, bytes.size);
    frame_decoder_commit(&link->parts, bytes.size);
    while (e == ERR_OK) {
        e = frame_decoder_next(&link->parts, &frame);
        if (e == ERR_OK && frame.kind != FRAME_RESPONSE) {
            link_lose(link, LINK_CLOSED_ERROR, "a part of what is no response");
        } else if (e == ERR_OK) {
            link->hub->stats.frames_in++;
            link_take_response(link);
            link->handlers.frame(link->handlers.user, link, &frame);
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
