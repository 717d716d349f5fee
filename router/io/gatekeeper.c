#include "router/io/gatekeeper.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/access.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define LOG_EVERY_MS    1000u
#define IPV6_HOST_BYTES 8u /* A household or a host has a /64. */

struct gatekeeper {
    struct gatekeeper_options options;
    struct rate_table *addresses;
    struct rate_table *failures;
    uint64_t refused[GATEKEEPER_REASON_COUNT];
    uint64_t logged_ms;
    uint64_t unlogged;
};

struct gatekeeper *gatekeeper_new(const struct gatekeeper_options *options)
{
    struct gatekeeper *gatekeeper = mem_zalloc(sizeof *gatekeeper);

    gatekeeper->options = *options;
    gatekeeper->addresses = rate_table_new();
    gatekeeper->failures = rate_table_new();
    return gatekeeper;
}

void gatekeeper_free(struct gatekeeper *gatekeeper)
{
    if (gatekeeper == NULL)
        return;
    rate_table_free(gatekeeper->addresses);
    rate_table_free(gatekeeper->failures);
    free(gatekeeper);
}

const char *gatekeeper_reason_text(enum gatekeeper_reason reason)
{
    static const char *const texts[] = {
#define GATEKEEPER_TEXT(enumerator, text) [GATEKEEPER_##enumerator] = (text),
        GATEKEEPER_REASONS(GATEKEEPER_TEXT)
#undef GATEKEEPER_TEXT
    };

    CHECK(reason < GATEKEEPER_REASON_COUNT);
    return texts[reason];
}

uint64_t gatekeeper_refused(const struct gatekeeper *gatekeeper, enum gatekeeper_reason reason)
{
    return gatekeeper->refused[reason];
}

uint32_t gatekeeper_keys(const struct gatekeeper *gatekeeper)
{
    return gatekeeper->options.keys != NULL
               ? key_table_count(key_feed_table(gatekeeper->options.keys))
               : 0;
}

/* A name for the client's address, without its port; of IPv6 only the network. */
static uint64_t address_name(const char *peer)
{
    const char *colon = strrchr(peer, ':');
    size_t size = colon != NULL ? (size_t)(colon - peer) : strlen(peer);
    char text[INET6_ADDRSTRLEN];
    uint8_t address[16];

    if (size > 2 && peer[0] == '[' && size - 2 < sizeof text) {
        memcpy(text, peer + 1, size - 2);
        text[size - 2] = 0;
        if (inet_pton(AF_INET6, text, address) == 1)
            return hash_u64((struct slice){ address, IPV6_HOST_BYTES });
    }
    return hash_u64((struct slice){ (const uint8_t *)peer, size });
}

/* One line a second at most: refused callers must not fill the log. */
static void log_refusal(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                        enum gatekeeper_reason reason)
{
    if (gatekeeper->logged_ms != 0 && visit->now_ms < gatekeeper->logged_ms + LOG_EVERY_MS) {
        gatekeeper->unlogged++;
        return;
    }
    log_event(gatekeeper->options.log, LOG_WARN, "public.refused",
              LOG_S("why", gatekeeper_reason_text(reason)), LOG_S("peer", visit->peer),
              LOG_S("method", visit->method->name), LOG_N("others_since", gatekeeper->unlogged));
    gatekeeper->logged_ms = visit->now_ms;
    gatekeeper->unlogged = 0;
}

static err refuse(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                  enum gatekeeper_reason reason)
{
    gatekeeper->refused[reason]++;
    log_refusal(gatekeeper, visit, reason);
    return ERR_PERMISSION;
}

static err refuse_with(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                       enum gatekeeper_reason reason, Holdfast__V1__ErrorDetail *ret_detail)
{
    static const struct {
        Holdfast__V1__ErrorCode code;
        const char *message;
    } answers[GATEKEEPER_REASON_COUNT] = {
        [GATEKEEPER_NO_KEY] = { CODE(UNAUTHENTICATED),
                                "no API key: send Authorization: Bearer hf_..." },
        [GATEKEEPER_UNKNOWN_KEY] = { CODE(UNAUTHENTICATED),
                                     "the API key is not known: revoked, of another cluster, or "
                                     "misspelt" },
        [GATEKEEPER_EXPIRED_KEY] = { CODE(UNAUTHENTICATED), "the API key has expired" },
        [GATEKEEPER_KEY_RATE] = { CODE(THROTTLED),
                                  "the API key is at its limit of requests a second; nothing was "
                                  "done" },
        [GATEKEEPER_ADDRESS_RATE] = { CODE(THROTTLED),
                                      "this address is at its limit of requests a second; nothing "
                                      "was done" },
        [GATEKEEPER_FAILURE_RATE] = { CODE(THROTTLED),
                                      "too many requests without a valid API key come from this "
                                      "address; nothing was done" },
        [GATEKEEPER_KEYS_UNREAD] = { CODE(UNAVAILABLE),
                                     "the router has not read the API keys yet; nothing was done" },
    };
    uint32_t retry_after_ms = ret_detail->retry_after_ms;

    refusal_make(visit->arena, ret_detail, answers[reason].code, "%s", answers[reason].message);
    if (answers[reason].code == CODE(THROTTLED))
        ret_detail->retry_after_ms = retry_after_ms;
    return refuse(gatekeeper, visit, reason);
}

/* An address that failed too often is not looked at, so that failures stay cheap for us. */
static err find_key(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                    uint64_t name, struct key_entry **ret_entry,
                    Holdfast__V1__ErrorDetail *ret_detail)
{
    static const enum gatekeeper_reason reasons[] = {
        [KEY_MISSING] = GATEKEEPER_NO_KEY,
        [KEY_UNKNOWN] = GATEKEEPER_UNKNOWN_KEY,
        [KEY_EXPIRED] = GATEKEEPER_EXPIRED_KEY,
    };
    struct key_table *table = key_feed_table(gatekeeper->options.keys);
    uint32_t rate = gatekeeper->options.config->failure_rate;
    struct rate_bucket *failures;
    enum key_found found;

    if (key_table_remembers(table, visit->api_key)) {
        found = key_table_find(table, visit->api_key, visit->wall_ms, ret_entry);
        if (found == KEY_FOUND)
            return ERR_OK;
    }
    failures = rate_table_get(gatekeeper->failures, name);
    if (!rate_has(failures, rate, visit->now_ms, &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_FAILURE_RATE, ret_detail);
    found = key_table_find(table, visit->api_key, visit->wall_ms, ret_entry);
    if (found == KEY_FOUND)
        return ERR_OK;
    rate_charge(failures, rate, 1, visit->now_ms);
    return refuse_with(gatekeeper, visit, reasons[found], ret_detail);
}

static err ask_keys(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                    uint64_t name, struct gatekeeper_guest *ret_guest,
                    Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router_config *config = gatekeeper->options.config;
    struct key_entry *entry;
    uint32_t rate;

    if (!key_feed_complete(gatekeeper->options.keys))
        return refuse_with(gatekeeper, visit, GATEKEEPER_KEYS_UNREAD, ret_detail);
    err e = find_key(gatekeeper, visit, name, &entry, ret_detail);
    if (e != ERR_OK)
        return e;
    rate = entry->record.rate_per_s > 0 ? entry->record.rate_per_s : config->key_rate;
    if (!rate_take(&entry->bucket, rate, visit->now_ms, &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_KEY_RATE, ret_detail);
    if (access_check_method(visit->method, entry->record.scopes, visit->arena, ret_detail) !=
        ERR_OK)
        return refuse(gatekeeper, visit, GATEKEEPER_SCOPE);
    *ret_guest = (struct gatekeeper_guest){ entry->record.scopes, &entry->bucket, rate,
                                            entry->record.authority };
    return ERR_OK;
}

err gatekeeper_ask(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                   struct gatekeeper_guest *ret_guest, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router_config *config = gatekeeper->options.config;
    uint64_t name = address_name(visit->peer);

    if (config->address_rate > 0 &&
        !rate_take(rate_table_get(gatekeeper->addresses, name), config->address_rate, visit->now_ms,
                   &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_ADDRESS_RATE, ret_detail);
    if (gatekeeper->options.keys != NULL)
        return ask_keys(gatekeeper, visit, name, ret_guest, ret_detail);
    *ret_guest = (struct gatekeeper_guest){ .scopes = SCOPES_ALL };
    return ERR_OK;
}

bool gatekeeper_welcomes(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit)
{
    const struct gatekeeper_options *options = &gatekeeper->options;
    struct key_entry *entry;

    /* While the keys are read again, no admitted caller is put out. */
    if (options->keys == NULL || !key_feed_complete(options->keys))
        return true;
    return key_table_find(key_feed_table(options->keys), visit->api_key, visit->wall_ms, &entry) ==
               KEY_FOUND &&
           (visit->method->scopes & entry->record.scopes) != 0;
}
