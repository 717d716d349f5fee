#include "runtime/tls_watch/tls_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/file_stamp.h"

#define FILES_MAX 3u
#define DAY_MS    86400000ull

struct tls_watch {
    struct tls_watch_options options;
    struct loop_timer timer;
    struct tls_config *client, *server;
    struct file_stamp stamps[FILES_MAX]; /* Of what was read last, whether it was good or not. */
    bool bad;                            /* What was read last: it is tried again. */
};

/* True: a file is another than at the last call. */
static bool take_stamps(struct tls_watch *watch)
{
    const struct tls_options *files = &watch->options.files;
    const char *const paths[FILES_MAX] = { files->ca.path, files->cert.path, files->key.path };
    bool differ = false;

    for (size_t i = 0; i < FILES_MAX; i++) {
        struct file_stamp stamp = file_stamp_of(paths[i]);
        differ |= !file_stamp_equal(&stamp, &watch->stamps[i]);
        watch->stamps[i] = stamp;
    }
    return differ;
}

/* Both sides or none. */
static err load(struct tls_watch *watch, struct tls_error *ret_error)
{
    struct tls_options files = watch->options.files;
    struct tls_config *client = NULL, *server = NULL;
    err e = ERR_OK;

    files.side = TLS_CLIENT;
    if (watch->options.client)
        e = tls_config_new(&files, &client, ret_error);
    files.side = TLS_SERVER;
    if (e == ERR_OK && watch->options.server)
        e = tls_config_new(&files, &server, ret_error);
    if (e != ERR_OK) {
        tls_config_free(client);
        return e;
    }
    tls_config_free(watch->client);
    tls_config_free(watch->server);
    watch->client = client;
    watch->server = server;
    return ERR_OK;
}

static void warn_if_expiring(const struct tls_watch *watch)
{
    uint64_t expires_ms = (uint64_t)tls_watch_expires_s(watch) * 1000;
    uint64_t now_ms = loop_wall_ms();

    if (expires_ms > now_ms + TLS_WATCH_WARN_DAYS * DAY_MS)
        return;
    log_event(watch->options.log, LOG_WARN,
              expires_ms > now_ms ? "tls.expires_soon" : "tls.expired",
              LOG_S("certificate", watch->options.what),
              LOG_N("days_left", expires_ms > now_ms ? (expires_ms - now_ms) / DAY_MS : 0));
}

static void look(void *user)
{
    struct tls_watch *watch = user;
    struct tls_error why = { "" };
    bool changed = take_stamps(watch);

    if (!changed && !watch->bad)
        return;
    watch->bad = load(watch, &why) != ERR_OK;
    if (watch->bad) {
        if (changed)
            log_event(watch->options.log, LOG_ERROR, "tls.not_reloaded",
                      LOG_S("certificate", watch->options.what), LOG_S("why", why.text),
                      LOG_S("what", "the old one stays in use; the files are tried again"));
        return;
    }
    log_event(watch->options.log, LOG_INFO, "tls.reloaded",
              LOG_S("certificate", watch->options.what),
              LOG_N("expires_at_s", tls_watch_expires_s(watch)));
    warn_if_expiring(watch);
    if (watch->options.changed != NULL)
        watch->options.changed(watch->options.user);
}

err tls_watch_new(const struct tls_watch_options *options, struct tls_watch **ret_watch,
                  struct tls_error *ret_error)
{
    struct tls_watch *watch = mem_zalloc(sizeof *watch);

    CHECK(options->client || options->server);
    watch->options = *options;
    loop_timer_init(&watch->timer, options->loop, look, watch);
    (void)take_stamps(watch); /* Before reading: a change meanwhile is read again. */
    err e = load(watch, ret_error);
    if (e != ERR_OK) {
        tls_watch_free(watch);
        return e;
    }
    warn_if_expiring(watch);
    loop_timer_start_repeating(&watch->timer, TLS_WATCH_PERIOD_MS);
    *ret_watch = watch;
    return ERR_OK;
}

static double read_expiry(void *user)
{
    return tls_watch_expires_s(user);
}

/* It must not be read once the watch is freed. */
static void register_expiry(struct tls_watch *watch, struct metrics *metrics)
{
    metrics_gauge_callback(metrics,
                           &(struct metric_info){ "holdfast_certificate_expires_seconds",
                                                  "When the certificate for links between "
                                                  "processes expires, in seconds since 1970.",
                                                  NULL },
                           read_expiry, watch);
}

err tls_watch_new_cluster(const struct tls_watch_cluster *cluster, struct tls_watch **ret_watch,
                          struct tls_error *ret_error)
{
    const struct tls_watch_options options = {
        .loop = cluster->loop,
        .log = cluster->log,
        .what = "cluster",
        .files = { .ca.path = cluster->ca,
                   .cert.path = cluster->cert,
                   .key.path = cluster->key,
                   .verify_peer = true },
        .client = true,
        .server = true,
        .changed = cluster->changed,
        .user = cluster->user,
    };

    if (cluster->insecure)
        return ERR_OK;
    if (cluster->ca[0] == 0 || cluster->cert[0] == 0 || cluster->key[0] == 0) {
        (void)snprintf(ret_error->text, sizeof ret_error->text,
                       "tls_ca, tls_cert and tls_key are needed (or insecure, for tests)");
        return ERR_INVALID;
    }
    err e = tls_watch_new(&options, ret_watch, ret_error);
    if (e == ERR_OK)
        register_expiry(*ret_watch, cluster->metrics);
    return e;
}

void tls_watch_free(struct tls_watch *watch)
{
    if (watch == NULL)
        return;
    loop_timer_stop(&watch->timer);
    tls_config_free(watch->client);
    tls_config_free(watch->server);
    free(watch);
}

struct tls_config *tls_watch_client(const struct tls_watch *watch)
{
    return watch->client;
}

struct tls_config *tls_watch_server(const struct tls_watch *watch)
{
    return watch->server;
}

uint64_t tls_watch_expires_ms(const struct tls_watch *watch)
{
    if (watch == NULL)
        return 0;
    return tls_config_expires_ms(watch->server != NULL ? watch->server : watch->client);
}

double tls_watch_expires_s(const struct tls_watch *watch)
{
    return (double)(tls_watch_expires_ms(watch) / 1000);
}
