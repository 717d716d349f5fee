#include "router/io/key_feed.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_mirror.h"

struct key_feed {
    const struct log *log;
    struct key_table *table;
    struct etcd_mirror *mirror;
    size_t prefix_bytes;
    bool complete;
};

static struct slice id_of(const struct key_feed *feed, struct slice key)
{
    CHECK(key.size >= feed->prefix_bytes);
    return (struct slice){ key.data + feed->prefix_bytes, key.size - feed->prefix_bytes };
}

/* A record that cannot be read opens nothing, whatever stood there before. */
static void on_put(void *context, const struct etcd_kv *kv)
{
    struct key_feed *feed = context;
    struct slice id = id_of(feed, kv->key);
    struct api_key_record record;
    struct record_error why = { "it stands under the id of another" };
    err e = api_key_record_decode(kv->value, &record, &why);

    if (e == ERR_OK && !slice_equal(id, slice_from_text(record.id)))
        e = ERR_INVALID;
    if (e == ERR_OK)
        e = key_table_put(feed->table, &record);
    if (e == ERR_OK)
        return;
    key_table_remove(feed->table, id);
    log_event(feed->log, LOG_ERROR, "keys.bad_record", LOG_N("keys", key_table_count(feed->table)),
              LOG_S("why", e == ERR_FULL ? "there are too many keys" : why.text));
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct key_feed *feed = context;

    (void)revision;
    key_table_remove(feed->table, id_of(feed, key));
}

static void on_synced(void *context, int64_t revision)
{
    struct key_feed *feed = context;

    (void)revision;
    if (feed->complete)
        return;
    feed->complete = true;
    log_event(feed->log, LOG_INFO, "keys.known", LOG_N("keys", key_table_count(feed->table)));
}

static void on_reset(void *context)
{
    struct key_feed *feed = context;

    key_table_clear(feed->table);
    feed->complete = false;
}

err key_feed_new(const struct key_feed_options *options, struct key_feed **ret_feed)
{
    struct key_feed *feed = mem_zalloc(sizeof *feed);
    const struct cluster_key prefix = cluster_key_api_keys_prefix(options->cluster);
    const struct etcd_mirror_options mirror = {
        .prefix = cluster_key_slice(&prefix),
        .put = on_put,
        .deleted = on_deleted,
        .synced = on_synced,
        .reset = on_reset,
        .context = feed,
    };

    feed->log = options->log;
    feed->prefix_bytes = cluster_key_slice(&prefix).size;
    feed->table = key_table_new(options->cluster, options->seed);
    err e = etcd_mirror_start(options->etcd, &mirror, &feed->mirror);
    if (e != ERR_OK) {
        key_feed_free(feed);
        return e;
    }
    *ret_feed = feed;
    return ERR_OK;
}

void key_feed_free(struct key_feed *feed)
{
    if (feed == NULL)
        return;
    if (feed->mirror != NULL)
        etcd_mirror_stop(feed->mirror);
    key_table_free(feed->table);
    free(feed);
}

bool key_feed_complete(const struct key_feed *feed)
{
    return feed->complete;
}

struct key_table *key_feed_table(const struct key_feed *feed)
{
    return feed->table;
}
