#include "node/core/mergeable/pending.h"

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/check.h"

struct merge_pending *merge_pending_new(struct merge_replica *replica, uint64_t now_ms)
{
    if (replica->pending_count == MERGE_PENDING_MAX)
        return NULL;
    struct merge_pending *pending = &replica->pending[replica->pending_count++];

    *pending = (struct merge_pending){ .ticket = ++replica->ticket_last,
                                       .began_ms = now_ms,
                                       .sent_ms = now_ms,
                                       .config = replica->members.membership.config };
    return pending;
}

struct merge_pending *merge_pending_find(struct merge_replica *replica, uint64_t ticket)
{
    for (uint32_t i = 0; i < replica->pending_count; i++)
        if (replica->pending[i].ticket == ticket)
            return &replica->pending[i];
    return NULL;
}

static void remove_at(struct merge_replica *replica, uint32_t at)
{
    merge_key_unref(replica->pending[at].key);
    merge_record_deinit(&replica->pending[at].merged);
    replica->pending_count--;
    for (uint32_t i = at; i < replica->pending_count; i++)
        replica->pending[i] = replica->pending[i + 1];
}

static void mark(const struct membership *m, uint64_t member, uint32_t *acks, uint32_t *new_acks)
{
    for (uint32_t i = 0; i < m->count; i++)
        *acks |= m->members[i] == member ? 1u << i : 0;
    for (uint32_t i = 0; i < m->new_count; i++)
        *new_acks |= m->new_members[i] == member ? 1u << i : 0;
}

bool merge_majority_is_near(const struct merge_replica *replica, uint64_t now_ms)
{
    const struct membership *m = &replica->members.membership;
    uint32_t near = 0, new_near = 0;

    mark(m, replica->options.member, &near, &new_near);
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (peer->boot != 0 && now_ms - peer->heard_ms <= MERGE_HEARD_MS_MAX)
            mark(m, peer->member, &near, &new_near);
    }
    return membership_quorum(m, near, new_near);
}

void merge_pending_ack(struct merge_replica *replica, const struct merge_peer *peer,
                       struct merge_dot dot, uint64_t config)
{
    /* What was said under a lower configuration, or a greater one that is not known here, may be no
     * part of the majorities that later reads ask. */
    if (config != replica->members.membership.config)
        return;
    for (uint32_t i = 0; i < replica->pending_count; i++) {
        struct merge_pending *write = &replica->pending[i];

        if (!write->is_read && write->config == config && merge_dot_equal(write->dot, dot))
            mark(&replica->members.membership, peer->member, &write->acks, &write->new_acks);
    }
}

/* Of an actor of a forgotten era every member had the same dots, those of its process. */
static bool has_dot(const struct mclock *clock, struct merge_dot dot)
{
    return mclock_holds(clock, dot) || merge_actor_era(dot.actor) < clock->era;
}

void merge_pending_reported(struct merge_replica *replica, const struct merge_peer *peer)
{
    for (uint32_t i = 0; i < replica->pending_count; i++)
        if (!replica->pending[i].is_read && has_dot(&peer->clock, replica->pending[i].dot))
            merge_pending_ack(replica, peer, replica->pending[i].dot, peer->config);
}

void merge_pending_told(struct merge_replica *replica, struct merge_pending *read,
                        const struct merge_peer *peer, const struct merge_record *record)
{
    struct merge_record *merged = &read->merged;
    bool fits = merged->policy == record->policy || merged->policy == MERGE_POLICY_NONE ||
                record->policy == MERGE_POLICY_NONE;

    if (!fits || read->config != replica->members.membership.config ||
        causal_union(&merged->context, &record->context) > MCLOCK_ACTORS_MAX)
        return;
    (void)merge_record_join(merged, record);
    mark(&replica->members.membership, peer->member, &read->acks, &read->new_acks);
}

static uint32_t held_by(const struct merge_pending *pending)
{
    uint32_t old = (uint32_t)__builtin_popcount(pending->acks);
    uint32_t new = (uint32_t)__builtin_popcount(pending->new_acks);

    return old > new ? old : new;
}

static bool is_done(const struct merge_replica *replica, const struct merge_pending *pending)
{
    uint32_t acks = pending->acks, new_acks = pending->new_acks;

    if (!pending->is_read && pending->log_position > replica->log_durable)
        return false;
    if (!pending->is_read && pending->durability != MERGE_MAJORITY)
        return true;
    mark(&replica->members.membership, replica->options.member, &acks, &new_acks);
    return membership_quorum(&replica->members.membership, acks, new_acks);
}

/* A majority's read repairs: what it merged is stored here, and spreads from here. A caller may
 * have been shown what no majority has. */
static void answer(struct merge_replica *replica, struct merge_pending *pending)
{
    bool on_disk = pending->is_read || pending->durability != MERGE_MEMORY;
    struct merge_done done = { .ticket = pending->ticket,
                               .replicas = on_disk ? held_by(pending) + 1 : 0 };

    if (pending->is_read) {
        struct merge_incoming incoming = { .key = pending->key, .record = &pending->merged };

        done.result = merge_absorb_logged(replica, &incoming);
        if (done.result == ERR_OK && !merge_token_met(replica, &pending->token))
            done.result = ERR_NEED;
        if (done.result == ERR_OK) {
            done.record = mem_zalloc(sizeof *done.record);
            merge_record_full(replica, pending->key, done.record);
        }
    }
    merge_out_done(replica, done);
}

void merge_pending_settle(struct merge_replica *replica)
{
    for (uint32_t i = 0; i < replica->pending_count;) {
        struct merge_pending *pending = &replica->pending[i];

        if (pending->config != replica->members.membership.config) {
            pending->config = replica->members.membership.config;
            pending->acks = pending->new_acks = 0;
            pending->sent_ms = 0;
        }
        if (is_done(replica, pending)) {
            answer(replica, pending);
            remove_at(replica, i);
        } else {
            i++;
        }
    }
}

/* Bytes of its messages. */
static uint64_t send_again(struct merge_replica *replica, const struct merge_pending *pending)
{
    uint32_t first = replica->out.message_count;
    uint64_t bytes = 0;

    if (pending->is_read)
        merge_send_ask(replica, pending->key, pending->ticket);
    else if (pending->durability == MERGE_MAJORITY)
        merge_send_write(replica, pending->key, pending->dot, true);
    for (uint32_t i = first; i < replica->out.message_count; i++)
        bytes += replica->out.messages[i].bytes.size;
    return bytes;
}

void merge_pending_tick(struct merge_replica *replica, uint64_t now_ms)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < replica->pending_count;) {
        struct merge_pending *pending = &replica->pending[i];

        if (now_ms - pending->began_ms > MERGE_WAIT_MS_MAX) {
            merge_out_done(replica,
                           (struct merge_done){ .ticket = pending->ticket, .result = ERR_TIMEOUT });
            remove_at(replica, i);
            continue;
        }
        if (now_ms - pending->sent_ms >= MERGE_RESEND_MS && bytes < MERGE_RESEND_BYTES) {
            pending->sent_ms = now_ms;
            bytes += send_again(replica, pending);
        }
        i++;
    }
}
