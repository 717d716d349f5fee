#include "runtime/cluster/session_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/record_fields.h"

#define MAC_BYTES     16u
#define SIGN_CONTEXT  "holdfast session 1"
#define SECRET_TEXT   (2 * SESSION_TOKEN_SECRET_BYTES + 1)
#define RECORD_NAME   "token secret"
#define MESSAGE_BYTES 512u /* More than a player's longest id and all else that is signed. */

/* ---- the secrets ---- */

static bool is_present(const uint8_t secret[SESSION_TOKEN_SECRET_BYTES])
{
    uint8_t any = 0;

    for (size_t i = 0; i < SESSION_TOKEN_SECRET_BYTES; i++)
        any |= secret[i];
    return any != 0;
}

static void put_secret(json_t *object, const char *name, const uint8_t *secret)
{
    char text[SECRET_TEXT];

    if (!is_present(secret))
        return;
    hex_print(secret, SESSION_TOKEN_SECRET_BYTES, text);
    CHECK(json_object_set_new(object, name, json_string(text)) == 0);
    explicit_bzero(text, sizeof text);
}

void token_secret_record_encode(const struct token_secret_record *record, struct buf *out)
{
    json_t *object =
        json_pack("{s:o}", "rotated_at_ms", json_sprintf("%" PRIu64, record->rotated_at_ms));

    CHECK(object != NULL && is_present(record->current));
    put_secret(object, "current", record->current);
    put_secret(object, "previous", record->previous);
    put_secret(object, "next", record->next);
    size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);
    CHECK(size > 0 && size <= CLUSTER_RECORD_SIZE_MAX);
    CHECK(json_dumpb(object, (char *)buf_reserve(out, size), size, JSON_COMPACT) == size);
    out->size += size;
    json_decref(object);
}

static void read_secret(struct record_fields *fields, const char *name, uint8_t *ret_secret)
{
    char text[SECRET_TEXT] = "";

    record_text_or_empty(fields, name, text, sizeof text);
    if (fields->e == ERR_OK && text[0] != 0 &&
        hex_parse(slice_from_text(text), SESSION_TOKEN_SECRET_BYTES, ret_secret) != ERR_OK)
        fields->e = record_refuse(ERR_INVALID, &fields->why,
                                  RECORD_NAME " record: %s: not %d hexadecimal digits", name,
                                  2 * SESSION_TOKEN_SECRET_BYTES);
    explicit_bzero(text, sizeof text);
}

err token_secret_record_decode(struct slice json, struct token_secret_record *ret_record,
                               struct record_error *ret_why)
{
    struct record_fields f = record_fields_open(RECORD_NAME, json);
    struct token_secret_record record = { 0 };

    read_secret(&f, "current", record.current);
    read_secret(&f, "previous", record.previous);
    read_secret(&f, "next", record.next);
    record.rotated_at_ms = record_u64_or_zero(&f, "rotated_at_ms");
    err e = record_fields_close(&f, ret_why);
    if (e == ERR_OK && !is_present(record.current))
        e = record_refuse(ERR_INVALID, ret_why, RECORD_NAME " record: current: missing");
    if (e == ERR_OK)
        *ret_record = record;
    explicit_bzero(&record, sizeof record);
    return e;
}

static void add_secret(struct session_secrets *secrets, const uint8_t *secret)
{
    if (is_present(secret))
        hmac_key_init(&secrets->keys[secrets->count++],
                      (struct slice){ secret, SESSION_TOKEN_SECRET_BYTES });
}

void session_secrets_init(struct session_secrets *secrets, const char *cluster,
                          const struct token_secret_record *record)
{
    CHECK(cluster_name_valid(cluster) && is_present(record->current));
    explicit_bzero(secrets, sizeof *secrets);
    memcpy(secrets->cluster, cluster, strlen(cluster) + 1);
    add_secret(secrets, record->current);
    add_secret(secrets, record->previous);
    add_secret(secrets, record->next);
}

/* ---- tokens ---- */

/* Takes what stands before the next dash, or all, off the front. */
static struct slice take_part(struct slice *rest)
{
    struct slice part = *rest;

    if (rest->size == 0)
        return part;
    const uint8_t *dash = memchr(rest->data, '-', rest->size);
    part.size = dash != NULL ? (size_t)(dash - rest->data) : rest->size;
    size_t taken = part.size + (dash != NULL ? 1 : 0);
    *rest = (struct slice){ rest->data + taken, rest->size - taken };
    return part;
}

static bool is_mac(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return text.size == SESSION_TOKEN_MAC_CHARS;
}

err session_token_parse(struct slice text, struct session_token *ret_token)
{
    struct session_token token = { .plain = text };
    struct slice rest = text;

    if (decimal_parse(take_part(&rest), &token.incarnation.generation) != ERR_OK ||
        decimal_parse(take_part(&rest), &token.incarnation.revision) != ERR_OK ||
        decimal_parse(take_part(&rest), &token.fence) != ERR_OK)
        return ERR_INVALID;
    if (token.incarnation.generation == 0 || token.incarnation.revision == 0 || token.fence == 0)
        return ERR_INVALID;
    if (rest.data != text.data + text.size || text.data[text.size - 1] == '-') {
        token.plain.size = (size_t)(rest.data - text.data) - 1;
        token.mac = rest;
        if (!is_mac(rest))
            return ERR_INVALID;
    }
    *ret_token = token;
    return ERR_OK;
}

/* Each part has a length of its own or is told, so that no two sessions sign the same bytes. */
static size_t make_message(const struct session_secrets *secrets, struct slice player,
                           const struct session_token *token, uint8_t ret_bytes[MESSAGE_BYTES])
{
    size_t cluster_size = strlen(secrets->cluster) + 1;
    uint8_t *at = ret_bytes;

    memcpy(at, SIGN_CONTEXT, sizeof SIGN_CONTEXT);
    at += sizeof SIGN_CONTEXT;
    memcpy(at, secrets->cluster, cluster_size);
    at += cluster_size;
    store_u64(at, token->incarnation.generation);
    store_u64(at + 8, token->incarnation.revision);
    store_u64(at + 16, token->fence);
    store_u64(at + 24, player.size);
    at += 32;
    if (player.size > 0)
        memcpy(at, player.data, player.size);
    return (size_t)(at - ret_bytes) + player.size;
}

static void print_mac(const struct session_secrets *secrets, uint32_t which, struct slice message,
                      char ret_text[SESSION_TOKEN_MAC_CHARS])
{
    uint8_t mac[HMAC_BYTES];
    struct buf text = { 0 };

    hmac_sign(&secrets->keys[which], message, mac);
    base64_encode_url((struct slice){ mac, MAC_BYTES }, &text);
    CHECK(text.size == SESSION_TOKEN_MAC_CHARS);
    memcpy(ret_text, text.data, SESSION_TOKEN_MAC_CHARS);
    buf_deinit(&text);
}

/* No session is of a player with a longer id. */
static bool is_too_long(struct slice player)
{
    return player.size > MESSAGE_BYTES - sizeof SIGN_CONTEXT - CLUSTER_NAME_MAX - 1 - 32;
}

void session_token_print(const struct session_secrets *secrets, struct slice player,
                         const struct session_token *token, char ret_text[SESSION_TOKEN_TEXT_SIZE])
{
    uint8_t message[MESSAGE_BYTES];
    char incarnation[INCARNATION_TEXT_SIZE];
    char mac[SESSION_TOKEN_MAC_CHARS];

    CHECK(secrets->count > 0 && !is_too_long(player));
    size_t size = make_message(secrets, player, token, message);
    print_mac(secrets, 0, (struct slice){ message, size }, mac);
    incarnation_print(token->incarnation, incarnation);
    int length = snprintf(ret_text, SESSION_TOKEN_TEXT_SIZE, "%s-%" PRIu64 "-%.*s", incarnation,
                          token->fence, (int)sizeof mac, mac);
    CHECK(length > 0 && length < SESSION_TOKEN_TEXT_SIZE);
}

bool session_token_is_genuine(const struct session_secrets *secrets, struct slice player,
                              const struct session_token *token)
{
    uint8_t message[MESSAGE_BYTES];
    char mac[SESSION_TOKEN_MAC_CHARS];
    bool genuine = false;

    CHECK(secrets->count > 0);
    if (token->mac.size != SESSION_TOKEN_MAC_CHARS || is_too_long(player))
        return false;
    size_t size = make_message(secrets, player, token, message);
    for (uint32_t i = 0; i < secrets->count; i++) {
        print_mac(secrets, i, (struct slice){ message, size }, mac);
        bool same = hmac_equal((const uint8_t *)mac, token->mac.data, sizeof mac);
        genuine = genuine || same;
    }
    return genuine;
}
