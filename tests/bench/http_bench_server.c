/*
 * http_bench_server: the public endpoint with made-up answers, to measure and to conformance-test
 * runtime/http alone. Prints its port on the first line, stops on SIGTERM.
 *
 *   http_bench_server [port [tls-cert tls-key]]
 *
 * A player_id "fail:<n>" is answered with error code n; "silent" is never answered; everything
 * else is answered with a message shaped like a real one. WatchIncidents streams three messages and
 * ends; with a cursor "fail:<n>" it ends in that error after them, with "silent" not at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/as_of.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/rpc/rpc_server.h"
#include "runtime/tls/tls_config.h"

#define SILENT_MAX      1024u
#define STREAM_MESSAGES 3u

struct bench {
    struct loop *loop;
    struct rpc_server *server;
    struct buf encoded;
    struct rpc_request *silent[SILENT_MAX];
    size_t silent_count;
    uint64_t counter;
};

static char *text(const char *s)
{
    return text_lend(s);
}

/* Answers as a router does: with a node's bytes. */
static void reply(struct bench *bench, struct rpc_request *request, const ProtobufCMessage *message)
{
    buf_clear(&bench->encoded);
    proto_encode(message, &bench->encoded);
    rpc_reply_encoded(request, buf_slice(&bench->encoded));
}

struct written {
    char as_of[AS_OF_TEXT_SIZE];
    Holdfast__V1__WriteInfo info;
};

static void written_init(struct bench *bench, struct written *written)
{
    holdfast__v1__write_info__init(&written->info);
    as_of_print(&(struct as_of){ 5, 7, 3, ++bench->counter }, written->as_of);
    written->info.version = bench->counter;
    written->info.as_of = written->as_of;
    written->info.replicas_fsynced = 2;
}

static void answer_grant(struct bench *bench, struct rpc_request *request)
{
    const Holdfast__V1__GrantRequest *grant = (const Holdfast__V1__GrantRequest *)request->message;
    Holdfast__V1__GrantResponse response = HOLDFAST__V1__GRANT_RESPONSE__INIT;
    Holdfast__V1__CurrencyAmount balance = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *balances[1] = { &balance };
    struct written written;

    written_init(bench, &written);
    balance.currency = grant->n_currencies > 0 ? grant->currencies[0]->currency : text("gold");
    balance.amount = 100 + (grant->n_currencies > 0 ? grant->currencies[0]->amount : 0);
    response.write = &written.info;
    response.ledger_seq = bench->counter;
    response.balances = balances;
    response.n_balances = 1;
    reply(bench, request, &response.base);
}

static void answer_batch(struct bench *bench, struct rpc_request *request)
{
    const Holdfast__V1__BatchGrantRequest *batch =
        (const Holdfast__V1__BatchGrantRequest *)request->message;
    Holdfast__V1__BatchGrantResponse response = HOLDFAST__V1__BATCH_GRANT_RESPONSE__INIT;
    Holdfast__V1__GrantResult result = HOLDFAST__V1__GRANT_RESULT__INIT;
    Holdfast__V1__GrantResponse grant = HOLDFAST__V1__GRANT_RESPONSE__INIT;
    struct written written;

    written_init(bench, &written);
    grant.write = &written.info;
    grant.ledger_seq = bench->counter;
    result.outcome_case = HOLDFAST__V1__GRANT_RESULT__OUTCOME_RESPONSE;
    result.response = &grant;
    response.n_results = batch->n_requests;
    response.results =
        arena_alloc(request->arena, (batch->n_requests + 1) * sizeof(Holdfast__V1__GrantResult *));
    for (size_t i = 0; i < batch->n_requests; i++)
        response.results[i] = &result;
    reply(bench, request, &response.base);
}

static void answer_balances(struct bench *bench, struct rpc_request *request)
{
    Holdfast__V1__GetBalancesResponse response = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *balances[1] = { &gold };
    struct written written;

    written_init(bench, &written);
    gold.currency = text("gold");
    gold.amount = 9007199254740993;
    response.balances = balances;
    response.n_balances = 1;
    response.version = 1;
    response.as_of = written.as_of;
    reply(bench, request, &response.base);
}

static void answer_register(struct bench *bench, struct rpc_request *request)
{
    Holdfast__V1__RegisterServerResponse response = HOLDFAST__V1__REGISTER_SERVER_RESPONSE__INIT;

    response.incarnation = text("1-1");
    response.ttl_ms = 10000;
    response.renew_every_ms = 2000;
    reply(bench, request, &response.base);
}

/* The field every routed request begins with. */
static const char *entity_of(const struct rpc_request *request)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(request->method->request, 1);

    if (field == NULL || field->type != PROTOBUF_C_TYPE_STRING ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return "";
    return *(char **)(void *)((char *)request->message + field->offset);
}

static void fail_as_asked(struct rpc_request *request, const char *code)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = (Holdfast__V1__ErrorCode)strtoul(code, NULL, 10);
    detail.message = text("as asked: \"100%\" \xE2\x9C\x93");
    detail.field = text("player_id");
    detail.retry_after_ms = 1500;
    rpc_fail(request, &detail);
}

static void keep_silent(struct bench *bench, struct rpc_request *request)
{
    CHECK(bench->silent_count < SILENT_MAX);
    bench->silent[bench->silent_count++] = request;
}

static void stream_incidents(struct bench *bench, struct rpc_request *request, const char *cursor)
{
    Holdfast__V1__WatchIncidentsResponse message = HOLDFAST__V1__WATCH_INCIDENTS_RESPONSE__INIT;
    Holdfast__V1__Incident incident = HOLDFAST__V1__INCIDENT__INIT;
    Holdfast__V1__Incident *incidents[] = { &incident };

    message.incidents = incidents;
    message.n_incidents = 1;
    message.next_cursor = text("1.2.3");
    incident.kind = HOLDFAST__V1__INCIDENT_KIND__INCIDENT_KIND_CONTAINED;
    incident.op_id = text("admin:\xE2\x9C\x93");
    for (incident.number = 1; incident.number <= STREAM_MESSAGES; incident.number++)
        (void)rpc_stream_send(request, &message.base);
    if (strncmp(cursor, "fail:", 5) == 0)
        fail_as_asked(request, cursor + 5);
    else if (strcmp(cursor, "silent") == 0)
        keep_silent(bench, request);
    else
        rpc_stream_end(request, NULL);
}

static bool is_stream(void *user, const struct method_info *method)
{
    (void)user;
    return method->route == METHOD_STREAM;
}

static void on_request(void *user, struct rpc_request *request)
{
    struct bench *bench = user;
    const char *entity = entity_of(request);

    if (request->method->id == METHOD_WATCH_INCIDENTS) {
        stream_incidents(bench, request, entity);
        return;
    }
    if (strncmp(entity, "fail:", 5) == 0) {
        fail_as_asked(request, entity + 5);
        return;
    }
    if (strcmp(entity, "silent") == 0) {
        keep_silent(bench, request);
        return;
    }
    switch (request->method->id) {
    case METHOD_GRANT:
        answer_grant(bench, request);
        return;
    case METHOD_BATCH_GRANT:
        answer_batch(bench, request);
        return;
    case METHOD_GET_BALANCES:
        answer_balances(bench, request);
        return;
    case METHOD_REGISTER_SERVER:
        answer_register(bench, request);
        return;
    default: {
        /* Every message is an answer when it is empty. */
        ProtobufCMessage *empty =
            arena_alloc(request->arena, request->method->response->sizeof_message);
        protobuf_c_message_init(request->method->response, empty);
        reply(bench, request, empty);
    }
    }
}

static void on_cancel(void *user, struct rpc_request *request)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    struct bench *bench = user;

    for (size_t i = 0; i < bench->silent_count; i++) {
        if (bench->silent[i] != request)
            continue;
        bench->silent[i] = bench->silent[--bench->silent_count];
        break;
    }
    detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE;
    rpc_fail(request, &detail);
}

static void on_stopped(void *user)
{
    struct bench *bench = user;

    loop_stop(bench->loop);
}

static void on_signal(void *user, int signum)
{
    struct bench *bench = user;

    (void)signum;
    rpc_server_stop(bench->server, on_stopped, bench);
}

static struct tls_config *load_tls(const char *cert, const char *key)
{
    struct tls_options options = {
        .side = TLS_SERVER, .cert.path = cert, .key.path = key, .alpn = { "h2", "http/1.1" }
    };
    struct tls_config *config = NULL;
    struct tls_error error;

    if (tls_config_new(&options, &config, &error) == ERR_OK)
        return config;
    fprintf(stderr, "http_bench_server: %s\n", error.text);
    exit(2);
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    struct rpc_server_config config = { .address = "127.0.0.1", .cors_origins = "*" };

    CHECK(loop_new(&bench.loop) == ERR_OK);
    config.loop = bench.loop;
    config.port = argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0;
    config.tls = argc > 3 ? load_tls(argv[2], argv[3]) : NULL;
    config.handlers = (struct rpc_handlers){
        .on_request = on_request, .on_cancel = on_cancel, .is_stream = is_stream, .user = &bench
    };
    if (rpc_server_new(&config, &bench.server) != ERR_OK) {
        fprintf(stderr, "http_bench_server: cannot listen on port %u\n", config.port);
        return 1;
    }
    CHECK(loop_signals_start(bench.loop, on_signal, &bench) == ERR_OK);
    printf("%u\n", rpc_server_port(bench.server));
    fflush(stdout);
    loop_run(bench.loop);
    rpc_server_free(bench.server);
    tls_config_free(config.tls);
    loop_free(bench.loop);
    buf_deinit(&bench.encoded);
    return 0;
}
