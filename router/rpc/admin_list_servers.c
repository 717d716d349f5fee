#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/handlers.h"
#include "router/rpc/list_page.h"
#include "runtime/cluster/cluster_key.h"

#define PAGE_SIZE_MAX 10000u

static char state_live[] = "live";
static char state_expiring[] = "expiring";

struct server_list {
    struct request *request;
    struct etcd_call *call;
    struct list_page page;
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
    char text[INCARNATION_TEXT_SIZE];

    incarnation_print(incarnation, text);
    if (strcmp(text, list->page.place) <= 0)
        return true;
    if (response->n_servers == list->page.size) {
        response->next_cursor =
            list_page_next(list->request, response->servers[list->page.size - 1]->incarnation);
        return false;
    }
    response->servers[response->n_servers++] = make_status(list, kv, incarnation);
    return true;
}

/* etcd answers in the order of keys, so both kinds come in the order of their incarnations' text.
 */
static void mark_live(struct server_list *list, const struct etcd_range_result *result)
{
    const char *cluster = list->request->router->options.cluster;
    Holdfast__V1__ListServersResponse *response = &list->response;
    size_t at = 0;

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
}

static void listed(void *context, err e, const struct etcd_range_result *result)
{
    struct server_list *list = context;
    Holdfast__V1__ListServersResponse *response = &list->response;
    const char *cluster = list->request->router->options.cluster;

    if (e != ERR_OK) {
        request_fail_text(list->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "etcd could not be reached");
        return;
    }
    response->servers = arena_alloc(list->request->arena, list->page.size * sizeof(void *));
    for (size_t i = 0; i < result->kv_count; i++) {
        struct cluster_key_parts parts = cluster_key_parse(cluster, result->kvs[i].key);

        if (parts.kind == CLUSTER_KEY_SERVER_KNOWN &&
            !add_server(list, &result->kvs[i], parts.incarnation))
            break;
    }
    mark_live(list, result);
    request_reply(list->request, &response->base);
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
    const struct router_options *options = &request->router->options;
    struct cluster_key prefix = cluster_key_servers_prefix(options->cluster);
    struct server_list *list = arena_zalloc(request->arena, sizeof *list);

    if (!list_page_begin(request, (struct list_limits){ PAGE_SIZE_MAX, PAGE_SIZE_MAX },
                         &list->page))
        return;
    list->request = request;
    request->state = list;
    request->cancel = list_cancel;
    holdfast__v1__list_servers_response__init(&list->response);
    if (etcd_range(options->etcd,
                   &(struct etcd_range){ .key = cluster_key_slice(&prefix), .prefix = true },
                   listed,
                   &(struct etcd_wait){ request_time_left(request, ROUTER_STATUS_MS_MAX), list,
                                        &list->call }) != ERR_OK)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "too many calls to etcd");
}
