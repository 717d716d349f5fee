#include "runtime/etcd/etcd_http.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

enum { CONNECT_TIMEOUT_MS = 2000, CONNECTIONS_KEPT = 32 };

/* One of curl's sockets, watched by libuv. */
struct http_socket {
    uv_poll_t poll;
    curl_socket_t fd;
    struct etcd_http *http;
    struct http_socket *next, *previous;
};

struct etcd_http {
    uv_loop_t *loop;
    CURLM *multi;
    struct curl_slist *headers;
    uv_timer_t timer;
    struct http_socket *sockets;
    struct etcd_http_request *requests;
    struct etcd_http_request *with_data;
    char *ca_file, *cert_file, *key_file;
    bool closing;
};

static void http_delivered(struct etcd_http *http);

/* ---- curl's sockets and timer on the loop ---- */

static void socket_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF(handle, struct http_socket, poll));
}

static void socket_free(struct http_socket *s)
{
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        s->http->sockets = s->next;
    if (s->next != NULL)
        s->next->previous = s->previous;
    uv_close((uv_handle_t *)&s->poll, socket_closed);
}

static void socket_ready(uv_poll_t *poll, int status, int events)
{
    struct http_socket *s = CONTAINER_OF(poll, struct http_socket, poll);
    struct etcd_http *http = s->http;
    int running;
    int flags = 0;

    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    curl_multi_socket_action(http->multi, s->fd, flags, &running);
    http_delivered(http);
}

static struct http_socket *socket_new(struct etcd_http *http, curl_socket_t fd)
{
    struct http_socket *s = mem_zalloc(sizeof *s);

    s->fd = fd;
    s->http = http;
    if (uv_poll_init_socket(http->loop, &s->poll, fd) != 0) {
        free(s);
        return NULL;
    }
    s->next = http->sockets;
    if (s->next != NULL)
        s->next->previous = s;
    http->sockets = s;
    return s;
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *socket)
{
    struct etcd_http *http = context;
    struct http_socket *s = socket;
    int events = 0;
    (void)easy;

    if (what == CURL_POLL_REMOVE) {
        if (s != NULL) {
            socket_free(s);
            curl_multi_assign(http->multi, fd, NULL);
        }
        return 0;
    }
    if (s == NULL)
        s = socket_new(http, fd);
    if (s == NULL)
        return -1;
    curl_multi_assign(http->multi, fd, s);
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&s->poll, events, socket_ready) == 0 ? 0 : -1;
}

static void timer_fired(uv_timer_t *timer)
{
    struct etcd_http *http = CONTAINER_OF(timer, struct etcd_http, timer);
    int running;

    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    http_delivered(http);
}

static int timer_wanted(CURLM *multi, long timeout_ms, void *context)
{
    struct etcd_http *http = context;
    (void)multi;

    if (http->closing)
        return 0;
    if (timeout_ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, timer_fired, (uint64_t)timeout_ms, 0);
    return 0;
}

/* ---- One request ---- */

static size_t request_read(char *to, size_t size, size_t count, void *context)
{
    struct etcd_http_request *request = context;
    size_t room = size * count;
    size_t left = request->body.size - request->body_read;
    size_t taken = left < room ? left : room;

    if (taken > 0)
        memcpy(to, request->body.data + request->body_read, taken);
    request->body_read += taken;
    return taken;
}

/* curl sends a request again by itself when a reused connection turns out to be dead, although the
 * server may have carried it out. Refusing to rewind the body forbids that. */
static int request_seek(void *context, curl_off_t offset, int origin)
{
    struct etcd_http_request *request = context;

    if (!request->repeatable || origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_FAIL;
    request->body_read = 0;
    return CURL_SEEKFUNC_OK;
}

static size_t request_write(char *data, size_t size, size_t count, void *context)
{
    struct etcd_http_request *request = context;
    size_t length = size * count;

    if (length > request->answer_max - request->answer.size) {
        request->too_large = true;
        return 0;
    }
    buf_append(&request->answer, data, length);
    if (request->data != NULL && !request->has_data) {
        request->has_data = true;
        request->next_with_data = request->http->with_data;
        request->http->with_data = request;
    }
    return length;
}

static void request_unlink(struct etcd_http_request *request)
{
    struct etcd_http *http = request->http;

    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        http->requests = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    if (request->has_data) {
        struct etcd_http_request **at = &http->with_data;
        while (*at != request)
            at = &(*at)->next_with_data;
        *at = request->next_with_data;
        request->has_data = false;
    }
    request->next = request->previous = NULL;
    request->http = NULL;
}

static void body_options(struct etcd_http *http, struct etcd_http_request *request)
{
    CURL *easy = request->easy;

    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.size);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, request_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, request);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, request_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
}

static curl_socket_t socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct etcd_http_request *request = context;
    (void)purpose;

    if (!request->may_connect(&address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void request_options(struct etcd_http *http, struct etcd_http_request *request,
                            const char *url)
{
    CURL *easy = request->easy;
    uint64_t connect_ms = CONNECT_TIMEOUT_MS;

    if (request->timeout_ms > 0 && request->timeout_ms < connect_ms)
        connect_ms = request->timeout_ms;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (!request->get)
        body_options(http, request);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, request_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
    if (request->may_connect != NULL) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
    }
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 5L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
    if (http->ca_file != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca_file);
    if (http->cert_file != NULL)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, http->cert_file);
    if (http->key_file != NULL)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, http->key_file);
}

err etcd_http_send(struct etcd_http *http, struct etcd_http_request *request, const char *url)
{
    CHECK(request->http == NULL);
    request->easy = curl_easy_init();
    if (request->easy == NULL)
        return ERR_NO_MEMORY;
    request->body_read = 0;
    request->too_large = false;
    request->error[0] = '\0';
    buf_clear(&request->answer);
    request_options(http, request, url);
    if (curl_multi_add_handle(http->multi, request->easy) != CURLM_OK) {
        curl_easy_cleanup(request->easy);
        request->easy = NULL;
        return ERR_NO_MEMORY;
    }
    request->http = http;
    request->next = http->requests;
    if (request->next != NULL)
        request->next->previous = request;
    http->requests = request;
    return ERR_OK;
}

void etcd_http_cancel(struct etcd_http_request *request)
{
    struct etcd_http *http = request->http;

    if (http == NULL)
        return;
    request_unlink(request);
    curl_multi_remove_handle(http->multi, request->easy);
    curl_easy_cleanup(request->easy);
    request->easy = NULL;
}

void etcd_http_request_deinit(struct etcd_http_request *request)
{
    etcd_http_cancel(request);
    buf_deinit(&request->body);
    buf_deinit(&request->answer);
}

static void request_finish(struct etcd_http_request *request, CURLcode code)
{
    struct etcd_http_outcome outcome = { .code = code, .too_large = request->too_large };
    long sent_bytes = 0;

    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &outcome.status);
    curl_easy_getinfo(request->easy, CURLINFO_REQUEST_SIZE, &sent_bytes);
    outcome.sent = sent_bytes > 0;
    outcome.text = request->error[0] != '\0' ? request->error : curl_easy_strerror(code);
    etcd_http_cancel(request);
    request->done(request, &outcome);
}

void etcd_http_expire(struct etcd_http_request *request)
{
    request_finish(request, CURLE_OPERATION_TIMEDOUT);
}

/* Hands out what curl has brought, outside of curl's own callbacks: those may not add or remove
 * requests, the owners' callbacks may. */
static void http_delivered(struct etcd_http *http)
{
    int left;

    while (!http->closing && http->with_data != NULL) {
        struct etcd_http_request *request = http->with_data;
        http->with_data = request->next_with_data;
        request->has_data = false;
        request->data(request);
    }
    while (!http->closing) {
        CURLMsg *message = curl_multi_info_read(http->multi, &left);
        struct etcd_http_request *request;
        if (message == NULL)
            return;
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        request_finish(request, code);
    }
}

/* ---- The whole ---- */

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

err etcd_http_new(uv_loop_t *loop, const struct etcd_http_tls *tls, struct etcd_http **ret_http)
{
    struct etcd_http *http = mem_zalloc(sizeof *http);

    /* Counts its calls, so each client may make one. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return ERR_IO;
    }
    http->loop = loop;
    http->multi = curl_multi_init();
    CHECK(http->multi != NULL);
    http->headers = curl_slist_append(NULL, "Content-Type: application/json");
    http->headers = curl_slist_append(http->headers, "Expect:");
    http->ca_file = copy(tls->ca_file);
    http->cert_file = copy(tls->cert_file);
    http->key_file = copy(tls->key_file);
    CHECK(uv_timer_init(loop, &http->timer) == 0);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    *ret_http = http;
    return ERR_OK;
}

static void http_closed(uv_handle_t *handle)
{
    struct etcd_http *http = CONTAINER_OF(handle, struct etcd_http, timer);

    free(http->ca_file);
    free(http->cert_file);
    free(http->key_file);
    free(http);
    curl_global_cleanup();
}

void etcd_http_free(struct etcd_http *http)
{
    http->closing = true;
    while (http->requests != NULL)
        etcd_http_cancel(http->requests);
    curl_multi_cleanup(http->multi);
    while (http->sockets != NULL)
        socket_free(http->sockets);
    curl_slist_free_all(http->headers);
    uv_timer_stop(&http->timer);
    uv_close((uv_handle_t *)&http->timer, http_closed);
}
