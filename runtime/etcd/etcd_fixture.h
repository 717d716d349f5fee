/*
 * etcd_fixture: a real etcd on free loopback ports, a loop with a client, and calls that are waited
 * for. For tests only.
 */
#ifndef RUNTIME_ETCD_ETCD_FIXTURE_H
#define RUNTIME_ETCD_ETCD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/etcd/etcd.h"
#include "runtime/etcd/etcd_process.h"

/* How long a wait may take before something is wrong: only a bound, also on a starved machine. */
enum { WAIT_MS = 60000 };

/* The group's etcd; tests may stop, kill and restart it, and leave it running. */
extern struct etcd_process server;

/* Group set-up and tear-down. */
int start_server(void **state);
int stop_server(void **state);

/* One loop with one or more clients. */
struct world {
    uv_loop_t loop;
    uv_timer_t tick; /* Wakes the loop, so that waits end in time. */
    struct etcd *etcd;
    int rollbacks;
    struct etcd_rollback rollback;
};

struct etcd *client_new(struct world *world, const char *endpoint, uint64_t cluster_id,
                        int64_t revision);
void world_init(struct world *world);
void world_deinit(struct world *world);

#define RUN_UNTIL(world, condition)                                                                \
    do {                                                                                           \
        uint64_t until_ms_ = uv_hrtime() / 1000000 + WAIT_MS;                                      \
        while (!(condition)) {                                                                     \
            uv_run(&(world)->loop, UV_RUN_ONCE);                                                   \
            if (uv_hrtime() / 1000000 > until_ms_)                                                 \
                fail_msg("not within %d ms: %s", (int)WAIT_MS, #condition);                        \
        }                                                                                          \
    } while (0)

struct answer {
    bool done;
    err e;
    bool succeeded;
    uint32_t attempts;
    int64_t revision;
    size_t op_count;
    size_t kv_count;
    char value[64];
    int64_t create_revision, mod_revision;
    bool inner_succeeded;
    int64_t deleted;
    int64_t lease_id;
};

/* Completions whose context is a struct answer. */
void txn_done(void *context, err e, const struct etcd_txn_result *result);
void range_done(void *context, err e, const struct etcd_range_result *result);
void lease_done(void *context, err e, const struct etcd_lease_result *result);

struct answer put(struct world *world, const char *key, const char *value, int64_t lease);
struct answer get(struct world *world, const char *key);
/* Frees the transaction. */
struct answer commit(struct world *world, struct etcd_txn *txn);
void erase(struct world *world, const char *key);

#endif
