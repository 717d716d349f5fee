#include "client/cli/key_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define ENDPOINTS_BYTES 1024u
#define KEYS_SHOWN_MAX  65536u

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

static err await(struct key_store *store, err started)
{
    if (started == ERR_OK &&
        !loop_run_until(store->loop, is_answered, store, (uint64_t)store->deadline_ms + 1000))
        store->outcome = ERR_TIMEOUT;
    if (started == ERR_OK && store->outcome == ERR_OK)
        return ERR_OK;
    complain("etcd", err_text(started != ERR_OK ? started : store->outcome));
    return ERR_UNAVAILABLE;
}

static void on_txn(void *context, err e, const struct etcd_txn_result *result)
{
    struct key_store *store = context;

    store->answered = true;
    store->outcome = e;
    store->revision = e == ERR_OK && result->succeeded ? result->header.revision : 0;
}

/* Puts and deletions of a key: repeating them changes nothing. */
static err commit(struct key_store *store, struct etcd_txn *txn)
{
    store->answered = false;
    err e = await(store,
                  etcd_txn_until_definite(store->etcd, txn, on_txn,
                                          &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    etcd_txn_free(txn);
    return e;
}

err key_store_put(struct key_store *store, const struct api_key_record *record)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, record->id);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf json = { 0 };

    api_key_record_encode(record, &json);
    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), buf_slice(&json), 0);
    buf_deinit(&json);
    return commit(store, txn);
}

err key_store_remove(struct key_store *store, const char *id)
{
    const struct cluster_key key = cluster_key_api_key(store->cluster, id);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_delete(txn, ETCD_THEN, cluster_key_slice(&key));
    return commit(store, txn);
}

static void on_range(void *context, err e, const struct etcd_range_result *result)
{
    struct key_store *store = context;
    size_t count = e == ERR_OK ? result->kv_count : 0;

    store->answered = true;
    store->outcome = e;
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

err key_store_list(struct key_store *store, struct api_key_record **ret_records,
                   uint32_t *ret_count)
{
    const struct cluster_key prefix = cluster_key_api_keys_prefix(store->cluster);
    const struct etcd_range range = { .key = cluster_key_slice(&prefix), .prefix = true };

    store->answered = false;
    store->count = 0;
    store->records = NULL;
    err e = await(store, etcd_range(store->etcd, &range, on_range,
                                    &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    if (e != ERR_OK) {
        free(store->records);
        return e;
    }
    *ret_records = store->records;
    *ret_count = store->count;
    return ERR_OK;
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
    err e = await(store, etcd_range(store->etcd, &range, on_secret,
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
    store->answered = false;
    /* Once: a repetition would not recognise its own change. */
    err e = await(store, etcd_txn(store->etcd, txn, on_txn,
                                  &(struct etcd_wait){ store->deadline_ms, store, NULL }));
    etcd_txn_free(txn);
    if (e != ERR_OK)
        return e;
    if (store->revision == 0)
        return complain("session tokens", "the secret was changed meanwhile; run this again");
    *revision = store->revision;
    return ERR_OK;
}
