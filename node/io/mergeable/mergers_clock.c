/* What this member has of a shard's documents, and what it knows of the others, for a person. */
#include "node/core/codec/arena_proto.h"
#include "node/io/mergeable/mergers_internal.h"

typedef Holdfast__V1__MemberClock member_clock;

static char state_ok[] = "ok";
static char state_syncing[] = "syncing";
static char state_empty[] = "empty";
static char state_no_member[] = "no_member";

static char *actor_text(struct arena *arena, uint64_t actor)
{
    return actor != 0 ? arena_printf(arena, "%016llx", (unsigned long long)actor)
                      : arena_printf(arena, "%s", "");
}

static void tell_actors(struct arena *arena, const struct mclock *clock, member_clock *told)
{
    Holdfast__V1__ClockActor *actors = arena_alloc(arena, (clock->count + 1) * sizeof *actors);

    told->era = clock->era;
    told->actors = arena_alloc(arena, (clock->count + 1) * sizeof *told->actors);
    for (uint32_t i = 0; i < clock->count; i++) {
        const struct mclock_actor *entry = &clock->actors[i];
        Holdfast__V1__ClockActor *actor = &actors[i];

        holdfast__v1__clock_actor__init(actor);
        actor->actor = actor_text(arena, entry->actor);
        actor->member = entry->member;
        actor->up_to = entry->base;
        actor->above = mclock_above(entry);
        actor->top = mclock_top(entry);
        actor->closed = entry->closed;
        told->actors[told->n_actors++] = actor;
    }
}

static void tell_peers(struct arena *arena, const struct merge_replica *replica, member_clock *told)
{
    uint64_t now_ms = loop_wall_ms();
    Holdfast__V1__ClockPeer *peers = arena_alloc(arena, (replica->peer_count + 1) * sizeof *peers);

    told->peers = arena_alloc(arena, (replica->peer_count + 1) * sizeof *told->peers);
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *from = &replica->peers[i];
        Holdfast__V1__ClockPeer *peer = &peers[i];

        holdfast__v1__clock_peer__init(peer);
        peer->replica_id = from->member;
        peer->heard_ms = -1;
        if (from->boot != 0)
            peer->heard_ms = now_ms > from->heard_ms ? (int64_t)(now_ms - from->heard_ms) : 0;
        peer->reported = from->reported;
        peer->syncing = from->reported && from->syncing;
        if (from->reported) {
            peer->lacked_here = mclock_lacks(&replica->clock, &from->clock);
            peer->lacked_there = mclock_lacks(&from->clock, &replica->clock);
        }
        told->peers[told->n_peers++] = peer;
    }
}

static void tell(struct mergers *mergers, uint32_t shard, member_clock *told)
{
    const struct merger *merger = &mergers->shards[shard];
    const struct merge_replica *replica = merger->replica;

    told->replica_id = mergers->options.self;
    told->state = mergers_is_member(mergers, shard) ? state_empty : state_no_member;
    if (replica == NULL)
        return;
    if (mergers_is_member(mergers, shard))
        told->state = replica->syncing || !merger->started ? state_syncing : state_ok;
    told->writes_as = actor_text(&mergers->arena, replica->actor);
    if (merger->apart_since_ms != 0)
        told->apart_ms = loop_now_ms(mergers->options.loop) - merger->apart_since_ms;
    tell_actors(&mergers->arena, &replica->clock, told);
    tell_peers(&mergers->arena, replica, told);
}

bool mergers_clock(struct mergers *mergers, struct slice bytes, struct buf *out)
{
    Holdfast__Internal__V1__GetNodeClockResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_CLOCK_RESPONSE__INIT;
    member_clock told = HOLDFAST__V1__MEMBER_CLOCK__INIT;

    arena_reset(&mergers->arena);
    const Holdfast__Internal__V1__GetNodeClockRequest *request = (const void *)arena_unpack(
        &mergers->arena, &holdfast__internal__v1__get_node_clock_request__descriptor, bytes);

    if (request == NULL || mergers->stopping || request->shard >= mergers->options.shard_count)
        return false;
    tell(mergers, request->shard, &told);
    response.clock = &told;
    const struct slice packed = arena_pack(&mergers->arena, &response.base);

    buf_append(out, packed.data, packed.size);
    return true;
}
