/*
 * AdminService.ListProcesses: asks all nodes at once, then the coordinator and every endpoint of
 * etcd at once, and tells what they said of themselves.
 */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/list_page.h"
#include "router/rpc/admin/node_survey.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define PAGE_SIZE_MAX 512u

struct process_list;

struct etcd_question {
    struct process_list *list;
    struct etcd_call *call; /* NULL: answered. */
    uint64_t begun_ns;
    Holdfast__V1__EtcdStatus status;
};

struct process_list {
    struct request *request;
    struct list_page page;
    uint64_t after; /* Rank of the last one on the page before, if there was one. */
    Holdfast__V1__ListProcessesResponse response;
    uint64_t begun_ns;
    struct node_answer coordinator; /* Its survey is not used. */
    struct etcd_question etcd[ETCD_ENDPOINTS_MAX];
    uint32_t open; /* Of etcd and the coordinator, and one while they are being asked. */
};

static char role_router[] = "router";
static char role_node[] = "node";
static char role_coordinator[] = "coordinator";

static uint32_t ms_since(uint64_t begun_ns)
{
    return (uint32_t)((loop_clock_ns() - begun_ns) / 1000000);
}

static Holdfast__V1__ProcessStatus *add_process(struct process_list *list)
{
    Holdfast__V1__ProcessStatus *process = arena_alloc(list->request->arena, sizeof *process);

    holdfast__v1__process_status__init(process);
    list->response.processes[list->response.n_processes++] = process;
    return process;
}

static void add_router(struct process_list *list)
{
    const struct router_self *self = &list->request->router->options.self;
    Holdfast__V1__ProcessStatus *process = add_process(list);

    process->role = role_router;
    process->name = arena_copy_text(list->request->arena, self->name);
    process->version = arena_copy_text(list->request->arena, self->version);
    process->answered = true;
    if (self->cluster_certificate_ms != NULL)
        process->cluster_certificate_expires_ms =
            (int64_t)self->cluster_certificate_ms(self->context);
    if (self->public_certificate_ms != NULL)
        process->public_certificate_expires_ms =
            (int64_t)self->public_certificate_ms(self->context);
    if (self->consumers_behind != NULL &&
        self->consumers_behind(self->context, &process->consumers_behind_percent))
        process->_consumers_behind_percent_case =
            HOLDFAST__V1__PROCESS_STATUS___CONSUMERS_BEHIND_PERCENT_CONSUMERS_BEHIND_PERCENT;
}

/* `said`: of itself, at the other end of a call that took so long; its clock was read half way. */
static void take_said(Holdfast__V1__ProcessStatus *process, const struct node_answer *answer,
                      const Holdfast__V1__ProcessStatus *said)
{
    *process = *said;
    process->answered = true;
    process->round_trip_ms = (uint32_t)answer->took_ms;
    process->clock_ahead_ms =
        said->clock_ms - ((int64_t)answer->answered_wall_ms - (int64_t)answer->took_ms / 2);
}

static void add_nodes(struct process_list *list, const struct node_survey *survey)
{
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(list->request->router->options.map, &count);
    struct arena *arena = list->request->arena;

    for (uint32_t i = 0; i < count && i < CLUSTER_NODES_MAX; i++) {
        const Holdfast__Internal__V1__GetNodeStatusResponse *answer =
            node_survey_find(survey, nodes[i].replica_id);
        Holdfast__V1__ProcessStatus *process = add_process(list);

        for (uint32_t k = 0; answer != NULL && answer->process != NULL && k < survey->count; k++) {
            if (survey->answers[k].replica_id == nodes[i].replica_id)
                take_said(process, &survey->answers[k], answer->process);
        }
        process->role = role_node;
        process->replica_id = nodes[i].replica_id;
        process->name = arena_copy_text(arena, nodes[i].name);
        process->version = arena_copy_text(arena, nodes[i].version);
    }
}

static void add_coordinator(struct process_list *list)
{
    const struct coordinator_record *elected =
        shard_map_find_coordinator(list->request->router->options.map);
    const Holdfast__Internal__V1__GetCoordinatorStatusResponse *said =
        (const Holdfast__Internal__V1__GetCoordinatorStatusResponse *)(const void *)
            list->coordinator.message;
    Holdfast__V1__ProcessStatus *process;

    if (elected == NULL)
        return;
    process = add_process(list);
    if (said != NULL && said->process != NULL)
        take_said(process, &list->coordinator, said->process);
    process->role = role_coordinator;
    process->name = arena_copy_text(list->request->arena, elected->name);
}

/* The router comes first and the coordinator last; nodes rise by replica id between them. */
static uint64_t rank_of(const Holdfast__V1__ProcessStatus *process)
{
    if (process->role == role_router)
        return 0;
    return process->role == role_node ? process->replica_id : UINT64_MAX;
}

static void cut_page(struct process_list *list)
{
    Holdfast__V1__ListProcessesResponse *response = &list->response;
    Holdfast__V1__ProcessStatus **processes = response->processes;
    size_t kept = 0;

    for (size_t i = 0; i < response->n_processes; i++) {
        if (list->page.place[0] != 0 && rank_of(processes[i]) <= list->after)
            continue;
        if (kept == list->page.size) {
            const char *place =
                arena_printf(list->request->arena, "%" PRIu64, rank_of(processes[kept - 1]));
            response->next_cursor = list_page_next(list->request, place);
            break;
        }
        processes[kept++] = processes[i];
    }
    response->n_processes = kept;
}

static void close_question(struct process_list *list)
{
    Holdfast__V1__ProcessStatus *router;

    CHECK(list->open > 0);
    if (--list->open > 0)
        return;
    add_coordinator(list);
    router = list->response.processes[0];
    router->clock_ms = (int64_t)loop_wall_ms();
    list->response.took_ms = ms_since(list->begun_ns);
    cut_page(list);
    request_reply(list->request, &list->response.base);
}

/* ---- etcd ---- */

static void etcd_told(void *context, err e, const struct etcd_status_result *result)
{
    struct etcd_question *question = context;
    struct arena *arena = question->list->request->arena;
    Holdfast__V1__EtcdStatus *status = &question->status;

    question->call = NULL;
    status->answer_ms = ms_since(question->begun_ns);
    if (e == ERR_OK) {
        status->answered = true;
        status->version = arena_copy_text(arena, result->version);
        status->has_leader = result->leader != 0;
        status->database_bytes = result->database_bytes;
        status->quota_bytes = result->quota_bytes;
        status->errors = arena_copy_text(arena, result->errors);
    }
    close_question(question->list);
}

/* A URL may carry a password: "http://user:password@host". */
static char *endpoint_text(struct arena *arena, const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *at = strchr(url, '@');
    char *text = arena_copy_text(arena, url);

    if (scheme != NULL && at != NULL)
        memmove(text + (scheme + 3 - url), at + 1, strlen(at + 1) + 1);
    return text;
}

static void ask_etcd(struct process_list *list)
{
    struct etcd *etcd = list->request->router->options.etcd;
    struct arena *arena = list->request->arena;
    uint32_t count = etcd_endpoint_count(etcd);

    list->response.etcd = arena_alloc(arena, count * sizeof(void *));
    for (uint32_t i = 0; i < count; i++) {
        struct etcd_question *question = &list->etcd[i];

        holdfast__v1__etcd_status__init(&question->status);
        question->list = list;
        question->status.endpoint = endpoint_text(arena, etcd_endpoint(etcd, i));
        list->response.etcd[list->response.n_etcd++] = &question->status;
        question->begun_ns = loop_clock_ns();
        if (etcd_status(etcd, i, etcd_told,
                        &(struct etcd_wait){ request_time_left(list->request, ROUTER_STATUS_MS_MAX),
                                             question, &question->call }) == ERR_OK)
            list->open++;
        else
            question->call = NULL;
    }
}

/* ---- the coordinator ---- */

static void coordinator_told(void *user, err result, const struct frame *response)
{
    struct process_list *list = user;
    struct codec_scope scope = { .arena = list->request->arena };
    ProtobufCMessage *message;

    list->coordinator.call = 0;
    list->coordinator.took_ms = ms_since(list->coordinator.begun_ns);
    list->coordinator.answered_wall_ms = loop_wall_ms();
    if (result == ERR_OK && response->status == WIRE_OK &&
        proto_decode(&holdfast__internal__v1__get_coordinator_status_response__descriptor,
                     response->body, &scope, &message) == ERR_OK)
        list->coordinator.message = message;
    close_question(list);
}

static void ask_coordinator(struct process_list *list)
{
    const struct node_port *port = &list->request->router->options.port;
    const struct call_request call = {
        .method = METHOD_GET_COORDINATOR_STATUS,
        .priority = (uint8_t)list->request->priority,
        .deadline_ms = request_time_left(list->request, ROUTER_STATUS_MS_MAX),
        .trace = list->request->trace.trace_id,
        .done = coordinator_told,
        .user = list,
    };

    if (shard_map_find_coordinator(list->request->router->options.map) == NULL)
        return;
    list->coordinator.begun_ns = loop_clock_ns();
    if (port->start(port->context, NODE_PORT_COORDINATOR, &call, &list->coordinator.call) == ERR_OK)
        list->open++;
    else
        list->coordinator.call = 0;
}

static void list_cancel(struct request *request)
{
    struct process_list *list = request->state;
    const struct node_port *port = &request->router->options.port;

    for (uint32_t i = 0; i < ETCD_ENDPOINTS_MAX; i++) {
        if (list->etcd[i].call != NULL)
            etcd_call_cancel(list->etcd[i].call);
    }
    if (list->coordinator.call != 0)
        port->cancel(port->context, list->coordinator.call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CANCELED,
                      "the caller has gone");
}

static void surveyed(struct node_survey *survey)
{
    struct process_list *list = survey->user;

    list->request->state = list;
    list->request->cancel = list_cancel;
    add_nodes(list, survey);
    list->open = 1;
    ask_coordinator(list);
    ask_etcd(list);
    close_question(list);
}

void admin_list_processes_handle(struct request *request)
{
    static const struct node_question question = {
        .method = METHOD_GET_NODE_STATUS,
        .response = &holdfast__internal__v1__get_node_status_response__descriptor,
    };
    struct process_list *list = arena_zalloc(request->arena, sizeof *list);

    if (!list_page_begin(request, (struct list_limits){ PAGE_SIZE_MAX, PAGE_SIZE_MAX },
                         &list->page) ||
        !list_page_number(request, &list->page, UINT64_MAX, &list->after))
        return;
    list->request = request;
    list->begun_ns = loop_clock_ns();
    holdfast__v1__list_processes_response__init(&list->response);
    list->response.processes =
        arena_alloc(request->arena, (CLUSTER_NODES_MAX + 2) * sizeof(void *));
    add_router(list);
    node_survey_ask(request, &question, surveyed, list);
}
