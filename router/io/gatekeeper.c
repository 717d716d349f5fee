#include "router/io/gatekeeper.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/access.h"
#include "router/core/player_writes.h"
#include "router/core/refusal.h"
#include "router/io/action_log.h"
#include "runtime/base/address.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

struct gatekeeper {
    struct gatekeeper_options options;
    struct rate_table *addresses;
    struct rate_table *failures;
    struct rate_table *players;   /* NULL: their tokens are not taken. */
    struct player_writes *writes; /* Likewise. */
    uint64_t refused[GATEKEEPER_REASON_COUNT];
    struct action_log actions;
    char key_id[API_KEY_ID_SIZE]; /* Of the visit under way; empty: none that is known. */
};

struct gatekeeper *gatekeeper_new(const struct gatekeeper_options *options)
{
    struct gatekeeper *gatekeeper = mem_zalloc(sizeof *gatekeeper);

    gatekeeper->options = *options;
    gatekeeper->actions.log = options->log;
    gatekeeper->addresses = rate_table_new();
    gatekeeper->failures = rate_table_new();
    gatekeeper->players = options->players != NULL ? rate_table_new() : NULL;
    gatekeeper->writes = options->players != NULL ? player_writes_new() : NULL;
    return gatekeeper;
}

void gatekeeper_free(struct gatekeeper *gatekeeper)
{
    if (gatekeeper == NULL)
        return;
    rate_table_free(gatekeeper->addresses);
    rate_table_free(gatekeeper->failures);
    rate_table_free(gatekeeper->players);
    player_writes_free(gatekeeper->writes);
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

static err refuse(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                  enum gatekeeper_reason reason)
{
    gatekeeper->refused[reason]++;
    action_log_refused(&gatekeeper->actions,
                       &(struct action_refusal){ gatekeeper_reason_text(reason),
                                                 visit->method->name, gatekeeper->key_id,
                                                 visit->peer },
                       visit->now_ms);
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
        [GATEKEEPER_PLAYER_RATE] = { CODE(THROTTLED),
                                     "the player is at the limit of requests a second; nothing was "
                                     "done" },
        [GATEKEEPER_ADDRESS_WRITES] = { CODE(THROTTLED),
                                        "players write too much from this address; nothing was "
                                        "done" },
        [GATEKEEPER_DEVICE_WRITES] = { CODE(THROTTLED),
                                       "players write too much from this device; nothing was "
                                       "done" },
        [GATEKEEPER_SIGNATURE_TIME] = { CODE(THROTTLED),
                                        "the router is at its limit of time for signatures of "
                                        "players' tokens; nothing was done" },
        [GATEKEEPER_PLAYER_KEYS_UNREAD] = { CODE(UNAVAILABLE),
                                            "the router has not read the keys of players' tokens "
                                            "yet; nothing was done" },
    };
    uint32_t retry_after_ms = ret_detail->retry_after_ms;

    refusal_make(visit->arena, ret_detail, answers[reason].code, "%s", answers[reason].message);
    if (answers[reason].code == CODE(THROTTLED))
        ret_detail->retry_after_ms = retry_after_ms;
    return refuse(gatekeeper, visit, reason);
}

/* The key is looked up first: an address that failed too often is still that of callers with valid
 * keys. A text that is no known key costs one HMAC. */
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

    if (!key_feed_complete(gatekeeper->options.keys))
        return refuse_with(gatekeeper, visit, GATEKEEPER_KEYS_UNREAD, ret_detail);
    enum key_found found = key_table_find(table, visit->api_key, visit->wall_ms, ret_entry);
    if (found == KEY_FOUND)
        return ERR_OK;
    if (!rate_take(rate_table_get(gatekeeper->failures, name), rate, visit->now_ms,
                   &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_FAILURE_RATE, ret_detail);
    return refuse_with(gatekeeper, visit, reasons[found], ret_detail);
}

static uint64_t key_name(const struct api_key_record *record)
{
    return hash_u64(slice_from_text(record->id)) | 1;
}

static struct gatekeeper_guest guest_of_open(uint64_t name)
{
    return (struct gatekeeper_guest){ .scopes = SCOPES_ALL,
                                      .caller = name,
                                      .key_id = "",
                                      .key_servers = "",
                                      .key_grants = "",
                                      .key_per_day = "" };
}

static struct gatekeeper_guest guest_of(const struct gatekeeper *gatekeeper,
                                        const struct gatekeeper_visit *visit,
                                        struct key_entry *entry)
{
    uint32_t rate = entry->record.rate_per_s > 0 ? entry->record.rate_per_s
                                                 : gatekeeper->options.config->key_rate;
    uint64_t name = key_name(&entry->record);

    return (struct gatekeeper_guest){
        .scopes = entry->record.scopes,
        .bucket = &entry->bucket,
        .rate_per_s = rate,
        .authority = entry->record.authority,
        .key = name,
        .caller = name,
        .key_id = arena_printf(visit->arena, "%s", entry->record.id),
        .holder = arena_printf(visit->arena, "%s", api_key_holder(&entry->record)),
        .key_servers = arena_printf(visit->arena, "%s", entry->record.servers),
        .key_grants = arena_printf(visit->arena, "%s", entry->record.grants),
        .key_per_day = arena_printf(visit->arena, "%s", entry->record.per_day),
    };
}

/* ---- players ---- */

static err refuse_token(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                        const struct jwt_refusal *refusal, Holdfast__V1__ErrorDetail *ret_detail)
{
    refusal_make(visit->arena, ret_detail, CODE(UNAUTHENTICATED),
                 "the player's token is refused (%s): %s: expected %s",
                 jwt_fault_text(refusal->fault), refusal->field, refusal->limit);
    ret_detail->field = text_lend(refusal->field);
    ret_detail->limit = text_lend(refusal->limit);
    return refuse(gatekeeper, visit, GATEKEEPER_PLAYER_TOKEN);
}

static err find_player(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                       uint64_t name, const char **ret_player,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct player_visit one = {
        .token = visit->api_key,
        .address = name,
        .failures = rate_table_get(gatekeeper->failures, name),
        .failure_rate = gatekeeper->options.config->failure_rate,
        .now_ms = visit->now_ms,
        .wall_ms = visit->wall_ms,
    };
    struct jwt_refusal refusal;

    switch (player_gate_find(gatekeeper->options.players, &one, ret_player, &refusal,
                             &ret_detail->retry_after_ms)) {
    case PLAYER_FOUND:
        return ERR_OK;
    case PLAYER_REFUSED:
        return refuse_token(gatekeeper, visit, &refusal, ret_detail);
    case PLAYER_FAILS_TOO_OFTEN:
        return refuse_with(gatekeeper, visit, GATEKEEPER_FAILURE_RATE, ret_detail);
    case PLAYER_NO_TIME:
        return refuse_with(gatekeeper, visit, GATEKEEPER_SIGNATURE_TIME, ret_detail);
    case PLAYER_KEYS_UNREAD:
        break;
    }
    return refuse_with(gatekeeper, visit, GATEKEEPER_PLAYER_KEYS_UNREAD, ret_detail);
}

static struct gatekeeper_guest guest_of_player(const struct gatekeeper_visit *visit,
                                               const char *player)
{
    const char *text = arena_printf(visit->arena, GATEKEEPER_PLAYER ":%s", player);
    uint64_t name = hash_u64(slice_from_text(text)) | 1;

    return (struct gatekeeper_guest){
        .caller = name,
        .key = name,
        .player = text + sizeof GATEKEEPER_PLAYER,
        .key_id = GATEKEEPER_PLAYER,
        .key_servers = "",
        .key_grants = "",
        .key_per_day = "",
    };
}

/* Whether what the caller brings is to be read as a player's token. */
static bool brings_token(const struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit)
{
    return gatekeeper->options.players != NULL && jws_is_meant(visit->api_key);
}

static err count_write(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                       uint64_t name, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router_config *config = gatekeeper->options.config;
    const struct player_write write = {
        .address = name,
        .device = visit->device.size > 0 ? hash_u64(visit->device) | 1 : 0,
        .address_per_minute = config->player_address_writes,
        .device_per_minute = config->player_device_writes,
        .now_ms = visit->now_ms,
    };

    switch (player_writes_take(gatekeeper->writes, &write, &ret_detail->retry_after_ms)) {
    case PLAYER_WRITES_OK:
        break;
    case PLAYER_WRITES_ADDRESS:
        return refuse_with(gatekeeper, visit, GATEKEEPER_ADDRESS_WRITES, ret_detail);
    case PLAYER_WRITES_DEVICE:
        return refuse_with(gatekeeper, visit, GATEKEEPER_DEVICE_WRITES, ret_detail);
    }
    return ERR_OK;
}

static err ask_player(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                      uint64_t name, struct gatekeeper_guest *ret_guest,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    const char *player;
    err e = find_player(gatekeeper, visit, name, &player, ret_detail);

    if (e != ERR_OK)
        return e;
    *ret_guest = guest_of_player(visit, player);
    memcpy(gatekeeper->key_id, GATEKEEPER_PLAYER, sizeof GATEKEEPER_PLAYER);
    if (!rate_take(rate_table_get(gatekeeper->players, ret_guest->key),
                   gatekeeper->options.config->player_token_rate, visit->now_ms,
                   &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_PLAYER_RATE, ret_detail);
    if (access_check_player_method(visit->method, visit->arena, ret_detail) != ERR_OK)
        return refuse(gatekeeper, visit, GATEKEEPER_PLAYER_METHOD);
    if (visit->method->route == METHOD_MUTATION)
        return count_write(gatekeeper, visit, name, ret_detail);
    return ERR_OK;
}

/* ---- API keys ---- */

static err ask_keys(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                    uint64_t name, struct gatekeeper_guest *ret_guest,
                    Holdfast__V1__ErrorDetail *ret_detail)
{
    struct key_entry *entry;
    err e = find_key(gatekeeper, visit, name, &entry, ret_detail);
    if (e != ERR_OK)
        return e;
    memcpy(gatekeeper->key_id, entry->record.id, sizeof gatekeeper->key_id);
    *ret_guest = guest_of(gatekeeper, visit, entry);
    if (!rate_take(&entry->bucket, ret_guest->rate_per_s, visit->now_ms,
                   &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_KEY_RATE, ret_detail);
    if (access_check_method(visit->method, entry->record.scopes, visit->arena, ret_detail) !=
        ERR_OK)
        return refuse(gatekeeper, visit, GATEKEEPER_SCOPE);
    return ERR_OK;
}

err gatekeeper_ask(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                   struct gatekeeper_guest *ret_guest, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router_config *config = gatekeeper->options.config;
    uint64_t name = address_name(visit->peer);

    gatekeeper->key_id[0] = 0;
    if (config->address_rate > 0 &&
        !rate_take(rate_table_get(gatekeeper->addresses, name), config->address_rate, visit->now_ms,
                   &ret_detail->retry_after_ms))
        return refuse_with(gatekeeper, visit, GATEKEEPER_ADDRESS_RATE, ret_detail);
    if (brings_token(gatekeeper, visit))
        return ask_player(gatekeeper, visit, name, ret_guest, ret_detail);
    if (gatekeeper->options.keys != NULL)
        return ask_keys(gatekeeper, visit, name, ret_guest, ret_detail);
    *ret_guest = guest_of_open(name);
    return ERR_OK;
}

err gatekeeper_ask_again(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                         struct gatekeeper_guest *ret_guest, Holdfast__V1__ErrorDetail *ret_detail)
{
    uint64_t name = address_name(visit->peer);
    struct key_entry *entry;
    const char *player;
    err e;

    if (brings_token(gatekeeper, visit)) {
        e = find_player(gatekeeper, visit, name, &player, ret_detail);
        if (e == ERR_OK)
            *ret_guest = guest_of_player(visit, player);
        return e;
    }
    *ret_guest = guest_of_open(name);
    if (gatekeeper->options.keys == NULL)
        return ERR_OK;
    e = find_key(gatekeeper, visit, name, &entry, ret_detail);
    if (e != ERR_OK)
        return e;
    *ret_guest = guest_of(gatekeeper, visit, entry);
    return ERR_OK;
}

void gatekeeper_tell(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit,
                     Holdfast__V1__ErrorCode code)
{
    struct key_table *table =
        gatekeeper->options.keys != NULL ? key_feed_table(gatekeeper->options.keys) : NULL;
    struct key_entry *entry;
    bool known = table != NULL && key_table_remembers(table, visit->api_key) &&
                 key_table_find(table, visit->api_key, visit->wall_ms, &entry) == KEY_FOUND;

    action_log_code(&gatekeeper->actions,
                    &(struct action_refusal){
                        .method = visit->method != NULL ? visit->method->name : "none",
                        .key = known ? entry->record.id : "",
                        .peer = visit->peer,
                    },
                    code, visit->now_ms);
}

bool gatekeeper_welcomes(struct gatekeeper *gatekeeper, const struct gatekeeper_visit *visit)
{
    const struct gatekeeper_options *options = &gatekeeper->options;
    struct key_entry *entry;

    if (brings_token(gatekeeper, visit))
        return false; /* Nothing that lasts takes one (cmake/player_tables.py). */
    /* While the keys are read again, no admitted caller is put out. */
    if (options->keys == NULL || !key_feed_complete(options->keys))
        return true;
    return key_table_find(key_feed_table(options->keys), visit->api_key, visit->wall_ms, &entry) ==
               KEY_FOUND &&
           (visit->method->scopes & entry->record.scopes) != 0;
}
