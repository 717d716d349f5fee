#include "router/io/settings_feed.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/record_shape.h"
#include "runtime/etcd/etcd_mirror.h"

struct settings_feed {
    struct settings_feed_options options;
    struct settings_table table;
    struct etcd_mirror *mirror;
};

static void tell(struct settings_feed *feed, const char *name)
{
    if (feed->table.complete)
        router_settings_changed(feed->options.router, name);
}

static void on_put(void *context, const struct etcd_kv *kv)
{
    struct settings_feed *feed = context;
    const struct settings *changed;

    if (cluster_key_parse(feed->options.cluster, kv->key).kind != CLUSTER_KEY_DEFINITION)
        return;
    err e = settings_table_take(&feed->table, kv->value, &changed);
    if (e != ERR_OK)
        log_event(feed->options.log, LOG_ERROR, "settings.bad_record",
                  LOG_N("bytes", kv->value.size),
                  LOG_S("why", e == ERR_FULL ? "there are too many definitions"
                                             : "it is no version of a definition"));
    else if (changed != NULL)
        tell(feed, changed->name);
}

/* Old versions go, and at last those of a definition that was deleted. */
static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct settings_feed *feed = context;
    struct cluster_key_parts parts = cluster_key_parse(feed->options.cluster, key);

    (void)revision;
    if (parts.kind == CLUSTER_KEY_DEFINITION &&
        settings_table_forget(&feed->table, parts.number, parts.version))
        tell(feed, NULL);
}

static void on_synced(void *context, int64_t revision)
{
    struct settings_feed *feed = context;

    (void)revision;
    if (feed->table.complete)
        return;
    feed->table.complete = true;
    tell(feed, NULL);
}

static void on_reset(void *context)
{
    struct settings_feed *feed = context;

    settings_table_clear(&feed->table);
}

err settings_feed_new(const struct settings_feed_options *options, struct settings_feed **ret_feed)
{
    struct settings_feed *feed = mem_zalloc(sizeof *feed);
    const struct cluster_key prefix = cluster_key_definitions_prefix(options->cluster);
    const struct etcd_mirror_options mirror = {
        .prefix = cluster_key_slice(&prefix),
        .keys_max = CLUSTER_DEFINITION_KEYS_MAX,
        .put = on_put,
        .deleted = on_deleted,
        .synced = on_synced,
        .reset = on_reset,
        .context = feed,
    };

    feed->options = *options;
    err e = etcd_mirror_start(options->etcd, &mirror, &feed->mirror);
    if (e != ERR_OK) {
        settings_feed_free(feed);
        return e;
    }
    *ret_feed = feed;
    return ERR_OK;
}

void settings_feed_free(struct settings_feed *feed)
{
    if (feed == NULL)
        return;
    if (feed->mirror != NULL)
        etcd_mirror_stop(feed->mirror);
    settings_table_deinit(&feed->table);
    free(feed);
}

const struct settings_table *settings_feed_table(const struct settings_feed *feed)
{
    return &feed->table;
}
