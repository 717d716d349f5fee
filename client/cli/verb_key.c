/*
 * holdfast key: API keys for the public port, in the cluster's etcd, where the routers watch them.
 * A key is shown once, when it is issued; etcd has only its HMAC.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client/cli/key_store.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"

#define DAY_MS        86400000ull
#define DAYS_MAX      36500u
#define TIME_BYTES    32u
#define KEY_FILE_LINE 128u

static uint64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A key made elsewhere, such as a Secret's. False: written to standard error. */
static bool read_secret(const char *path, uint8_t ret_secret[API_KEY_SECRET_BYTES])
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    char line[KEY_FILE_LINE] = "";

    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        line[0] = 0;
    if (file != NULL && !is_stdin)
        fclose(file);
    line[strcspn(line, "\r\n")] = 0;
    bool good = api_key_parse(slice_from_text(line), ret_secret);
    explicit_bzero(line, sizeof line);
    if (!good)
        fprintf(stderr,
                "holdfast: --from: the first line of %s is no key: hf_ and %d hexadecimal "
                "digits\n",
                path, 2 * API_KEY_SECRET_BYTES);
    return good;
}

/* False: written to standard error. */
static bool make_record(const struct arguments *arguments, const char *name,
                        const uint8_t secret[API_KEY_SECRET_BYTES],
                        struct api_key_record *ret_record)
{
    struct api_key_record record = { .created_at_ms = wall_ms() };
    struct record_error why;
    struct slice bad;
    uint32_t days;

    if (scopes_parse(slice_from_text(arguments->scopes), &record.scopes, &bad) != ERR_OK) {
        fprintf(stderr, "holdfast: --scopes: '%.*s' is none; there are:\n", (int)bad.size,
                (const char *)bad.data);
        size_t count;
        const struct scope_info *all = scope_all(&count);
        for (size_t i = 0; i < count; i++)
            fprintf(stderr, "  %-12s%s\n", all[i].name, all[i].meaning);
        return false;
    }
    if (argument_number("expires-days", arguments->expires_days, 0, DAYS_MAX, &days) != ERR_OK ||
        argument_number("rate", arguments->rate, 0, API_KEY_RATE_MAX, &record.rate_per_s) != ERR_OK)
        return false;
    if (days > 0)
        record.expires_at_ms = record.created_at_ms + days * DAY_MS;
    if (strlen(name) >= sizeof record.name || !cluster_name_valid(arguments->cluster)) {
        fprintf(stderr,
                "holdfast: a key's name has at most %zu bytes, a cluster's 63 of a-z, 0-9 "
                "and dash\n",
                sizeof record.name - 1);
        return false;
    }
    snprintf(record.name, sizeof record.name, "%s", name);
    api_key_digest(arguments->cluster, secret, record.digest);
    api_key_id(record.digest, record.id);
    if (api_key_record_validate(&record, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s\n", why.text);
        return false;
    }
    *ret_record = record;
    return true;
}

static void say_issued(const struct arguments *arguments, const struct api_key_record *record,
                       const char *text)
{
    char scopes[SCOPES_TEXT_SIZE];

    scopes_print(record->scopes, scopes);
    if (wants_json(arguments)) {
        json_t *answer = json_pack("{s:s, s:s, s:s, s:s}", "id", record->id, "name", record->name,
                                   "scopes", scopes, "key", text);
        print_json(answer);
        json_decref(answer);
        return;
    }
    fprintf(stderr, "key %s (%s) with the scopes: %s. It is shown this once:\n", record->id,
            record->name, scopes);
    printf("%s\n", text);
}

static int issue(const struct arguments *arguments, const char *name,
                 char ret_text[API_KEY_TEXT_SIZE])
{
    uint8_t secret[API_KEY_SECRET_BYTES];
    struct api_key_record record;
    struct key_store *store = NULL;
    err e;

    if (arguments->from[0] == 0)
        CHECK(getrandom(secret, sizeof secret, 0) == (ssize_t)sizeof secret);
    else if (!read_secret(arguments->from, secret))
        return 2;
    bool good = make_record(arguments, name, secret, &record);
    api_key_print(secret, ret_text);
    explicit_bzero(secret, sizeof secret);
    if (!good)
        return 2;
    e = key_store_open(arguments, &store);
    if (e == ERR_OK)
        e = key_store_put(store, &record);
    key_store_close(store);
    if (e == ERR_OK && arguments->from[0] == 0)
        say_issued(arguments, &record, ret_text);
    else if (e == ERR_OK)
        fprintf(stderr, "key %s (%s) is known to the cluster\n", record.id, record.name);
    return e == ERR_OK ? 0 : 1;
}

static void print_time(uint64_t ms, char ret_text[TIME_BYTES])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(ret_text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static json_t *row_of(const struct api_key_record *record, uint64_t now_ms)
{
    char scopes[SCOPES_TEXT_SIZE];
    char created[TIME_BYTES], expires[TIME_BYTES];

    scopes_print(record->scopes, scopes);
    print_time(record->created_at_ms, created);
    print_time(record->expires_at_ms, expires);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "id", record->id, "name", record->name,
                            "scopes", scopes, "issued", created);
    if (record->expires_at_ms != 0)
        json_object_set_new(row, "expires", json_string(expires));
    if (record->expires_at_ms != 0 && now_ms >= record->expires_at_ms)
        json_object_set_new(row, "expired", json_true());
    if (record->rate_per_s != 0)
        json_object_set_new(row, "rate", json_integer(record->rate_per_s));
    return row;
}

static int list(const struct arguments *arguments)
{
    static const struct column columns[] = {
        { .title = "ID", .path = "id" },
        { .title = "NAME", .path = "name" },
        { .title = "SCOPES", .path = "scopes" },
        { .title = "ISSUED", .path = "issued" },
        { .title = "EXPIRES", .path = "expires", .otherwise = "never" },
        { .title = "RATE", .path = "rate", .otherwise = "default" },
        { .title = NULL },
    };
    struct key_store *store = NULL;
    struct api_key_record *records = NULL;
    uint32_t count = 0;
    err e = key_store_open(arguments, &store);

    if (e == ERR_OK)
        e = key_store_list(store, &records, &count);
    key_store_close(store);
    if (e != ERR_OK)
        return 1;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(rows, row_of(&records[i], wall_ms()));
    free(records);
    if (wants_json(arguments))
        print_json(rows);
    else if (count == 0)
        printf("there are no keys\n");
    else
        print_table(NULL, rows, columns);
    json_decref(rows);
    return 0;
}

/* By id, or by a name that one key alone has. NULL: written to standard error. */
static const struct api_key_record *choose(const struct api_key_record *records, uint32_t count,
                                           const char *which)
{
    const struct api_key_record *found = NULL;
    uint32_t matches = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(records[i].id, which) == 0)
            return &records[i];
        if (strcmp(records[i].name, which) == 0) {
            found = &records[i];
            matches++;
        }
    }
    if (matches == 1)
        return found;
    if (matches == 0)
        fprintf(stderr, "holdfast: there is no key '%.64s'\n", which);
    else
        fprintf(stderr, "holdfast: %u keys have the name '%.64s'; say which by its id\n", matches,
                which);
    return NULL;
}

static int revoke(const struct arguments *arguments, const char *which)
{
    struct key_store *store = NULL;
    struct api_key_record *records = NULL;
    const struct api_key_record *record = NULL;
    uint32_t count = 0;
    err e = key_store_open(arguments, &store);

    if (e == ERR_OK)
        e = key_store_list(store, &records, &count);
    if (e == ERR_OK)
        record = choose(records, count, which);
    if (record != NULL)
        e = key_store_remove(store, record->id);
    if (record != NULL && e == ERR_OK)
        printf("key %s (%s) is revoked\n", record->id, record->name);
    key_store_close(store);
    free(records);
    return record != NULL && e == ERR_OK ? 0 : 1;
}

int verb_key(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";
    char text[API_KEY_TEXT_SIZE];
    int code;

    if (arguments->word_count == 3 && strcmp(what, "issue") == 0) {
        code = issue(arguments, arguments->words[2], text);
        explicit_bzero(text, sizeof text);
        return code;
    }
    if (arguments->word_count == 2 && strcmp(what, "list") == 0)
        return list(arguments);
    if (arguments->word_count == 3 && strcmp(what, "revoke") == 0)
        return revoke(arguments, arguments->words[2]);
    fprintf(stderr, "usage: holdfast key issue NAME --scopes LIST [--expires-days N] [--rate N] "
                    "[--from FILE]\n"
                    "       holdfast key list | revoke ID\n"
                    "with --etcd URLS and --cluster NAME, or HOLDFAST_ETCD and HOLDFAST_CLUSTER\n");
    return 2;
}
