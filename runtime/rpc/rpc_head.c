#include "runtime/rpc/rpc_head.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/http/http_budget.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_host.h"
#include "runtime/rpc/rpc_refusal.h"

/* Of two, either may be meant, and the next process on the way may read the other one. Those that
 * HTTP/1.1 itself frames by are checked before (h1_head_check), encodings later (rpc_message). */
static const char *const single[] = {
    "authorization",
    "holdfast-authority",
    "holdfast-device",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "content-type",
    "content-length",
    "host",
    "origin",
    "connect-protocol-version",
    "connect-timeout-ms",
    "grpc-timeout",
};

/* What the handler's slices point into, and what the answer asks for. */
static const char *const kept[] = {
    "authorization",
    "holdfast-authority",
    "holdfast-device",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "accept-encoding",
    "connect-accept-encoding",
    "grpc-accept-encoding",
    "origin",
};

static bool check_single(struct rpc_call *call)
{
    const struct http_exchange *exchange = call->exchange;

    for (size_t i = 0; i < ARRAY_SIZE(single); i++) {
        struct slice name = slice_from_text(single[i]);
        unsigned count = 0;
        for (size_t j = 0; j < exchange->header_count; j++)
            count += slice_equal(exchange->headers[j].name, name);
        if (count <= 1)
            continue;
        http_refusal_count(&call->server->http, HTTP_REFUSED_HEADER_TWICE, http_peer(exchange));
        rpc_refuse_field(call, single[i], "one such header", SLICE_LITERAL("several"));
        return false;
    }
    return true;
}

static struct slice without_port(struct slice host)
{
    const uint8_t *end = NULL;

    if (host.size > 0 && host.data[0] == '[') {
        end = memchr(host.data, ']', host.size);
        return end != NULL ? (struct slice){ host.data, (size_t)(end + 1 - host.data) } : host;
    }
    end = host.size > 0 ? memchr(host.data, ':', host.size) : NULL;
    return end != NULL ? (struct slice){ host.data, (size_t)(end - host.data) } : host;
}

/* No name leads there that a page could have chosen. */
static bool is_address(struct slice name)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in6_addr address;
    bool six = name.size >= 2 && name.data[0] == '[' && name.data[name.size - 1] == ']';

    if (six)
        name = (struct slice){ name.data + 1, name.size - 2 };
    if (name.size >= sizeof text)
        return false;
    memcpy(text, name.data, name.size);
    text[name.size] = 0;
    return inet_pton(six ? AF_INET6 : AF_INET, text, &address) == 1;
}

static bool matches(struct slice item, struct slice name)
{
    if (slice_equal(item, SLICE_LITERAL("*")))
        return true;
    if (slice_equal(item, SLICE_LITERAL(RPC_HOST_ADDRESS)))
        return is_address(name);
    if (slice_equal(item, SLICE_LITERAL(RPC_HOST_PLAIN)))
        return name.size > 0 && memchr(name.data, '.', name.size) == NULL && name.data[0] != '[';
    if (item.size > 2 && item.data[0] == '*' && item.data[1] == '.') { /* Ends in it. */
        item = (struct slice){ item.data + 1, item.size - 1 };
        if (name.size <= item.size)
            return false;
        name = (struct slice){ name.data + (name.size - item.size), item.size };
    }
    return item.size == name.size &&
           strncasecmp((const char *)item.data, (const char *)name.data, item.size) == 0;
}

bool rpc_head_host_is(const char *names, struct slice host)
{
    struct slice name = without_port(host);

    while (*names != 0) {
        size_t size = strcspn(names, ",");
        struct slice item = { (const uint8_t *)names, size };
        while (item.size > 0 && *item.data == ' ')
            item = (struct slice){ item.data + 1, item.size - 1 };
        if (matches(item, name))
            return true;
        names += size + (names[size] == ',');
    }
    return false;
}

/* A browser always names the host that its page believes to talk to; HTTP/1.0 need not. */
static bool check_host(struct rpc_call *call)
{
    const struct http_exchange *exchange = call->exchange;
    struct slice host = exchange->host;
    const char *names = call->server->hosts;

    if (names == NULL)
        return true;
    if (host.size == 0)
        host = http_header_find(exchange, "host");
    if ((host.size == 0 && exchange->old) || rpc_head_host_is(names, host))
        return true;
    http_refusal_count(&call->server->http, HTTP_REFUSED_HOST, http_peer(exchange));
    rpc_refuse_host(call, names, host);
    return false;
}

bool rpc_head_check(struct rpc_call *call)
{
    return check_single(call) && check_host(call);
}

void rpc_head_read(struct rpc_call *call)
{
    const struct http_exchange *exchange = call->exchange;
    struct rpc_request *request = &call->request;

    request->api_key = rpc_bearer_parse(http_header_find(exchange, "authorization"));
    request->authority = http_header_find(exchange, "holdfast-authority");
    request->device = http_header_find(exchange, "holdfast-device");
    request->idempotency_key = http_header_find(exchange, "idempotency-key");
    if (!call->is_rest)
        return;
    call->if_match = http_header_find(exchange, "if-match");
    call->if_none_match = http_header_find(exchange, "if-none-match");
}

void rpc_head_shrink(struct rpc_call *call)
{
    http_head_keep(call->exchange, kept, ARRAY_SIZE(kept));
    rpc_head_read(call);
}
