#include "node/core/mergeable/disk.h"

#include <stdlib.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/log_record.h"
#include "node/core/mergeable/members.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pull.h"
#include "runtime/base/check.h"

#define FORMAT 1u

void merge_state_encode(const struct merge_replica *replica, struct buf *out)
{
    buf_put_u8(out, FORMAT);
    buf_put_u64(out, replica->options.generation);
    buf_put_u64(out, replica->options.shard);
    buf_put_u64(out, replica->hlc);
    buf_put_u8(out, replica->syncing);
    mclock_encode(&replica->clock, out);
    merge_erasures_encode(&replica->store, out);
    dot_index_encode(&replica->index, out);
}

uint64_t merge_state_generation(struct slice state)
{
    struct reader reader = reader_from(state);
    uint8_t format = read_u8(&reader);
    uint64_t generation = read_u64(&reader);

    return reader.bad || format != FORMAT ? 0 : generation;
}

err merge_state_restore(struct merge_replica *replica, struct slice state)
{
    struct reader reader = reader_from(state);
    uint8_t format = read_u8(&reader);
    uint64_t generation = read_u64(&reader), shard = read_u64(&reader);
    uint64_t hlc = read_u64(&reader);
    uint8_t syncing = read_u8(&reader);
    struct mclock clock;

    CHECK(replica->clock.count == 0 && replica->store.count == 0);
    if (reader.bad || format != FORMAT || syncing > 1)
        return ERR_CORRUPT;
    if (generation != replica->options.generation || shard != replica->options.shard)
        return ERR_STALE_EPOCH;
    if (mclock_decode(&reader, &clock) != ERR_OK)
        return ERR_CORRUPT;
    replica->clock = clock;
    replica->hlc = hlc;
    replica->syncing = syncing == 1;
    if (merge_erasures_decode(&replica->store, &reader) != ERR_OK ||
        dot_index_decode(&replica->index, &reader) != ERR_OK)
        return ERR_CORRUPT;
    return reader_finish(&reader);
}

static void note_damage(struct merge_replica *replica, struct merge_key *key)
{
    if (key == NULL) {
        replica->damage_unnamed = true;
        return;
    }
    replica->damaged =
        mem_realloc(replica->damaged, (replica->damaged_count + 1) * sizeof(struct merge_key *));
    replica->damaged[replica->damaged_count++] = merge_key_ref(key);
    merge_store_must_go(&replica->store, key);
}

/* Every cell's dot is in the clock that was stored with the row, or above it and in the row's
 * context. */
static bool fits_clock(const struct merge_replica *replica, const struct merge_key *key,
                       const struct merge_record *record)
{
    if (record->erasure != merge_store_erasure(&replica->store, merge_key_entity(key)))
        return false;
    for (uint32_t i = 0; !replica->syncing && i < record->count; i++)
        if (!mclock_covers(&replica->clock, record->cells[i]->dot) &&
            !causal_covers(&record->context, record->cells[i]->dot))
            return false;
    return true;
}

err merge_row_restore(struct merge_replica *replica, struct merge_key *key, struct slice row)
{
    struct reader reader = reader_from(row);
    struct merge_record record = { 0 };
    err e = key != NULL ? merge_record_decode(&reader, &record) : ERR_CORRUPT;

    if (e == ERR_OK)
        e = reader_finish(&reader);
    if (e == ERR_OK && !fits_clock(replica, key, &record))
        e = ERR_CORRUPT;
    if (e != ERR_OK) {
        merge_record_deinit(&record);
        note_damage(replica, key);
        return ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < record.context.count; i++)
        replica->dots_above |= record.context.entries[i].upto >
                               mclock_floor(&replica->clock, record.context.entries[i].actor);
    merge_store_load(&replica->store, key, &record);
    return ERR_OK;
}

/* ---- the log ---- */

static err replay_record(struct merge_replica *replica, struct reader *reader)
{
    struct merge_key *key;
    struct merge_record record = { 0 };
    struct merge_dot *dots = NULL;

    if (merge_key_decode(reader, &key) != ERR_OK)
        return ERR_CORRUPT;
    err e = merge_record_decode(reader, &record);
    uint64_t count = e == ERR_OK ? read_compact(reader) : 0;

    if (reader->bad || count > MERGE_CHUNK_DOTS_MAX || count * 16 > reader_left(reader))
        e = ERR_CORRUPT;
    if (e == ERR_OK)
        dots = mem_alloc((count + 1) * sizeof *dots);
    for (uint64_t i = 0; e == ERR_OK && i < count; i++)
        e = merge_dot_decode(reader, &dots[i]);
    if (e == ERR_OK)
        e = reader_finish(reader);
    struct merge_incoming incoming = {
        .key = key, .record = &record, .dots = dots, .dot_count = (uint32_t)count
    };

    if (e == ERR_OK)
        e = merge_absorb(replica, &incoming);
    free(dots);
    merge_record_deinit(&record);
    merge_key_unref(key);
    return e;
}

static err replay_join(struct merge_replica *replica, struct reader *reader)
{
    uint8_t all = read_u8(reader);
    struct mclock clock;

    if (all > 1 || mclock_decode(reader, &clock) != ERR_OK)
        return ERR_CORRUPT;
    err e = reader_finish(reader);

    if (e == ERR_OK)
        e = mclock_join(&replica->clock, &clock, all ? MCLOCK_CLOSE_ALL : MCLOCK_CLOSE_AGREED);
    mclock_deinit(&clock);
    if (e == ERR_OK && replica->dots_above && !replica->syncing)
        merge_sync_announce(replica);
    return e;
}

static err replay_erase(struct merge_replica *replica, struct reader *reader)
{
    struct slice entity = read_raw(reader, read_u8(reader));
    uint64_t number = read_compact(reader);

    if (reader_finish(reader) != ERR_OK || entity.size == 0 || number == 0)
        return ERR_CORRUPT;
    return merge_store_erase(&replica->store, entity, number);
}

static err replay_sync(struct merge_replica *replica, struct reader *reader)
{
    uint8_t begins = read_u8(reader);

    if (reader_finish(reader) != ERR_OK || begins > 1)
        return ERR_CORRUPT;
    if (begins == 0)
        merge_sync_announce(replica);
    replica->syncing = begins == 1;
    return ERR_OK;
}

static err replay_close(struct merge_replica *replica, struct reader *reader)
{
    uint64_t actor = read_u64(reader);

    if (reader_finish(reader) != ERR_OK || (mclock_find(&replica->clock, actor) == NULL &&
                                            merge_actor_era(actor) >= replica->clock.era))
        return ERR_CORRUPT;
    mclock_close(&replica->clock, actor);
    return ERR_OK;
}

static err replay_name(struct merge_replica *replica, struct reader *reader)
{
    uint64_t actor = read_u64(reader), member = read_u64(reader);

    if (reader_finish(reader) != ERR_OK || actor == 0 || member == 0)
        return ERR_CORRUPT;
    return mclock_name(&replica->clock, actor, member);
}

static err replay_era(struct merge_replica *replica, struct reader *reader)
{
    uint64_t era = read_compact(reader);

    if (reader_finish(reader) != ERR_OK || era > MERGE_ERA_MAX)
        return ERR_CORRUPT;
    mclock_forget(&replica->clock, (uint16_t)era);
    return ERR_OK;
}

err merge_replay(struct merge_replica *replica, struct slice log_record)
{
    struct reader reader = reader_from(log_record);
    uint8_t kind = read_u8(&reader);

    switch (kind) {
    case MERGE_LOG_RECORD:
        return replay_record(replica, &reader);
    case MERGE_LOG_JOIN:
        return replay_join(replica, &reader);
    case MERGE_LOG_ERASE:
        return replay_erase(replica, &reader);
    case MERGE_LOG_SYNC:
        return replay_sync(replica, &reader);
    case MERGE_LOG_CLOSE:
        return replay_close(replica, &reader);
    case MERGE_LOG_NAME:
        return replay_name(replica, &reader);
    case MERGE_LOG_ERA:
        return replay_era(replica, &reader);
    default:
        return ERR_CORRUPT;
    }
}

/* ---- to begin ---- */

static bool is_lost(void *user, struct merge_dot dot, const struct merge_key *key)
{
    (void)dot;
    return !merge_clock_speaks_for(user, key);
}

/* Whose process an actor was stays known: else it could never be closed. */
static void forget_dots(struct mclock *clock)
{
    struct mclock names = { 0 };

    for (uint32_t i = 0; i < clock->count; i++)
        CHECK(mclock_name(&names, clock->actors[i].actor, clock->actors[i].member) == ERR_OK);
    mclock_deinit(clock);
    *clock = names;
}

static void name_in_record(void *user, struct merge_dot dot, struct merge_key *key)
{
    struct merge_replica *replica = user;
    struct merge_record *record = merge_store_make(&replica->store, key);

    record->erasure = merge_store_erasure(&replica->store, merge_key_entity(key));
    causal_raise(&record->recent, dot.actor, dot.counter);
}

/* The clock says what has become of every record; with one of them unreadable it would say that one
 * was deleted. So each readable record, and each deleted one that is known by its dots, takes what
 * the clock says into its own context, and the clock begins empty. */
static void void_clock(struct merge_replica *replica)
{
    dot_index_prune(&replica->index, &(struct dot_pruning){ .gone = is_lost, .user = replica });
    dot_index_each(&replica->index, name_in_record, replica);
    for (uint32_t i = 0; i < replica->store.count; i++) {
        struct merge_row *row = &replica->store.rows[i];

        row->changed = true;
        if (merge_clock_speaks_for(replica, row->key))
            causal_fill(&row->record.context, &replica->clock);
    }
    forget_dots(&replica->clock);
    for (uint32_t i = 0; i < replica->damaged_count; i++)
        merge_key_unref(replica->damaged[i]);
    free(replica->damaged);
    replica->damaged = NULL;
    replica->damaged_count = 0;
    replica->damage_unnamed = false;
}

err merge_start(struct merge_replica *replica, const struct merge_members *members, bool whole)
{
    bool damaged = replica->damaged_count > 0 || replica->damage_unnamed;

    if (damaged)
        void_clock(replica);
    if (damaged || !whole)
        merge_sync_begin(replica);
    merge_take_actor(replica, mclock_era_latest(&replica->clock));
    return merge_configure(replica, members);
}
