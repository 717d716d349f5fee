#include "runtime/http/http_turn.h"

/* Encryption takes about 2 ns a byte: 0.5 ms for all who come first, and 0.03 ms for each other. */
#define ALL_BYTES  262144u /* In one round, at TURN_BYTES each. */
#define TURN_BYTES 65536u
#define LATE_BYTES 16384u /* For each that comes once ALL_BYTES are spent. */
#define KEPT_BYTES 1048576u

void http_turn_begin(struct http_server *server)
{
    server->turns_left = ALL_BYTES;
}

static void take_over(struct http_conn *conn)
{
    struct buf empty = conn->clear;

    buf_clear(&empty);
    conn->clear = conn->out;
    conn->out = empty;
    conn->clear_left = conn->clear.size;
    conn->sending_left += conn->clear_left;
}

struct slice http_turn_take(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    size_t size = server->turns_left > 0 ? TURN_BYTES : LATE_BYTES;

    if (conn->clear_left == 0)
        take_over(conn);
    size = size < conn->clear_left ? size : conn->clear_left;
    struct slice next = { conn->clear.data + conn->clear.size - conn->clear_left, size };
    conn->clear_left -= size;
    conn->sending_left -= size;
    server->turns_left -= size < server->turns_left ? size : server->turns_left;
    return next;
}

void http_turn_end(struct http_conn *conn)
{
    if (conn->clear_left == 0 && conn->clear.capacity > KEPT_BYTES)
        buf_deinit(&conn->clear);
}
