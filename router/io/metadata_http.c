#include "router/io/metadata_http.h"

#include <stdio.h>
#include <stdlib.h>

#include "router/core/metadata_wire.h"
#include "runtime/base/check.h"
#include "runtime/cluster/endpoint_url.h"
#include "runtime/etcd/etcd_http.h"

#define WHY_BYTES 192u
#define HTTP_OK   200

struct metadata_http {
    struct metadata_http_options options;
    struct etcd_http *http;
    uint32_t open;
};

/* One question under way. */
struct open {
    struct metadata_http *http;
    struct metadata_fetch *fetch;
    struct etcd_http_request request;
};

static bool may_connect(const struct sockaddr *address)
{
    return endpoint_address_is_good(address, false);
}

static bool may_connect_here(const struct sockaddr *address)
{
    return endpoint_address_is_good(address, true);
}

static void free_open(struct open *open)
{
    open->http->open--;
    etcd_http_request_deinit(&open->request);
    free(open);
}

static void done(struct etcd_http_request *request, const struct etcd_http_outcome *outcome)
{
    struct open *open = CONTAINER_OF(request, struct open, request);
    struct metadata_fetch *fetch = open->fetch;
    char status[WHY_BYTES];
    const char *why = NULL;

    fetch->open = NULL;
    (void)snprintf(status, sizeof status, "the answer is HTTP %ld", outcome->status);
    if (outcome->too_large)
        why = "the answer has more than 524288 bytes";
    else if (outcome->code != CURLE_OK)
        why = outcome->text;
    else if (outcome->status != HTTP_OK)
        why = status;
    fetch->done(fetch, buf_slice(&request->answer), why);
    free_open(open);
}

static err check(const struct metadata_http *http, const char *text, struct endpoint_url *ret_url,
                 const char **ret_why)
{
    if (endpoint_url_parse(slice_from_text(text), ret_url) != ERR_OK)
        *ret_why = "its URL is none";
    else if (!endpoint_host_is_listed(ret_url->host, http->options.hosts))
        *ret_why = "its host is not in the router's metadata_hosts";
    else if (!ret_url->tls && !ret_url->loopback &&
             !endpoint_host_is_listed(ret_url->host, http->options.plain_hosts))
        *ret_why = "its URL is plain http, and its host is not in metadata_plain_hosts";
    else
        return ERR_OK;
    return ERR_INVALID;
}

static err start(void *context, struct metadata_fetch *fetch, const char **ret_why)
{
    struct metadata_http *http = context;
    struct endpoint_url url;

    if (check(http, fetch->url, &url, ret_why) != ERR_OK)
        return ERR_INVALID;
    struct open *open = mem_zalloc(sizeof *open);
    open->http = http;
    open->fetch = fetch;
    open->request.repeatable = true;
    open->request.timeout_ms = fetch->timeout_ms;
    open->request.answer_max = METADATA_ANSWER_MAX;
    open->request.may_connect = url.loopback ? may_connect_here : may_connect;
    open->request.done = done;
    buf_append(&open->request.body, fetch->body.data, fetch->body.size);
    http->open++;
    if (etcd_http_send(http->http, &open->request, fetch->url) != ERR_OK) {
        free_open(open);
        *ret_why = "the request cannot be sent";
        return ERR_UNAVAILABLE;
    }
    fetch->open = open;
    return ERR_OK;
}

static void cancel(void *context, struct metadata_fetch *fetch)
{
    (void)context;
    if (fetch->open != NULL)
        free_open(fetch->open);
    fetch->open = NULL;
}

struct metadata_port metadata_http_port(struct metadata_http *http)
{
    return (struct metadata_port){ start, cancel, http };
}

err metadata_http_new(const struct metadata_http_options *options, struct metadata_http **ret_http)
{
    struct metadata_http *http = mem_zalloc(sizeof *http);
    const struct etcd_http_tls tls = { .ca_file = options->ca[0] != 0 ? options->ca : NULL };

    http->options = *options;
    err e = etcd_http_new(loop_uv(options->loop), &tls, &http->http);
    if (e != ERR_OK) {
        free(http);
        return e;
    }
    *ret_http = http;
    return ERR_OK;
}

void metadata_http_free(struct metadata_http *http)
{
    if (http == NULL)
        return;
    CHECK(http->open == 0);
    etcd_http_free(http->http);
    free(http);
}
