/*
 * holdfast key: API keys for the public port, in the cluster's etcd, where the routers watch them.
 * A key is shown once, when it is issued; etcd has only its HMAC.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client/cli/console/clock.h"
#include "client/cli/help.h"
#include "client/cli/call/key_store.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/cluster/authority_text.h"

#define DAY_MS           86400000ull
#define DAYS_MAX         36500u
#define KEY_FILE_LINE    128u
#define ROTATION_PAUSE_S 5u

static const struct command_option option_scopes = {
    .flag = "scopes",
    .value = "LIST",
    .meaning = "what for: game, payments, mail, match, moderation, admin, read, "
               "read:player, read:ops",
};
static const struct command_option option_expires_days = {
    .flag = "expires-days",
    .value = "N",
    .initial = "0",
    .meaning = "until then; 0: for ever",
};
static const struct command_option option_rate = {
    .flag = "rate",
    .value = "N",
    .initial = "0",
    .meaning = "requests a second at each router; 0: its default",
};
static const struct command_option option_authority = {
    .flag = "authority",
    .value = "AUTHORITY",
    .meaning = "of writes that name none: system: and one of the key's scopes, as system:payments",
};
static const struct command_option option_servers = {
    .flag = "servers",
    .value = "NAMES",
    .meaning = "names that it may register, as 'eu-*,us-1'; empty: any",
};
static const struct command_option option_grants = {
    .flag = "grants",
    .value = "LIMITS",
    .meaning = "what a call may make, and nothing else: 'gold:1000,item/sword:5'; empty: no limit",
};
static const struct command_option option_per_day = {
    .flag = "per-day",
    .value = "LIMITS",
    .meaning = "what it may make a day by each router: 'gold:100000'; empty: no limit",
};
static const struct command_option option_from = {
    .flag = "from",
    .value = "FILE",
    .meaning = "a key made elsewhere, hf_..., or - for standard input",
};

static const struct command_option option_replaces = {
    .flag = "replaces",
    .value = "KEY",
    .meaning = "id or name of a key that it stands in for: what either registers is of both, and "
               "what is not said is as there",
};
static const struct command_option option_register = {
    .flag = "register",
    .meaning = "with --from: keep a key's limits if it stands, and a revoked one revoked",
};
static const struct command_option option_unless_rotated = {
    .flag = "unless-rotated",
    .value = "MS",
    .meaning = "do nothing if the last rotation is the one that an unknown outcome named so",
};

/* The exit code of a change. */
static int code_of(err e)
{
    if (e == ERR_OK)
        return 0;
    return err_retry(e) == RETRY_UNKNOWN_OUTCOME ? EXIT_UNKNOWN : 1;
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

static void refuse_scope(struct slice given)
{
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];
    struct nearest nearest;
    size_t count;
    const struct scope_info *all = scope_all(&count);

    nearest_init(&nearest, given);
    for (size_t i = 0; i < count; i++)
        nearest_offer_text(&nearest, all[i].name);
    fprintf(stderr, "holdfast: --scopes: there is no scope '%s'%s\nThere are:\n",
            nearest_show(given, shown), nearest_hint(nearest.name, hint));
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %-12s%s\n", all[i].name, all[i].meaning);
}

/* False: written to standard error. */
static bool read_authority(const struct arguments *arguments, struct api_key_record *record)
{
    const char *text = option_text(arguments, &option_authority);
    char held[SCOPES_TEXT_SIZE];
    struct slice scope;

    if (text[0] == 0)
        return true;
    record->authority = 0;
    if (authority_text_read(slice_from_text(text), &scope) == AUTHORITY_TEXT_SYSTEM)
        record->authority = scope_find(scope) & record->scopes & SCOPES_SYSTEM;
    if (record->authority != 0)
        return true;
    scopes_print(record->scopes, held);
    fprintf(stderr,
            "holdfast: --authority: expected system: and one of payments, mail, match, moderation "
            "and admin that the key has (--scopes: %s); a session's authority and unheld are "
            "never implied by a key\n",
            held);
    return false;
}

/* An option that is not said leaves what is there. False: written to standard error. */
static bool copy_option(const struct arguments *arguments, const struct command_option *option,
                        char *ret_text, size_t size)
{
    const char *text = option_text(arguments, option);

    if (text[0] == 0)
        return true;
    if (strlen(text) >= size) {
        fprintf(stderr, "holdfast: --%s: at most %zu bytes, not %zu\n", option->flag, size - 1,
                strlen(text));
        return false;
    }
    snprintf(ret_text, size, "%s", text);
    return true;
}

/* *record has what is as in the key that it replaces. False: written to standard error. */
static bool read_scopes(const struct arguments *arguments, struct api_key_record *record)
{
    const char *text = option_text(arguments, &option_scopes);
    struct slice bad;

    if (text[0] == 0 && record->holder[0] != 0)
        return read_authority(arguments, record);
    record->scopes = 0;
    if (scopes_parse(slice_from_text(text), &record->scopes, &bad) != ERR_OK) {
        refuse_scope(bad);
        return false;
    }
    return read_authority(arguments, record);
}

/* *record has what is as in the key that it replaces. False: written to standard error. */
static bool make_record(const struct arguments *arguments, const char *name,
                        const uint8_t secret[API_KEY_SECRET_BYTES], struct api_key_record *record)
{
    struct record_error why;
    const char *cluster = option_text(arguments, &option_cluster);
    uint32_t days, rate;

    if (!read_scopes(arguments, record))
        return false;
    if (option_number(arguments, &option_expires_days, 0, DAYS_MAX, &days) != ERR_OK ||
        option_number(arguments, &option_rate, 0, API_KEY_RATE_MAX, &rate) != ERR_OK)
        return false;
    if (rate > 0)
        record->rate_per_s = rate;
    record->created_at_ms = wall_ms();
    if (days > 0)
        record->expires_at_ms = record->created_at_ms + days * DAY_MS;
    if (!copy_option(arguments, &option_servers, record->servers, sizeof record->servers) ||
        !copy_option(arguments, &option_grants, record->grants, sizeof record->grants) ||
        !copy_option(arguments, &option_per_day, record->per_day, sizeof record->per_day))
        return false;
    if (strlen(name) >= sizeof record->name || !cluster_name_valid(cluster)) {
        fprintf(stderr,
                "holdfast: a key's name has at most %zu bytes, a cluster's 63 of a-z, 0-9 "
                "and dash\n",
                sizeof record->name - 1);
        return false;
    }
    snprintf(record->name, sizeof record->name, "%s", name);
    api_key_digest(cluster, secret, record->digest);
    api_key_id(record->digest, record->id);
    if (api_key_record_validate(record, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s\n", why.text);
        return false;
    }
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

/* By id, or by a name that one key alone has. NULL: written to standard error. */
static const struct api_key_record *choose(const struct api_key_record *records, uint32_t count,
                                           const char *which)
{
    const struct api_key_record *found = NULL;
    char shown[NEAREST_SHOWN_BYTES]; /* A key itself may be given by mistake. */
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
    nearest_show(slice_from_text(which), shown);
    if (matches == 0)
        fprintf(stderr, "holdfast: there is no key '%s'\n", shown);
    else
        fprintf(stderr, "holdfast: %u keys have the name '%s'; say which by its id\n", matches,
                shown);
    return NULL;
}

/* What a key has of the one that it replaces. False: written to standard error. */
static bool take_over(const struct arguments *arguments, struct api_key_record *ret_record)
{
    struct key_store *store = NULL;
    struct api_key_record *records = NULL;
    const struct api_key_record *old = NULL;
    uint32_t count = 0;
    err e = key_store_open(arguments, &store);

    if (e == ERR_OK)
        e = key_store_list(store, &records, &count);
    if (e == ERR_OK)
        old = choose(records, count, option_text(arguments, &option_replaces));
    if (old != NULL) {
        *ret_record = *old;
        ret_record->expires_at_ms = 0;
        snprintf(ret_record->holder, sizeof ret_record->holder, "%s", api_key_holder(old));
    }
    key_store_close(store);
    free(records);
    return old != NULL;
}

static int issue_as(const struct arguments *arguments, const char *name,
                    char ret_text[API_KEY_TEXT_SIZE])
{
    const char *from = option_text(arguments, &option_from);
    uint8_t secret[API_KEY_SECRET_BYTES];
    struct api_key_record record = { .rate_per_s = 0 };
    struct key_store *store = NULL;
    bool revoked = false;
    err e;

    if (from[0] == 0 && option_is_set(arguments, &option_register))
        return refuse_usage(arguments);
    if (option_text(arguments, &option_replaces)[0] != 0 && !take_over(arguments, &record))
        return 1;
    if (from[0] == 0)
        CHECK(getrandom(secret, sizeof secret, 0) == (ssize_t)sizeof secret);
    else if (!read_secret(from, secret))
        return 2;
    bool good = make_record(arguments, name, secret, &record);
    api_key_print(secret, ret_text);
    explicit_bzero(secret, sizeof secret);
    if (!good)
        return 2;
    e = key_store_open(arguments, &store);
    if (e == ERR_OK && option_is_set(arguments, &option_register))
        e = key_store_register(store, &record, &revoked);
    else if (e == ERR_OK)
        e = key_store_put(store, &record);
    key_store_close(store);
    if (e == ERR_OK && from[0] == 0)
        say_issued(arguments, &record, ret_text);
    else if (e == ERR_OK)
        fprintf(stderr, "key %s (%s) %s\n", record.id, record.name,
                revoked ? "was revoked and stays so" : "is known to the cluster");
    else if (code_of(e) == EXIT_UNKNOWN)
        fprintf(stderr,
                "holdfast: key %s (%s) may be known to the cluster: see 'holdfast key list'\n",
                record.id, record.name);
    return code_of(e);
}

static json_t *row_of(const struct api_key_record *record, uint64_t now_ms)
{
    char scopes[SCOPES_TEXT_SIZE];
    char created[UTC_TEXT_BYTES], expires[UTC_TEXT_BYTES];

    scopes_print(record->scopes, scopes);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "id", record->id, "name", record->name,
                            "scopes", scopes, "issued", utc_text(record->created_at_ms, created));
    if (record->expires_at_ms != 0)
        json_object_set_new(row, "expires", json_string(utc_text(record->expires_at_ms, expires)));
    if (record->expires_at_ms != 0 && now_ms >= record->expires_at_ms)
        json_object_set_new(row, "expired", json_true());
    if (record->authority != 0) {
        scopes_print(record->authority, scopes);
        json_object_set_new(row, "authority", json_sprintf("system:%s", scopes));
    }
    if (record->grants[0] != 0)
        json_object_set_new(row, "grants", json_string(record->grants));
    if (record->per_day[0] != 0)
        json_object_set_new(row, "per_day", json_string(record->per_day));
    if (record->holder[0] != 0)
        json_object_set_new(row, "replaces", json_string(record->holder));
    if (record->servers[0] != 0)
        json_object_set_new(row, "servers", json_string(record->servers));
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
        { .title = "AUTHORITY", .path = "authority", .otherwise = "none" },
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

static int revoke(const struct arguments *arguments)
{
    const char *which = arguments->words[0];
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
        e = key_store_remove(store, record);
    if (record != NULL && e == ERR_OK)
        printf("key %s (%s) is revoked\n", record->id, record->name);
    key_store_close(store);
    free(records);
    return record != NULL ? code_of(e) : 1;
}

static int issue(const struct arguments *arguments)
{
    char text[API_KEY_TEXT_SIZE];
    int code = issue_as(arguments, arguments->words[0], text);

    explicit_bzero(text, sizeof text);
    return code;
}

/* Whether the rotation that --unless-rotated names was the last. */
static bool is_rotated(const struct arguments *arguments, const struct token_secret_record *record)
{
    const char *named = option_text(arguments, &option_unless_rotated);
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, record->rotated_at_ms);
    return named[0] != 0 && strcmp(named, text) == 0;
}

/* Two steps, so that no router signs with what another one has not read yet. */
static err rotate(struct key_store *store, struct token_secret_record *record, int64_t revision)
{
    static const uint8_t none[SESSION_TOKEN_SECRET_BYTES];
    err e = ERR_OK;

    if (memcmp(record->next, none, sizeof none) == 0) { /* Else: one was broken off. */
        CHECK(getrandom(record->next, sizeof record->next, 0) == (ssize_t)sizeof record->next);
        e = key_store_put_secret(store, record, &revision);
    }
    if (e != ERR_OK)
        return e;
    fprintf(stderr, "the routers are told; %u s until they sign with the new secret\n",
            ROTATION_PAUSE_S);
    nanosleep(&(struct timespec){ .tv_sec = ROTATION_PAUSE_S }, NULL);
    memcpy(record->previous, record->current, sizeof record->previous);
    memcpy(record->current, record->next, sizeof record->current);
    memset(record->next, 0, sizeof record->next);
    record->rotated_at_ms = wall_ms();
    e = key_store_put_secret(store, record, &revision);
    if (code_of(e) == EXIT_UNKNOWN)
        fprintf(stderr,
                "holdfast: whether the tokens are rotated is unknown; repeat it with "
                "--unless-rotated %" PRIu64 "\n",
                record->rotated_at_ms);
    return e;
}

static int rotate_tokens(const struct arguments *arguments)
{
    struct token_secret_record record;
    struct key_store *store = NULL;
    int64_t revision = 0;
    err e = key_store_open(arguments, &store);

    if (e == ERR_OK)
        e = key_store_get_secret(store, &record, &revision);
    if (e == ERR_OK && !is_rotated(arguments, &record))
        e = rotate(store, &record, revision);
    explicit_bzero(&record, sizeof record);
    key_store_close(store);
    if (e == ERR_OK)
        printf("session tokens are signed with a new secret; those of before are good until the "
               "next rotation\n");
    return code_of(e);
}

#define KEY_DETAILS                                                                                \
    "It works on the cluster's etcd, not through a router. A key is shown once, when it is\n"      \
    "issued: etcd has only its HMAC."

const struct verb verb_key[] = {
    {
        .words = "key issue",
        .topic = VERB_TOPIC_API,
        .arguments = "NAME --scopes LIST",
        .summary = "an API key for the public port",
        .details = KEY_DETAILS,
        .options = VERB_OPTIONS(&option_scopes, &option_authority, &option_servers, &option_grants,
                                &option_per_day, &option_expires_days, &option_rate, &option_from,
                                &option_register, &option_replaces, OPTIONS_OF_ETCD,
                                &option_deadline_ms, OPTIONS_OF_OUTPUT),
        .run = issue,
    },
    {
        .words = "key list",
        .topic = VERB_TOPIC_API,
        .arguments = "",
        .summary = "the keys, without their secrets",
        .details = KEY_DETAILS,
        .options = VERB_OPTIONS(OPTIONS_OF_ETCD, &option_deadline_ms, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "key revoke",
        .topic = VERB_TOPIC_API,
        .arguments = "ID",
        .summary = "let no router take a key any more",
        .details = "A name will do if one key alone has it.",
        .options = VERB_OPTIONS(OPTIONS_OF_ETCD, &option_deadline_ms),
        .run = revoke,
    },
    {
        .words = "key rotate-tokens",
        .topic = VERB_TOPIC_API,
        .arguments = "",
        .summary = "sign session tokens with a new secret",
        .details =
            "The tokens given so far stay good until the next rotation: let at least as long\n"
            "pass as sessions last. Twice in a row, after a theft, ends all sessions'\n"
            "tokens: game servers start them again.",
        .options = VERB_OPTIONS(&option_unless_rotated, OPTIONS_OF_ETCD, &option_deadline_ms),
        .run = rotate_tokens,
    },
    { .words = NULL },
};
