/*
 * tls_watch: TLS configurations that follow their files. Looks once a second whether a file was
 * replaced (also through the links by which Kubernetes swaps a Secret) and then makes new
 * configurations of all. While the files do not fit together, as in the middle of a rotation, the
 * old ones stay and the files are tried again each second. On the loop's thread only.
 */
#ifndef RUNTIME_TLS_WATCH_TLS_WATCH_H
#define RUNTIME_TLS_WATCH_TLS_WATCH_H

#include "runtime/base/log.h"
#include "runtime/loop/loop.h"
#include "runtime/metrics/metrics.h"
#include "runtime/tls/tls_config.h"

#define TLS_WATCH_PERIOD_MS 1000u
#define TLS_WATCH_WARN_DAYS 14u

struct tls_watch;

struct tls_watch_options {
    struct loop *loop;
    const struct log *log;
    const char *what;         /* Of what, for logs: "public", "cluster". */
    struct tls_options files; /* `side` is not read; its paths must outlive the watch. */
    bool client, server;      /* Which sides to make. */
    /* New configurations are there: new connections should use them. May be NULL. */
    void (*changed)(void *user);
    void *user;
};

/* Reads the files. On error, as of tls_config_new, *ret_error says why. */
NODISCARD err tls_watch_new(const struct tls_watch_options *options, struct tls_watch **ret_watch,
                            struct tls_error *ret_error);
/* What the processes of a cluster prove to each other who they are by. The paths outlive the watch.
 */
struct tls_watch_cluster {
    struct loop *loop;
    const struct log *log;
    struct metrics *metrics; /* The certificate's expiry is registered there. */
    const char *ca, *cert, *key;
    bool insecure; /* Plain TCP: there is nothing to watch. */
    void (*changed)(void *user);
    void *user;
};

/* The fields that come from a process's configuration (PROCESS_CONFIG). */
#define TLS_WATCH_CONFIG(config)                                                                   \
    .ca = (config)->tls_ca, .cert = (config)->tls_cert, .key = (config)->tls_key,                  \
    .insecure = (config)->insecure

/* Both sides, each proving itself. Insecure: ERR_OK, and *ret_watch is left alone. ERR_INVALID: a
 * path is empty. */
NODISCARD err tls_watch_new_cluster(const struct tls_watch_cluster *cluster,
                                    struct tls_watch **ret_watch, struct tls_error *ret_error);
/* NULL is allowed. */
void tls_watch_free(struct tls_watch *watch);

/* NULL if that side was not asked for. Good until the next change; hold it to keep it. */
struct tls_config *tls_watch_client(const struct tls_watch *watch);
struct tls_config *tls_watch_server(const struct tls_watch *watch);
/* Seconds since 1970 at which the certificate in use expires; 0 for NULL. */
double tls_watch_expires_s(const struct tls_watch *watch);
/* The same in milliseconds. */
uint64_t tls_watch_expires_ms(const struct tls_watch *watch);

#endif
