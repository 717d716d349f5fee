#include "node/io/cluster/server_feed.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/loop/loop.h"

/* gs/live and gs/known of each, and gs/sequence. */
#define SERVER_KEYS_MAX (2u * CLUSTER_SERVERS_MAX + 1u)

struct server_feed {
    struct server_feed_options options;
    struct etcd_mirror *mirror;
};

/* The coordinator's word is gs/known alone: gs/live goes first, and may come back. */
static void on_put(void *context, const struct etcd_kv *kv)
{
    struct server_feed *feed = context;
    struct cluster_key_parts parts = cluster_key_parse(feed->options.cluster, kv->key);
    struct server_record record;
    struct record_error why;

    living_hear(feed->options.living, (uint64_t)kv->mod_revision, loop_wall_ms());
    if (parts.kind != CLUSTER_KEY_SERVER_KNOWN)
        return;
    if (server_record_decode(kv->value, &record, &why) == ERR_OK)
        living_put(feed->options.living, parts.incarnation, record.state == SERVER_EXPIRING);
    else
        log_event(feed->options.log, LOG_ERROR, "presence.bad_server", LOG_S("why", why.text));
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct server_feed *feed = context;
    struct cluster_key_parts parts = cluster_key_parse(feed->options.cluster, key);

    living_hear(feed->options.living, (uint64_t)revision, loop_wall_ms());
    if (parts.kind == CLUSTER_KEY_SERVER_KNOWN)
        living_remove(feed->options.living, parts.incarnation);
}

static void on_synced(void *context, int64_t revision)
{
    struct server_feed *feed = context;

    living_hear(feed->options.living, (uint64_t)revision, loop_wall_ms());
    living_complete(feed->options.living);
}

static void on_reset(void *context)
{
    struct server_feed *feed = context;

    living_reset(feed->options.living);
}

err server_feed_new(const struct server_feed_options *options, struct server_feed **ret_feed)
{
    struct server_feed *feed = mem_zalloc(sizeof *feed);
    struct cluster_key prefix = cluster_key_servers_prefix(options->cluster);

    feed->options = *options;
    err e = etcd_mirror_start(options->etcd,
                              &(struct etcd_mirror_options){ .prefix = cluster_key_slice(&prefix),
                                                             .keys_max = SERVER_KEYS_MAX,
                                                             .put = on_put,
                                                             .deleted = on_deleted,
                                                             .synced = on_synced,
                                                             .reset = on_reset,
                                                             .context = feed },
                              &feed->mirror);

    if (e != ERR_OK) {
        free(feed);
        return e;
    }
    *ret_feed = feed;
    return ERR_OK;
}

void server_feed_free(struct server_feed *feed)
{
    if (feed == NULL)
        return;
    etcd_mirror_stop(feed->mirror);
    free(feed);
}
