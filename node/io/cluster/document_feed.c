#include "node/io/cluster/document_feed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/record_shape.h"
#include "runtime/etcd/etcd_mirror.h"

#define MAKE_TIMEOUT_MS 2000u
#define MAKE_AGAIN_MS   1000u

struct document_feed {
    struct document_feed_options options;
    struct cluster_key key;
    struct etcd_mirror *secrets, *definitions;
    struct loop_timer timer; /* Until there is a secret, or it is seen that there is one. */
    struct etcd_call *making;
    bool seen, known; /* etcd has one; `secret` is it, or the one before. */
    uint8_t secret[DOCUMENT_SECRET_BYTES];
};

static void on_definition(void *context, const struct etcd_kv *kv)
{
    struct document_feed *feed = context;

    if (cluster_key_parse(feed->options.cluster, kv->key).kind == CLUSTER_KEY_DEFINITION)
        feed->options.definition(feed->options.user, kv->value);
}

/* The oldest versions of a definition go; what it says stands in the newest. */
static void on_definition_deleted(void *context, struct slice key, int64_t revision)
{
    (void)context;
    (void)key;
    (void)revision;
}

static void on_definitions_reset(void *context)
{
    struct document_feed *feed = context;

    feed->options.reset(feed->options.user);
}

static void on_definitions_synced(void *context, int64_t revision)
{
    struct document_feed *feed = context;

    (void)revision;
    feed->options.complete(feed->options.user);
}

static void on_put(void *context, const struct etcd_kv *kv)
{
    struct document_feed *feed = context;

    if (!slice_equal(kv->key, cluster_key_slice(&feed->key)))
        return;
    feed->seen = true;
    loop_timer_stop(&feed->timer);
    if (kv->value.size != DOCUMENT_SECRET_BYTES) {
        log_event(feed->options.log, LOG_ERROR, "documents.bad_secret",
                  LOG_N("bytes", kv->value.size));
        return;
    }
    memcpy(feed->secret, kv->value.data, DOCUMENT_SECRET_BYTES);
    feed->known = true;
    feed->options.secret(feed->options.user, feed->secret);
}

/* A node that starts now would make another one, and no context so far would be good there. */
static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct document_feed *feed = context;

    (void)revision;
    if (!slice_equal(key, cluster_key_slice(&feed->key)))
        return;
    log_event(feed->options.log, LOG_ERROR, "documents.secret_deleted",
              LOG_N("known", feed->known));
    feed->seen = false;
    loop_timer_start(&feed->timer, 0);
}

static void on_reset(void *context)
{
    struct document_feed *feed = context;

    feed->seen = false;
}

static void made(void *context, err e, const struct etcd_txn_result *result)
{
    struct document_feed *feed = context;

    feed->making = NULL;
    if (e == ERR_OK && result->succeeded)
        log_event(feed->options.log, LOG_INFO, "documents.secret_made",
                  LOG_N("bytes", DOCUMENT_SECRET_BYTES));
    if (!feed->seen) /* The mirror tells it; if not, this looks again. */
        loop_timer_start(&feed->timer, MAKE_AGAIN_MS);
}

/* The one that is known, else a new one. Only if there is none: every node may try. */
static err put_secret(struct document_feed *feed)
{
    uint8_t secret[DOCUMENT_SECRET_BYTES];
    struct etcd_txn *txn = etcd_txn_new();

    memcpy(secret, feed->secret, sizeof secret);
    if (!feed->known)
        CHECK(getrandom(secret, sizeof secret, 0) == (ssize_t)sizeof secret);
    etcd_txn_compare(txn, cluster_key_slice(&feed->key), ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&feed->key),
                 (struct slice){ secret, sizeof secret }, 0);
    err e = etcd_txn(feed->options.etcd, txn, made,
                     &(struct etcd_wait){ MAKE_TIMEOUT_MS, feed, &feed->making });
    etcd_txn_free(txn);
    explicit_bzero(secret, sizeof secret);
    return e;
}

static void make(void *user)
{
    struct document_feed *feed = user;

    if (feed->seen || feed->making != NULL)
        return;
    if (put_secret(feed) != ERR_OK)
        loop_timer_start(&feed->timer, MAKE_AGAIN_MS);
}

static void on_synced(void *context, int64_t revision)
{
    (void)revision;
    make(context);
}

err document_feed_new(const struct document_feed_options *options, struct document_feed **ret_feed)
{
    struct document_feed *feed = mem_zalloc(sizeof *feed);
    struct cluster_key definitions = cluster_key_definitions_prefix(options->cluster);

    feed->options = *options;
    feed->key = cluster_key_document_secret(options->cluster);
    loop_timer_init(&feed->timer, options->loop, make, feed);
    err e =
        etcd_mirror_start(options->etcd,
                          &(struct etcd_mirror_options){ .prefix = cluster_key_slice(&feed->key),
                                                         .put = on_put,
                                                         .deleted = on_deleted,
                                                         .synced = on_synced,
                                                         .reset = on_reset,
                                                         .context = feed },
                          &feed->secrets);
    if (e == ERR_OK)
        e = etcd_mirror_start(
            options->etcd,
            &(struct etcd_mirror_options){ .prefix = cluster_key_slice(&definitions),
                                           .keys_max = CLUSTER_DEFINITION_KEYS_MAX,
                                           .put = on_definition,
                                           .deleted = on_definition_deleted,
                                           .synced = on_definitions_synced,
                                           .reset = on_definitions_reset,
                                           .context = feed },
            &feed->definitions);
    if (e != ERR_OK) {
        document_feed_free(feed);
        return e;
    }
    *ret_feed = feed;
    return ERR_OK;
}

void document_feed_free(struct document_feed *feed)
{
    if (feed == NULL)
        return;
    loop_timer_stop(&feed->timer);
    if (feed->making != NULL)
        etcd_call_cancel(feed->making);
    if (feed->secrets != NULL)
        etcd_mirror_stop(feed->secrets);
    if (feed->definitions != NULL)
        etcd_mirror_stop(feed->definitions);
    explicit_bzero(feed, sizeof *feed);
    free(feed);
}
