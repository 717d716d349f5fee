#include "client/cli/call/key_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/clock.h"
#include "runtime/base/check.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define ENDPOINTS_BYTES    1024u
#define KEYS_SHOWN_MAX     65536u
#define REGISTER_TRIES_MAX 8

const struct command_option option_etcd = {
    .flag = "etcd",
    .value = "URLS",
    .initial = "http://127.0.0.1:2379",
    .environment = "HOLDFAST_ETCD",
    .meaning = "the cluster's etcd",
};
const struct command_option option_etcd_ca = {
    .flag = "etcd-ca",
    .value = "FILE",
    .environment = "HOLDFAST_ETCD_CA",
    .meaning = "CA of etcd's certificates",
};
const struct command_option option_etcd_cert = {
    .flag = "etcd-cert",
    .value = "FILE",
    .environment = "HOLDFAST_ETCD_CERT",
    .meaning = "client certificate for etcd",
};
const struct command_option option_etcd_key = {
    .flag = "etcd-key",
    .value = "FILE",
    .environment = "HOLDFAST_ETCD_KEY",
    .meaning = "of etcd-cert",
};

struct key_store {
    struct loop *loop;
    struct etcd *etcd;
    const char *cluster;
    uint32_t deadline_ms;
    /* ---- of the call under way ---- */
    bool answered;
    err outcome;
    struct api_key_record *records;
    uint32_t count;
    struct token_secret_record secret;
    int64_t revision; /* Of what was read or written; 0: there is none. */
};

static err complain(const char *what, const char *why)
{
    fprintf(stderr, "holdfast: %s: %s\n", what, why);
    return ERR_INVALID;
}

static err connect_etcd(struct key_store *store, const struct arguments *arguments)
{
    char text[ENDPOINTS_BYTES];
    const char *endpoints[ETCD_ENDPOINTS_MAX];
    char *rest = NULL;
    struct etcd_options options = {
        .loop = loop_uv(store->loop),
        .endpoints = endpoints,
        .ca_file = text_or_null(option_text(arguments, &option_etcd_ca)),
        .cert_file = text_or_null(option_text(arguments, &option_etcd_cert)),
        .key_file = text_or_null(option_text(arguments, &option_etcd_key)),
    };

    const char *list = option_text(arguments, &option_etcd);
    if (strlen(list) >= sizeof text)
        return complain("--etcd", "is too long");
    snprintf(text, sizeof text, "%s", list);
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        if (options.endpoint_count == ETCD_ENDPOINTS_MAX)
            return complain("--etcd", "names more endpoints than 16");
        endpoints[options.endpoint_count++] = one;
    }
    err e = etcd_new(&options, &store->etcd);
    return e == ERR_OK ? ERR_OK : complain("--etcd", err_text(e));
}

err key_store_open(const struct arguments *arguments, struct key_store **ret_store)
{
    struct key_store *store = mem_zalloc(sizeof *store);
    err e = ERR_OK;

    store->cluster = option_text(arguments, &option_cluster);
    if (!cluster_name_valid(store->cluster))
        e = complain("--cluster", "the name may have 1 to 63 of a-z, 0-9 and dash");
    if (e == ERR_OK)
        e = option_number(arguments, &option_deadline_ms, 1, DEADLINE_MS_MAX, &store->deadline_ms);
    if (e == ERR_OK && loop_new(&store->loop) != ERR_OK)
        e = complain("event loop", "could not be made");
    if (e == ERR_OK)
        e = connect_etcd(store, arguments);
    if (e != ERR_OK) {
        key_store_close(store);
        return e;
    }
    *ret_store = store;
    return ERR_OK;
}

void key_store_close(struct key_store *store)
{
    if (store == NULL)
        return;
    if (store->etcd != NULL)
        etcd_free(store->etcd);
    if (store->loop != NULL)
        loop_free(store->loop);
    free(store);
}

static bool is_answered(void *user)
{
    const struct key_store *store = user;

    return store->answered;
}

/* ERR_TIMEOUT: the outcome is unknown; else ERR_UNAVAILABLE. */
static err await(struct key_store *store, err started)
{
    if (started == ERR_OK &&
        !loop_run_until(store->loop, is_answered, store, (uint64_t)store->deadline_ms + 1000))
        store->outcome = ERR_TIMEOUT;
    if (started == ERR_OK && store->outcome == ERR_OK)
        return ERR_OK;
    err e = started != ERR_OK ? started : store->outcome;
    complain("etcd", err_text(e));
    return err_retry(e) == RETRY_UNKNOWN_OUTCOME ? ERR_TIMEOUT : ERR_UNAVAILABLE;
}

static err await_read(struct key_store *store, err started)
{
    return await(store, started) == ERR_OK ? ERR_OK : ERR_UNAVAILABLE;
}

static void on_txn(void *context, err e, const struct etcd_txn_result *result)
{
    struct key_store *store = context;

    store->answered = true;
    store->outcome = e;
    store->revision = e == ERR_OK && result->succeeded ? result->header.revision : 0;
}

/* Whether it was done, or its compare failed, store->revision tells: repeating it changes nothing.
 */
static err commit(struct key_store *store, struct etcd_txn *txn)
{
    store->answered = false;
    err e = await(store,
                  etcd_txn_until_definite(store->etcd, txn, on_txn,
                                          &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    etcd_txn_free(txn);
    return e;
}

err key_store_remove(struct key_store *store, const struct api_key_record *record)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, record->id);
    const struct cluster_key revoked = cluster_key_revoked(store->cluster, record->id);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_delete(txn, ETCD_THEN, cluster_key_slice(&key));
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&revoked), slice_from_text(record->name), 0);
    return commit(store, txn);
}

static void on_range(void *context, err e, const struct etcd_range_result *result)
{
    struct key_store *store = context;
    size_t count = e == ERR_OK ? result->kv_count : 0;

    store->answered = true;
    store->outcome = e;
    store->revision = count > 0 ? result->kvs[0].mod_revision : 0;
    if (count > KEYS_SHOWN_MAX)
        count = KEYS_SHOWN_MAX;
    store->records = mem_zalloc((count + 1) * sizeof *store->records);
    for (size_t i = 0; i < count; i++) {
        struct record_error why;

        if (api_key_record_decode(result->kvs[i].value, &store->records[store->count], &why) ==
            ERR_OK)
            store->count++;
        else
            fprintf(stderr, "holdfast: %.*s: %s\n", (int)result->kvs[i].key.size,
                    (const char *)result->kvs[i].key.data, why.text);
    }
}

/* Into store->records, which are to be freed. */
static err read_records(struct key_store *store, const struct etcd_range *range)
{
    store->answered = false;
    store->count = 0;
    store->records = NULL;
    err e = await_read(store, etcd_range(store->etcd, range, on_range,
                                         &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    if (e != ERR_OK)
        free(store->records);
    return e;
}

err key_store_list(struct key_store *store, struct api_key_record **ret_records,
                   uint32_t *ret_count)
{
    const struct cluster_key prefix = cluster_key_api_keys_prefix(store->cluster);
    const struct etcd_range range = { .key = cluster_key_slice(&prefix), .prefix = true };
    err e = read_records(store, &range);

    if (e != ERR_OK)
        return e;
    *ret_records = store->records;
    *ret_count = store->count;
    return ERR_OK;
}

/* store->revision is 0 where none stands. ERR_INVALID: it cannot be read, which was said. */
static err read_one(struct key_store *store, const char *id, struct api_key_record *ret_record)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, id);
    const struct etcd_range range = { .key = cluster_key_slice(&key) };
    err e = read_records(store, &range);

    if (e != ERR_OK)
        return e;
    if (store->count > 0)
        *ret_record = store->records[0];
    else if (store->revision != 0)
        e = ERR_INVALID;
    free(store->records);
    return e;
}

/* Routers know API_KEYS_MAX keys: which of more they knew would hang on their ids. ERR_INVALID. */
static err check_room(struct key_store *store, const char *id)
{
    struct api_key_record *records;
    uint32_t count, expired = 0;
    uint64_t now_ms = wall_ms();
    bool stands = false;

    err e = key_store_list(store, &records, &count);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < count; i++) {
        stands |= strcmp(records[i].id, id) == 0;
        expired += records[i].expires_at_ms != 0 && records[i].expires_at_ms <= now_ms;
    }
    free(records);
    if (stands || count < API_KEYS_MAX)
        return ERR_OK;
    fprintf(stderr,
            "holdfast: the cluster has %u keys, at most %d; %u of them have expired: revoke keys "
            "that are of no use any more\n",
            count, API_KEYS_MAX, expired);
    return ERR_INVALID;
}

err key_store_put(struct key_store *store, const struct api_key_record *record)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, record->id);
    const struct cluster_key revoked = cluster_key_revoked(store->cluster, record->id);
    struct buf json = { 0 };

    err e = check_room(store, record->id);
    if (e != ERR_OK)
        return e;
    struct etcd_txn *txn = etcd_txn_new();
    api_key_record_encode(record, &json);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), buf_slice(&json), 0);
    etcd_txn_delete(txn, ETCD_THEN, cluster_key_slice(&revoked));
    buf_deinit(&json);
    return commit(store, txn);
}

static void on_revoked(void *context, err e, const struct etcd_range_result *result)
{
    struct key_store *store = context;

    store->answered = true;
    store->outcome = e;
    store->revision = e == ERR_OK && result->kv_count > 0 ? result->kvs[0].mod_revision : 0;
}

static err read_revoked(struct key_store *store, const char *id, bool *ret_revoked)
{
    const struct cluster_key key = cluster_key_revoked(store->cluster, id);
    const struct etcd_range range = { .key = cluster_key_slice(&key) };

    store->answered = false;
    err e = await_read(store, etcd_range(store->etcd, &range, on_revoked,
                                         &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    *ret_revoked = e == ERR_OK && store->revision != 0;
    return e;
}

/* Limits are the operator's, who sets them by issuing the key again. */
static void keep_limits(const struct api_key_record *stands, struct api_key_record *record)
{
    record->created_at_ms = stands->created_at_ms;
    record->expires_at_ms = stands->expires_at_ms;
    record->rate_per_s = stands->rate_per_s;
    memcpy(record->servers, stands->servers, sizeof record->servers);
    memcpy(record->grants, stands->grants, sizeof record->grants);
    if (record->holder[0] == 0)
        memcpy(record->holder, stands->holder, sizeof record->holder);
    memcpy(record->per_day, stands->per_day, sizeof record->per_day);
}

/* Over what stands at `revision`; 0: over nothing. store->revision is 0 if something else does, or
 * if it is revoked. */
static err put_over(struct key_store *store, const struct api_key_record *record, int64_t revision)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, record->id);
    const struct cluster_key revoked = cluster_key_revoked(store->cluster, record->id);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf json = { 0 };

    api_key_record_encode(record, &json);
    etcd_txn_compare(txn, cluster_key_slice(&key), ETCD_MOD_REVISION, ETCD_EQUAL, revision);
    etcd_txn_compare(txn, cluster_key_slice(&revoked), ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), buf_slice(&json), 0);
    buf_deinit(&json);
    return commit(store, txn);
}

err key_store_register(struct key_store *store, struct api_key_record *record, bool *ret_revoked)
{
    struct api_key_record stands = { .rate_per_s = 0 };
    bool done = false;
    err e = check_room(store, record->id);

    *ret_revoked = false;
    for (int i = 0; i < REGISTER_TRIES_MAX && e == ERR_OK && !done && !*ret_revoked; i++) {
        e = read_one(store, record->id, &stands);
        if (e == ERR_OK && store->revision != 0)
            keep_limits(&stands, record);
        if (e == ERR_OK)
            e = put_over(store, record, store->revision);
        done = e == ERR_OK && store->revision != 0;
        if (e == ERR_OK && !done)
            e = read_revoked(store, record->id, ret_revoked);
    }
    if (e == ERR_OK && !done && !*ret_revoked)
        return complain("the key", "is changed by others again and again; try again");
    return e;
}

static void on_secret(void *context, err e, const struct etcd_range_result *result)
{
    struct key_store *store = context;
    struct record_error why;

    store->answered = true;
    store->outcome = e;
    store->revision = 0;
    if (e != ERR_OK || result->kv_count == 0)
        return;
    store->outcome = token_secret_record_decode(result->kvs[0].value, &store->secret, &why);
    if (store->outcome == ERR_OK)
        store->revision = result->kvs[0].mod_revision;
    else
        fprintf(stderr, "holdfast: %s\n", why.text);
}

err key_store_get_secret(struct key_store *store, struct token_secret_record *ret_record,
                         int64_t *ret_revision)
{
    const struct cluster_key key = cluster_key_token_secret(store->cluster);
    const struct etcd_range range = { .key = cluster_key_slice(&key) };

    store->answered = false;
    err e = await_read(store, etcd_range(store->etcd, &range, on_secret,
                                         &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    if (e != ERR_OK)
        return e;
    if (store->revision == 0) {
        complain("session tokens", "this cluster has no secret: no router of it has run yet");
        return ERR_NOT_FOUND;
    }
    *ret_record = store->secret;
    *ret_revision = store->revision;
    explicit_bzero(&store->secret, sizeof store->secret);
    return ERR_OK;
}

/* A put whose answer was lost, and which was repeated, finds itself. */
static err recognise_secret(struct key_store *store, const struct token_secret_record *record,
                            int64_t *revision)
{
    struct token_secret_record stands = { .rotated_at_ms = 0 };
    err e = key_store_get_secret(store, &stands, revision);
    bool same = e == ERR_OK &&
                memcmp(stands.current, record->current, sizeof stands.current) == 0 &&
                memcmp(stands.previous, record->previous, sizeof stands.previous) == 0 &&
                memcmp(stands.next, record->next, sizeof stands.next) == 0;

    explicit_bzero(&stands, sizeof stands);
    if (e == ERR_OK && !same)
        return complain("session tokens", "the secret was changed meanwhile; run this again");
    return e == ERR_OK ? ERR_OK : ERR_TIMEOUT;
}

err key_store_put_secret(struct key_store *store, const struct token_secret_record *record,
                         int64_t *revision)
{
    const struct cluster_key key = cluster_key_token_secret(store->cluster);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf json = { 0 };

    token_secret_record_encode(record, &json);
    etcd_txn_compare(txn, cluster_key_slice(&key), ETCD_MOD_REVISION, ETCD_EQUAL, *revision);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), buf_slice(&json), 0);
    explicit_bzero(json.data, json.size);
    buf_deinit(&json);
    err e = commit(store, txn);
    if (e != ERR_OK)
        return e;
    if (store->revision == 0)
        return recognise_secret(store, record, revision);
    *revision = store->revision;
    return ERR_OK;
}
