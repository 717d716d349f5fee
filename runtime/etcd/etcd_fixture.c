#include "runtime/etcd/etcd_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

struct etcd_process server;
static char server_dir[TEST_DIRECTORY_BYTES];

int start_server(void **state)
{
    char data_dir[80];

    (void)state;
    test_directory_make("etcd", server_dir);
    snprintf(data_dir, sizeof data_dir, "%s/data", server_dir);
    struct etcd_process_options options = { .data_dir = data_dir };
    return etcd_process_start(&options, &server) == ERR_OK ? 0 : -1;
}

int stop_server(void **state)
{
    (void)state;
    etcd_process_stop(&server);
    test_directory_remove(server_dir);
    return 0;
}

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

static void count_rollback(void *context, const struct etcd_rollback *rollback)
{
    struct world *world = context;

    world->rollbacks++;
    world->rollback = *rollback;
}

struct etcd *client_new(struct world *world, const char *endpoint, uint64_t cluster_id,
                        int64_t revision)
{
    const char *endpoints[] = { endpoint };
    struct etcd_options options = { .loop = &world->loop,
                                    .endpoints = endpoints,
                                    .endpoint_count = 1,
                                    .timeout_ms = 10000,
                                    .cluster_id_known = cluster_id,
                                    .revision_known = revision,
                                    .rolled_back = count_rollback,
                                    .context = world };
    struct etcd *etcd;

    assert_int_equal(etcd_new(&options, &etcd), ERR_OK);
    return etcd;
}

void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    uv_timer_init(&world->loop, &world->tick);
    uv_timer_start(&world->tick, tick, 5, 5);
    world->etcd = client_new(world, server.endpoint, 0, 0);
}

void world_deinit(struct world *world)
{
    etcd_free(world->etcd);
    uv_close((uv_handle_t *)&world->tick, NULL);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
}

/* ---- One call, waited for ---- */

static void keep_kvs(struct answer *a, const struct etcd_range_result *range)
{
    a->kv_count = range->kv_count;
    if (range->kv_count == 0)
        return;
    snprintf(a->value, sizeof a->value, "%.*s", (int)range->kvs[0].value.size,
             (const char *)range->kvs[0].value.data);
    a->create_revision = range->kvs[0].create_revision;
    a->mod_revision = range->kvs[0].mod_revision;
}

void txn_done(void *context, err e, const struct etcd_txn_result *result)
{
    struct answer *a = context;

    assert_false(a->done);
    a->done = true;
    a->e = e;
    assert_true((e == ERR_OK) == (result != NULL));
    if (e != ERR_OK)
        return;
    a->succeeded = result->succeeded;
    a->attempts = result->attempts;
    a->revision = result->header.revision;
    a->op_count = result->op_count;
    for (size_t i = 0; i < result->op_count; i++) {
        if (result->ops[i].kind == ETCD_OP_RANGE)
            keep_kvs(a, &result->ops[i].range);
        if (result->ops[i].kind == ETCD_OP_TXN)
            a->inner_succeeded = result->ops[i].txn->succeeded;
        a->deleted += result->ops[i].deleted;
    }
}

void range_done(void *context, err e, const struct etcd_range_result *result)
{
    struct answer *a = context;

    a->done = true;
    a->e = e;
    if (e != ERR_OK)
        return;
    a->revision = result->header.revision;
    keep_kvs(a, result);
}

void lease_done(void *context, err e, const struct etcd_lease_result *result)
{
    struct answer *a = context;

    a->done = true;
    a->e = e;
    if (e == ERR_OK)
        a->lease_id = result->lease_id;
}

struct answer put(struct world *world, const char *key, const char *value, int64_t lease)
{
    struct answer a = { 0 };
    struct etcd_kv kv = { .key = slice_from_text(key),
                          .value = slice_from_text(value),
                          .lease = lease };

    assert_int_equal(etcd_put(world->etcd, &kv, txn_done, &(struct etcd_wait){ 0, &a, NULL }),
                     ERR_OK);
    assert_false(a.done);
    RUN_UNTIL(world, a.done);
    return a;
}

struct answer get(struct world *world, const char *key)
{
    struct answer a = { 0 };
    struct etcd_range range = { .key = slice_from_text(key) };

    assert_int_equal(
        etcd_range(world->etcd, &range, range_done, &(struct etcd_wait){ 0, &a, NULL }), ERR_OK);
    RUN_UNTIL(world, a.done);
    return a;
}

struct answer commit(struct world *world, struct etcd_txn *txn)
{
    struct answer a = { 0 };

    assert_int_equal(etcd_txn(world->etcd, txn, txn_done, &(struct etcd_wait){ 0, &a, NULL }),
                     ERR_OK);
    etcd_txn_free(txn);
    RUN_UNTIL(world, a.done);
    return a;
}

void erase(struct world *world, const char *key)
{
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_delete(txn, ETCD_THEN, slice_from_text(key));
    assert_int_equal(commit(world, txn).e, ERR_OK);
}
