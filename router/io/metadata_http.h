/*
 * metadata_http: asks endpoints of metadata over HTTP, for the RPC layer (metadata_port.h): one
 * POST a batch, with a timeout and a bound on the answer. Redirects are answers that are no good.
 * The router's options say which hosts may be asked, endpoint_url.h which addresses never are.
 * The definition that names an endpoint is an administrator's; what its name is resolved to, and
 * what it answers, is anybody's. On the loop's thread.
 */
#ifndef ROUTER_IO_METADATA_HTTP_H
#define ROUTER_IO_METADATA_HTTP_H

#include "router/rpc/request/metadata_port.h"
#include "runtime/loop/loop.h"

struct metadata_http;

/* All texts must outlive it. */
struct metadata_http_options {
    struct loop *loop;
    const char *ca;          /* PEM file with the CAs for https; empty: those of the system. */
    const char *hosts;       /* That may be asked; "*": any (endpoint_host_is_listed). */
    const char *plain_hosts; /* That may be asked by http://; this machine may be anyhow. */
};

/* ERR_IO: curl cannot be set up. */
NODISCARD err metadata_http_new(const struct metadata_http_options *options,
                                struct metadata_http **ret_http);
/* When no question is under way. NULL is allowed. */
void metadata_http_free(struct metadata_http *http);
struct metadata_port metadata_http_port(struct metadata_http *http);

#endif
