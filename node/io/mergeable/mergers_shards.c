#include "node/io/mergeable/mergers.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/rounds.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define TICK_MS          200u
#define LOOK_MS          2000u
#define CHECKPOINT_MS    30000u
#define CHECKPOINT_BYTES (4u * 1024u * 1024u) /* Of log, and as much as the state itself has. */
#define DEPARTING_MS_MAX (24u * 60u * 60u * 1000u)
/* A message of the shell, above all kinds of the core's: u8 this, u32 shard. */
#define DEPARTED 0xd0u

/* ---- what a replica puts out ---- */

static void hold(struct mergers *mergers, struct merger *merger, struct merge_message *message)
{
    if (merger->held_count >= HELD_MAX || merger->held_bytes > HELD_BYTES_MAX) {
        mergers->messages_dropped++; /* Anti-entropy brings what was in it. */
        return;
    }
    if (merger->held_count == merger->held_capacity) {
        merger->held_capacity = merger->held_capacity * 2 + 16;
        merger->held = mem_realloc(merger->held, merger->held_capacity * sizeof *merger->held);
    }
    merger->held[merger->held_count++] =
        (struct held){ message->to, message->after_log, message->bytes };
    merger->held_bytes += message->bytes.size;
    message->bytes = (struct buf){ 0 };
}

static void release(struct mergers *mergers, struct merger *merger)
{
    uint64_t durable = merger->replica->log_durable;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < merger->held_count; i++) {
        struct held *held = &merger->held[i];

        if (held->after_log > durable) {
            merger->held[kept++] = *held;
            continue;
        }
        merge_message_stamp(&held->bytes, loop_wall_ms());
        mergers_send(mergers, held->to, buf_slice(&held->bytes));
        merger->held_bytes -= held->bytes.size;
        buf_deinit(&held->bytes);
    }
    merger->held_count = kept;
}

static void take_log(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct reader reader = reader_from(buf_slice(&merger->replica->out.log));

    while (reader_left(&reader) > 0) {
        struct slice record = read_bytes(&reader, UINT32_MAX);

        merge_batch_log(mergers_disk_batch(mergers, shard), shard,
                        merger->log_base + ++merger->taken, record);
        merger->log_bytes += record.size;
    }
}

void mergers_drain(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct merge_out *out = &merger->replica->out;

    take_log(mergers, shard);
    CHECK(merger->taken == merger->replica->log_end);
    for (uint32_t i = 0; i < out->message_count; i++) {
        struct merge_message *message = &out->messages[i];

        if (message->after_log <= merger->replica->log_durable)
            mergers_send(mergers, message->to, buf_slice(&message->bytes));
        else
            hold(mergers, merger, message);
    }
    for (uint32_t i = 0; i < out->done_count && !mergers->stopping; i++)
        mergers_call_done(mergers, shard, &out->done[i]);
    merge_out_clear(out);
    release(mergers, merger);
}

/* ---- replicas ---- */

static bool is_in(const uint64_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

/* A removed member may hold what no other has. Where there are too many, the one that was removed
 * first is given up. */
static bool add_departing(struct mergers *mergers, struct merger *merger, uint64_t member)
{
    struct merge_members *members = &merger->members;

    if (member == mergers->options.self || membership_has(&merger->record.membership, member) ||
        is_in(members->departing, members->departing_count, member))
        return false;
    if (members->departing_count == MERGE_DEPARTING_MAX) {
        log_event(mergers->options.log, LOG_WARN, "documents.member_given_up",
                  LOG_N("replica", members->departing[0]));
        members->departing_count--;
        memmove(members->departing, members->departing + 1,
                members->departing_count * sizeof *members->departing);
        memmove(merger->given_up_ms, merger->given_up_ms + 1,
                members->departing_count * sizeof *merger->given_up_ms);
    }
    merger->given_up_ms[members->departing_count] =
        loop_now_ms(mergers->options.loop) + DEPARTING_MS_MAX;
    members->departing[members->departing_count++] = member;
    return true;
}

static bool remove_departing(struct merger *merger, uint64_t member)
{
    struct merge_members *members = &merger->members;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < members->departing_count; i++) {
        merger->given_up_ms[kept] = merger->given_up_ms[i];
        members->departing[kept] = members->departing[i];
        kept += members->departing[i] != member;
    }
    bool removed = kept < members->departing_count;

    members->departing_count = kept;
    return removed;
}

/* A crash before it is on disk leaves the members of before, which are followed again. */
static void tell_members(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];

    mergers_disk_members(mergers, shard);
    if (merger->replica == NULL || !merger->started)
        return;
    CHECK(merge_configure(merger->replica, &merger->members) == ERR_OK);
    mergers_drain(mergers, shard);
}

/* From the members that were to those that are. */
static void follow_members(struct mergers *mergers, struct merger *merger)
{
    const struct membership before = merger->members.membership;

    merger->members.membership = merger->record.membership;
    for (uint32_t i = 0; i < before.count; i++)
        (void)add_departing(mergers, merger, before.members[i]);
    for (uint32_t i = 0; i < before.new_count; i++)
        (void)add_departing(mergers, merger, before.new_members[i]);
    for (uint32_t i = 0; i < merger->members.membership.count; i++)
        (void)remove_departing(merger, merger->members.membership.members[i]);
    for (uint32_t i = 0; i < merger->members.membership.new_count; i++)
        (void)remove_departing(merger, merger->members.membership.new_members[i]);
}

/* The replica begins, with what the disk had of it or with nothing. A member that joins has not
 * what the others acknowledged. */
static void start(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    const struct membership *m = &merger->record.membership;
    bool joins = m->new_count > 0 && !is_in(m->members, m->count, mergers->options.self);

    if (merger->replica == NULL) {
        merger->boot = mergers_next_boot(mergers, shard);
        const struct merge_options options = mergers_options_of(mergers, shard);
        merger->replica = merge_new(&options);
        merger->life++;
        merger->whole = !joins && (mergers->db == NULL || !merge_db_lost(mergers->db));
        mergers->replicas++;
    }
    follow_members(mergers, merger);
    CHECK(merge_start(merger->replica, &merger->members, merger->whole) == ERR_OK);
    merger->started = true;
    online_begin(&merger->online, &merger->replica->store);
    mergers_online_count(mergers, shard);
    if (!loop_timer_is_running(&mergers->timer))
        loop_timer_start_repeating(&mergers->timer, TICK_MS);
    log_event(mergers->options.log, LOG_INFO, "documents.begun", LOG_N("shard", shard),
              LOG_N("records", merger->replica->store.count),
              LOG_N("syncing", merger->replica->syncing));
    /* Whether the others have the same it does not know before they report. */
    merger->apart_since_ms = merger->mark_ms = loop_now_ms(mergers->options.loop);
    mergers_disk_members(mergers, shard);
    mergers_drain(mergers, shard);
    mergers_disk_checkpoint(mergers, shard); /* A voided clock needs one with a new log. */
}

struct merge_replica *mergers_need(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];

    if (merger->replica == NULL && mergers_is_member(mergers, shard)) {
        mergers_generation_follow(mergers, shard);
        start(mergers, shard);
    }
    return merger->started ? merger->replica : NULL;
}

static void end(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct merger kept = { .known = merger->known,
                           .generation = merger->generation,
                           .generation_durable = merger->generation_durable,
                           .generation_known = merger->generation_known,
                           .restoring = merger->restoring,
                           .record = merger->record,
                           .life = merger->life,
                           .boot = merger->boot };

    merge_free(merger->replica);
    mergers_call_drop_all(merger);
    mclock_deinit(&merger->mark);
    merge_key_unref(merger->swept);
    merge_key_unref(merger->swept_dead);
    merge_key_unref(merger->swept_deleted);
    online_deinit(&merger->online);
    for (uint32_t i = 0; i < merger->held_count; i++)
        buf_deinit(&merger->held[i].bytes);
    free(merger->held);
    *merger = kept;
    mergers->replicas--;
}

void mergers_begin_again(struct mergers *mergers, uint32_t shard, uint64_t generation)
{
    struct merger *merger = &mergers->shards[shard];
    bool started = merger->started;

    if (merger->replica != NULL) {
        mergers_disk_drop(mergers, shard);
        end(mergers, shard);
    }
    merger->generation = generation;
    merger->doubted_until_ms = 0;
    if (started && mergers_is_member(mergers, shard))
        start(mergers, shard);
    else if (mergers_is_member(mergers, shard))
        mergers_disk_members(mergers, shard);
}

void mergers_record(struct mergers *mergers, uint32_t shard, const struct rep_record *record)
{
    struct merger *merger = &mergers->shards[shard];
    bool news = !merger->known || merger->record.membership.config <= record->membership.config;
    bool changed = !merger->known || memcmp(&merger->record.membership, &record->membership,
                                            sizeof record->membership) != 0;

    if (mergers->stopping || !news || record->membership.count == 0)
        return;
    merger->known = true;
    merger->record = *record;
    if (merger->replica != NULL && !merger->started) {
        start(mergers, shard);
    } else if (merger->replica != NULL && changed) {
        follow_members(mergers, merger);
        tell_members(mergers, shard);
    }
}

/* ---- messages ---- */

static void say_departed(struct mergers *mergers, uint64_t to, uint32_t shard)
{
    struct buf bytes = { 0 };

    buf_put_u8(&bytes, DEPARTED);
    buf_put_u32(&bytes, shard);
    mergers->options.send(mergers->options.user, to, buf_slice(&bytes));
    buf_deinit(&bytes);
}

static err take_departed(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    uint32_t shard;

    (void)read_u8(&reader);
    shard = read_u32(&reader);
    if (reader_finish(&reader) != ERR_OK || shard >= mergers->options.shard_count)
        return ERR_CORRUPT;
    if (mergers->shards[shard].replica != NULL && mergers->shards[shard].started &&
        remove_departing(&mergers->shards[shard], from)) {
        log_event(mergers->options.log, LOG_INFO, "documents.member_departed",
                  LOG_N("shard", shard), LOG_N("replica", from));
        tell_members(mergers, shard);
    }
    return ERR_OK;
}

/* A peer told this process of a later one of this member. */
static void follow_boot(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t boot = merger->replica->options.boot;

    if (boot == merger->boot)
        return;
    log_event(mergers->options.log, LOG_WARN, "documents.clock_set_back", LOG_N("shard", shard),
              LOG_N("boot", merger->boot), LOG_N("raised", boot));
    merger->boot = boot;
    mergers_disk_members(mergers, shard);
}

static void receive(struct mergers *mergers, uint32_t shard, const struct merge_head *head,
                    struct slice message)
{
    struct merger *merger = &mergers->shards[shard];
    err e = merge_receive(merger->replica, loop_wall_ms(), message);

    follow_boot(mergers, shard);
    mergers_generation_heard(mergers, shard, head->generation);
    if (head->kind == MERGE_CHUNK && e == ERR_OK)
        mergers->repair_bytes += message.size;
    mergers_drain(mergers, shard);
    /* Of one that was removed while this member was away: what it holds may be unique. */
    if (e == ERR_PERMISSION && add_departing(mergers, merger, head->from))
        tell_members(mergers, shard);
    if (e == ERR_CORRUPT || e == ERR_FULL || e == ERR_INVALID)
        log_event(mergers->options.log, LOG_ERROR, "documents.message_refused",
                  LOG_N("shard", shard), LOG_N("replica", head->from), LOG_N("kind", head->kind),
                  LOG_S("error", err_name(e)));
}

/* A message of a member's replica; of a request of a pull, once it has its turn. */
static err take(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    struct merge_head head;

    if (merge_head_decode(&reader, &head) != ERR_OK || head.from != from ||
        head.shard >= mergers->options.shard_count)
        return ERR_CORRUPT;
    uint32_t shard = (uint32_t)head.shard;

    if (!mergers->shards[shard].known)
        return ERR_OK;
    if (mergers_disk_is_behind(mergers)) {
        mergers->messages_dropped++;
        return ERR_OK;
    }
    if (mergers_need(mergers, shard) != NULL)
        receive(mergers, shard, &head, message);
    else if (mergers->shards[shard].replica == NULL)
        say_departed(mergers, from, shard);
    return ERR_OK;
}

err mergers_message(struct mergers *mergers, uint64_t from, struct slice message)
{
    if (mergers->stopping)
        return ERR_OK;
    if (message.size > 0 && message.data[0] == DEPARTED)
        return take_departed(mergers, from, message);
    err e = mergers_backup_message(mergers, from, message);

    if (e == ERR_NOT_FOUND)
        e = mergers_leave_message(mergers, from, message);
    if (e == ERR_NOT_FOUND)
        e = mergers_pieces_message(mergers, from, message);
    if (e != ERR_NOT_FOUND)
        return e;
    if (message.size > 0 && message.data[0] == MERGE_PULL &&
        !mergers_pieces_admit(mergers, from, message))
        return ERR_OK;
    return take(mergers, from, message);
}

/* ---- time ---- */

static void give_departing_up(struct mergers *mergers, uint32_t shard, uint64_t now_ms)
{
    struct merger *merger = &mergers->shards[shard];

    for (uint32_t i = 0; i < merger->members.departing_count; i++) {
        uint64_t member = merger->members.departing[i];

        if (merger->given_up_ms[i] == 0)
            merger->given_up_ms[i] = now_ms + DEPARTING_MS_MAX;
        if (now_ms < merger->given_up_ms[i])
            continue;
        log_event(mergers->options.log, LOG_WARN, "documents.member_given_up",
                  LOG_N("shard", shard), LOG_N("replica", member));
        (void)remove_departing(merger, member);
        tell_members(mergers, shard);
        return;
    }
}

static void tick(struct mergers *mergers, uint32_t shard, uint64_t now_ms)
{
    struct merger *merger = &mergers->shards[shard];

    mergers_generation_follow(mergers, shard);
    if (merger->replica == NULL) /* It is no member of the shard that was restored. */
        return;
    mergers_erasures_follow(mergers, shard);
    merge_tick(merger->replica, loop_wall_ms());
    mergers_drain(mergers, shard);
    if (merger->log_bytes > CHECKPOINT_BYTES + merger->state_bytes ||
        (merger->log_bytes > 0 && now_ms - merger->checkpoint_ms >= CHECKPOINT_MS))
        mergers_disk_checkpoint(mergers, shard);
    bool owner = merger->record.owner == mergers->options.self;
    bool looks = now_ms - merger->looked_ms >= LOOK_MS;

    if (owner && !merger->restoring)
        mergers_sweep(mergers, shard, looks);
    if (!looks)
        return;
    mergers_look(merger, now_ms);
    give_departing_up(mergers, shard, now_ms);
    if (!mergers_is_member(mergers, shard) && merge_may_delete(merger->replica)) {
        log_event(mergers->options.log, LOG_INFO, "documents.departed", LOG_N("shard", shard));
        mergers_disk_drop(mergers, shard);
        end(mergers, shard);
        merger->generation = merger->generation_durable = 0;
        merger->generation_known = false;
    }
}

static void on_tick(void *user)
{
    struct mergers *mergers = user;
    uint64_t now_ms = loop_now_ms(mergers->options.loop);

    mergers_pieces_tick(mergers, now_ms);
    mergers_rests_tick(mergers, now_ms);
    if (mergers_disk_is_behind(mergers)) {
        loop_hook_arm(&mergers->hook); /* There may be room again. */
        return;
    }
    for (uint32_t i = 0; i < mergers->options.shard_count; i++) {
        if (mergers->shards[i].started)
            tick(mergers, i, now_ms);
    }
    mergers_online_tick(mergers);
}

/* ---- the whole ---- */

err mergers_new(const struct mergers_options *options, struct mergers **ret_mergers,
                char ret_text[MERGERS_TEXT_BYTES])
{
    struct mergers *mergers = mem_zalloc(sizeof *mergers);

    mergers->options = *options;
    mergers->drain = mergers_drain;
    mergers->need = mergers_need;
    mergers->begin_again = mergers_begin_again;
    mergers->message = mergers_message;
    mergers->serve = take;
    mergers_pieces_init(mergers);
    mergers_backup_init(mergers);
    mergers->shards = mem_zalloc(options->shard_count * sizeof *mergers->shards);
    loop_hook_init_late(&mergers->hook, options->loop, mergers_disk_run, mergers);
    loop_timer_init(&mergers->timer, options->loop, on_tick, mergers);
    err e = mergers_disk_open(mergers, ret_text);

    if (e != ERR_OK) {
        mergers_free(mergers);
        return e;
    }
    *ret_mergers = mergers;
    return ERR_OK;
}

void mergers_free(struct mergers *mergers)
{
    if (mergers == NULL)
        return;
    loop_timer_stop(&mergers->timer);
    for (uint32_t i = 0; i < mergers->options.shard_count; i++) {
        if (mergers->shards[i].started)
            mergers_disk_checkpoint(mergers, i);
    }
    mergers->stopping = true;
    mergers_disk_close(mergers);
    loop_hook_disarm(&mergers->hook);
    mergers_backup_deinit(mergers);
    mergers_pieces_deinit(mergers);
    mergers_rests_deinit(mergers);
    for (uint32_t i = 0; i < mergers->options.shard_count; i++) {
        if (mergers->shards[i].replica != NULL)
            end(mergers, i);
    }
    document_rules_deinit(&mergers->rules);
    arena_deinit(&mergers->arena);
    explicit_bzero(&mergers->secret, sizeof mergers->secret);
    free(mergers->shards);
    free(mergers);
}

void mergers_definition(struct mergers *mergers, struct slice version)
{
    err e = document_rules_take(&mergers->rules, version);

    if (e != ERR_OK)
        log_event(mergers->options.log, LOG_ERROR, "documents.bad_definition",
                  LOG_S("error", err_name(e)));
}

void mergers_definitions_reset(struct mergers *mergers)
{
    document_rules_clear(&mergers->rules);
}

void mergers_definitions_complete(struct mergers *mergers)
{
    mergers->rules.complete = true;
}

void mergers_secret(struct mergers *mergers, const uint8_t secret[MERGERS_SECRET_BYTES])
{
    hmac_key_init(&mergers->secret, (struct slice){ secret, MERGERS_SECRET_BYTES });
    mergers->has_secret = true;
}

void mergers_stats_get(const struct mergers *mergers, struct mergers_stats *ret_stats)
{
    struct mergers_stats stats = { .replicas = mergers->replicas,
                                   .repair_bytes = mergers->repair_bytes,
                                   .messages_dropped =
                                       mergers->messages_dropped + mergers->pieces.dropped,
                                   .calls = mergers->calls };
    uint64_t now_ms = loop_now_ms(mergers->options.loop);
    struct merge_db_stats disk = { 0 };

    for (uint32_t i = 0; i < mergers->options.shard_count; i++) {
        const struct merger *merger = &mergers->shards[i];

        if (merger->replica == NULL)
            continue;
        stats.syncing += merger->replica->syncing;
        stats.siblings += merger->siblings;
        stats.record_bytes += merger->record_bytes;
        stats.departing += merger->members.departing_count;
        for (uint32_t policy = 0; policy < MERGE_POLICY_COUNT; policy++)
            stats.records[policy] += merger->records[policy];
        if (merger->apart_since_ms != 0 && now_ms - merger->apart_since_ms > stats.apart_ms)
            stats.apart_ms = now_ms - merger->apart_since_ms;
    }
    if (mergers->options.living != NULL)
        stats.servers = living_count(mergers->options.living);
    if (mergers->db != NULL)
        merge_db_stats_get(mergers->db, &disk);
    stats.disk_writes = disk.writes;
    stats.disk_bytes = disk.written_bytes;
    stats.disk_ns = mergers->disk_ns;
    *ret_stats = stats;
}
