/* nng streams. What nng can send at once it sends on the loop's thread, and the loop waits for the
 * input of busy wires. nng's own threads resolve, dial, accept, send what the socket did not take
 * at once, and receive for all other wires; their callbacks only push a node into the mailbox. All
 * decisions, and every free, are made on the loop's thread: nng_stream_free may not be called from
 * a callback. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nng/nng.h>
#include <uv.h>

#include "runtime/base/check.h"
#include "runtime/link/socket_find.h"
#include "runtime/link/wire.h"

#define URL_SIZE        (WIRE_HOST_SIZE + 24u)
#define ACCEPT_RETRY_MS 100u

/* One operation that nng carries out, with the way back to the loop. */
struct nng_op {
    struct mailbox_node node;
    nng_aio *aio;
    struct mailbox *mailbox;
    void (*done)(struct nng_op *op); /* On the loop's thread. */
    void *owner;
    bool pending;
};

struct nng_wire {
    struct wire base;
    nng_stream_dialer *dialer;
    nng_stream *stream;
    struct nng_op dial;
    struct nng_op send;
    struct nng_op recv;
    nng_aio *attempt; /* Without a callback: see attempt(). */
    size_t sent;      /* Of base.writing. */
    int send_error;   /* What an attempt to send met; 0: nothing yet. */
    bool busy;
    bool settling; /* Accepted and proven: the loop may wait for its input from now on. */
    bool reading;
    bool ended;
    bool in_event;   /* The link is being told something and may close the wire. */
    bool poll_open;  /* `poll` holds the memory. */
    uv_poll_t poll;  /* base.on_loop: of the stream's own descriptor. */
    uint8_t *buffer; /* Of recv, once that is used. */
};

struct nng_listener {
    struct wire_listener base;
    nng_stream_listener *listener;
    struct nng_op accept;
    struct loop_timer retry;
    bool busy;
    bool closed;
};

/* On a thread of nng. Must not block. */
static void completed(void *user)
{
    struct nng_op *op = user;

    mailbox_push(op->mailbox, &op->node);
}

static void op_arrived(void *user, struct mailbox_node *node)
{
    struct nng_op *op = CONTAINER_OF(node, struct nng_op, node);

    (void)user;
    op->pending = false;
    op->done(op);
}

static int op_init(struct nng_op *op, struct wire_context *context, void (*done)(struct nng_op *op),
                   void *owner)
{
    op->mailbox = &context->mailbox;
    op->done = done;
    op->owner = owner;
    return nng_aio_alloc(&op->aio, completed, op);
}

static void op_deinit(struct nng_op *op)
{
    CHECK(!op->pending);
    if (op->aio != NULL)
        nng_aio_free(op->aio);
}

/* Carries out what nng can do of `start` at once. An aio without a callback is finished by the
 * thread that finds it done, so this costs no thread of nng's. NNG_ECANCELED: it would have to
 * wait, and nothing was done. */
static int attempt(struct nng_wire *w, void (*start)(nng_stream *, nng_aio *), nng_iov iov,
                   size_t *ret_size)
{
    CHECK(nng_aio_set_iov(w->attempt, 1, &iov) == 0);
    start(w->stream, w->attempt);
    nng_aio_cancel(w->attempt); /* Does nothing to an aio that is done. */
    nng_aio_wait(w->attempt);   /* nng's poller may be finishing it right now. */
    int code = nng_aio_result(w->attempt);
    *ret_size = code == 0 ? nng_aio_count(w->attempt) : 0;
    return code;
}

static void start_mailbox(struct wire_context *context)
{
    if (context->mailbox_started)
        return;
    mailbox_init(&context->mailbox, context->loop, op_arrived, NULL);
    context->mailbox_started = true;
}

static struct nng_wire *from_base(struct wire *wire)
{
    return CONTAINER_OF(wire, struct nng_wire, base);
}

static void free_when_idle(struct nng_wire *w)
{
    if (!w->base.closed || w->in_event || w->poll_open || w->dial.pending || w->send.pending ||
        w->recv.pending)
        return;
    op_deinit(&w->dial);
    op_deinit(&w->send);
    op_deinit(&w->recv);
    if (w->attempt != NULL)
        nng_aio_free(w->attempt);
    if (w->stream != NULL)
        nng_stream_free(w->stream);
    if (w->dialer != NULL)
        nng_stream_dialer_free(w->dialer);
    w->base.context->open--;
    buf_deinit(&w->base.writing);
    free(w->buffer);
    free(w);
}

static void poll_closed(uv_handle_t *handle)
{
    struct nng_wire *w = handle->data;

    w->poll_open = false;
    free_when_idle(w);
}

/* libuv lets go of the descriptor at once. nng closes it when the stream is freed, which waits for
 * `poll_closed`. */
static void stop_waiting_on_loop(struct nng_wire *w)
{
    if (!w->base.on_loop)
        return;
    w->base.on_loop = false;
    uv_close((uv_handle_t *)&w->poll, poll_closed);
}

static void nng_wire_close(struct wire *wire)
{
    struct nng_wire *w = from_base(wire);

    CHECK(!wire->closed);
    wire->closed = true;
    stop_waiting_on_loop(w);
    if (w->stream != NULL)
        nng_stream_close(w->stream);
    if (w->dialer != NULL)
        nng_stream_dialer_close(w->dialer);
    free_when_idle(w);
}

static void end(struct nng_wire *w, int code)
{
    if (w->base.closed || w->ended)
        return;
    w->ended = true;
    if (w->send_error != 0) /* The kernel tells why only once, and closed afterwards. */
        code = w->send_error;
    bool orderly = code == NNG_ECLOSED || code == NNG_ECONNSHUT;
    w->in_event = true;
    w->base.events->ended(w->base.user, orderly, orderly ? "end of stream" : nng_strerror(code));
    w->in_event = false;
    free_when_idle(w);
}

/* ---- reading ---- */

/* False: the link has closed the wire, which may be freed. */
static bool tell_received(struct nng_wire *w, struct slice bytes)
{
    w->in_event = true;
    w->base.events->received(w->base.user, bytes);
    w->in_event = false;
    if (!w->base.closed)
        return true;
    free_when_idle(w);
    return false;
}

static void receive(struct nng_wire *w)
{
    if (w->buffer == NULL)
        w->buffer = mem_alloc(WIRE_READ_SIZE);
    nng_iov iov = { .iov_buf = w->buffer, .iov_len = WIRE_READ_SIZE };

    CHECK(nng_aio_set_iov(w->recv.aio, 1, &iov) == 0);
    w->recv.pending = true;
    nng_stream_recv(w->stream, w->recv.aio);
}

static void nng_wire_set_reading(struct wire *wire, bool on);
static void settle_now(struct nng_wire *w);

static void received(struct nng_op *op)
{
    struct nng_wire *w = op->owner;
    int code = nng_aio_result(op->aio);

    if (w->base.closed) {
        free_when_idle(w);
        return;
    }
    if (code != 0) {
        end(w, code);
        return;
    }
    if (!tell_received(w, (struct slice){ w->buffer, nng_aio_count(op->aio) }))
        return;
    if (w->settling)
        settle_now(w);
    if (w->reading)
        nng_wire_set_reading(&w->base, true);
}

static void readable(uv_poll_t *poll, int code, int events)
{
    struct nng_wire *w = poll->data;
    uint8_t *buffer = w->base.context->read_buffer;
    size_t size;

    (void)events;
    if (code !=
        0) { /* An error of the socket. nng gives what came before it, and then the error. */
        stop_waiting_on_loop(w);
        receive(w);
        return;
    }
    code = attempt(w, nng_stream_recv, (nng_iov){ buffer, WIRE_READ_SIZE }, &size);
    if (code == 0)
        (void)tell_received(w, (struct slice){ buffer, size });
    else if (code != NNG_ECANCELED)
        end(w, code);
}

/* A receive under way cannot be called off without losing bytes, so one more may still come. */
static void nng_wire_set_reading(struct wire *wire, bool on)
{
    struct nng_wire *w = from_base(wire);

    w->reading = on;
    if (w->ended)
        return;
    if (w->base.on_loop && on)
        CHECK(uv_poll_start(&w->poll, UV_READABLE, readable) == 0);
    else if (w->base.on_loop)
        CHECK(uv_poll_stop(&w->poll) == 0);
    else if (on && !w->recv.pending)
        receive(w);
}

static bool to_sockaddr(const nng_sockaddr *address, struct sockaddr_storage *ret_sockaddr)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret_sockaddr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_sockaddr;

    memset(ret_sockaddr, 0, sizeof *ret_sockaddr);
    if (address->s_family == NNG_AF_INET) {
        v4->sin_family = AF_INET;
        v4->sin_port = address->s_in.sa_port;
        v4->sin_addr.s_addr = address->s_in.sa_addr;
    } else if (address->s_family == NNG_AF_INET6) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = address->s_in6.sa_port;
        memcpy(&v6->sin6_addr, address->s_in6.sa_addr, sizeof v6->sin6_addr);
    }
    return ret_sockaddr->ss_family != 0;
}

static int find_descriptor(const struct nng_wire *w)
{
    nng_sockaddr own, peer;
    struct sockaddr_storage here, there;

    if (nng_stream_get_addr(w->stream, NNG_OPT_LOCADDR, &own) != 0 || !to_sockaddr(&own, &here) ||
        nng_stream_get_addr(w->stream, NNG_OPT_REMADDR, &peer) != 0 || !to_sockaddr(&peer, &there))
        return -1;
    return socket_find(&here, &there, w->base.context->look_max);
}

/* nng reports input through its poller's thread, one of its task threads and our mailbox: three
 * wake-ups. For a busy wire the loop waits instead, and has nng receive when there is something.
 * Where the descriptor is not found, the wire stays with nng's way. */
static void wait_on_loop(struct nng_wire *w)
{
    int fd = w->busy ? find_descriptor(w) : -1;

    if (fd < 0 || uv_poll_init(loop_uv(w->base.context->loop), &w->poll, fd) != 0)
        return;
    w->poll.data = w;
    w->poll_open = true;
    w->base.on_loop = true;
}

/* Between two receives: nng must not be waiting for the same bytes. */
static void settle_now(struct nng_wire *w)
{
    w->settling = false;
    if (!w->ended && !w->base.on_loop)
        wait_on_loop(w);
}

/* The search for the descriptor costs up to 3 ms: not for everyone who connects. */
static void nng_wire_settle(struct wire *wire)
{
    struct nng_wire *w = from_base(wire);

    w->settling = w->busy;
    if (!w->settling || w->recv.pending)
        return;
    settle_now(w);
    if (w->reading)
        nng_wire_set_reading(wire, true);
}

/* ---- writing ---- */

static nng_iov unsent(const struct nng_wire *w)
{
    return (nng_iov){ .iov_buf = w->base.writing.data + w->sent,
                      .iov_len = w->base.writing.size - w->sent };
}

static void send_rest(struct nng_wire *w)
{
    nng_iov iov = unsent(w);

    CHECK(nng_aio_set_iov(w->send.aio, 1, &iov) == 0);
    w->send.pending = true;
    nng_stream_send(w->stream, w->send.aio);
}

static void sent(struct nng_op *op)
{
    struct nng_wire *w = op->owner;
    int code = nng_aio_result(op->aio);

    if (w->base.closed) {
        free_when_idle(w);
        return;
    }
    if (code != 0) {
        end(w, code);
        return;
    }
    w->sent += nng_aio_count(op->aio);
    if (w->sent < w->base.writing.size) {
        send_rest(w);
        return;
    }
    w->in_event = true;
    w->base.events->written(w->base.user);
    w->in_event = false;
    free_when_idle(w);
}

static bool nng_wire_write(struct wire *wire, struct buf *bytes)
{
    struct nng_wire *w = from_base(wire);

    CHECK(!w->send.pending);
    wire_take(wire, bytes);
    w->sent = 0;
    int code = attempt(w, nng_stream_send, unsent(w), &w->sent);
    if (w->sent == wire->writing.size)
        return true;
    if (code != 0 && code != NNG_ECANCELED) /* `sent` reports it: no event from inside a write. */
        w->send_error = code;
    send_rest(w);
    return false;
}

static const struct wire_ops ops = { nng_wire_write, nng_wire_set_reading, nng_wire_settle,
                                     nng_wire_close };

/* ---- dialling ---- */

static void print_url(const struct wire_address *address, char ret_url[URL_SIZE])
{
    snprintf(ret_url, URL_SIZE, address->is_v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", address->host,
             address->port);
}

static void dialled(struct nng_op *op)
{
    struct nng_wire *w = op->owner;
    int code = nng_aio_result(op->aio);

    if (code == 0)
        w->stream = nng_aio_get_output(op->aio, 0);
    if (w->base.closed) {
        if (w->stream != NULL)
            nng_stream_close(w->stream);
        free_when_idle(w);
        return;
    }
    if (code != 0) {
        end(w, code == NNG_ECLOSED ? NNG_ECONNABORTED : code);
        return;
    }
    wait_on_loop(w);
    w->in_event = true;
    w->base.events->connected(w->base.user);
    w->in_event = false;
    free_when_idle(w);
}

static int make(struct wire_context *context, struct nng_wire **ret_wire)
{
    struct nng_wire *w = mem_zalloc(sizeof *w);

    start_mailbox(context);
    w->base.ops = &ops;
    w->base.context = context;
    context->open++;
    *ret_wire = w;
    int code = op_init(&w->send, context, sent, w);
    if (code == 0)
        code = op_init(&w->recv, context, received, w);
    return code != 0 ? code : nng_aio_alloc(&w->attempt, NULL, NULL);
}

static int set_up_dialer(struct nng_wire *w, const struct wire_dial *dial)
{
    char url[URL_SIZE];

    print_url(&dial->address, url);
    int code = nng_stream_dialer_alloc(&w->dialer, url);
    if (code == 0)
        code = nng_stream_dialer_set_bool(w->dialer, NNG_OPT_TCP_NODELAY, true);
    return code;
}

err wire_nng_dial(struct wire_context *context, const struct wire_dial *dial,
                  struct wire **ret_wire, char ret_text[WIRE_TEXT_SIZE])
{
    struct nng_wire *w;

    int code = make(context, &w);
    if (code == 0)
        code = op_init(&w->dial, context, dialled, w);
    if (code == 0)
        code = set_up_dialer(w, dial);
    if (code != 0) {
        snprintf(ret_text, WIRE_TEXT_SIZE, "%s", nng_strerror(code));
        nng_wire_close(&w->base);
        return ERR_IO;
    }
    w->base.events = dial->events;
    w->base.user = dial->user;
    w->busy = dial->busy;
    w->dial.pending = true;
    nng_stream_dialer_dial(w->dialer, w->dial.aio);
    *ret_wire = &w->base;
    return ERR_OK;
}

/* ---- listening ---- */

static void listener_free_when_idle(struct nng_listener *l)
{
    if (!l->closed || l->accept.pending)
        return;
    loop_timer_stop(&l->retry);
    op_deinit(&l->accept);
    if (l->listener != NULL)
        nng_stream_listener_free(l->listener);
    l->base.context->open--;
    free(l);
}

static void accept_next(void *user)
{
    struct nng_listener *l = user;

    l->accept.pending = true;
    nng_stream_listener_accept(l->listener, l->accept.aio);
}

static void print_peer(nng_stream *stream, char ret_text[WIRE_TEXT_SIZE])
{
    nng_sockaddr peer;
    char host[INET6_ADDRSTRLEN] = "?";

    snprintf(ret_text, WIRE_TEXT_SIZE, "?");
    if (nng_stream_get_addr(stream, NNG_OPT_REMADDR, &peer) != 0)
        return;
    if (peer.s_family == NNG_AF_INET) {
        (void)inet_ntop(AF_INET, &peer.s_in.sa_addr, host, sizeof host);
        snprintf(ret_text, WIRE_TEXT_SIZE, "%s:%u", host, ntohs(peer.s_in.sa_port));
    } else if (peer.s_family == NNG_AF_INET6) {
        (void)inet_ntop(AF_INET6, peer.s_in6.sa_addr, host, sizeof host);
        snprintf(ret_text, WIRE_TEXT_SIZE, "[%s]:%u", host, ntohs(peer.s_in6.sa_port));
    }
}

static void accepted(struct nng_op *op)
{
    struct nng_listener *l = op->owner;
    int code = nng_aio_result(op->aio);
    char from[WIRE_TEXT_SIZE];
    struct nng_wire *w;

    nng_stream *stream = code == 0 ? nng_aio_get_output(op->aio, 0) : NULL;
    if (l->closed) {
        if (stream != NULL)
            nng_stream_free(stream);
        listener_free_when_idle(l);
        return;
    }
    if (code != 0) { /* Out of descriptors, most likely; a little later then. */
        loop_timer_start(&l->retry, ACCEPT_RETRY_MS);
        return;
    }
    code = make(l->base.context, &w);
    w->stream = stream;
    w->busy = l->busy;
    accept_next(l);
    if (code != 0) {
        nng_wire_close(&w->base);
        return;
    }
    print_peer(stream, from);
    l->base.accepted(l->base.user, &w->base, from);
}

static void close_listener(struct wire_listener *base)
{
    struct nng_listener *l = CONTAINER_OF(base, struct nng_listener, base);

    l->closed = true;
    if (l->listener != NULL)
        nng_stream_listener_close(l->listener);
    listener_free_when_idle(l);
}

static int set_up_listener(struct nng_listener *l, const struct wire_listen *listen)
{
    char url[URL_SIZE];
    int port = 0;

    print_url(&listen->address, url);
    int code = nng_stream_listener_alloc(&l->listener, url);
    if (code == 0)
        code = nng_stream_listener_set_bool(l->listener, NNG_OPT_TCP_NODELAY, true);
    if (code == 0)
        code = nng_stream_listener_listen(l->listener);
    if (code == 0)
        code = nng_stream_listener_get_int(l->listener, NNG_OPT_TCP_BOUND_PORT, &port);
    l->base.port = (uint16_t)port;
    return code;
}

err wire_nng_listen(struct wire_context *context, const struct wire_listen *listen,
                    struct wire_listener **ret_listener, char ret_text[WIRE_TEXT_SIZE])
{
    struct nng_listener *l = mem_zalloc(sizeof *l);

    start_mailbox(context);
    context->open++;
    l->base = (struct wire_listener){ .close = close_listener,
                                      .accepted = listen->accepted,
                                      .user = listen->user,
                                      .context = context };
    l->busy = listen->busy;
    loop_timer_init(&l->retry, context->loop, accept_next, l);
    int code = op_init(&l->accept, context, accepted, l);
    if (code == 0)
        code = set_up_listener(l, listen);
    if (code == 0) {
        accept_next(l);
        *ret_listener = &l->base;
        return ERR_OK;
    }
    snprintf(ret_text, WIRE_TEXT_SIZE, "%s", nng_strerror(code));
    close_listener(&l->base);
    if (code == NNG_EADDRINUSE)
        return ERR_EXISTS;
    return code == NNG_EADDRINVAL || code == NNG_EINVAL ? ERR_INVALID : ERR_IO;
}
