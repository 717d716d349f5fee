/*
 * endpoint_url: the URL of a service beside the cluster that a definition names and routers ask
 * (docs/favorites.md#an-endpoint). A part of RFC 3986, section 3: no user, no fragment. Pure; for
 * untrusted input.
 */
#ifndef RUNTIME_CLUSTER_ENDPOINT_URL_H
#define RUNTIME_CLUSTER_ENDPOINT_URL_H

#include <sys/socket.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

#define ENDPOINT_URL_MAX 1024u
#define ENDPOINT_URL_RULE                                                                          \
    "http:// or https://, a host, no user and no fragment, at most 1024 bytes of visible ASCII"

struct endpoint_url {
    bool tls;
    struct slice host; /* Without the brackets of an IPv6 address. Borrowed. */
    bool loopback;     /* By its name: localhost, 127.0.0.0/8 or ::1. */
};

/* ERR_INVALID: it is none. */
NODISCARD err endpoint_url_parse(struct slice text, struct endpoint_url *ret_url);

/*
 * Whether a connection may go to that address, which a name was resolved to. Never: link-local
 * ones, where clouds tell machines their credentials, multicast, and the unspecified one. To this
 * machine only if the URL itself says so: another name may be resolved to anything.
 */
bool endpoint_address_is_good(const struct sockaddr *address, bool loopback);

/* Whether a list "a.example, *.b.example" has the host: itself, or the end of one that begins with
 * "*."; "*" has all. Names are compared without case. */
bool endpoint_host_is_listed(struct slice host, const char *list);

#endif
