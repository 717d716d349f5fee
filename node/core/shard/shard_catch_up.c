/* Both sides of a snapshot (shard_snapshot.h): the source that reads, the target that is behind. */
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

static struct rep_message message_make(const struct shard *shard, enum rep_message_type type)
{
    return (struct rep_message){ .type = type, .shard = shard->number };
}

/* ---- the source ---- */

static void source_refuse(const struct shard *shard, uint64_t to, uint64_t id,
                          struct shard_out *out)
{
    struct rep_message m = message_make(shard, REP_MSG_SNAPSHOT_PART);

    m.refused = true;
    m.snapshot = id;
    rep_send(&out->rep, to, &m);
}

static void source_release(struct shard *shard, struct shard_out *out)
{
    struct snapshot_source *source = &shard->source;

    out->snapshot.close |= source->viewed;
    source->viewed = false;
    source->reading = false;
}

static void source_close(struct shard *shard, struct shard_out *out)
{
    source_release(shard, out);
    shard->source.open = false;
    buf_deinit(&shard->source.sent);
    buf_deinit(&shard->source.after);
}

static void source_read(struct shard *shard, struct shard_out *out)
{
    struct snapshot_source *source = &shard->source;
    struct snapshot_actions *actions = &out->snapshot;

    source->wanted = false;
    source->reading = true;
    source->viewed = true;
    actions->read = true;
    actions->fresh = source->parts == 0;
    actions->bytes_max = shard->limits.snapshot_part_bytes;
    buf_clear(&actions->after);
    buf_append(&actions->after, source->after.data, source->after.size);
}

static void source_open(struct shard *shard, uint64_t to, const struct shard_event *event,
                        struct shard_out *out)
{
    uint64_t hold_ms = shard->source.hold_ms;
    uint64_t index = shard->source.index;

    source_close(shard, out);
    shard->source = (struct snapshot_source){
        .open = true,
        .id = event->unix_ms * 8 + ++shard->snapshot.given % 8,
        .to = to,
        .index = index, /* Of the view before: held until this one is known. */
        .hold_ms = hold_ms,
        .pulled_ms = event->now_ms,
    };
    source_read(shard, out);
}

static void source_send(struct shard *shard, struct shard_out *out)
{
    const struct snapshot_source *source = &shard->source;
    struct rep_message m = message_make(shard, REP_MSG_SNAPSHOT_PART);

    m.snapshot = source->id;
    m.part = source->parts - 1;
    m.chain = source->chain;
    m.last = source->ended;
    buf_append(&m.body, source->sent.data, source->sent.size);
    shard->snapshot.parts++;
    rep_send(&out->rep, source->to, &m);
}

static void source_pulled(struct shard *shard, const struct shard_event *event,
                          struct shard_out *out)
{
    struct snapshot_source *source = &shard->source;
    const struct rep_message *m = event->message;
    bool same = source->open && source->to == event->from && source->id == m->snapshot;
    bool idle = event->now_ms - source->pulled_ms >= shard->limits.snapshot_idle_ms;

    if (rep_differs(shard->rep)) {
        if (!source->reading) /* Else a thread uses the view; the page that comes ends it. */
            source_close(shard, out);
        source_refuse(shard, event->from, m->snapshot, out);
        return;
    }
    if (m->snapshot == 0 && (!source->open || idle)) {
        if (!source->reading)
            source_open(shard, event->from, event, out);
        return;
    }
    if (m->snapshot == 0 && source->to == event->from) {
        if (source->parts == 1)
            source_send(shard, out); /* Or else a late one; one that began again waits. */
        return;
    }
    if (!same || m->part > source->parts) {
        source_refuse(shard, event->from, m->snapshot, out);
        return;
    }
    source->pulled_ms = event->now_ms;
    if (source->reading)
        return;
    if (m->part + 1 == source->parts && hash128_equal(m->chain, source->chain_before))
        source_send(shard, out);
    else if (m->part == source->parts && hash128_equal(m->chain, source->chain) && !source->ended)
        source->wanted = true;
    else
        source_refuse(shard, event->from, m->snapshot, out);
}

static void part_make(struct snapshot_source *source, const struct shard_event *event)
{
    buf_clear(&source->sent);
    if (source->parts == 0)
        buf_put_bytes(&source->sent, event->request);
    for (uint32_t i = 0; i < event->row_count; i++) {
        const struct shard_row *row = &event->rows[i];
        if (snapshot_is_carried_apart(row->key))
            continue;
        buf_put_bytes(&source->sent, row->key);
        buf_put_bytes(&source->sent, row->value);
    }
    if (event->row_count > 0) {
        struct slice last = event->rows[event->row_count - 1].key;
        buf_clear(&source->after);
        buf_append(&source->after, last.data, last.size);
    }
    source->chain_before = source->chain;
    source->chain =
        hash_chain(source->chain, buf_slice(&source->sent), (struct slice){ source->sent.data, 0 });
    source->parts++;
}

void shard_snapshot_page(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out)
{
    struct snapshot_source *source = &shard->source;
    struct meta meta;

    if (!source->open || !source->reading)
        return; /* Of a view that was given up. */
    source->reading = false;
    meta_init(&meta);
    if (event->failed || rep_differs(shard->rep) ||
        (source->parts == 0 && meta_decode(event->request, &meta) != ERR_OK)) {
        source_refuse(shard, source->to, source->parts == 0 ? 0 : source->id, out);
        source_close(shard, out);
        meta_deinit(&meta);
        return;
    }
    if (source->parts == 0)
        source->index = meta.applied_index;
    meta_deinit(&meta);
    source->hold_ms = event->now_ms + shard->limits.snapshot_hold_ms;
    part_make(source, event);
    source->ended = event->complete;
    if (event->complete)
        source_release(shard, out);
    uint64_t pause_ms = source->sent.size * 1000u / shard->limits.snapshot_bytes_per_s;
    source->ready_ms = event->now_ms + pause_ms;
    source_send(shard, out);
}

static void source_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    struct snapshot_source *source = &shard->source;

    if (!source->open || source->reading)
        return;
    if (event->now_ms - source->pulled_ms >= shard->limits.snapshot_idle_ms)
        source_close(shard, out);
    else if (source->wanted && event->now_ms >= source->ready_ms)
        source_read(shard, out);
}

uint64_t shard_snapshot_pin(const struct shard *shard, uint64_t now_ms)
{
    const struct snapshot_source *source = &shard->source;

    return source->hold_ms > now_ms || source->reading ? source->index : UINT64_MAX;
}

/* ---- the target ---- */

/* After a drop that failed: the disk is full, or fails. */
#define LEFTOVER_AGAIN_MS 1000u

static void target_ask(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;
    struct rep_message m = message_make(shard, REP_MSG_SNAPSHOT_PULL);

    m.snapshot = target->id;
    m.part = target->part;
    m.chain = target->chain;
    target->asked_ms = event->now_ms;
    rep_send(&out->rep, target->from, &m);
}

static void target_begin(struct shard *shard, uint64_t from, const struct shard_event *event,
                         struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;

    buf_deinit(&target->meta_row);
    *target = (struct snapshot_target){
        .active = true,
        .from = from,
        .heard_ms = event->now_ms,
        .needed_ms = event->now_ms,
    };
    target_ask(shard, event, out);
}

static void target_abandon(struct shard *shard)
{
    struct snapshot_target *target = &shard->target;

    shard->snapshot.abandoned++;
    if (target->part > 0)
        shard->leftover = LEFTOVER_SOME;
    buf_deinit(&target->meta_row);
    *target = (struct snapshot_target){ 0 };
}

/* The meta row comes first, once. False: malformed, or it is of no use here. */
static bool target_take_meta(struct shard *shard, struct reader *reader)
{
    struct snapshot_target *target = &shard->target;
    struct slice row = read_bytes(reader, STATE_VALUE_BYTES_MAX);
    struct meta meta;

    meta_init(&meta);
    bool good = !reader->bad && meta_decode(row, &meta) == ERR_OK;
    target->index = meta.applied_index;
    target->hash = meta.applied_hash;
    meta_deinit(&meta);
    if (!good)
        return false;
    if (!rep_snapshot_fits(shard->rep, target->index, target->hash)) {
        rep_snapshot_useless(shard->rep);
        return false;
    }
    buf_clear(&target->meta_row);
    buf_append(&target->meta_row, row.data, row.size);
    return true;
}

static bool rows_are_well_formed(struct slice rows)
{
    struct reader reader = reader_from(rows);
    struct slice key, value;

    while (snapshot_rows_next(&reader, &key, &value))
        ;
    return !reader.bad;
}

static void target_received(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;
    const struct rep_message *m = event->message;
    struct slice body = buf_slice(&m->body);
    struct reader reader = reader_from(body);
    bool ours = target->id == m->snapshot || (target->id == 0 && m->part == 0);

    if (!target->active || target->storing || event->from != target->from || !ours ||
        shard->leftover == LEFTOVER_DROPPED)
        return;
    target->heard_ms = event->now_ms;
    if (m->refused) {
        if (target->id != 0)
            target_abandon(shard); /* The next tick begins again. */
        return;
    }
    struct hash128 chain = hash_chain(target->chain, body, (struct slice){ body.data, 0 });
    if (m->part != target->part || !hash128_equal(chain, m->chain))
        return; /* Late, or damaged on the way: it is asked for again. */
    if (m->part == 0 && !target_take_meta(shard, &reader)) {
        target_abandon(shard);
        return;
    }
    struct slice rows = read_raw(&reader, reader_left(&reader));
    if (!rows_are_well_formed(rows)) {
        target_abandon(shard);
        return;
    }
    if (m->part == 0)
        shard->leftover = LEFTOVER_NONE;
    out->snapshot.drop |= m->part == 0;
    out->snapshot.store = true;
    buf_append(&out->snapshot.rows, rows.data, rows.size);
    target->id = m->snapshot;
    target->chain = chain;
    target->storing = true;
    target->complete = m->last;
}

/* What is left also says whom the record names that removed it, for when etcd does not know that
 * record any more (docs/etcd-restore.md). */
static bool has_to_drop(const struct shard *shard)
{
    return rep_may_drop(shard->rep) &&
           (rep_role(shard->rep) == REP_DAMAGED || rep_last_index(shard->rep) > 0 ||
            shard_meta(shard)->membership.config < rep_membership(shard->rep)->config);
}

/* A removed replica drops rows and log as if an empty snapshot took its place: the same steps, and
 * after a crash between them the same recovery. The promise stays, in the log. */
static void drop_removed(struct shard *shard, struct shard_out *out)
{
    struct meta empty;

    if (!has_to_drop(shard))
        return;
    if (shard->target.active)
        target_abandon(shard);
    if (shard->leftover != LEFTOVER_NONE)
        return; /* Else what is left aside would be what it holds. */
    shard->snapshot.dropped++;
    shard->stopped = true;
    reply_deposed(shard, out);
    meta_init(&empty);
    empty.membership = *rep_membership(shard->rep);
    empty.generation = rep_generation(shard->rep);
    out->snapshot.install = true;
    meta_encode(&empty, &out->snapshot.meta_row);
    meta_deinit(&empty);
}

static void target_install(struct shard *shard, struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;

    shard->snapshot.taken++;
    shard->stopped = true;
    reply_deposed(shard, out);
    out->snapshot.install = true;
    buf_append(&out->snapshot.meta_row, target->meta_row.data, target->meta_row.size);
}

void shard_snapshot_stored(struct shard *shard, const struct shard_event *event,
                           struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;

    if (!target->active || !target->storing)
        return;
    target->storing = false;
    target->part++;
    target->heard_ms = event->now_ms;
    if (event->failed)
        target_abandon(shard);
    else if (!target->complete)
        target_ask(shard, event, out);
    else if (rep_snapshot_fits(shard->rep, target->index, target->hash))
        target_install(shard, out);
    else
        target_abandon(shard);
}

void shard_snapshot_dropped(struct shard *shard, const struct shard_event *event)
{
    CHECK(shard->leftover == LEFTOVER_DROPPED);
    shard->leftover = event->failed ? LEFTOVER_SOME : LEFTOVER_NONE;
    shard->leftover_ms = event->now_ms + LEFTOVER_AGAIN_MS;
}

/* Rows of attempts that ended, perhaps in an earlier life: disk that no one reads. */
static void leftover_progress(struct shard *shard, const struct shard_event *event,
                              struct shard_out *out)
{
    if (shard->leftover != LEFTOVER_SOME || shard->target.part > 0 || shard->target.storing ||
        event->now_ms < shard->leftover_ms)
        return;
    shard->leftover = LEFTOVER_DROPPED;
    out->snapshot.drop = true;
}

static void target_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    struct snapshot_target *target = &shard->target;
    uint64_t source = rep_snapshot_source(shard->rep);
    uint64_t idle_ms = shard->limits.snapshot_idle_ms;

    if (!target->active) {
        if (source != 0)
            target_begin(shard, source, event, out);
        return;
    }
    if (source != 0)
        target->needed_ms = event->now_ms;
    if (target->storing)
        return;
    if (source != 0 && source != target->from && target->id == 0) {
        target_begin(shard, source, event, out); /* The one before refused, or was not heard. */
        return;
    }
    if (event->now_ms - target->needed_ms >= idle_ms || event->now_ms - target->heard_ms >= idle_ms)
        target_abandon(shard);
    else if (event->now_ms - target->asked_ms >= shard->limits.rep.retry_ms)
        target_ask(shard, event, out);
}

/* ---- both ---- */

void shard_snapshot_message(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    if (event->from == shard->self || event->message->shard != shard->number)
        return;
    if (event->message->type == REP_MSG_SNAPSHOT_PULL)
        source_pulled(shard, event, out);
    else
        target_received(shard, event, out);
}

void shard_snapshot_tick(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out)
{
    source_progress(shard, event, out);
    target_progress(shard, event, out);
    leftover_progress(shard, event, out);
    if (!shard->target.storing && !shard->source.reading)
        drop_removed(shard, out);
}

void shard_snapshot_deinit(struct shard *shard)
{
    buf_deinit(&shard->source.sent);
    buf_deinit(&shard->source.after);
    buf_deinit(&shard->target.meta_row);
}
