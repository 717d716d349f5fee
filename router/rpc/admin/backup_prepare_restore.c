#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/request/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/cluster_record.h"

/* Beyond it they would not be exact in every JSON reader, and no cluster ever comes so far. */
#define NUMBER_MAX (1ull << 40)

/*
 * Raises the cluster's generation and the floor of its epochs above those of a backup, in etcd; the
 * coordinator then names every owner again, above that floor. Where they are above already, nothing
 * is written: repeating the call is harmless.
 */
struct preparation {
    struct request *request;
    struct cluster_record record; /* As it is to be. */
    struct slice written;         /* It, as etcd is to have it. In the request's arena. */
    struct etcd_call *call;       /* In flight; NULL: none. */
};

static void answer(struct preparation *preparation)
{
    Holdfast__V1__PrepareRestoreResponse response = HOLDFAST__V1__PREPARE_RESTORE_RESPONSE__INIT;

    response.generation = preparation->record.generation;
    response.epoch_floor = preparation->record.epoch_floor;
    request_reply(preparation->request, &response.base);
}

static void record_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct preparation *preparation = context;

    preparation->call = NULL;
    if (e == ERR_OK && (result->succeeded || etcd_txn_shows(result, 0, preparation->written)))
        answer(preparation);
    else if (e == ERR_OK && etcd_txn_is_unknown(result))
        request_fail_text(preparation->request, CODE(OUTCOME_UNKNOWN), ETCD_CHANGED_SINCE);
    else if (e == ERR_OK)
        request_fail_text(preparation->request, CODE(VERSION_CONFLICT),
                          "the cluster's record was changed at the same time; repeat the call");
    else if (err_retry(e) == RETRY_UNKNOWN_OUTCOME)
        request_fail_text(preparation->request, CODE(OUTCOME_UNKNOWN),
                          "etcd did not answer; repeat the call");
    else
        request_fail_text(preparation->request, CODE(UNAVAILABLE),
                          "etcd could not be reached; nothing was done");
}

static err record_write(struct preparation *preparation, int64_t revision)
{
    struct request *request = preparation->request;
    const struct router_options *options = &request->router->options;
    struct cluster_key key = cluster_key_cluster(options->cluster);
    uint64_t now_ms = loop_now_ms(options->loop);
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };

    cluster_record_encode(&preparation->record, &value);
    etcd_txn_compare(txn, cluster_key_slice(&key), ETCD_MOD_REVISION, ETCD_EQUAL, revision);
    preparation->written = arena_copy(request->arena, buf_slice(&value));
    etcd_txn_make(txn, cluster_key_slice(&key), preparation->written);
    err e = etcd_txn_until_definite(
        options->etcd, txn, record_written,
        &(struct etcd_wait){ request->answer_by_ms > now_ms ? request->answer_by_ms - now_ms : 1,
                             preparation, &preparation->call });
    etcd_txn_free(txn);
    buf_deinit(&value);
    return e;
}

/* False: it is as it should be. */
static bool record_raise(struct cluster_record *record,
                         const Holdfast__V1__PrepareRestoreRequest *wanted)
{
    if (record->generation > wanted->generation && record->epoch_floor >= wanted->epoch)
        return false;
    if (record->generation < wanted->generation)
        record->generation = wanted->generation;
    record->generation++;
    if (record->epoch_floor < wanted->epoch)
        record->epoch_floor = wanted->epoch;
    return true;
}

static void record_read(void *context, err e, const struct etcd_range_result *result)
{
    struct preparation *preparation = context;
    struct request *request = preparation->request;
    struct record_error why;

    preparation->call = NULL;
    if (e == ERR_OK && result->kv_count != 1)
        e = ERR_NOT_FOUND;
    if (e == ERR_OK)
        e = cluster_record_decode(result->kvs[0].value, &preparation->record, &why);
    if (e == ERR_OK && !record_raise(&preparation->record, (const void *)request->message)) {
        answer(preparation);
        return;
    }
    if (e == ERR_OK)
        e = record_write(preparation, result->kvs[0].mod_revision);
    if (e != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE),
                          "the cluster's record could not be read; nothing was done");
}

static void preparation_cancel(struct request *request)
{
    struct preparation *preparation = request->state;

    if (preparation->call != NULL)
        etcd_call_cancel(preparation->call);
    request_fail_text(request, CODE(OUTCOME_UNKNOWN), "the caller has gone");
}

void backup_prepare_restore_handle(struct request *request)
{
    const Holdfast__V1__PrepareRestoreRequest *wanted = (const void *)request->message;
    const struct router_options *options = &request->router->options;
    struct cluster_key key = cluster_key_cluster(options->cluster);
    struct preparation *preparation = arena_zalloc(request->arena, sizeof *preparation);

    if (wanted->generation == 0 || wanted->generation > NUMBER_MAX || wanted->epoch == 0 ||
        wanted->epoch > NUMBER_MAX) {
        request_fail_text(request, CODE(INVALID_ARGUMENT),
                          "generation, epoch: those of the backup, 1 to 2^40");
        return;
    }
    preparation->request = request;
    request->state = preparation;
    request->cancel = preparation_cancel;
    if (etcd_range(options->etcd, &(struct etcd_range){ .key = cluster_key_slice(&key) },
                   record_read,
                   &(struct etcd_wait){ request_time_left(request, ROUTER_STATUS_MS_MAX),
                                        preparation, &preparation->call }) != ERR_OK)
        request_fail_text(request, CODE(UNAVAILABLE), "too many calls to etcd");
}
