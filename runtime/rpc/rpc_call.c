#include "runtime/rpc/rpc_call.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/rpc/rpc_header.h"

#define FREE_CALLS_MAX 1024u

void rpc_tools_init(struct rpc_tools *tools)
{
    *tools = (struct rpc_tools){ 0 };
    json_codec_init(&tools->codec);
}

void rpc_tools_deinit(struct rpc_tools *tools)
{
    json_codec_deinit(&tools->codec);
    gzip_deinit(&tools->gzip);
    buf_deinit(&tools->packed);
}

struct rpc_call *rpc_call_new(struct rpc_server *server, struct http_exchange *exchange)
{
    struct rpc_call *call = server->free_calls;

    if (call != NULL) {
        server->free_calls = call->next_free;
        server->free_count--;
    } else {
        call = mem_zalloc(sizeof *call);
    }
    call->server = server;
    call->exchange = exchange;
    call->request.arena = &call->arena;
    exchange->user = call;
    return call;
}

void rpc_call_release(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    struct arena arena;

    if (call->admitted)
        server->http.stats.requests_active--;
    call->exchange->user = NULL;
    arena_reset(&call->arena);
    arena = call->arena;
    if (server->free_count >= FREE_CALLS_MAX) {
        arena_deinit(&arena);
        free(call);
        return;
    }
    *call = (struct rpc_call){ .arena = arena, .next_free = server->free_calls };
    server->free_calls = call;
    server->free_count++;
}

bool rpc_call_read_form(struct rpc_call *call)
{
    const struct http_exchange *exchange = call->exchange;
    struct rpc_request *request = &call->request;

    if (rest_path_is_rest(exchange->path)) {
        call->is_rest = true;
        request->protocol = RPC_CONNECT;
        request->form = RPC_FORM_PLAIN_JSON;
        return true;
    }
    bool known = rpc_content_type_parse(http_header_find(exchange, "content-type"),
                                        &request->protocol, &request->form);
    if (request->form == RPC_FORM_PLAIN_JSON &&
        (http_header_find(exchange, "connect-protocol-version").size > 0 ||
         rpc_query_has(exchange->query, "connect=v1")))
        request->form = RPC_FORM_JSON;
    return known;
}

bool rpc_call_may_pack(const struct rpc_call *call)
{
    struct slice list = http_header_find(call->exchange, rpc_accept_header(call->request.protocol));

    return list.size > 0 ? rpc_accepts_gzip(list) : call->packed;
}
