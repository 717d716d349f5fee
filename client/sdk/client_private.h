/* client_private: what the files of client/sdk share. */
#ifndef CLIENT_SDK_CLIENT_PRIVATE_H
#define CLIENT_SDK_CLIENT_PRIVATE_H

#include <curl/curl.h>

#include "client/sdk/client_result.h"
#include "runtime/base/buf.h"

struct client {
    CURL *curl;
    struct curl_slist *headers; /* Of every call; Content-Type is the call's own. */
    char *endpoint;
    uint32_t deadline_ms;
};

/* Replaces `url` by the method's, with its NUL. */
void client_url(const struct client *client, const char *method, struct buf *url);
/* The client's headers and two more; to be freed. `extra` NULL: one more. */
struct curl_slist *client_headers(const struct client *client, const char *content_type,
                                  const char *extra);
struct client_error {
    enum client_result result; /* CLIENT_REFUSED, CLIENT_LATER or CLIENT_UNKNOWN. */
    bool settles;              /* It tells what became of every try, not only of this one. */
    uint32_t retry_after_ms;   /* CLIENT_LATER: above 0. */
};
/* What an error in either form of JSON asks for. Without our ErrorDetail it is not ours, so:
 * unknown. */
struct client_error client_error_read(struct slice json);
/* Nothing of the request that `curl` carried out last can have reached a router. */
bool client_never_sent(CURL *curl, CURLcode code);

#endif
