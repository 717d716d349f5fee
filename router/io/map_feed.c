#include "router/io/map_feed.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_mirror.h"

enum mirrored { MIRROR_CLUSTER, MIRROR_NODES, MIRROR_SHARDS, MIRROR_ELECTION, MIRROR_COUNT };

struct map_feed {
    struct map_feed_options options;
    struct etcd_mirror *mirrors[MIRROR_COUNT];
    struct shard_map *map;
    bool cluster_told;
};

static void tell(struct map_feed *feed, const struct cluster_key_parts *changed)
{
    const struct map_feed_options *options = &feed->options;

    switch (changed->kind) {
    case CLUSTER_KEY_CLUSTER:
        if (shard_map_cluster(feed->map) != NULL && !feed->cluster_told) {
            feed->cluster_told = true;
            options->cluster_known(options->user);
        }
        break;
    case CLUSTER_KEY_NODE:
        options->node_changed(options->user, changed->replica_id,
                              shard_map_find_node(feed->map, changed->replica_id));
        break;
    case CLUSTER_KEY_SHARD:
        options->shard_changed(options->user, changed->shard);
        break;
    default:
        break;
    }
}

static void apply(struct map_feed *feed, const struct shard_map_event *event)
{
    struct cluster_key_parts changed;
    struct record_error why;

    if (shard_map_apply(feed->map, event, &changed, &why) == ERR_OK)
        tell(feed, &changed);
    else
        log_event(feed->options.log, LOG_ERROR, "map.bad_record", LOG_S("why", why.text));
}

static void on_put(void *context, const struct etcd_kv *kv)
{
    apply(context, &(struct shard_map_event){ .key = kv->key,
                                              .value = kv->value,
                                              .create_revision = kv->create_revision,
                                              .mod_revision = kv->mod_revision });
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    apply(context,
          &(struct shard_map_event){ .deleted = true, .key = key, .mod_revision = revision });
}

static void on_synced(void *context, int64_t revision)
{
    (void)context;
    (void)revision;
}

/* The restored etcd was accepted: its revisions start over. */
static void on_reset(void *context)
{
    struct map_feed *feed = context;

    shard_map_reset(feed->map);
}

err map_feed_new(const struct map_feed_options *options, struct map_feed **ret_feed)
{
    const struct cluster_key keys[MIRROR_COUNT] = {
        [MIRROR_CLUSTER] = cluster_key_cluster(options->cluster),
        [MIRROR_NODES] = cluster_key_nodes_prefix(options->cluster),
        [MIRROR_SHARDS] = cluster_key_shards_prefix(options->cluster),
        [MIRROR_ELECTION] = cluster_key_election_prefix(options->cluster),
    };
    struct map_feed *feed = mem_zalloc(sizeof *feed);

    feed->options = *options;
    feed->map = shard_map_new(options->cluster);
    for (int i = 0; i < MIRROR_COUNT; i++) {
        const struct etcd_mirror_options mirror = {
            .prefix = cluster_key_slice(&keys[i]),
            .put = on_put,
            .deleted = on_deleted,
            .synced = on_synced,
            .reset = on_reset,
            .context = feed,
        };
        err e = etcd_mirror_start(options->etcd, &mirror, &feed->mirrors[i]);

        if (e != ERR_OK) {
            map_feed_free(feed);
            return e;
        }
    }
    *ret_feed = feed;
    return ERR_OK;
}

void map_feed_free(struct map_feed *feed)
{
    if (feed == NULL)
        return;
    for (int i = 0; i < MIRROR_COUNT; i++) {
        if (feed->mirrors[i] != NULL)
            etcd_mirror_stop(feed->mirrors[i]);
    }
    shard_map_free(feed->map);
    free(feed);
}

const struct shard_map *map_feed_map(const struct map_feed *feed)
{
    return feed->map;
}
