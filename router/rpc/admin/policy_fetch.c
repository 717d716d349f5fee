#include "router/rpc/admin/policy_fetch.h"

#include "router/rpc/request/router_state.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/etcd/etcd.h"

struct fetch {
    struct request *request;
    policy_fetched *done;
    void *user;
    struct etcd_call *call;
};

static void fetched(void *context, err e, const struct etcd_range_result *result)
{
    struct fetch *fetch = context;
    struct codec_scope scope = { .arena = fetch->request->arena };
    ProtobufCMessage *message = NULL;

    if (e != ERR_OK || result->kv_count != 1 ||
        proto_decode(&holdfast__v1__policy__descriptor, result->kvs[0].value, &scope, &message) !=
            ERR_OK)
        message = NULL;
    fetch->done(fetch->user, (Holdfast__V1__Policy *)(void *)message);
}

static void fetch_cancel(struct request *request)
{
    struct fetch *fetch = request->state;

    etcd_call_cancel(fetch->call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

void policy_fetch(struct request *request, policy_fetched *done, void *user)
{
    const struct router_options *options = &request->router->options;
    struct cluster_key key = cluster_key_policy(options->cluster);
    struct fetch *fetch = arena_zalloc(request->arena, sizeof *fetch);

    *fetch = (struct fetch){ .request = request, .done = done, .user = user };
    request->state = fetch;
    request->cancel = fetch_cancel;
    /* Half of the time: those who ask go on without an answer. */
    if (etcd_range(
            options->etcd, &(struct etcd_range){ .key = cluster_key_slice(&key) }, fetched,
            &(struct etcd_wait){ request_time_left(request, 2 * ROUTER_STATUS_MS_MAX) / 2 + 1,
                                 fetch, &fetch->call }) != ERR_OK)
        done(user, NULL);
}
