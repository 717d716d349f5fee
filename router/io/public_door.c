#include "router/io/public_door.h"

#include <stdlib.h>
#include <string.h>

#include "router/io/host_port.h"
#include "runtime/base/check.h"
#include "runtime/rpc/rpc_host.h"
#include "runtime/tls_watch/tls_watch.h"

#define STOP_MS_MAX 5000u

struct public_door {
    struct public_door_options options;
    struct rpc_server *server;
    struct tls_watch *tls; /* NULL: plain. */
    struct buf hosts;      /* Names that Host may have, as text. */
    bool stopped;
};

/* A request and where it came from, in its arena. */
struct visitor {
    struct request request;
    struct rpc_request *rpc;
    struct public_door *door;
};

static struct rpc_request *origin_of(struct request *request)
{
    return ((struct visitor *)request->origin)->rpc;
}

static void reply(struct request *request, const ProtobufCMessage *response)
{
    rpc_reply(origin_of(request), response);
}

static void reply_encoded(struct request *request, struct slice response)
{
    rpc_reply_encoded(origin_of(request), response);
}

static void reply_from(struct request *request, const struct buf_source *source)
{
    rpc_reply_from(origin_of(request), source);
}

static void fail(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct rpc_request *rpc = origin_of(request);

    rpc->lacks_room = request->lacks_room;
    rpc_fail(rpc, detail);
}

static bool stream_send(struct request *request, const ProtobufCMessage *message)
{
    return rpc_stream_send(origin_of(request), message);
}

static bool is_welcome(const struct request *request)
{
    const struct visitor *visitor = request->origin;
    const struct gatekeeper_visit visit = {
        .method = request->method,
        .api_key = visitor->rpc->api_key,
        .wall_ms = loop_wall_ms(),
    };

    return gatekeeper_welcomes(visitor->door->options.gatekeeper, &visit);
}

static const struct request_door door_ops = {
    .reply = reply,
    .reply_encoded = reply_encoded,
    .reply_from = reply_from,
    .fail = fail,
    .stream_send = stream_send,
    .is_welcome = is_welcome,
};

static struct gatekeeper_visit visit_of(const struct public_door *door,
                                        const struct rpc_request *rpc)
{
    return (struct gatekeeper_visit){
        .method = rpc->method,
        .api_key = rpc->api_key,
        .device = rpc->device,
        .peer = rpc->peer,
        .arena = rpc->arena,
        .now_ms = loop_now_ms(door->options.loop),
        .wall_ms = loop_wall_ms(),
    };
}

static void on_request(void *user, struct rpc_request *rpc)
{
    struct public_door *door = user;
    const struct gatekeeper_visit visit = visit_of(door, rpc);
    struct visitor *visitor = arena_alloc(rpc->arena, sizeof *visitor);
    struct request *request = &visitor->request;
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    struct gatekeeper_guest guest;

    if (gatekeeper_ask_again(door->options.gatekeeper, &visit, &guest, &detail) != ERR_OK) {
        rpc_fail(rpc, &detail);
        return;
    }
    visitor->rpc = rpc;
    visitor->door = door;
    *request = (struct request){
        .door = &door_ops,
        .origin = visitor,
        .method = rpc->method,
        .message = rpc->message,
        .encoded = rpc->encoded,
        .arena = rpc->arena,
        .deadline_ms = rpc->deadline_ms,
        .trace = rpc->trace,
        .scopes = guest.scopes,
        .defaults = { rpc->authority, rpc->idempotency_key, guest.authority, false },
        .peer = rpc->peer,
        .caller = guest.caller,
        .key_id = guest.key_id,
        .holder = guest.holder,
        .author = guest.key_id,
        .player = guest.player,
        .key_servers = guest.key_servers,
        .key_grants = guest.key_grants,
        .key_per_day = guest.key_per_day,
        .allowance = guest.bucket,
        .allowance_per_s = guest.rate_per_s,
    };
    rpc->user = request;
    router_dispatch(door->options.router, request);
}

static bool may_enter(void *user, struct rpc_request *rpc, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct public_door *door = user;
    const struct gatekeeper_visit visit = visit_of(door, rpc);
    struct gatekeeper_guest guest;

    if (gatekeeper_ask(door->options.gatekeeper, &visit, &guest, ret_detail) != ERR_OK)
        return false;
    rpc->account = guest.key;
    if (!router_is_full(door->options.router, rpc->method, &ret_detail->retry_after_ms))
        return true;
    rpc->is_full = router_takes_none(door->options.router);
    gatekeeper_tell(door->options.gatekeeper, &visit, ret_detail->code);
    return false;
}

static void on_refused(void *user, const struct rpc_request *rpc, Holdfast__V1__ErrorCode code)
{
    struct public_door *door = user;
    const struct gatekeeper_visit visit = visit_of(door, rpc);

    gatekeeper_tell(door->options.gatekeeper, &visit, code);
}

static void on_cancel(void *user, struct rpc_request *rpc)
{
    struct public_door *door = user;

    router_cancel(door->options.router, rpc->user);
}

static void on_writable(void *user, struct rpc_request *rpc)
{
    struct public_door *door = user;

    router_writable(door->options.router, rpc->user);
}

static bool is_stream(void *user, const struct method_info *method)
{
    (void)user;
    return method->route == METHOD_STREAM;
}

static bool is_healthy(void *user)
{
    struct public_door *door = user;

    return door->options.is_ready(door->options.user);
}

static void on_tls_changed(void *user)
{
    struct public_door *door = user;

    rpc_server_set_tls(door->server, tls_watch_server(door->tls));
}

static err watch_tls(struct public_door *door)
{
    const struct router_config *config = door->options.config;
    const struct tls_watch_options options = {
        .loop = door->options.loop,
        .log = door->options.log,
        .what = "public",
        .files = { .cert.path = config->public_tls_cert,
                   .key.path = config->public_tls_key,
                   .alpn = { "h2", "http/1.1" },
                   .resumption = true },
        .server = true,
        .changed = on_tls_changed,
        .user = door,
    };
    struct tls_error why;
    err e;

    if (config->public_tls_cert[0] == 0)
        return ERR_OK;
    e = tls_watch_new(&options, &door->tls, &why);
    if (e != ERR_OK)
        log_event(door->options.log, LOG_ERROR, "public.bad_certificate", LOG_S("why", why.text));
    return e;
}

static bool read_proxies(const struct public_door *door, struct address_ranges *ret_proxies)
{
    const struct router_config *config = door->options.config;

    ret_proxies->count = 0;
    for (size_t i = 0; i < config->proxies.count; i++) {
        if (address_ranges_add(ret_proxies, config->proxies.items[i]))
            continue;
        log_event(door->options.log, LOG_ERROR, "public.bad_proxies",
                  LOG_S("proxies", config->proxies.items[i]),
                  LOG_S("what", "each is an address or a range such as 10.0.0.0/8, with host "
                                "bits of zero"));
        return false;
    }
    return true;
}

/* Names that no page in a browser can have: the world's DNS does not have them. */
#define PRIVATE_NAMES RPC_HOST_ADDRESS "," RPC_HOST_PLAIN ",*.localhost,*.local,*.internal,*.svc"

/* A page in a browser can let its own name point to this address, and call what asks for no key.
 * NULL: it asks for one, which no page has. */
static const char *hosts_of(struct public_door *door, const struct host_port *address)
{
    const struct router_config *config = door->options.config;
    bool is_loopback = strncmp(address->host, "127.", 4) == 0 || strcmp(address->host, "::1") == 0;

    if (strcmp(config->access, "open") != 0)
        return NULL;
    buf_clear(&door->hosts);
    if (is_loopback)
        buf_printf(&door->hosts, "localhost,127.0.0.1,[::1],%s", address->host);
    else
        buf_printf(&door->hosts, "%s", PRIVATE_NAMES);
    if (config->hosts_allowed[0] != 0)
        buf_printf(&door->hosts, ",%s", config->hosts_allowed);
    buf_put_u8(&door->hosts, 0);
    return (const char *)door->hosts.data;
}

static uint32_t answers_max(const struct budget *answers)
{
    return answers->bytes_max < UINT32_MAX ? (uint32_t)answers->bytes_max : UINT32_MAX;
}

static err listen_public(struct public_door *door)
{
    const struct router_config *config = door->options.config;
    struct host_port address;
    struct address_ranges proxies;
    struct rpc_server_config server = {
        .loop = door->options.loop,
        .tls = door->tls != NULL ? tls_watch_server(door->tls) : NULL,
        .cors_origins = config->cors_origins[0] != 0 ? config->cors_origins : NULL,
        .proxies = &proxies,
        .answers = door->options.answers,
        .limits = { .connections_max = config->connections_max,
                    .address_connections_max = config->address_connections_max,
                    .handshakes_per_s = config->handshake_rate,
                    .handshakes_address_per_s = config->handshake_address_rate,
                    .handshake_percent = config->handshake_share,
                    .body_bytes_max = (uint32_t)config->body_size_max,
                    .header_bytes_max = (uint32_t)config->header_size_max,
                    .buffered_bytes_max = (uint32_t)config->bodies_size_max,
                    .bodies_key_percent = config->bodies_key_share,
                    .bodies_address_percent = config->bodies_address_share,
                    .heads_bytes_max = (uint32_t)config->heads_size_max,
                    .heads_address_percent = config->heads_address_share,
                    .heads_connection_bytes_max = (uint32_t)config->heads_connection_max,
                    .waiting_bytes_max = answers_max(door->options.answers),
                    .streams_max = config->streams_max,
                    .stream_resets_per_s = config->stream_resets_max,
                    .control_frames_per_s = config->control_frames_max,
                    .header_timeout_ms = (uint32_t)config->header_timeout,
                    .body_timeout_ms = (uint32_t)config->body_timeout,
                    .write_timeout_ms = (uint32_t)config->write_timeout,
                    .idle_timeout_ms = (uint32_t)config->idle_timeout,
                    .deadline_default_ms = (uint32_t)config->deadline_default,
                    .deadline_max_ms = (uint32_t)config->deadline_max },
        .handlers = { .on_request = on_request,
                      .may_enter = may_enter,
                      .on_refused = on_refused,
                      .on_cancel = on_cancel,
                      .on_writable = on_writable,
                      .is_stream = is_stream,
                      .is_healthy = is_healthy,
                      .user = door },
        .log = door->options.log,
    };

    if (!read_proxies(door, &proxies))
        return ERR_INVALID;
    if (host_port_parse(config->listen, &address) != ERR_OK) {
        log_event(door->options.log, LOG_ERROR, "public.bad_address",
                  LOG_S("listen", config->listen));
        return ERR_INVALID;
    }
    server.address = address.host;
    server.port = address.port;
    server.hosts = hosts_of(door, &address);
    return rpc_server_new(&server, &door->server);
}

err public_door_new(const struct public_door_options *options, struct public_door **ret_door)
{
    struct public_door *door = mem_zalloc(sizeof *door);
    err e;

    door->options = *options;
    e = watch_tls(door);
    if (e == ERR_OK)
        e = listen_public(door);
    if (e != ERR_OK) {
        tls_watch_free(door->tls);
        buf_deinit(&door->hosts);
        free(door);
        return e;
    }
    *ret_door = door;
    return ERR_OK;
}

uint16_t public_door_port(const struct public_door *door)
{
    return rpc_server_port(door->server);
}

const struct http_stats *public_door_stats(const struct public_door *door)
{
    return rpc_server_stats(door->server);
}

const struct turnstile_stats *public_door_turnstile(const struct public_door *door)
{
    return rpc_server_turnstile(door->server);
}

double public_door_expires_s(const struct public_door *door)
{
    return tls_watch_expires_s(door->tls);
}

uint64_t public_door_expires_ms(const struct public_door *door)
{
    return tls_watch_expires_ms(door->tls);
}

void public_door_drain(struct public_door *door)
{
    rpc_server_drain(door->server);
}

bool public_door_is_drained(const struct public_door *door)
{
    return rpc_server_is_drained(door->server);
}

static void on_stopped(void *user)
{
    struct public_door *door = user;

    door->stopped = true;
}

static bool is_stopped(void *user)
{
    const struct public_door *door = user;

    return door->stopped;
}

void public_door_free(struct public_door *door)
{
    if (door == NULL)
        return;
    rpc_server_stop(door->server, on_stopped, door);
    if (loop_run_until(door->options.loop, is_stopped, door, STOP_MS_MAX))
        rpc_server_free(door->server);
    else
        log_event(door->options.log, LOG_ERROR, "public.did_not_stop",
                  LOG_N("waited_ms", STOP_MS_MAX));
    tls_watch_free(door->tls);
    buf_deinit(&door->hosts);
    free(door);
}
