#include "router/io/token_feed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_mirror.h"

#define MAKE_TIMEOUT_MS 2000u
#define MAKE_AGAIN_MS   1000u

struct token_feed {
    struct token_feed_options options;
    struct cluster_key key;
    struct etcd_mirror *mirror;
    struct loop_timer timer; /* Until there is a secret, or it is seen that there is one. */
    struct etcd_call *making;
    bool seen; /* etcd has a secret. */
    struct token_secret_record record;
    struct session_secrets secrets; /* Of `record`. */
};

static void on_put(void *context, const struct etcd_kv *kv)
{
    struct token_feed *feed = context;
    struct record_error why;

    if (!slice_equal(kv->key, cluster_key_slice(&feed->key)))
        return;
    feed->seen = true;
    if (token_secret_record_decode(kv->value, &feed->record, &why) != ERR_OK) {
        log_event(feed->options.log, LOG_ERROR, "tokens.bad_secret", LOG_S("why", why.text),
                  LOG_N("secrets_kept", feed->secrets.count));
        return;
    }
    session_secrets_init(&feed->secrets, feed->options.cluster, &feed->record);
    loop_timer_stop(&feed->timer);
    log_event(feed->options.log, LOG_INFO, "tokens.secret_known",
              LOG_N("secrets", feed->secrets.count));
}

/* A router that starts now would make another one, and no token given so far would be good there.
 * So the routers that know it put it back. */
static void on_deleted(void *context, struct slice key, int64_t revision)
{
    struct token_feed *feed = context;

    (void)revision;
    if (!slice_equal(key, cluster_key_slice(&feed->key)))
        return;
    log_event(feed->options.log, LOG_ERROR, "tokens.secret_deleted",
              LOG_N("secrets_kept", feed->secrets.count));
    feed->seen = false;
    loop_timer_start(&feed->timer, 0);
}

static void on_reset(void *context)
{
    struct token_feed *feed = context;

    feed->seen = false;
}

static void made(void *context, err e, const struct etcd_txn_result *result)
{
    struct token_feed *feed = context;

    feed->making = NULL;
    if (e == ERR_OK && result->succeeded)
        log_event(feed->options.log, LOG_INFO, "tokens.secret_made", LOG_N("secrets", 1));
    if (!feed->seen) /* The mirror tells it; if not, this looks again. */
        loop_timer_start(&feed->timer, MAKE_AGAIN_MS);
}

/* The one that is known, else a new one. Only if there is none: every router may try. */
static err put_secret(struct token_feed *feed)
{
    struct token_secret_record record = feed->record;
    struct etcd_txn *txn = etcd_txn_new();
    struct buf json = { 0 };

    if (feed->secrets.count == 0)
        CHECK(getrandom(record.current, sizeof record.current, 0) ==
              (ssize_t)sizeof record.current);
    token_secret_record_encode(&record, &json);
    etcd_txn_compare(txn, cluster_key_slice(&feed->key), ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&feed->key), buf_slice(&json), 0);
    err e = etcd_txn(feed->options.etcd, txn, made,
                     &(struct etcd_wait){ MAKE_TIMEOUT_MS, feed, &feed->making });
    etcd_txn_free(txn);
    explicit_bzero(json.data, json.size);
    buf_deinit(&json);
    explicit_bzero(&record, sizeof record);
    return e;
}

static void make(void *user)
{
    struct token_feed *feed = user;

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

err token_feed_new(const struct token_feed_options *options, struct token_feed **ret_feed)
{
    struct token_feed *feed = mem_zalloc(sizeof *feed);

    feed->options = *options;
    feed->key = cluster_key_token_secret(options->cluster);
    loop_timer_init(&feed->timer, options->loop, make, feed);
    const struct etcd_mirror_options mirror = {
        .prefix = cluster_key_slice(&feed->key),
        .put = on_put,
        .deleted = on_deleted,
        .synced = on_synced,
        .reset = on_reset,
        .context = feed,
    };
    err e = etcd_mirror_start(options->etcd, &mirror, &feed->mirror);
    if (e != ERR_OK) {
        token_feed_free(feed);
        return e;
    }
    *ret_feed = feed;
    return ERR_OK;
}

void token_feed_free(struct token_feed *feed)
{
    if (feed == NULL)
        return;
    loop_timer_stop(&feed->timer);
    if (feed->making != NULL)
        etcd_call_cancel(feed->making);
    if (feed->mirror != NULL)
        etcd_mirror_stop(feed->mirror);
    explicit_bzero(feed, sizeof *feed);
    free(feed);
}

bool token_feed_known(const struct token_feed *feed)
{
    return feed->secrets.count > 0;
}

const struct session_secrets *token_feed_secrets(const struct token_feed *feed)
{
    return &feed->secrets;
}
