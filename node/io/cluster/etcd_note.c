#include "node/io/cluster/etcd_note.h"

#include <stdlib.h>
#include <uv.h>

#include "runtime/base/check.h"

#define FREE_MS_MAX 60000u

struct etcd_note {
    struct etcd_note_options options;
    struct loop_timer timer;
    uv_work_t work;
    bool writing;
    /* Of the write on its way. */
    uint64_t generation, cluster_id, revision;
    err result;
};

static void on_work(uv_work_t *work)
{
    struct etcd_note *note = CONTAINER_OF(work, struct etcd_note, work);

    note->result = datadir_note_etcd(note->options.datadir, note->generation, note->cluster_id,
                                     note->revision);
}

static void on_done(uv_work_t *work, int status)
{
    struct etcd_note *note = CONTAINER_OF(work, struct etcd_note, work);

    CHECK(status == 0);
    note->writing = false;
    if (note->result != ERR_OK)
        log_event(note->options.log, LOG_WARN, "etcd.not_noted",
                  LOG_S("error", err_text(note->result)), LOG_N("revision", note->revision));
}

static void on_timer(void *user)
{
    struct etcd_note *note = user;
    const struct etcd *etcd = registry_etcd(note->options.registry);
    const struct cluster_record *cluster = shard_map_cluster(registry_map(note->options.registry));
    const struct datadir_identity *known = datadir_identity_get(note->options.datadir);

    if (note->writing || cluster == NULL || etcd_rolled_back(etcd))
        return;
    note->generation = cluster->generation;
    note->cluster_id = etcd_cluster_id_seen(etcd);
    note->revision = (uint64_t)etcd_revision_seen(etcd);
    if (note->generation == known->generation && note->cluster_id == known->etcd_cluster_id &&
        note->revision <= known->etcd_revision)
        return;
    note->writing = true;
    CHECK(uv_queue_work(loop_uv(note->options.loop), &note->work, on_work, on_done) == 0);
}

struct etcd_note *etcd_note_new(const struct etcd_note_options *options)
{
    struct etcd_note *note = mem_zalloc(sizeof *note);

    note->options = *options;
    loop_timer_init(&note->timer, options->loop, on_timer, note);
    loop_timer_start_repeating(&note->timer, ETCD_NOTE_MS);
    return note;
}

static bool is_written(void *user)
{
    const struct etcd_note *note = user;

    return !note->writing;
}

void etcd_note_free(struct etcd_note *note)
{
    if (note == NULL)
        return;
    loop_timer_stop(&note->timer);
    CHECK(loop_run_until(note->options.loop, is_written, note, FREE_MS_MAX));
    free(note);
}
