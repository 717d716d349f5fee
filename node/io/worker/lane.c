#include "node/io/worker/lane.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

enum lane_use parcel_lane(enum parcel_kind kind)
{
    switch (kind) {
    case PARCEL_MESSAGE:
    case PARCEL_RECORD:
    case PARCEL_ROLE:
    case PARCEL_DAMAGE:
    case PARCEL_SAVED:
        return LANE_SYSTEM;
    case PARCEL_CALL:
    case PARCEL_CANCEL:
    case PARCEL_ANSWER:
    case PARCEL_DELIVER:
    case PARCEL_DELIVERED:
        break;
    }
    return LANE_CALLS;
}

static void on_round_end(void *user)
{
    struct lane *lane = user;
    struct mailbox_node *newest = lane->newest;

    if (newest == NULL)
        return;
    lane->newest = NULL;
    mailbox_push_list(&lane->mailbox, newest, lane->oldest);
}

static void on_parcel(void *user, struct mailbox_node *node)
{
    struct lane *lane = user;
    struct parcel *parcel = CONTAINER_OF(node, struct parcel, node);

    atomic_fetch_sub_explicit(&lane->parcels, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&lane->bytes, parcel->bytes.size, memory_order_relaxed);
    if (lane->receive != NULL)
        lane->receive(lane->user, parcel);
    free(parcel);
}

void lane_init(struct lane *lane, const struct lane_options *options)
{
    *lane = (struct lane){
        .parcels_max = options->parcels_max,
        .receive = options->receive,
        .user = options->user,
    };
    atomic_init(&lane->parcels, 0);
    atomic_init(&lane->bytes, 0);
    loop_hook_init_late(&lane->hook, options->from, on_round_end, lane);
    mailbox_init(&lane->mailbox, options->to, on_parcel, lane);
}

void lane_deinit(struct lane *lane)
{
    lane->receive = NULL;
    loop_hook_disarm(&lane->hook);
    on_round_end(lane);
    (void)mailbox_drain(&lane->mailbox);
    mailbox_deinit(&lane->mailbox);
}

bool lane_has_room(const struct lane *lane, size_t bytes)
{
    return atomic_load_explicit(&lane->parcels, memory_order_relaxed) < lane->parcels_max &&
           atomic_load_explicit(&lane->bytes, memory_order_relaxed) + bytes <= LANE_BYTES_MAX;
}

void lane_send(struct lane *lane, const struct parcel *parcel)
{
    struct parcel *copy = mem_alloc(sizeof *copy + parcel->bytes.size);
    uint8_t *bytes = (uint8_t *)(copy + 1);

    *copy = *parcel;
    if (parcel->bytes.size > 0)
        memcpy(bytes, parcel->bytes.data, parcel->bytes.size);
    copy->bytes.data = bytes;
    atomic_fetch_add_explicit(&lane->parcels, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&lane->bytes, parcel->bytes.size, memory_order_relaxed);
    copy->node.next = lane->newest;
    if (lane->newest == NULL)
        lane->oldest = &copy->node;
    lane->newest = &copy->node;
    loop_hook_arm(&lane->hook);
}
