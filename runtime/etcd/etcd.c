#include "runtime/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_call.h"

static bool endpoint_valid(const char *url)
{
    bool scheme = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    size_t length = strlen(url);

    return scheme && length > 8 && length < ETCD_URL_SIZE - ETCD_PATH_SIZE;
}

static err options_check(const struct etcd_options *options)
{
    if (options->endpoint_count == 0 || options->endpoint_count > ETCD_ENDPOINTS_MAX)
        return ERR_INVALID;
    if (options->timeout_ms > ETCD_TIMEOUT_MS_MAX)
        return ERR_INVALID;
    for (uint32_t i = 0; i < options->endpoint_count; i++) {
        if (!endpoint_valid(options->endpoints[i]))
            return ERR_INVALID;
    }
    return ERR_OK;
}

static void endpoints_copy(struct etcd *etcd, const struct etcd_options *options)
{
    etcd->endpoint_count = options->endpoint_count;
    for (uint32_t i = 0; i < options->endpoint_count; i++) {
        char *url = etcd->endpoints[i];
        size_t length = strlen(options->endpoints[i]);
        memcpy(url, options->endpoints[i], length + 1);
        while (length > 0 && url[length - 1] == '/')
            url[--length] = '\0';
    }
}

err etcd_new(const struct etcd_options *options, struct etcd **ret_etcd)
{
    struct etcd_http_tls tls = { options->ca_file, options->cert_file, options->key_file };
    struct etcd_http *http;

    err e = options_check(options);
    if (e == ERR_OK)
        e = etcd_http_new(options->loop, &tls, &http);
    if (e != ERR_OK)
        return e;
    struct etcd *etcd = mem_zalloc(sizeof *etcd);
    etcd->loop = options->loop;
    etcd->log = options->log;
    etcd->http = http;
    etcd->timeout_ms =
        options->timeout_ms > 0 ? options->timeout_ms : (uint64_t)ETCD_TIMEOUT_MS_DEFAULT;
    etcd->cluster_id = options->cluster_id_known;
    etcd->revision = options->revision_known;
    etcd->on_rollback = options->rolled_back;
    etcd->context = options->context;
    endpoints_copy(etcd, options);
    etcd_timers_init(&etcd->timers, options->loop);
    *ret_etcd = etcd;
    return ERR_OK;
}

static void etcd_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF(handle, struct etcd, timers.uv));
}

void etcd_free(struct etcd *etcd)
{
    CHECK(etcd->users == 0);
    etcd->closing = true;
    while (etcd->queue_first != NULL)
        etcd_call_cancel(etcd->queue_first);
    while (etcd->calls != NULL)
        etcd_call_cancel(etcd->calls);
    etcd_http_free(etcd->http);
    etcd_timers_deinit(&etcd->timers, etcd_closed);
}

int64_t etcd_revision_seen(const struct etcd *etcd)
{
    return etcd->revision;
}

uint64_t etcd_cluster_id_seen(const struct etcd *etcd)
{
    return etcd->cluster_id;
}

uint32_t etcd_calls_pending(const struct etcd *etcd)
{
    uint32_t pending = etcd->queued;

    for (const struct etcd_call *call = etcd->calls; call != NULL; call = call->next)
        pending++;
    return pending;
}

bool etcd_rolled_back(const struct etcd *etcd)
{
    return etcd->rolled_back;
}

void etcd_rollback_accept(struct etcd *etcd)
{
    etcd->cluster_id = 0;
    etcd->revision = 0;
    etcd->rolled_back = false;
    for (struct etcd_follower *f = etcd->followers; f != NULL; f = f->next)
        f->restart(f);
}

uint32_t etcd_endpoint_count(const struct etcd *etcd)
{
    return etcd->endpoint_count;
}

const char *etcd_endpoint(const struct etcd *etcd, uint32_t endpoint)
{
    CHECK(endpoint < etcd->endpoint_count);
    return etcd->endpoints[endpoint];
}
