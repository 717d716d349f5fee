/* libuv TCP: everything happens on the loop's own thread; the fewest system calls and no hops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "runtime/base/check.h"
#include "runtime/base/turnstile.h"
#include "runtime/link/wire.h"

#define BACKLOG 1024

struct uv_wire {
    struct wire base;
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_getaddrinfo_t resolve;
    uv_write_t write;
    uint32_t attempt;
    bool resolving;
    bool handle_closed;
};

struct uv_listener {
    struct wire_listener base;
    uv_tcp_t tcp;
    struct loop_timer accept_on; /* In the next turn. */
    uint32_t accepts;            /* In this one. */
};

static struct uv_wire *from_base(struct wire *wire)
{
    return CONTAINER_OF(wire, struct uv_wire, base);
}

static void free_when_idle(struct uv_wire *w)
{
    if (!w->handle_closed || w->resolving)
        return;
    w->base.context->open--;
    buf_deinit(&w->base.writing);
    free(w);
}

static void handle_closed(uv_handle_t *handle)
{
    struct uv_wire *w = handle->data;

    w->handle_closed = true;
    free_when_idle(w);
}

static void uv_wire_close(struct wire *wire)
{
    struct uv_wire *w = from_base(wire);

    CHECK(!wire->closed);
    wire->closed = true;
    if (w->resolving)
        uv_cancel((uv_req_t *)&w->resolve);
    uv_close((uv_handle_t *)&w->tcp, handle_closed);
}

static void end(struct uv_wire *w, int code)
{
    if (!w->base.closed)
        w->base.events->ended(w->base.user, code == UV_EOF,
                              code == UV_EOF ? "end of stream" : uv_strerror(code));
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct uv_wire *w = handle->data;

    (void)suggested;
    *ret_buffer = uv_buf_init((char *)w->base.context->read_buffer, WIRE_READ_SIZE);
}

static void read_some(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct uv_wire *w = stream->data;

    if (size > 0)
        w->base.events->received(w->base.user,
                                 (struct slice){ (const uint8_t *)buffer->base, (size_t)size });
    else if (size < 0)
        end(w, (int)size);
}

static void uv_wire_set_reading(struct wire *wire, bool on)
{
    uv_stream_t *stream = (uv_stream_t *)&from_base(wire)->tcp;

    /* An error here shows again at the next write or in a silent link. */
    if (on)
        (void)uv_read_start(stream, give_buffer, read_some);
    else
        (void)uv_read_stop(stream);
}

static void wrote(uv_write_t *request, int code)
{
    struct uv_wire *w = CONTAINER_OF(request, struct uv_wire, write);

    if (w->base.closed)
        return;
    if (code != 0)
        end(w, code);
    else
        w->base.events->written(w->base.user);
}

static bool uv_wire_write(struct wire *wire, struct buf *bytes)
{
    struct uv_wire *w = from_base(wire);
    uv_stream_t *stream = (uv_stream_t *)&w->tcp;

    wire_take(wire, bytes);
    uv_buf_t buffer = uv_buf_init((char *)wire->writing.data, (unsigned)wire->writing.size);
    int sent = uv_try_write(stream, &buffer, 1);
    if (sent >= 0 && (size_t)sent == wire->writing.size)
        return true;
    if (sent > 0)
        buffer = uv_buf_init(buffer.base + sent, (unsigned)(buffer.len - (size_t)sent));
    /* Also reports, later and through `wrote`, an error that try_write met. */
    CHECK(uv_write(&w->write, stream, &buffer, 1, wrote) == 0);
    return false;
}

static void uv_wire_settle(struct wire *wire)
{
    (void)wire;
}

static const struct wire_ops ops = { uv_wire_write, uv_wire_set_reading, uv_wire_settle,
                                     uv_wire_close };

static err make(struct wire_context *context, struct uv_wire **ret_wire)
{
    struct uv_wire *w = mem_zalloc(sizeof *w);

    if (uv_tcp_init(loop_uv(context->loop), &w->tcp) != 0) {
        free(w);
        return ERR_IO;
    }
    w->tcp.data = w;
    w->base.ops = &ops;
    w->base.context = context;
    context->open++;
    *ret_wire = w;
    return ERR_OK;
}

static void connected(uv_connect_t *request, int code)
{
    struct uv_wire *w = CONTAINER_OF(request, struct uv_wire, connect);

    if (w->base.closed)
        return;
    if (code != 0) {
        end(w, code);
        return;
    }
    (void)uv_tcp_nodelay(&w->tcp, 1);
    w->base.events->connected(w->base.user);
}

static void resolved(uv_getaddrinfo_t *request, int code, struct addrinfo *found)
{
    struct uv_wire *w = CONTAINER_OF(request, struct uv_wire, resolve);

    w->resolving = false;
    if (w->base.closed) {
        uv_freeaddrinfo(found);
        free_when_idle(w);
        return;
    }
    uint32_t count = 0;
    for (struct addrinfo *one = found; one != NULL; one = one->ai_next)
        count++;
    struct addrinfo *chosen = found;
    for (uint32_t i = 0; count > 0 && i < w->attempt % count; i++)
        chosen = chosen->ai_next;
    if (code == 0 && chosen == NULL)
        code = UV_EAI_NONAME;
    if (code == 0)
        code = uv_tcp_connect(&w->connect, &w->tcp, chosen->ai_addr, connected);
    uv_freeaddrinfo(found);
    if (code != 0)
        end(w, code);
}

static int to_sockaddr(const struct wire_address *address, struct sockaddr_storage *ret_sockaddr)
{
    if (address->is_v6)
        return uv_ip6_addr(address->host, address->port, (struct sockaddr_in6 *)ret_sockaddr);
    return uv_ip4_addr(address->host, address->port, (struct sockaddr_in *)ret_sockaddr);
}

err wire_uv_dial(struct wire_context *context, const struct wire_dial *dial, struct wire **ret_wire,
                 char ret_text[WIRE_TEXT_SIZE])
{
    struct sockaddr_storage numeric;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    char port[8];
    struct uv_wire *w;
    int code;

    err e = make(context, &w);
    if (e != ERR_OK)
        return e;
    w->base.events = dial->events;
    w->base.user = dial->user;
    w->attempt = dial->attempt;
    if (to_sockaddr(&dial->address, &numeric) == 0) {
        code = uv_tcp_connect(&w->connect, &w->tcp, (struct sockaddr *)&numeric, connected);
    } else {
        snprintf(port, sizeof port, "%u", dial->address.port);
        code = uv_getaddrinfo(loop_uv(context->loop), &w->resolve, resolved, dial->address.host,
                              port, &hints);
        w->resolving = code == 0;
    }
    if (code != 0) {
        snprintf(ret_text, WIRE_TEXT_SIZE, "%s", uv_strerror(code));
        uv_wire_close(&w->base);
        return ERR_IO;
    }
    *ret_wire = &w->base;
    return ERR_OK;
}

/* ---- listening ---- */

static void print_peer(uv_tcp_t *tcp, char ret_text[WIRE_TEXT_SIZE])
{
    struct sockaddr_storage peer;
    int size = (int)sizeof peer;
    char host[64] = "?";
    uint16_t port = 0;

    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&peer, &size) == 0) {
        (void)uv_ip_name((struct sockaddr *)&peer, host, sizeof host);
        port = peer.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&peer)->sin6_port)
                                          : ntohs(((struct sockaddr_in *)&peer)->sin_port);
    }
    snprintf(ret_text, WIRE_TEXT_SIZE, peer.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
             port);
}

static void accept_one(struct uv_listener *listener)
{
    char from[WIRE_TEXT_SIZE];
    struct uv_wire *w;

    if (make(listener->base.context, &w) != ERR_OK)
        return;
    if (uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&w->tcp) != 0) {
        uv_wire_close(&w->base);
        return;
    }
    (void)uv_tcp_nodelay(&w->tcp, 1);
    print_peer(&w->tcp, from);
    listener->base.accepted(listener->base.user, &w->base, from);
}

/* libuv holds one that is not taken, and no others come until it is. */
static void came(uv_stream_t *server, int code)
{
    struct uv_listener *listener = server->data;

    if (code != 0)
        return;
    if (listener->accepts++ < TURNSTILE_ACCEPTS_MAX)
        accept_one(listener);
    else
        loop_timer_start(&listener->accept_on, 0);
}

static void accept_on(void *user)
{
    struct uv_listener *listener = user;

    listener->accepts = 0;
    accept_one(listener);
}

static void listener_closed(uv_handle_t *handle)
{
    struct uv_listener *listener = handle->data;

    listener->base.context->open--;
    free(listener);
}

static void uv_listener_close(struct wire_listener *base)
{
    struct uv_listener *listener = CONTAINER_OF(base, struct uv_listener, base);

    loop_timer_stop(&listener->accept_on);
    uv_close((uv_handle_t *)&listener->tcp, listener_closed);
}

static int bound_port(uv_tcp_t *tcp, uint16_t *ret_port)
{
    struct sockaddr_storage own;
    int size = (int)sizeof own;
    int code = uv_tcp_getsockname(tcp, (struct sockaddr *)&own, &size);

    if (code == 0)
        *ret_port = own.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&own)->sin6_port)
                                              : ntohs(((struct sockaddr_in *)&own)->sin_port);
    return code;
}

err wire_uv_listen(struct wire_context *context, const struct wire_listen *listen,
                   struct wire_listener **ret_listener, char ret_text[WIRE_TEXT_SIZE])
{
    struct uv_listener *listener = mem_zalloc(sizeof *listener);
    struct sockaddr_storage address;

    listener->base = (struct wire_listener){ .close = uv_listener_close,
                                             .accepted = listen->accepted,
                                             .user = listen->user,
                                             .context = context };
    CHECK(uv_tcp_init(loop_uv(context->loop), &listener->tcp) == 0);
    listener->tcp.data = listener;
    loop_timer_init(&listener->accept_on, context->loop, accept_on, listener);
    context->open++;
    int code = to_sockaddr(&listen->address, &address);
    if (code == 0)
        code = uv_tcp_bind(&listener->tcp, (struct sockaddr *)&address, 0);
    if (code == 0)
        code = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, came);
    if (code == 0)
        code = bound_port(&listener->tcp, &listener->base.port);
    if (code == 0) {
        *ret_listener = &listener->base;
        return ERR_OK;
    }
    snprintf(ret_text, WIRE_TEXT_SIZE, "%s", uv_strerror(code));
    uv_listener_close(&listener->base);
    if (code == UV_EADDRINUSE)
        return ERR_EXISTS;
    return code == UV_EINVAL || code == UV_EADDRNOTAVAIL ? ERR_INVALID : ERR_IO;
}
