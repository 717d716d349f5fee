#include "runtime/cluster/api_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/cluster/record_fields.h"
#include "runtime/crypto/hmac.h"

#define KEY_PREFIX     "hf_"
#define DIGEST_CONTEXT "holdfast api key 1 "
#define DIGEST_TEXT    (2 * API_KEY_DIGEST_BYTES + 1)

void api_key_print(const uint8_t secret[API_KEY_SECRET_BYTES], char ret_text[API_KEY_TEXT_SIZE])
{
    memcpy(ret_text, KEY_PREFIX, sizeof KEY_PREFIX - 1);
    hex_print(secret, API_KEY_SECRET_BYTES, ret_text + sizeof KEY_PREFIX - 1);
}

bool api_key_parse(struct slice text, uint8_t ret_secret[API_KEY_SECRET_BYTES])
{
    const size_t prefix = sizeof KEY_PREFIX - 1;

    return text.size == API_KEY_TEXT_SIZE - 1 && memcmp(text.data, KEY_PREFIX, prefix) == 0 &&
           hex_parse((struct slice){ text.data + prefix, text.size - prefix }, API_KEY_SECRET_BYTES,
                     ret_secret) == ERR_OK;
}

_Static_assert(API_KEY_DIGEST_BYTES == (int)HMAC_BYTES, "a digest is an HMAC-SHA-256");

void api_key_digest(const char *cluster, const uint8_t secret[API_KEY_SECRET_BYTES],
                    uint8_t ret_digest[API_KEY_DIGEST_BYTES])
{
    char context[sizeof DIGEST_CONTEXT + CLUSTER_NAME_MAX];
    struct hmac_key key;
    int size = snprintf(context, sizeof context, "%s%s", DIGEST_CONTEXT, cluster);

    CHECK(size > 0 && (size_t)size < sizeof context);
    hmac_key_init(&key, (struct slice){ (const uint8_t *)context, (size_t)size });
    hmac_sign(&key, (struct slice){ secret, API_KEY_SECRET_BYTES }, ret_digest);
}

void api_key_id(const uint8_t digest[API_KEY_DIGEST_BYTES], char ret_id[API_KEY_ID_SIZE])
{
    hex_print(digest, (API_KEY_ID_SIZE - 1) / 2, ret_id);
}

/* Takes the next pattern off the front of *rest. */
static struct slice take_pattern(struct slice *rest)
{
    const uint8_t *comma = memchr(rest->data, ',', rest->size);
    struct slice pattern = { rest->data,
                             comma != NULL ? (size_t)(comma - rest->data) : rest->size };
    size_t taken = comma != NULL ? pattern.size + 1 : pattern.size;

    *rest = (struct slice){ rest->data + taken, rest->size - taken };
    return pattern;
}

bool api_key_admits_server(const char *servers, struct slice name)
{
    struct slice rest = slice_from_text(servers);

    if (rest.size == 0)
        return true;
    while (rest.size > 0) {
        struct slice pattern = take_pattern(&rest);
        bool open = pattern.size > 0 && pattern.data[pattern.size - 1] == '*';

        if (open && name.size >= pattern.size - 1 &&
            memcmp(name.data, pattern.data, pattern.size - 1) == 0)
            return true;
        if (!open && slice_equal(pattern, name))
            return true;
    }
    return false;
}

/* Names with commas between, without spaces; '*' stands at a name's end alone. */
static err check_servers(const char *servers, struct record_error *ret_why)
{
    struct slice rest = slice_from_text(servers);
    size_t size = rest.size;

    if (size > 0 && servers[size - 1] == ',')
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: servers: \"%s\" ends with a comma", servers);
    while (rest.size > 0) {
        struct slice pattern = take_pattern(&rest);
        const uint8_t *star = memchr(pattern.data, '*', pattern.size);

        bool bad = pattern.size == 0 || (star != NULL && star != pattern.data + pattern.size - 1);
        for (size_t i = 0; i < pattern.size; i++)
            bad = bad || pattern.data[i] <= ' ' || pattern.data[i] == 0x7f;
        if (bad)
            return record_refuse(ERR_INVALID, ret_why,
                                 "API key record: servers: \"%.*s\" is no name, of which the end "
                                 "may be *, without spaces",
                                 (int)pattern.size, (const char *)pattern.data);
    }
    return ERR_OK;
}

/* An operator may set the policy and put rows: there is no limit on what such a key makes. */
static err check_mint(const struct api_key_record *record, const char *field, const char *text,
                      struct record_error *ret_why)
{
    struct mint_limits limits;

    if (mint_limits_parse(slice_from_text(text), &limits) != ERR_OK)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: %s: \"%.200s\" is not " MINT_FORM ", at most %u",
                             field, text, MINT_GOODS_MAX);
    if (text[0] != 0 && (record->scopes & SCOPE_ADMIN) != 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: %s: a key with the scope admin has no such limit",
                             field);
    return ERR_OK;
}

err api_key_record_validate(const struct api_key_record *record, struct record_error *ret_why)
{
    char id[API_KEY_ID_SIZE];

    api_key_id(record->digest, id);
    if (strcmp(id, record->id) != 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: id: \"%s\" does not begin the digest", record->id);
    if (record->name[0] == 0)
        return record_refuse(ERR_INVALID, ret_why, "API key record: name: empty");
    for (const char *c = record->name; *c != 0; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return record_refuse(ERR_INVALID, ret_why,
                                 "API key record: name: control character at byte %d",
                                 (int)(c - record->name));
    }
    if (record->scopes == 0 || (record->scopes & ~SCOPES_ALL) != 0)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: scopes: %#" PRIx32 " is not within 1 to %#x",
                             record->scopes, SCOPES_ALL);
    uint32_t back_end = record->scopes & SCOPES_SYSTEM;
    if (record->authority != 0 && ((record->authority & back_end) != record->authority ||
                                   (record->authority & (record->authority - 1)) != 0))
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: authority: %#" PRIx32 " is not one of the scopes "
                             "that the key has, but game and read",
                             record->authority);
    if (record->rate_per_s > API_KEY_RATE_MAX)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: rate_per_s: %" PRIu32 " is above %d",
                             record->rate_per_s, (int)API_KEY_RATE_MAX);
    if (record->holder[0] != 0 && strspn(record->holder, "0123456789abcdef") != API_KEY_ID_SIZE - 1)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: holder: \"%s\" is not the id of a key",
                             record->holder);
    err e = check_servers(record->servers, ret_why);
    if (e == ERR_OK)
        e = check_mint(record, "grants", record->grants, ret_why);
    return e == ERR_OK ? check_mint(record, "per_day", record->per_day, ret_why) : e;
}

const char *api_key_holder(const struct api_key_record *record)
{
    return record->holder[0] != 0 ? record->holder : record->id;
}

void api_key_record_encode(const struct api_key_record *record, struct buf *out)
{
    char scopes[SCOPES_TEXT_SIZE];
    char digest[DIGEST_TEXT];

    CHECK(api_key_record_validate(record, NULL) == ERR_OK);
    scopes_print(record->scopes, scopes);
    hex_print(record->digest, API_KEY_DIGEST_BYTES, digest);
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I}", "id", record->id, "name",
                               record->name, "scopes", scopes, "digest", digest, "created_at_ms",
                               record_decimal(record->created_at_ms), "expires_at_ms",
                               record_decimal(record->expires_at_ms), "rate_per_s",
                               (json_int_t)record->rate_per_s);
    CHECK(object != NULL);
    if (record->authority != 0) {
        scopes_print(record->authority, scopes);
        CHECK(json_object_set_new(object, "authority", json_string(scopes)) == 0);
    }
    if (record->grants[0] != 0)
        CHECK(json_object_set_new(object, "grants", json_string(record->grants)) == 0);
    if (record->per_day[0] != 0)
        CHECK(json_object_set_new(object, "per_day", json_string(record->per_day)) == 0);
    if (record->holder[0] != 0)
        CHECK(json_object_set_new(object, "holder", json_string(record->holder)) == 0);
    if (record->servers[0] != 0)
        CHECK(json_object_set_new(object, "servers", json_string(record->servers)) == 0);
    size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);
    CHECK(size > 0 && size <= CLUSTER_RECORD_SIZE_MAX);
    CHECK(json_dumpb(object, (char *)buf_reserve(out, size), size, JSON_COMPACT) == size);
    out->size += size;
    json_decref(object);
}

err api_key_record_decode(struct slice json, struct api_key_record *ret_record,
                          struct record_error *ret_why)
{
    struct record_fields f = record_fields_open("API key", json);
    struct api_key_record record = { 0 };
    char scopes[SCOPES_TEXT_SIZE] = "";
    char authority[SCOPES_TEXT_SIZE] = "";
    char digest[DIGEST_TEXT] = "";
    struct slice bad;

    record_text(&f, "id", record.id, sizeof record.id);
    record_text(&f, "name", record.name, sizeof record.name);
    record_text(&f, "scopes", scopes, sizeof scopes);
    record_text(&f, "digest", digest, sizeof digest);
    record_text_or_empty(&f, "authority", authority, sizeof authority);
    record_text_or_empty(&f, "servers", record.servers, sizeof record.servers);
    record_text_or_empty(&f, "holder", record.holder, sizeof record.holder);
    record_text_or_empty(&f, "grants", record.grants, sizeof record.grants);
    record_text_or_empty(&f, "per_day", record.per_day, sizeof record.per_day);
    record.created_at_ms = record_u64(&f, "created_at_ms");
    record.expires_at_ms = record_u64(&f, "expires_at_ms");
    record.rate_per_s = record_u32(&f, "rate_per_s");
    err e = record_fields_close(&f, ret_why);
    if (e != ERR_OK)
        return e;
    if (hex_parse(slice_from_text(digest), sizeof record.digest, record.digest) != ERR_OK)
        return record_refuse(ERR_INVALID, ret_why,
                             "API key record: digest: not %d hexadecimal digits",
                             2 * API_KEY_DIGEST_BYTES);
    if (scopes_parse(slice_from_text(scopes), &record.scopes, &bad) != ERR_OK)
        return record_refuse(ERR_INVALID, ret_why, "API key record: there is no scope \"%.*s\"",
                             (int)bad.size, (const char *)bad.data);
    record.authority = scope_find(slice_from_text(authority));
    if (authority[0] != 0 && record.authority == 0)
        return record_refuse(ERR_INVALID, ret_why, "API key record: there is no scope \"%s\"",
                             authority);
    e = api_key_record_validate(&record, ret_why);
    if (e == ERR_OK)
        *ret_record = record;
    return e;
}
