/*
 * http_fixture: for the tests of this folder: a server on a loop of its own, stub handlers that
 * keep or answer calls, and raw client sockets driven from the same thread. Not part of programs.
 */
#ifndef RUNTIME_RPC_HTTP_FIXTURE_H
#define RUNTIME_RPC_HTTP_FIXTURE_H

#include "runtime/rpc/rpc_server.h"

#define FIXTURE_KEPT_MAX 256u
#define FIXTURE_WAIT_MS  60000u /* A bound only. */

#define PATH_GRANT    "/holdfast.v1.LedgerService/Grant"
#define PATH_BALANCES "/holdfast.v1.LedgerService/GetBalances"
#define PATH_ENTRIES  "/holdfast.v1.LedgerService/ListEntries"

struct fixture {
    struct loop *loop;
    struct rpc_server *server;
    struct rpc_server_config config; /* Change it before fixture_start. */
    bool keep;                       /* Calls wait in `kept` instead of being answered. */
    struct rpc_request *kept[FIXTURE_KEPT_MAX];
    size_t kept_count;
    unsigned requests;
    unsigned cancels;
    unsigned writable;
    bool stopped;
};

/* A client: a socket that does not block, and what came from it. */
struct client {
    int fd;
    struct buf in;
    bool closed; /* By the server. */
};

/* Answers GetBalances with version = length of the player's id, others with an empty message;
 * ListEntries is a stream. */
void fixture_init(struct fixture *fixture);
void fixture_start(struct fixture *fixture);
/* Ends every kept call, stops and frees all. */
void fixture_stop(struct fixture *fixture);
void fixture_answer(struct rpc_request *request);
/* With a code and a sentence only. */
void fixture_fail(struct rpc_request *request, Holdfast__V1__ErrorCode code, const char *message);

struct client client_connect(struct fixture *fixture);
void client_close(struct client *client);
void client_send(struct client *client, const void *bytes, size_t size);
void client_send_text(struct client *client, const char *text);
/* Takes up to `size` bytes that have come; 0 when there are none now. */
size_t client_take(struct client *client, void *ret_bytes, size_t size);
/* Runs the loop until the server has closed, or what came holds `text` `times` over; false after
 * FIXTURE_WAIT_MS. */
bool client_await(struct fixture *fixture, struct client *client, const char *text, unsigned times);
bool client_await_close(struct fixture *fixture, struct client *client);
/* Runs the loop until *counter >= value. */
bool fixture_await(struct fixture *fixture, const unsigned *counter, unsigned value);
/* Runs the loop until nothing more can come of what was sent: a call on a second connection was
 * answered. */
void fixture_settle(struct fixture *fixture);
/* One request over HTTP/1.1 and all of its answer. */
struct asked {
    const char *verb; /* NULL: POST.    */
    const char *path;
    const char *type;    /* NULL: no Content-Type. */
    const char *headers; /* "name: value\r\n" each; NULL: none. */
    struct slice body;
};
struct told {
    struct client client;
    unsigned status;
    const char *head; /* All of it, as text. */
    struct slice body;
};
/* On a connection of its own, which ends with it. HTTP/1.0, so that streams come without chunks. */
struct told fixture_ask(struct fixture *fixture, const struct asked *asked);
/* The same for bytes as they are. */
struct told fixture_ask_raw(struct fixture *fixture, struct slice bytes);
bool told_has(const struct told *told, const char *line);
bool told_body_has(const struct told *told, const char *text);
void told_deinit(struct told *told);
/* What came, as text. */
const char *client_text(struct client *client);
/* Appends a POST of JSON to `path` as HTTP/1.1. */
void put_post(struct buf *out, const char *path, const char *json);

#endif
