#include "router/rpc/fake/fake_router.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/method_errors.h"
#include "runtime/base/check.h"

static const struct log silent = { .level_min = LOG_ERROR };

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = CODE(UNSPECIFIED);
    buf_clear(&f->response);
    (void)protobuf_c_message_pack(
        response, buf_reserve(&f->response, protobuf_c_message_get_packed_size(response)));
    f->response.size = protobuf_c_message_get_packed_size(response);
}

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = CODE(UNSPECIFIED);
    buf_clear(&f->response);
    buf_append(&f->response, response.data, response.size);
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = detail->code;
    bool final = detail->outcome == HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED;
    assert_int_not_equal(detail->outcome, HOLDFAST__V1__OUTCOME__OUTCOME_UNSPECIFIED);
    assert_int_not_equal(detail->action, HOLDFAST__V1__ACTION__ACTION_UNSPECIFIED);
    snprintf(f->entity, sizeof f->entity, "%s", detail->entity);
    snprintf(f->op_id, sizeof f->op_id, "%s", detail->op_id);
    if (!error_is_given(request->method->id, detail->code, final))
        fail_msg("idl/method_errors.h has no %d for %s", (int)detail->code, request->method->name);
    CHECK(strlen(detail->field) < sizeof f->field);
    memcpy(f->field, detail->field, strlen(detail->field) + 1);
    snprintf(f->limit, sizeof f->limit, "%s", detail->limit);
    CHECK(strlen(detail->trace_id) < sizeof f->trace);
    memcpy(f->trace, detail->trace_id, strlen(detail->trace_id) + 1);
}

static const struct request_door door = { .reply = reply,
                                          .reply_encoded = reply_encoded,
                                          .fail = fail_request };

static void finished(void *context, const struct request *request, Holdfast__V1__ErrorCode code,
                     uint64_t latency_us)
{
    struct fixture *f = context;

    (void)request;
    (void)code;
    (void)latency_us;
    f->finished++;
}

static const struct token_secret_record secret = { .current = { 5 } };

static void make_router(struct fixture *f)
{
    struct router_options options = {
        .loop = f->loop,
        .log = &silent,
        .cluster = "test",
        .map = f->fake->map,
        .port = fake_cluster_port(f->fake),
        .etcd = f->etcd,
        .secrets = &f->secrets,
        .in_flight_max = 10,
        .observer = { finished, f },
    };

    session_secrets_init(&f->secrets, "test", &secret);
    options.caller = caller_new(&(struct caller_options){
        .loop = f->loop, .map = options.map, .port = options.port, .seed = 1 });
    options.servers = servers_new(&(struct servers_options){
        .loop = f->loop, .etcd = f->etcd, .cluster = "test", .log = &silent });
    router_init(&f->router, &options);
}

int fake_router_setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *nowhere = "http://127.0.0.1:1";

    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &nowhere,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    f->fake = mem_zalloc(sizeof *f->fake);
    fake_cluster_init(f->fake, FAKE_SHARDS);
    make_router(f);
    *state = f;
    return 0;
}

int fake_router_teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->finished, f->answers);
    servers_free(f->router.options.servers);
    caller_free(f->router.options.caller);
    etcd_free(f->etcd);
    router_deinit(&f->router);
    fake_cluster_deinit(f->fake);
    free(f->fake);
    loop_free(f->loop);
    arena_deinit(&f->arena);
    buf_deinit(&f->response);
    free(f);
    return 0;
}

void fake_router_call(struct fixture *f, uint32_t method, const ProtobufCMessage *message,
                      uint64_t deadline_ms, const char *player)
{
    f->request = (struct request){
        .door = &door,
        .origin = f,
        .method = method_find(method),
        .message = message,
        .arena = &f->arena,
        .deadline_ms = loop_now_ms(f->loop) + deadline_ms,
        .peer = "test",
        .scopes = player == NULL ? SCOPES_ALL : 0,
        .player = player,
    };
    router_dispatch(&f->router, &f->request);
}
