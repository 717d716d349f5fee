/* A start: all shards that the log or the database knows. */
#include <stdlib.h>

#include "node/io/worker/worker_internal.h"

/* What the database knows of the worker's shards; those that exist are listed for the log. */
static uint32_t load_metas(struct worker *worker, struct recovery *recoveries,
                           struct node_log_recovery *list, err *worst)
{
    uint32_t count = 0;

    for (uint32_t shard = worker->options.shard_first; shard < worker->options.shard_count;
         shard += worker->options.shard_stride) {
        struct recovery *recovery = &recoveries[count];
        struct node_log_shard known;
        err e = worker_snapshot_recover(worker, shard);
        node_log_shard_get(worker->options.store_log, shard, &known);
        if (e == ERR_OK)
            e = db_load_meta(worker->options.db, shard, &recovery->meta_row);
        if (e == ERR_NOT_FOUND && known.last_index == 0 && known.promise.epoch == 0 &&
            !known.damaged)
            continue;
        if (e == ERR_OK || e == ERR_NOT_FOUND)
            e = worker_recovery_image(recovery);
        if (e == ERR_OK) {
            list[count] =
                (struct node_log_recovery){ .shard = shard,
                                            .applied_index = recovery->image.rep.applied_index,
                                            .image = &recovery->image.rep };
            count++;
            continue;
        }
        worker_recovery_deinit(recovery);
        recovery->image = (struct shard_image){ 0 };
        worker_give_up(worker, shard, e);
        *worst = *worst == ERR_TOO_NEW ? *worst : e;
    }
    return count;
}

err worker_recover(struct worker *worker)
{
    uint32_t shard_count = worker->options.shard_count;
    struct recovery *recoveries = mem_zalloc(shard_count * sizeof *recoveries);
    struct node_log_recovery *list = mem_zalloc(shard_count * sizeof *list);
    err worst = ERR_OK;
    uint32_t count = load_metas(worker, recoveries, list, &worst);

    node_log_recover(worker->options.store_log, list, count);
    for (uint32_t i = 0; i < count; i++) {
        err e = list[i].result;
        if (e == ERR_OK)
            e = worker_recovery_timers(worker, list[i].shard, &recoveries[i]);
        if (e == ERR_OK)
            e = worker_recovery_take(worker, list[i].shard, &recoveries[i]);
        if (e != ERR_OK) {
            worker_give_up(worker, list[i].shard, e);
            worst = worst == ERR_TOO_NEW ? worst : e;
        }
        worker_recovery_deinit(&recoveries[i]);
    }
    free(list);
    free(recoveries);
    return worst;
}
