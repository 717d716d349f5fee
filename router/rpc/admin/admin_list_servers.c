#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/list_page.h"
#include "runtime/cluster/cluster_key.h"

#define PAGE_SIZE_MAX  10000u
#define LIVE_ALONE_MAX 1024 /* Leased keys of servers that an etcd of before does not know. */

static char state_live[] = "live";
static char state_expiring[] = "expiring";

struct server_list {
    struct request *request;
    struct etcd_call *call;
    struct list_page page;
    struct incarnation after; /* The last one of the page before, if there was one. */
    Holdfast__V1__ListServersResponse response;
};

static Holdfast__V1__ServerStatus *make_status(struct server_list *list, const struct etcd_kv *kv,
                                               struct incarnation incarnation)
{
    struct arena *arena = list->request->arena;
    Holdfast__V1__ServerStatus *status = arena_alloc(arena, sizeof *status);
    struct server_record record;
    char text[INCARNATION_TEXT_SIZE];

    holdfast__v1__server_status__init(status);
    incarnation_print(incarnation, text);
    status->incarnation = (char *)arena_copy(arena, slice_from_text(text)).data;
    status->state = state_expiring; /* Unless its leased key is there too. */
    if (server_record_decode(kv->value, &record, NULL) == ERR_OK)
        status->name = (char *)arena_copy(arena, slice_from_text(record.name)).data;
    return status;
}

/* False: the page was full before this one. */
static bool add_server(struct server_list *list, const struct etcd_kv *kv,
                       struct incarnation incarnation)
{
    Holdfast__V1__ListServersResponse *response = &list->response;

    if (response->n_servers == list->page.size) {
        response->next_cursor =
            list_page_next(list->request, response->servers[list->page.size - 1]->incarnation);
        return false;
    }
    response->servers[response->n_servers++] = make_status(list, kv, incarnation);
    return true;
}

static void fail_unreachable(struct server_list *list)
{
    request_fail_text(list->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                      "etcd could not be reached");
}

/* etcd answers in the order of keys, so both kinds come in the order of their incarnations' text.
 */
static void mark_live(void *context, err e, const struct etcd_range_result *result)
{
    struct server_list *list = context;
    const char *cluster = list->request->router->options.cluster;
    Holdfast__V1__ListServersResponse *response = &list->response;
    size_t at = 0;

    if (e != ERR_OK) {
        fail_unreachable(list);
        return;
    }
    for (size_t i = 0; i < result->kv_count; i++) {
        struct cluster_key_parts parts = cluster_key_parse(cluster, result->kvs[i].key);
        char text[INCARNATION_TEXT_SIZE];

        if (parts.kind != CLUSTER_KEY_SERVER_LIVE)
            continue;
        incarnation_print(parts.incarnation, text);
        while (at < response->n_servers && strcmp(response->servers[at]->incarnation, text) < 0)
            at++;
        if (at < response->n_servers && strcmp(response->servers[at]->incarnation, text) == 0)
            response->servers[at]->state = state_live;
    }
    request_reply(list->request, &response->base);
}

/* So many keys of one kind that follow the page before, at that revision; 0: now. */
static bool read_keys(struct server_list *list, bool live, int64_t revision, etcd_range_done done)
{
    const struct router_options *options = &list->request->router->options;
    struct cluster_key prefix = live ? cluster_key_servers_live_prefix(options->cluster)
                                     : cluster_key_servers_known_prefix(options->cluster);
    struct cluster_key after = prefix;

    if (!incarnation_is_none(list->after))
        after = live ? cluster_key_server_live(options->cluster, list->after)
                     : cluster_key_server_known(options->cluster, list->after);
    const struct etcd_range range = {
        .key = cluster_key_slice(&prefix),
        .prefix = true,
        .after = cluster_key_slice(&after),
        .keys_only = live,
        .limit = (int64_t)list->page.size + (live ? LIVE_ALONE_MAX : 1),
        .revision = revision,
    };

    return etcd_range(options->etcd, &range, done,
                      &(struct etcd_wait){ request_time_left(list->request, ROUTER_STATUS_MS_MAX),
                                           list, &list->call }) == ERR_OK;
}

static void fail_busy(struct server_list *list)
{
    request_fail_text(list->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                      "too many calls to etcd");
}

static void listed(void *context, err e, const struct etcd_range_result *result)
{
    struct server_list *list = context;
    Holdfast__V1__ListServersResponse *response = &list->response;
    const char *cluster = list->request->router->options.cluster;

    if (e != ERR_OK) {
        fail_unreachable(list);
        return;
    }
    response->servers = arena_alloc(list->request->arena, list->page.size * sizeof(void *));
    for (size_t i = 0; i < result->kv_count; i++) {
        struct cluster_key_parts parts = cluster_key_parse(cluster, result->kvs[i].key);

        if (parts.kind == CLUSTER_KEY_SERVER_KNOWN &&
            !add_server(list, &result->kvs[i], parts.incarnation))
            break;
    }
    if (!read_keys(list, true, result->header.revision, mark_live))
        fail_busy(list);
}

static void list_cancel(struct request *request)
{
    struct server_list *list = request->state;

    etcd_call_cancel(list->call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

void admin_list_servers_handle(struct request *request)
{
    struct server_list *list = arena_zalloc(request->arena, sizeof *list);

    if (!list_page_begin(request, (struct list_limits){ PAGE_SIZE_MAX, PAGE_SIZE_MAX },
                         &list->page))
        return;
    if (list->page.place[0] != 0 &&
        incarnation_parse(slice_from_text(list->page.place), &list->after) != ERR_OK) {
        list_page_refuse(request);
        return;
    }
    list->request = request;
    request->state = list;
    request->cancel = list_cancel;
    holdfast__v1__list_servers_response__init(&list->response);
    if (!read_keys(list, false, 0, listed))
        fail_busy(list);
}
