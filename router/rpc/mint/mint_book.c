#include "router/rpc/mint/mint_book.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/record_shape.h"

#define ROUNDS_MAX  16u /* Of questions in a row that other routers won. */
#define OLD_DAYS    8u  /* Records of days long past that one transaction deletes. */
#define KEPT_DAYS   2u  /* Clocks of routers may differ around midnight. */
#define RECORDS_MAX 64

/* A key's question to etcd, and who waits for it. */
struct mint_ask {
    struct mint_book *book;
    struct mint_ask *next, *previous;
    char key_id[SERVER_KEY_SIZE];
    struct mint_wait waits; /* Head of a circular list. */
    struct etcd_call *call; /* In flight; NULL: none is. */
    uint32_t rounds;
    /* Of the transaction in flight. */
    struct mint_limits made, share;
    uint64_t day;
};

struct mint_book {
    struct mint_book_options options;
    struct mint_guard *guard;
    struct mint_ask asks; /* Head of a circular list. */
};

struct mint_book *mint_book_new(const struct mint_book_options *options)
{
    struct mint_book *book = mem_zalloc(sizeof *book);

    book->options = *options;
    book->guard = mint_guard_new();
    book->asks.next = book->asks.previous = &book->asks;
    return book;
}

static struct mint_ask *ask_new(struct mint_book *book, const char *key_id)
{
    struct mint_ask *ask = mem_zalloc(sizeof *ask);

    CHECK(strlen(key_id) < sizeof ask->key_id);
    memcpy(ask->key_id, key_id, strlen(key_id) + 1);
    ask->book = book;
    ask->waits.next = ask->waits.previous = &ask->waits;
    ask->next = &book->asks;
    ask->previous = book->asks.previous;
    ask->previous->next = ask;
    book->asks.previous = ask;
    return ask;
}

static void ask_free(struct mint_ask *ask)
{
    CHECK(ask->waits.next == &ask->waits);
    if (ask->call != NULL)
        etcd_call_cancel(ask->call);
    ask->previous->next = ask->next;
    ask->next->previous = ask->previous;
    free(ask);
}

void mint_book_free(struct mint_book *book)
{
    if (book == NULL)
        return;
    while (book->asks.next != &book->asks)
        ask_free(book->asks.next);
    mint_guard_free(book->guard);
    free(book);
}

void mint_book_cancel(struct mint_wait *wait)
{
    if (wait->ask == NULL)
        return;
    wait->previous->next = wait->next;
    wait->next->previous = wait->previous;
    wait->ask = NULL; /* The question goes on: the next one of this key has its answer. */
}

static void finish(struct mint_wait *wait, err e, const Holdfast__V1__ErrorDetail *detail)
{
    mint_book_cancel(wait);
    wait->done(wait->user, e, detail);
}

/* No question of this key goes on. */
static void give_up(struct mint_ask *ask)
{
    Holdfast__V1__ErrorDetail detail;

    while (ask->waits.next != &ask->waits) {
        struct mint_wait *wait = ask->waits.next;

        refusal_make(wait->call.arena, &detail, CODE(UNAVAILABLE),
                     "etcd does not say how much the API key %s made today (its limit a day); "
                     "nothing was done",
                     ask->key_id);
        finish(wait, ERR_UNAVAILABLE, &detail);
    }
    ask_free(ask);
}

static void go_on(struct mint_ask *ask, const struct etcd_range_result *records);

/* ---- the record ---- */

static void ranged(void *context, err e, const struct etcd_range_result *result)
{
    struct mint_ask *ask = context;

    ask->call = NULL;
    if (e != ERR_OK || etcd_rolled_back(ask->book->options.etcd))
        give_up(ask);
    else
        go_on(ask, result);
}

static void ask_etcd(struct mint_ask *ask)
{
    struct mint_book *book = ask->book;
    struct cluster_key prefix = cluster_key_mints_prefix(book->options.cluster, ask->key_id);

    if (++ask->rounds > ROUNDS_MAX ||
        etcd_range(book->options.etcd,
                   &(struct etcd_range){
                       .key = cluster_key_slice(&prefix), .prefix = true, .limit = RECORDS_MAX },
                   ranged,
                   &(struct etcd_wait){ ask->waits.next->timeout_ms, ask, &ask->call }) != ERR_OK)
        give_up(ask);
}

static void written(void *context, err e, const struct etcd_txn_result *result)
{
    struct mint_ask *ask = context;

    ask->call = NULL;
    if (e != ERR_OK) {
        give_up(ask); /* What was taken, if it was, no router spends. */
        return;
    }
    /* Whose day it was may be over: then the share is of no use. */
    if (result->succeeded && ask->waits.next != &ask->waits &&
        mint_day_of(&ask->waits.next->call) == ask->day) {
        ask->rounds = 0;
        mint_guard_give(ask->book->guard, &ask->waits.next->call, &ask->made, &ask->share);
    }
    go_on(ask, NULL);
}

static void print_made(const struct mint_limits *made, struct buf *out)
{
    for (uint32_t i = 0; i < made->count; i++)
        buf_printf(out, "%s%s:%" PRIu64, i > 0 ? "," : "", made->goods[i].name,
                   made->goods[i].amount);
}

/* Takes what `lack` says and a little more, if the record is as it was read. */
static void reserve(struct mint_ask *ask, const struct mint_limits *lack,
                    const struct etcd_range_result *records, int64_t revision)
{
    struct mint_book *book = ask->book;
    const struct mint_call *call = &ask->waits.next->call;
    struct cluster_key prefix = cluster_key_mints_prefix(book->options.cluster, ask->key_id);
    struct cluster_key key;
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };
    uint32_t deleted = 0;

    ask->day = mint_day_of(call);
    key = cluster_key_mints(book->options.cluster, ask->key_id, ask->day);
    mint_reserve(call, lack, &ask->made, &ask->share);
    print_made(&ask->made, &value);
    etcd_txn_compare(txn, cluster_key_slice(&key), ETCD_MOD_REVISION, ETCD_EQUAL, revision);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), buf_slice(&value), 0);
    for (size_t i = 0; i < records->kv_count && deleted < OLD_DAYS; i++) {
        uint64_t day;

        if (!cluster_key_mints_day(&prefix, records->kvs[i].key, &day) ||
            day + KEPT_DAYS > ask->day)
            continue;
        etcd_txn_delete(txn, ETCD_THEN, records->kvs[i].key);
        deleted++;
    }
    err e = etcd_txn(book->options.etcd, txn, written,
                     &(struct etcd_wait){ ask->waits.next->timeout_ms, ask, &ask->call });
    etcd_txn_free(txn);
    buf_deinit(&value);
    if (e != ERR_OK)
        give_up(ask);
}

/* What all routers took on the day of the call. False: it cannot be read. */
static bool read_record(struct mint_ask *ask, const struct etcd_range_result *records,
                        int64_t *ret_revision)
{
    uint64_t day = mint_day_of(&ask->waits.next->call);
    struct cluster_key key = cluster_key_mints(ask->book->options.cluster, ask->key_id, day);

    *ret_revision = 0;
    ask->made = (struct mint_limits){ 0 };
    for (size_t i = 0; i < records->kv_count; i++) {
        if (!slice_equal(records->kvs[i].key, cluster_key_slice(&key)))
            continue;
        *ret_revision = records->kvs[i].mod_revision;
        return mint_limits_parse(records->kvs[i].value, &ask->made) == ERR_OK;
    }
    return !records->more;
}

/* Lets those go for whom there is enough, and asks for the first of the others. `records` is what
 * etcd just said; NULL: ask it first. */
static void go_on(struct mint_ask *ask, const struct etcd_range_result *records)
{
    struct mint_guard *guard = ask->book->guard;
    struct mint_limits lack;
    Holdfast__V1__ErrorDetail detail;

    while (ask->waits.next != &ask->waits) {
        struct mint_wait *wait = ask->waits.next;
        int64_t revision = 0;

        if (records != NULL) {
            if (!read_record(ask, records, &revision)) {
                give_up(ask);
                return;
            }
            mint_guard_give(guard, &wait->call, &ask->made, NULL);
        }
        err e = mint_guard_take(guard, &wait->call, &lack, &detail);
        if (e != ERR_NEED) {
            finish(wait, e, &detail);
            continue;
        }
        if (records != NULL)
            reserve(ask, &lack, records, revision);
        else
            ask_etcd(ask);
        return;
    }
    ask_free(ask);
}

err mint_book_take(struct mint_book *book, struct mint_wait *wait,
                   Holdfast__V1__ErrorDetail *ret_detail)
{
    struct mint_limits lack;
    struct mint_ask *ask = book->asks.next;

    wait->ask = NULL;
    err e = mint_guard_take(book->guard, &wait->call, &lack, ret_detail);
    if (e != ERR_NEED)
        return e;
    while (ask != &book->asks && strcmp(ask->key_id, wait->call.key_id) != 0)
        ask = ask->next;
    bool first = ask == &book->asks;
    if (first)
        ask = ask_new(book, wait->call.key_id);
    wait->ask = ask;
    wait->next = &ask->waits;
    wait->previous = ask->waits.previous;
    wait->previous->next = wait;
    ask->waits.previous = wait;
    if (!first)
        return ERR_NEED;
    struct cluster_key prefix = cluster_key_mints_prefix(book->options.cluster, ask->key_id);
    e = etcd_range(book->options.etcd,
                   &(struct etcd_range){
                       .key = cluster_key_slice(&prefix), .prefix = true, .limit = RECORDS_MAX },
                   ranged, &(struct etcd_wait){ wait->timeout_ms, ask, &ask->call });
    if (e == ERR_OK)
        return ERR_NEED;
    mint_book_cancel(wait);
    ask_free(ask);
    refusal_make(wait->call.arena, ret_detail, CODE(UNAVAILABLE),
                 "the router's queue to etcd is full, which counts what the API key %s makes a "
                 "day; nothing was done",
                 wait->call.key_id);
    return ERR_UNAVAILABLE;
}
