#include "runtime/http/http_turn.h"

/* Encryption takes about 2 ns a byte: 0.5 ms for all who come first, and 0.03 ms for each other. */
#define ALL_BYTES  262144u /* In one round, at TURN_BYTES each. */
#define TURN_BYTES 65536u
#define LATE_BYTES 16384u /* For each that comes once ALL_BYTES are spent. */
#define KEPT_BYTES 1048576u

void http_turn_begin(struct http_server *server)
{
    server->turns_left = ALL_BYTES;
    server->round_requests = server->stats.requests;
    server->round_resumed = 0;
}

bool http_turn_is_over(struct http_server *server, uint64_t had)
{
    loop_hook_arm(&server->flush); /* Ends the round. */
    return had >= HTTP_TURN_REQUESTS ||
           (had > 0 && server->stats.requests - server->round_requests >= HTTP_ROUND_REQUESTS);
}

void http_turn_wait(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    http_turn_leave(conn);
    conn->waits = true;
    conn->wait_next = NULL;
    conn->wait_previous = server->wait_last;
    *(server->wait_last != NULL ? &server->wait_last->wait_next : &server->wait_first) = conn;
    server->wait_last = conn;
    if (!loop_timer_is_running(&server->next_round))
        loop_timer_start(&server->next_round, 0);
}

void http_turn_leave(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (!conn->waits)
        return;
    conn->waits = false;
    *(conn->wait_previous != NULL ? &conn->wait_previous->wait_next : &server->wait_first) =
        conn->wait_next;
    *(conn->wait_next != NULL ? &conn->wait_next->wait_previous : &server->wait_last) =
        conn->wait_previous;
}

struct http_conn *http_turn_next(struct http_server *server)
{
    struct http_conn *conn = server->wait_first;

    if (conn != NULL && server->round_resumed == HTTP_ROUND_REQUESTS) {
        loop_timer_start(&server->next_round, 0);
        return NULL;
    }
    if (conn != NULL) {
        http_turn_leave(conn);
        server->round_resumed++;
    }
    return conn;
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
