/* How a shard comes to be at this worker: from what the disks say of it, or from nothing. */
#include <stdio.h>
#include <string.h>

#include "node/io/worker/worker_internal.h"
#include "node/store/halt_note.h"

static const char too_new_text[] = "of a later apply version than this program knows: start the "
                                   "newer holdfast-node again (docs/nodes.md, Upgrades)";

void worker_publish(struct worker *worker, uint32_t shard)
{
    const struct slot *slot = &worker->slots[shard];

    if (slot->damaged) {
        shard_views_publish_damaged(worker->options.views, shard);
        return;
    }
    shard_views_publish(worker->options.views, slot->shard, slot->checkpoints, slot->replayed);
}

void worker_tell_space(const struct worker *worker, struct shard *shard)
{
    char why[SHARD_FULL_BYTES];

    if (worker->full)
        space_why(worker->options.space, why);
    shard_set_full(shard, worker->full ? why : NULL);
}

/* It was removed, and dropped what it had: the entry comes again, or a snapshot from behind it. */
static bool is_empty(const struct rep_image *image)
{
    return !image->damaged && image->applied_index == 0 && image->entry_count == 0;
}

/* An entry that ended this very program before is left alone, and so is all that follows it: the
 * other shards go on, and a person is told. */
static void halt_if_noted(struct worker *worker, uint32_t shard, struct shard_image *image)
{
    char program[HALT_PROGRAM_SIZE];
    struct halt_note note;

    if (worker->options.log_path == NULL ||
        halt_note_read(worker->options.log_path, shard, &note) != ERR_OK)
        return;
    halt_note_program(program);
    if (note.index <= image->rep.applied_index || strcmp(note.program, program) != 0 ||
        is_empty(&image->rep)) {
        halt_note_remove(worker->options.log_path, shard);
        return;
    }
    log_event(worker->options.log, LOG_ERROR, "shard.halted", LOG_N("shard", shard),
              LOG_N("index", note.index), LOG_S("check", note.reason));
    image->halt_index = note.index;
    image->rep.quarantined = true;
}

err worker_adopt(struct worker *worker, uint32_t shard, const struct shard_image *image)
{
    struct slot *slot = &worker->slots[shard];
    struct shard_image pooled = *image;

    pooled.number = shard;
    pooled.arenas = &worker->arenas;
    pooled.answers = worker->options.answers;
    halt_if_noted(worker, shard, &pooled);
    if (pooled.rep.differs)
        log_event(worker->options.log, LOG_ERROR, "shard.quarantined", LOG_N("shard", shard),
                  LOG_N("applied", pooled.rep.applied_index));
    err e = shard_new(worker->options.self, &worker->options.limits, worker->options.handlers,
                      &pooled, &slot->shard);

    if (e != ERR_OK)
        return e;
    if (worker->full)
        worker_tell_space(worker, slot->shard);
    slot->durable_index = image->rep.applied_index;
    slot->written_index = image->rep.applied_index;
    slot->replayed = image->rep.entry_count;
    worker->held++;
    worker_publish(worker, shard);
    return ERR_OK;
}

/* The meta row is the database's word on where its rows stand. */
err worker_recovery_image(struct recovery *recovery)
{
    struct rep_image *image = &recovery->image.rep;
    struct slice meta_row = buf_slice(&recovery->meta_row);
    struct meta meta;

    meta_init(&meta);
    if (meta_row.size > 0) {
        err e = meta_decode(meta_row, &meta);
        if (e != ERR_OK) {
            meta_deinit(&meta);
            return e;
        }
    }
    image->applied_index = meta.applied_index;
    image->applied_hash = meta.applied_hash;
    image->applied_ms = meta.owner_ms;
    image->vector = meta.vector;
    image->membership = meta.membership;
    meta_deinit(&meta);
    return ERR_OK;
}

void worker_recovery_deinit(struct recovery *recovery)
{
    node_log_image_deinit(&recovery->image.rep);
    buf_deinit(&recovery->meta_row);
    db_rows_deinit(&recovery->timers);
    db_rows_deinit(&recovery->erasures);
}

/* All of them, however many: they are in memory as long as the shard is here. A limit here would
 * make a whole replica call itself damaged. */
err worker_recovery_timers(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    static const uint8_t timers[] = { TABLE_TIMER }, erasures[] = { TABLE_ERASURE };
    err e = db_load_prefix(worker->options.db, shard, (struct slice){ timers, sizeof timers },
                           UINT32_MAX, &recovery->timers);

    if (e == ERR_OK)
        e = db_load_prefix(worker->options.db, shard, (struct slice){ erasures, sizeof erasures },
                           UINT32_MAX, &recovery->erasures);
    return e;
}

/* Those that cannot be read are met again when their players are. */
static void tell_erasures(struct worker *worker, uint32_t shard, const struct db_rows *rows)
{
    struct shard_erasure erasure;

    for (uint32_t i = 0; i < rows->count; i++) {
        if (shard_erasure_decode(rows->rows[i].key, rows->rows[i].value, &erasure))
            erasures_set(shard_views_erasures(worker->options.views), shard, &erasure);
    }
}

err worker_recovery_read(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    struct rep_image *image = &recovery->image.rep;
    err e = db_load_meta(worker->options.db, shard, &recovery->meta_row);

    if (e == ERR_OK)
        e = worker_recovery_image(recovery);
    if (e == ERR_OK)
        e = node_log_recover_shard(worker->options.store_log, shard, image->applied_index, image);
    return e == ERR_OK ? worker_recovery_timers(worker, shard, recovery) : e;
}

err worker_recovery_take(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    struct shard_image *image = &recovery->image;

    image->rep.votes = true;
    image->meta_row = buf_slice(&recovery->meta_row);
    image->timers = recovery->timers.rows;
    image->timer_count = recovery->timers.count;
    tell_erasures(worker, shard, &recovery->erasures);
    return worker_adopt(worker, shard, image);
}

static void report_damage(struct worker *worker, uint32_t shard, err e)
{
    char text[NODE_LOG_TEXT_BYTES] = "";

    if (e == ERR_TOO_NEW)
        snprintf(text, sizeof text, "%s", too_new_text);
    else if (!node_log_damage(worker->options.store_log, shard, text))
        (void)db_damage(worker->options.db, text);
    log_event(worker->options.log, LOG_ERROR, "shard.damaged", LOG_N("shard", shard),
              LOG_S("error", err_text(e)), LOG_S("what", text));
}

/* None of it is used, and it answers no call: it only waits to learn whether it was removed, and
 * is then dropped (rep_is_removed). */
void worker_give_up(struct worker *worker, uint32_t shard, err e)
{
    struct node_log_shard known;

    report_damage(worker, shard, e);
    node_log_shard_get(worker->options.store_log, shard, &known);
    worker->slots[shard].damaged = true;
    struct shard_image husk = { .rep = { .damaged = true,
                                         .dropped = known.dropped,
                                         .differs = known.differs,
                                         .promise = known.promise,
                                         .log_first_index = 1 } };
    CHECK(worker_adopt(worker, shard, &husk) == ERR_OK);
}

void worker_too_new(const struct worker *worker, uint32_t shard)
{
    worker->options.ops.damaged(worker->options.user, shard, too_new_text);
}

err worker_recovery_adopt(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    err e = worker_recovery_take(worker, shard, recovery);

    if (e != ERR_OK)
        worker_give_up(worker, shard, e);
    if (e == ERR_TOO_NEW)
        worker_too_new(worker, shard);
    return e;
}
