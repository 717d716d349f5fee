#include "node/core/mergeable/rounds.h"

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/folding.h"
#include "node/core/mergeable/log_record.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/pull.h"
#include "node/core/mergeable/pull_take.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

/* ---- time ---- */

/* What it says of its clock is on its disk by then: peers forget, and removed members delete, by
 * it. */
static void report(struct merge_replica *replica, uint64_t now_ms)
{
    struct buf clock = { 0 };

    mclock_encode(&replica->clock, &clock);
    uint64_t hash = hash_u64(buf_slice(&clock));

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];
        struct buf *out =
            merge_message_begin(replica, MERGE_REPORT, peer->member, replica->log_end);

        buf_put_u64(out, now_ms); /* Until it is sent. */
        buf_put_u8(out, replica->syncing);
        buf_put_u64(out, merge_ready_config(replica));
        buf_put_u64(out, merge_processes_view(replica));
        buf_put_u64(out, now_ms);
        buf_put_u64(out, peer->clock_hash);
        buf_put_u64(out, hash);
        buf_put_u8(out, peer->echoed != hash);
        if (peer->echoed != hash)
            buf_append(out, clock.data, clock.size);
    }
    buf_deinit(&clock);
}

void merge_tick(struct merge_replica *replica, uint64_t now_ms)
{
    merge_pull_tick(replica, now_ms);
    if (replica->reported_ms == 0 || now_ms - replica->reported_ms >= MERGE_REPORT_MS) {
        replica->reported_ms = now_ms;
        merge_close_actors(replica);
        merge_follow_era(replica);
        merge_forget_actors(replica);
        merge_counters_fold(replica, now_ms);
        merge_prune_index(replica);
        report(replica, now_ms);
    }
    merge_pending_settle(replica);
    merge_pending_tick(replica, now_ms);
    CHECK(replica->peer_count <= MERGE_PEERS_MAX && replica->pending_count <= MERGE_PENDING_MAX);
}

void merge_durable(struct merge_replica *replica, uint64_t log_position)
{
    CHECK(log_position <= replica->log_end);
    if (log_position > replica->log_durable)
        replica->log_durable = log_position;
    merge_pending_settle(replica);
}

/* ---- messages ---- */

struct incoming_message {
    struct merge_head head;
    struct merge_peer *peer;
    struct reader *reader;
    uint64_t now_ms;
};

/* All that a peer names is named here, dots or not: an end is agreed on by those that know the
 * actor. Over the limit of actors it is left out. */
static void learn_name(struct merge_replica *replica, uint64_t actor, uint64_t member)
{
    const struct mclock_actor *known = mclock_find(&replica->clock, actor);

    if (merge_actor_era(actor) < replica->clock.era || (known != NULL && known->member != 0))
        return;
    if (mclock_name(&replica->clock, actor, member) == ERR_OK)
        merge_log_name(replica, actor, member);
}

/* The clock of a report, if it has one, becomes what is known of the peer. ERR_NEED: it is another
 * one than was heard last, and comes with a later report. */
static err take_clock(struct merge_peer *peer, struct reader *reader)
{
    uint64_t hash = read_u64(reader);
    uint8_t has_clock = read_u8(reader);
    struct mclock clock;

    if (reader->bad || has_clock > 1)
        return ERR_CORRUPT;
    if (has_clock == 0)
        return reader_finish(reader) != ERR_OK ? ERR_CORRUPT
               : hash != peer->clock_hash      ? ERR_NEED
                                               : ERR_OK;
    if (mclock_decode(reader, &clock) != ERR_OK)
        return ERR_CORRUPT;
    if (reader_finish(reader) != ERR_OK) {
        mclock_deinit(&clock);
        return ERR_CORRUPT;
    }
    mclock_deinit(&peer->clock);
    peer->clock = clock;
    peer->clock_hash = hash;
    return ERR_OK;
}

static err take_report(struct merge_replica *replica, struct incoming_message *in)
{
    uint64_t sent_ms = read_u64(in->reader);
    uint8_t syncing = read_u8(in->reader);
    uint64_t ready_config = read_u64(in->reader), view = read_u64(in->reader);
    uint64_t their_ms = read_u64(in->reader), echoed = read_u64(in->reader);
    struct merge_peer *peer = in->peer;

    if (in->reader->bad || syncing > 1)
        return ERR_CORRUPT;
    err e = take_clock(peer, in->reader);

    if (e != ERR_OK)
        return e == ERR_NEED ? ERR_OK : e;
    /* With the clock that it had then: a later actor beside the clock of a report that was long on
     * its way would say that the former one wrote no more than this. */
    peer->actor = in->head.actor;
    peer->reported = true;
    peer->echoed = echoed;
    peer->syncing = syncing == 1;
    peer->config = in->head.config;
    peer->ready_config = ready_config;
    peer->view = view;
    peer->offset_ms = (int64_t)(sent_ms - in->now_ms);
    peer->told_ms = their_ms;
    for (uint32_t i = 0; i < peer->clock.count; i++)
        if (peer->clock.actors[i].member != 0)
            learn_name(replica, peer->clock.actors[i].actor, peer->clock.actors[i].member);
    merge_pending_reported(replica, peer);
    merge_pending_settle(replica);
    merge_pull_begin(replica, peer, in->now_ms);
    return ERR_OK;
}

static err take_write(struct merge_replica *replica, struct incoming_message *in)
{
    struct merge_dot dot;
    struct merge_key *key;
    struct merge_record record;

    if (merge_dot_decode(in->reader, &dot) != ERR_OK)
        return ERR_CORRUPT;
    uint8_t wants_ack = read_u8(in->reader);

    if (merge_key_decode(in->reader, &key) != ERR_OK)
        return ERR_CORRUPT;
    if (merge_record_decode(in->reader, &record) != ERR_OK) {
        merge_key_unref(key);
        return ERR_CORRUPT;
    }
    struct merge_incoming incoming = {
        .key = key, .record = &record, .dots = &dot, .dot_count = 1
    };
    err e = reader_finish(in->reader);

    /* Before the write in the log, too: what has a dot should say whose it is. */
    if (e == ERR_OK && dot.actor == in->head.actor)
        learn_name(replica, dot.actor, in->head.from);
    if (e == ERR_OK)
        e = merge_absorb_logged(replica, &incoming);
    if (e == ERR_OK && wants_ack == 1)
        merge_dot_encode(dot,
                         merge_message_begin(replica, MERGE_ACK, in->head.from, replica->log_end));
    merge_record_deinit(&record);
    merge_key_unref(key);
    return e;
}

static err take_ack(struct merge_replica *replica, struct incoming_message *in)
{
    struct merge_dot dot;

    if (merge_dot_decode(in->reader, &dot) != ERR_OK || reader_finish(in->reader) != ERR_OK)
        return ERR_CORRUPT;
    merge_pending_ack(replica, in->peer, dot, in->head.config);
    merge_pending_settle(replica);
    return ERR_OK;
}

/* A replica that does not have everything cannot tell for a majority, nor can one of another
 * configuration. */
static err take_ask(struct merge_replica *replica, struct incoming_message *in)
{
    uint64_t id = read_u64(in->reader);
    struct merge_key *key;
    struct merge_record record;

    if (merge_key_decode(in->reader, &key) != ERR_OK)
        return ERR_CORRUPT;
    err e = reader_finish(in->reader);

    if (e == ERR_OK && !replica->syncing && in->head.config == replica->members.membership.config) {
        struct buf *out = merge_message_begin(replica, MERGE_TELL, in->head.from, 0);

        merge_record_full(replica, key, &record);
        buf_put_u64(out, id);
        merge_key_encode(key, out);
        merge_record_encode(&record, out);
        merge_record_deinit(&record);
    }
    merge_key_unref(key);
    return e;
}

static err take_tell(struct merge_replica *replica, struct incoming_message *in)
{
    struct merge_pending *read = merge_pending_find(replica, read_u64(in->reader));
    struct merge_key *key;
    struct merge_record record;

    if (merge_key_decode(in->reader, &key) != ERR_OK)
        return ERR_CORRUPT;
    if (merge_record_decode(in->reader, &record) != ERR_OK) {
        merge_key_unref(key);
        return ERR_CORRUPT;
    }
    err e = reader_finish(in->reader);

    if (e == ERR_OK && read != NULL && read->is_read && merge_key_compare(read->key, key) == 0 &&
        in->head.config == replica->members.membership.config) {
        merge_pending_told(replica, read, in->peer, &record);
        merge_pending_settle(replica);
    }
    merge_record_deinit(&record);
    merge_key_unref(key);
    return e;
}

/* A later process of the peer: what an earlier one said of its clock holds no more. */
static void meet(struct merge_peer *peer, const struct merge_head *head)
{
    uint64_t pulled_config = peer->pulled_config, taken_config = peer->taken_config;
    uint64_t member = peer->member;

    if (head->boot == peer->boot)
        return;
    merge_peer_deinit(peer);
    *peer = (struct merge_peer){ .member = member,
                                 .boot = head->boot,
                                 .actor = head->actor,
                                 .pulled_config = pulled_config,
                                 .taken_config = taken_config };
}

/* A process with a lower boot is told of the later one: it may be a new one, on a lost disk, by a
 * clock that was set back, or a report that was long on its way. */
static void tell_later(struct merge_replica *replica, const struct merge_peer *peer,
                       const struct merge_head *head)
{
    if (head->kind == MERGE_REPORT)
        buf_put_u64(merge_message_begin(replica, MERGE_LATER, peer->member, 0), peer->boot);
}

/* It goes on as the latest process of its member; that peer heard nothing of it before. */
static err take_later(struct merge_replica *replica, struct incoming_message *in)
{
    uint64_t boot = read_u64(in->reader);

    if (reader_finish(in->reader) != ERR_OK || boot >= MERGE_BOOT_MAX)
        return ERR_CORRUPT;
    if (boot > replica->options.boot)
        replica->options.boot = boot + 1;
    return ERR_OK;
}

static err dispatch(struct merge_replica *replica, struct incoming_message *in)
{
    switch (in->head.kind) {
    case MERGE_REPORT:
        return take_report(replica, in);
    case MERGE_WRITE:
        return take_write(replica, in);
    case MERGE_ACK:
        return take_ack(replica, in);
    case MERGE_PULL:
        return merge_pull_serve(replica, &in->head, in->reader, in->now_ms);
    case MERGE_CHUNK:
        return merge_pull_take(replica, &in->head, in->reader, in->now_ms);
    case MERGE_ASK:
        return take_ask(replica, in);
    case MERGE_TELL:
        return take_tell(replica, in);
    case MERGE_LATER:
        return take_later(replica, in);
    case MERGE_KIND_END:
        break;
    }
    return ERR_CORRUPT;
}

err merge_receive(struct merge_replica *replica, uint64_t now_ms, struct slice message)
{
    struct reader reader = reader_from(message);
    struct incoming_message in = { .reader = &reader, .now_ms = now_ms };

    if (merge_head_decode(&reader, &in.head) != ERR_OK)
        return ERR_CORRUPT;
    if (in.head.generation != replica->options.generation ||
        in.head.shard != replica->options.shard)
        return ERR_STALE_EPOCH;
    in.peer = merge_peer_find(replica, in.head.from);
    if (in.peer == NULL)
        return ERR_PERMISSION;
    if (in.head.boot < in.peer->boot) {
        tell_later(replica, in.peer, &in.head);
        return ERR_STALE_EPOCH;
    }
    meet(in.peer, &in.head);
    in.peer->heard_ms = now_ms;
    return dispatch(replica, &in);
}
