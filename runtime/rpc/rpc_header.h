/* rpc_header: the request headers that RPC protocols give a meaning to. Pure parsing. Private to
 * runtime/rpc. */
#ifndef RUNTIME_RPC_RPC_HEADER_H
#define RUNTIME_RPC_RPC_HEADER_H

#include "runtime/rpc/rpc_request.h"

/* What we take, for answers that refuse something else. */
#define RPC_CONTENT_TYPES                                                                          \
    "application/json, application/proto, application/connect+json, application/connect+proto, "   \
    "application/grpc, application/grpc-web"

/* The protocol and encoding that a Content-Type asks for: application/json is plain JSON here, all
 * other JSON is canonical. False: none of ours, or JSON that is not UTF-8. */
bool rpc_content_type_parse(struct slice value, enum rpc_protocol *ret_protocol,
                            enum rpc_form *ret_form);
/* Whether one of the query's parameters is `wanted`: "connect=v1". */
bool rpc_query_has(struct slice query, const char *wanted);
/* RPC_GRPC or RPC_GRPC_WEB for any Content-Type of theirs, known or not; else RPC_CONNECT. */
enum rpc_protocol rpc_content_type_family(struct slice value);
/* One of Connect, gRPC or gRPC-Web, whether or not we know what comes behind "+" or ";". */
bool rpc_content_type_is_ours(struct slice value);
bool rpc_is_connect(enum rpc_protocol protocol);
/* The Content-Type of answers. */
const char *rpc_content_type(enum rpc_protocol protocol, enum rpc_form form);

/* Connect-Timeout-Ms: 1 to 10 digits. False: malformed. */
bool rpc_connect_timeout_parse(struct slice value, uint64_t *ret_ms);
/* grpc-timeout: 1 to 8 digits and a unit of H M S m u n; rounded up to milliseconds. */
bool rpc_grpc_timeout_parse(struct slice value, uint64_t *ret_ms);
/* The header that names the encoding of messages, of requests and of answers. */
const char *rpc_encoding_header(enum rpc_protocol protocol);
/* The one in which a peer lists the encodings that it takes. */
const char *rpc_accept_header(enum rpc_protocol protocol);
/* "gzip", or its old name "x-gzip". */
bool rpc_encoding_is_gzip(struct slice value);
/* Accept-Encoding and its like (RFC 9110 section 12.5.3): whether gzip is in the list, by name or
 * by
 * "*", and not less welcome than identity is said to be. */
bool rpc_accepts_gzip(struct slice list);
/* What follows "Bearer "; empty when it is another scheme. */
struct slice rpc_bearer_parse(struct slice authorization);
/* Whether `origin` is in the comma-separated list, or the list is "*". NULL allows none. */
bool rpc_origin_allowed(const char *list, struct slice origin);
/* grpc-message: percent-encodes what is not printable ASCII, and '%'. */
void rpc_percent_encode(const char *text, struct buf *out);

#endif
