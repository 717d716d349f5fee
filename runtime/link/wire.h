/*
 * wire: what a link asks of a transport: an ordered stream of bytes, dialled or accepted, with one
 * write at a time. Two kinds: wire_uv.c (libuv TCP) and wire_nng.c (nng streams). For this folder
 * only. Everything is called on the loop's thread; events never come from inside a wire function.
 */
#ifndef RUNTIME_LINK_WIRE_H
#define RUNTIME_LINK_WIRE_H

#include "runtime/base/buf.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/mailbox.h"

#define WIRE_READ_SIZE 65536u /* Bytes asked for at once. */
#define WIRE_HOST_SIZE 256u
#define WIRE_TEXT_SIZE 160u
#define WIRE_LOOK_MAX  4096u /* At most 3 ms of the loop's time, once a connection. */

struct wire;

/* Shared by the wires of one hub. */
struct wire_context {
    struct loop *loop;
    struct mailbox mailbox; /* Completions from nng's threads. */
    bool mailbox_started;
    uint32_t open;        /* Wires and listeners whose memory is still held. */
    uint32_t look_max;    /* Descriptors looked at for one stream of nng. */
    uint8_t *read_buffer; /* WIRE_READ_SIZE, for reads on the loop's thread. */
};

struct wire_address {
    char host[WIRE_HOST_SIZE]; /* Without brackets. */
    uint16_t port;
    bool is_v6;
};

/* "host:port" or "[v6]:port". ERR_INVALID. */
NODISCARD err wire_address_parse(const char *text, struct wire_address *ret_address);

struct wire_events {
    void (*connected)(void *user);
    /* Borrowed during the call. */
    void (*received)(void *user, struct slice bytes);
    /* The last write is done; there may be another. */
    void (*written)(void *user);
    /* The last event. `orderly`: end of stream. Also when dialling failed. Close it then. */
    void (*ended)(void *user, bool orderly, const char *text);
};

struct wire_ops {
    /* Takes the bytes (swaps `bytes` for an empty buffer). True: done at once, no `written` will
     * follow. Never while another write is on its way. */
    bool (*write)(struct wire *wire, struct buf *bytes);
    void (*set_reading)(struct wire *wire, bool on);
    /* An accepted one has proved itself: what pays only for wires that last is done now. */
    void (*settle)(struct wire *wire);
    /* No more events. The memory goes when the transport lets go of it. */
    void (*close)(struct wire *wire);
};

struct wire {
    const struct wire_ops *ops;
    const struct wire_events *events;
    void *user;
    struct wire_context *context;
    struct buf writing;
    bool on_loop; /* The loop itself waits for input, not a thread of the transport. */
    bool closed;  /* wire close was called: nothing may reach `user`. */
};

struct wire_dial {
    struct wire_address address;
    uint32_t attempt; /* Picks among several addresses of a name. */
    bool busy;        /* See link_dial_options. */
    const struct wire_events *events;
    void *user;
};

struct wire_listener {
    void (*close)(struct wire_listener *listener);
    /* The wire has no events yet: set them, then set_reading. Not wanted: close it. */
    void (*accepted)(void *user, struct wire *wire, const char *from);
    void *user;
    struct wire_context *context;
    uint16_t port;
};

struct wire_listen {
    struct wire_address address;
    bool busy; /* See link_listen_options. */
    void (*accepted)(void *user, struct wire *wire, const char *from);
    void *user;
};

/* A wire at once; `connected` or `ended` follows. ERR_INVALID, ERR_IO with a text. */
NODISCARD err wire_uv_dial(struct wire_context *context, const struct wire_dial *dial,
                           struct wire **ret_wire, char ret_text[WIRE_TEXT_SIZE]);
NODISCARD err wire_nng_dial(struct wire_context *context, const struct wire_dial *dial,
                            struct wire **ret_wire, char ret_text[WIRE_TEXT_SIZE]);
/* ERR_EXISTS: the port is taken; ERR_INVALID: no such address here; ERR_IO. */
NODISCARD err wire_uv_listen(struct wire_context *context, const struct wire_listen *listen,
                             struct wire_listener **ret_listener, char ret_text[WIRE_TEXT_SIZE]);
NODISCARD err wire_nng_listen(struct wire_context *context, const struct wire_listen *listen,
                              struct wire_listener **ret_listener, char ret_text[WIRE_TEXT_SIZE]);

/* The bytes to write come in, the emptied buffer goes back. */
static inline void wire_take(struct wire *wire, struct buf *bytes)
{
    struct buf empty = wire->writing;

    wire->writing = *bytes;
    *bytes = empty;
    buf_clear(bytes);
}

#endif
