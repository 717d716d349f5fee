#include "runtime/rpc/http_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/check.h"

void fixture_answer(struct rpc_request *request)
{
    if (request->method->id == METHOD_GET_BALANCES) {
        const Holdfast__V1__GetBalancesRequest *asked =
            (const Holdfast__V1__GetBalancesRequest *)request->message;
        Holdfast__V1__GetBalancesResponse response = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
        response.version = strlen(asked->player_id);
        rpc_reply(request, &response.base);
        return;
    }
    rpc_reply_encoded(request, (struct slice){ 0 });
}

void fixture_fail(struct rpc_request *request, Holdfast__V1__ErrorCode code, const char *message)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = code;
    detail.message = text_lend(message);
    rpc_fail(request, &detail);
}

static void on_request(void *user, struct rpc_request *request)
{
    struct fixture *fixture = user;

    fixture->requests++;
    if (!fixture->keep) {
        fixture_answer(request);
        return;
    }
    CHECK(fixture->kept_count < FIXTURE_KEPT_MAX);
    fixture->kept[fixture->kept_count++] = request;
}

static void on_cancel(void *user, struct rpc_request *request)
{
    struct fixture *fixture = user;

    CHECK(request->cancelled);
    fixture->cancels++;
}

static void on_writable(void *user, struct rpc_request *request)
{
    struct fixture *fixture = user;

    (void)request;
    fixture->writable++;
}

static bool is_stream(void *user, const struct method_info *method)
{
    (void)user;
    return method->id == METHOD_LIST_ENTRIES;
}

void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){ 0 };
    CHECK(loop_new(&fixture->loop) == ERR_OK);
    fixture->config = (struct rpc_server_config){
        .loop = fixture->loop,
        .address = "127.0.0.1",
        .handlers = { .on_request = on_request,
                      .on_cancel = on_cancel,
                      .on_writable = on_writable,
                      .is_stream = is_stream,
                      .user = fixture },
    };
}

void fixture_start(struct fixture *fixture)
{
    CHECK(rpc_server_new(&fixture->config, &fixture->server) == ERR_OK);
}

static void on_stopped(void *user)
{
    struct fixture *fixture = user;

    fixture->stopped = true;
}

static bool is_stopped(void *user)
{
    const struct fixture *fixture = user;

    return fixture->stopped;
}

void fixture_stop(struct fixture *fixture)
{
    rpc_server_stop(fixture->server, on_stopped, fixture);
    CHECK(loop_run_until(fixture->loop, is_stopped, fixture, FIXTURE_WAIT_MS));
    while (fixture->kept_count > 0)
        fixture_answer(fixture->kept[--fixture->kept_count]);
    CHECK(rpc_server_stats(fixture->server)->requests_active == 0);
    CHECK(rpc_server_stats(fixture->server)->buffered_bytes == 0);
    rpc_server_free(fixture->server);
    loop_free(fixture->loop);
}

struct client client_connect(struct fixture *fixture)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(rpc_server_port(fixture->server)) };
    struct client client = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(client.fd >= 0);
    CHECK(connect(client.fd, (struct sockaddr *)&address, sizeof address) == 0);
    return client;
}

void client_close(struct client *client)
{
    close(client->fd);
    buf_deinit(&client->in);
}

size_t client_take(struct client *client, void *ret_bytes, size_t size)
{
    ssize_t taken = recv(client->fd, ret_bytes, size, MSG_DONTWAIT);

    if (taken > 0)
        return (size_t)taken;
    if (taken == 0 || (errno != EAGAIN && errno != EINTR))
        client->closed = true;
    return 0;
}

static void client_pump(struct client *client)
{
    size_t size;

    do {
        size = client_take(client, buf_reserve(&client->in, 65536), 65536);
        client->in.size += size;
    } while (size > 0);
}

void client_send(struct client *client, const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t sent = send(client->fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            CHECK(errno == EPIPE || errno == ECONNRESET);
            return;
        }
        at += sent;
        size -= (size_t)sent;
    }
}

void client_send_text(struct client *client, const char *text)
{
    client_send(client, text, strlen(text));
}

const char *client_text(struct client *client)
{
    buf_put_u8(&client->in, 0);
    client->in.size--;
    return (const char *)client->in.data;
}

struct awaited {
    struct client *client;
    const char *text;
    unsigned times;
    const unsigned *counter;
    unsigned value;
};

static bool has_come(void *user)
{
    struct awaited *awaited = user;
    const char *at;

    if (awaited->counter != NULL)
        return *awaited->counter >= awaited->value;
    client_pump(awaited->client);
    if (awaited->text == NULL)
        return awaited->client->closed;
    at = client_text(awaited->client);
    for (unsigned i = 0; i < awaited->times; i++) {
        at = strstr(at, awaited->text);
        if (at == NULL)
            return awaited->client->closed;
        at++;
    }
    return true;
}

bool client_await(struct fixture *fixture, struct client *client, const char *text, unsigned times)
{
    struct awaited awaited = { .client = client, .text = text, .times = times };

    return loop_run_until(fixture->loop, has_come, &awaited, FIXTURE_WAIT_MS) && !client->closed;
}

bool client_await_close(struct fixture *fixture, struct client *client)
{
    struct awaited awaited = { .client = client };

    return loop_run_until(fixture->loop, has_come, &awaited, FIXTURE_WAIT_MS);
}

bool fixture_await(struct fixture *fixture, const unsigned *counter, unsigned value)
{
    struct awaited awaited = { .counter = counter, .value = value };

    return loop_run_until(fixture->loop, has_come, &awaited, FIXTURE_WAIT_MS);
}

void fixture_settle(struct fixture *fixture)
{
    struct client other = client_connect(fixture);

    client_send_text(&other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(client_await(fixture, &other, "ok\n", 1));
    client_close(&other);
}

void put_post(struct buf *out, const char *path, const char *json)
{
    buf_printf(out,
               "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               path, strlen(json), json);
}

struct told fixture_ask_raw(struct fixture *fixture, struct slice bytes)
{
    struct told told = { .client = client_connect(fixture) };

    client_send(&told.client, bytes.data, bytes.size);
    CHECK(client_await_close(fixture, &told.client));
    const char *head = client_text(&told.client);
    const char *end = strstr(head, "\r\n\r\n");
    told.head = head;
    if (end == NULL || strncmp(head, "HTTP/1.1 ", 9) != 0)
        return told;
    told.status = (unsigned)strtoul(head + 9, NULL, 10);
    size_t at = (size_t)(end - head) + 4;
    told.client.in.data[at - 1] = 0; /* The head ends as text. */
    told.body = (struct slice){ told.client.in.data + at, told.client.in.size - at };
    return told;
}

struct told fixture_ask(struct fixture *fixture, const struct asked *asked)
{
    struct buf out = { 0 };

    buf_printf(&out, "%s %s HTTP/1.0\r\nContent-Length: %zu\r\n",
               asked->verb != NULL ? asked->verb : "POST", asked->path, asked->body.size);
    if (asked->type != NULL)
        buf_printf(&out, "Content-Type: %s\r\n", asked->type);
    buf_printf(&out, "%s\r\n", asked->headers != NULL ? asked->headers : "");
    buf_append(&out, asked->body.data, asked->body.size);
    struct told told = fixture_ask_raw(fixture, buf_slice(&out));
    buf_deinit(&out);
    return told;
}

bool told_has(const struct told *told, const char *line)
{
    return strstr(told->head, line) != NULL;
}

bool told_body_has(const struct told *told, const char *text)
{
    return told->body.size > 0 &&
           memmem(told->body.data, told->body.size, text, strlen(text)) != NULL;
}

void told_deinit(struct told *told)
{
    client_close(&told->client);
}
