#include "runtime/http/http_share.h"

#include <stdlib.h>

#include "runtime/base/check.h"

static struct http_share **place_of(struct http_shares *shares, uint64_t name)
{
    struct http_share **at = &shares->slots[(name ^ name >> 32) % HTTP_SHARE_SLOTS];

    while (*at != NULL && (*at)->name != name)
        at = &(*at)->next;
    return at;
}

struct http_share *http_share_hold(struct http_shares *shares, uint64_t name)
{
    struct http_share **at = place_of(shares, name);

    if (*at == NULL) {
        *at = mem_zalloc(sizeof **at);
        (*at)->name = name;
        shares->count++;
    }
    (*at)->holders++;
    return *at;
}

struct http_share *http_share_join(struct http_share *share)
{
    CHECK(share->holders > 0);
    share->holders++;
    return share;
}

void http_share_release(struct http_shares *shares, struct http_share *share)
{
    if (share == NULL)
        return;
    CHECK(share->holders > 0);
    if (--share->holders > 0)
        return;
    CHECK(share->body_bytes == 0 && share->head_bytes == 0);
    *place_of(shares, share->name) = share->next;
    shares->count--;
    free(share);
}
