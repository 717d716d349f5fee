#include "node/core/mergeable/pending.h"

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/check.h"

const char *merge_pending_full(const struct merge_replica *replica, uint64_t bytes,
                               uint64_t *ret_limit)
{
    *ret_limit = MERGE_PENDING_MAX;
    if (replica->pending_count == MERGE_PENDING_MAX)
        return "pending";
    *ret_limit = MERGE_PENDING_BYTES_MAX;
    return bytes > 0 && replica->pending_bytes > 0 &&
                   replica->pending_bytes + bytes > MERGE_PENDING_BYTES_MAX
               ? "pending_bytes"
               : NULL;
}

struct merge_pending *merge_pending_new(struct merge_replica *replica, uint64_t now_ms,
                                        uint64_t bytes)
{
    uint64_t limit;

    if (merge_pending_full(replica, bytes, &limit) != NULL)
        return NULL;
    replica->pending_bytes += bytes;
    struct merge_pending *pending = &replica->pending[replica->pending_count++];

    *pending = (struct merge_pending){ .ticket = ++replica->ticket_last,
                                       .began_ms = now_ms,
                                       .bytes = bytes,
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
    CHECK(replica->pending_bytes >= replica->pending[at].bytes);
    replica->pending_bytes -= replica->pending[at].bytes;
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

static bool is_oldest_read(const struct merge_replica *replica, const struct merge_pending *read)
{
    const struct merge_pending *first = replica->pending;

    while (!first->is_read)
        first++;
    return first == read;
}

/* Reads of what this member lacks began with nothing; the oldest one always goes on. */
static bool join_told(struct merge_replica *replica, struct merge_pending *read,
                      const struct merge_record *record)
{
    uint64_t others = replica->pending_bytes - read->bytes;
    struct merge_record joined = { 0 };

    merge_record_copy(&joined, &read->merged);
    (void)merge_record_join(&joined, record);
    uint64_t bytes = merge_record_bytes(&joined);

    if (bytes > read->bytes && others + bytes > MERGE_PENDING_BYTES_MAX &&
        !is_oldest_read(replica, read)) {
        merge_record_deinit(&joined);
        return false;
    }
    merge_record_deinit(&read->merged);
    read->merged = joined;
    read->bytes = bytes;
    replica->pending_bytes = others + bytes;
    return true;
}

void merge_pending_told(struct merge_replica *replica, struct merge_pending *read,
                        const struct merge_peer *peer, const struct merge_record *record)
{
    const struct merge_record *merged = &read->merged;
    bool fits = merged->policy == record->policy || merged->policy == MERGE_POLICY_NONE ||
                record->policy == MERGE_POLICY_NONE;

    if (!fits || read->config != replica->members.membership.config ||
        causal_union(&merged->context, &record->context) > MCLOCK_ACTORS_MAX ||
        !join_told(replica, read, record))
        return;
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

static void end_late(struct merge_replica *replica, uint64_t now_ms)
{
    for (uint32_t i = 0; i < replica->pending_count;) {
        struct merge_pending *pending = &replica->pending[i];

        if (now_ms - pending->began_ms <= MERGE_WAIT_MS_MAX) {
            i++;
            continue;
        }
        merge_out_done(replica,
                       (struct merge_done){ .ticket = pending->ticket, .result = ERR_TIMEOUT });
        remove_at(replica, i);
    }
}

/* The place of the first one behind what was sent again last. */
static uint32_t next_to_send(const struct merge_replica *replica)
{
    for (uint32_t i = 0; i < replica->pending_count; i++)
        if (replica->pending[i].ticket > replica->resent)
            return i;
    return 0;
}

void merge_pending_tick(struct merge_replica *replica, uint64_t now_ms)
{
    uint64_t bytes = 0;

    end_late(replica, now_ms);
    uint32_t first = next_to_send(replica);

    for (uint32_t n = 0; n < replica->pending_count && bytes < MERGE_RESEND_BYTES; n++) {
        struct merge_pending *pending = &replica->pending[(first + n) % replica->pending_count];

        if (now_ms - pending->sent_ms < MERGE_RESEND_MS)
            continue;
        pending->sent_ms = now_ms;
        replica->resent = pending->ticket;
        bytes += send_again(replica, pending);
    }
}
