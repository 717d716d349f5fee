/*
 * What a router asks an endpoint of metadata and takes from its answer
 * (router/core/metadata_wire.h), what it knows of settings (settings_table.h), what a request for
 * counts may say (count_ask.h), and how often one household writes (player_writes.h).
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/limit.h"
#include "router/core/count_ask.h"
#include "router/core/metadata_wire.h"
#include "router/core/player_writes.h"
#include "router/core/settings_table.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

/* ---- metadata ---- */

#define ASKED_MAX 30u

/* A member of an entry: as it is written, and what is told of it. NULL: that breaks a rule. */
struct member {
    const char *json, *told;
};

static char *run_of(struct rsim *sim, const char *head, size_t size)
{
    char *text = arena_alloc(&sim->arena, size + 1);

    memset(text, 'x', size);
    memcpy(text, head, strlen(head));
    text[size] = 0;
    return text;
}

static struct member text_member(struct rsim *sim, const char *name, const char *value)
{
    return (struct member){ arena_printf(&sim->arena, ",\"%s\":\"%s\"", name, value), value };
}

static struct member title_of(struct rsim *sim)
{
    switch (rsim_between(sim, 0, 6)) {
    case 0:
        return (struct member){ "", "" };
    case 1:
        return (struct member){ ",\"title\":null", "" };
    case 2:
        return (struct member){ ",\"title\":7", NULL };
    case 3:
        return (struct member){ ",\"title\":\"a\\u0007b\"", NULL };
    case 4:
        return (struct member){
            text_member(sim, "title", run_of(sim, "", LIMIT_METADATA_TITLE_BYTES + 1)).json, NULL
        };
    case 5:
        return text_member(sim, "title", run_of(sim, "", LIMIT_METADATA_TITLE_BYTES));
    default:
        return text_member(sim, "title", "Pong \xc3\xa9");
    }
}

static struct member url_of(struct rsim *sim)
{
    switch (rsim_between(sim, 0, 5)) {
    case 0:
        return (struct member){ "", "" };
    case 1:
        return (struct member){ ",\"thumbnailUrl\":[]", NULL };
    case 2:
        return (struct member){ ",\"thumbnailUrl\":\"http://a\"", NULL };
    case 3:
        return (struct member){ text_member(sim, "thumbnailUrl",
                                            run_of(sim, "https://a/", LIMIT_METADATA_URL_BYTES + 1))
                                    .json,
                                NULL };
    case 4:
        return text_member(sim, "thumbnailUrl",
                           run_of(sim, "https://a/", LIMIT_METADATA_URL_BYTES));
    default:
        return text_member(sim, "thumbnailUrl", "https://a/b.png");
    }
}

static struct member attributes_of(struct rsim *sim)
{
    const char *head = "{\"a\":\"";
    char *large;

    switch (rsim_between(sim, 0, 5)) {
    case 0:
        return (struct member){ "", "{}" };
    case 1:
        return (struct member){ ",\"attributes\":null", "{}" };
    case 2:
        return (struct member){ ",\"attributes\":[1]", NULL };
    case 3: /* Either as large as it may be, or one byte more. */
        large = run_of(sim, head, LIMIT_METADATA_MORE_BYTES - 2 + rsim_between(sim, 0, 1));
        large = arena_printf(&sim->arena, "%s\"}", large);
        return (struct member){ arena_printf(&sim->arena, ",\"attributes\":%s", large),
                                strlen(large) <= LIMIT_METADATA_MORE_BYTES ? large : NULL };
    default:
        return (struct member){ ",\"attributes\":{\"b\":1, \"a\":2}", "{\"a\":2,\"b\":1}" };
    }
}

struct wire {
    struct rsim *sim;
    struct slice targets[ASKED_MAX];
    struct member titles[ASKED_MAX], urls[ASKED_MAX], attributes[ASKED_MAX];
    bool told[ASKED_MAX];
    struct metadata_question question;
    uint32_t left_out;
};

static void entry_put(struct wire *w, struct buf *json, uint32_t place)
{
    struct rsim *sim = w->sim;
    struct member *title = &w->titles[place], *url = &w->urls[place];
    struct member *attributes = &w->attributes[place];
    bool asked = rsim_chance(sim, 85), whole = rsim_chance(sim, 95);

    *title = title_of(sim);
    *url = url_of(sim);
    *attributes = attributes_of(sim);
    if (!whole) {
        static const char *const wrong[] = { "7", "[]", "null", "{\"targetId\":3}" };
        buf_put_text(json, RSIM_PICK(sim, wrong));
        w->left_out++;
        return;
    }
    buf_put_text(json,
                 arena_printf(&sim->arena, "{\"targetId\":\"%s%.*s\"%s%s%s}", asked ? "" : "other ",
                              (int)w->targets[place].size, (const char *)w->targets[place].data,
                              title->json, url->json, attributes->json));
    w->told[place] = asked && title->told != NULL && url->told != NULL && attributes->told != NULL;
    w->left_out += asked && !w->told[place];
}

static void question_look(struct wire *w)
{
    struct buf wanted = { 0 }, printed = { 0 };

    buf_put_text(&wanted, "{\"collection\":\"games\",\"targetIds\":[");
    for (size_t i = 0; i < w->question.count; i++)
        buf_put_text(&wanted,
                     arena_printf(&w->sim->arena, "%s\"%.*s\"", i > 0 ? "," : "",
                                  (int)w->targets[i].size, (const char *)w->targets[i].data));
    buf_put_text(&wanted, "]}");
    metadata_question_print(&w->question, &printed);
    PROMISE(w->sim, slice_equal(buf_slice(&wanted), buf_slice(&printed)), "another question");
    buf_deinit(&wanted);
    buf_deinit(&printed);
}

static void answer_look(struct wire *w, struct slice json)
{
    struct metadata_answer answer;
    const char *why;

    PROMISE(w->sim,
            metadata_answer_read(&w->question, json, &w->sim->arena, &answer, &why) == ERR_OK,
            "an answer is refused: %s", why);
    PROMISE(w->sim, answer.left_out == w->left_out, "%u entries are left out, not %u",
            answer.left_out, w->left_out);
    for (uint32_t i = 0; i < w->question.count; i++) {
        const Holdfast__V1__TargetMetadata *told = answer.told[i];
        PROMISE(w->sim, (told != NULL) == w->told[i], "target %u is told, or not", i);
        PROMISE(w->sim,
                told == NULL || (strcmp(told->title, w->titles[i].told) == 0 &&
                                 strcmp(told->thumbnail_url, w->urls[i].told) == 0 &&
                                 strcmp(told->attributes, w->attributes[i].told) == 0 &&
                                 slice_equal(slice_from_text(told->target_id), w->targets[i])),
                "something else is told of target %u", i);
        w->sim->counts.endpoints_told += told != NULL;
    }
    w->sim->counts.endpoints_left_out += w->left_out;
}

static void answers_refused(struct wire *w)
{
    static const char *const bad[] = { "",
                                       "[]",
                                       "7",
                                       "{\"metadata\":{}}",
                                       "{\"metadata\":\"a\"}",
                                       "{\"metadata\":[],\"metadata\":[]}",
                                       "{\"metadata\":[" };
    static const char *const empty[] = { "{}", "{\"metadata\":[]}", "{\"other\":1}" };
    struct buf json = { 0 };
    uint64_t entries = 1000 + rsim_between(w->sim, 0, 1);
    struct metadata_answer answer;
    const char *why;

    PROMISE(w->sim,
            metadata_answer_read(&w->question, slice_from_text(RSIM_PICK(w->sim, bad)),
                                 &w->sim->arena, &answer, &why) == ERR_INVALID &&
                why != NULL,
            "no answer is taken as one");
    PROMISE(w->sim,
            metadata_answer_read(&w->question, slice_from_text(RSIM_PICK(w->sim, empty)),
                                 &w->sim->arena, &answer, &why) == ERR_OK &&
                answer.left_out == 0,
            "an answer without entries is refused");
    if (!rsim_chance(w->sim, 10))
        return;
    buf_put_text(&json, "{\"metadata\":[{}");
    for (uint64_t i = 1; i < entries; i++)
        buf_put_text(&json, ",{}");
    buf_put_text(&json, "]}");
    err e = metadata_answer_read(&w->question, buf_slice(&json), &w->sim->arena, &answer, &why);
    PROMISE(w->sim, e == (entries > 1000 ? ERR_INVALID : ERR_OK), "%llu entries: %d",
            (unsigned long long)entries, (int)e);
    buf_deinit(&json);
}

static void wire_run(struct rsim *sim)
{
    struct wire *w = arena_zalloc(&sim->arena, sizeof *w);
    struct buf json = { 0 };
    uint32_t first;

    w->sim = sim;
    w->question = (struct metadata_question){ SLICE_LITERAL("games"), w->targets,
                                              rsim_between(sim, 1, ASKED_MAX) };
    for (uint32_t i = 0; i < w->question.count; i++)
        w->targets[i] =
            slice_from_text(arena_printf(&sim->arena, "t%u%s", i, i % 5 == 0 ? "\xc3\xa9" : ""));
    question_look(w);
    first = (uint32_t)rsim_between(sim, 0, w->question.count - 1);
    buf_put_text(&json, "{\"metadata\": [");
    for (uint32_t i = 0; i < w->question.count; i++) {
        if (i > 0)
            buf_put_text(&json, ",");
        entry_put(w, &json, (uint32_t)((first + i) % w->question.count));
    }
    buf_put_text(&json, "]}");
    answer_look(w, buf_slice(&json));
    buf_deinit(&json);
    answers_refused(w);
}

/* ---- settings ---- */

#define DEFINED 6u

struct defined {
    uint64_t version;
    bool stands, deleted;
    char name[SETTINGS_NAME_MAX + 2], json[16];
};

static const char *const setting_names[DEFINED] = { "matchmaking", "economy", "events",
                                                    "seasons",     "clans",   "mail_rules" };

struct version {
    uint64_t number, version;
    bool deleted, other_kind;
    const char *name, *json;
};

static err take(struct rsim *sim, struct settings_table *table, const struct version *given,
                const struct settings **ret_changed)
{
    Holdfast__Internal__V1__DefinitionVersion record =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__SettingsBody settings = HOLDFAST__V1__SETTINGS_BODY__INIT;
    Holdfast__V1__CurrencyBody currency = HOLDFAST__V1__CURRENCY_BODY__INIT;

    settings.json = text_lend(given->json);
    body.kind_case = given->other_kind ? HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY
                                       : HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
    if (given->other_kind)
        body.currency = &currency;
    else
        body.settings = &settings;
    record.number = given->number;
    record.version = given->version;
    record.deleted = given->deleted;
    record.name = text_lend(given->name);
    record.body = &body;
    record.at_ms = (int64_t)(1000 * given->version);
    size_t size = holdfast__internal__v1__definition_version__get_packed_size(&record);
    uint8_t *bytes = arena_alloc(&sim->arena, size + 1);
    (void)holdfast__internal__v1__definition_version__pack(&record, bytes);
    return settings_table_take(table, (struct slice){ bytes, size }, ret_changed);
}

static void settings_look(struct rsim *sim, const struct settings_table *table,
                          const struct defined *all)
{
    uint32_t known = 0;

    for (uint32_t i = 0; i < DEFINED; i++) {
        const struct defined *one = &all[i];
        const struct settings *found = settings_table_find(table, setting_names[i]);
        bool wanted = one->stands && !one->deleted;
        char misspelt[SETTINGS_NAME_MAX + 2];

        known += one->stands;
        PROMISE(sim, (found != NULL) == wanted, "%s are there, or not", setting_names[i]);
        (void)snprintf(misspelt, sizeof misspelt, "%sx", setting_names[i]);
        struct slice near = settings_table_suggest(table, misspelt);
        PROMISE(sim, wanted ? slice_equal(near, slice_from_text(setting_names[i])) : near.size == 0,
                "%s is near '%.*s'", misspelt, (int)near.size, (const char *)near.data);
        PROMISE(sim,
                !wanted || (found->version == one->version && strcmp(found->json, one->json) == 0 &&
                            found->made_at_ms == (int64_t)(1000 * one->version)),
                "%s say something else", setting_names[i]);
    }
    PROMISE(sim, table->count == known, "%u settings, not %u", table->count, known);
    for (uint32_t i = 1; i < table->count; i++)
        PROMISE(sim, table->list[i - 1].number < table->list[i].number, "not by number");
}

static void settings_wrong(struct rsim *sim, struct settings_table *table)
{
    struct version given = { .number = 99, .version = 1, .name = "a", .json = "{}" };
    uint64_t kind = rsim_between(sim, 0, 6);
    const struct settings *changed;
    err wanted = ERR_CORRUPT;

    if (kind == 0)
        given.number = 0;
    else if (kind == 1)
        given.version = 0;
    else if (kind == 2)
        given.name = "";
    else if (kind == 3)
        given.name = run_of(sim, "", SETTINGS_NAME_MAX + 1);
    else if (kind == 4)
        given.json = "";
    else if (kind == 5)
        given.json = run_of(sim, "", SETTINGS_JSON_MAX + 1);
    else {
        given.other_kind = true;
        wanted = ERR_OK;
    }
    err e = take(sim, table, &given, &changed);
    PROMISE(sim, e == wanted && changed == NULL, "a version that no setting has: %d", (int)e);
    PROMISE(sim,
            settings_table_take(table, SLICE_LITERAL("\x0a\xff"), &changed) == ERR_CORRUPT &&
                changed == NULL,
            "bytes that are no version are taken");
}

static void settings_step(struct rsim *sim, struct settings_table *table, struct defined *all)
{
    uint32_t at = (uint32_t)rsim_between(sim, 0, DEFINED - 1);
    struct defined *one = &all[at];
    uint64_t version = one->version > 0 ? rsim_about(sim, one->version + 1) : 1;
    const struct settings *changed = NULL;

    if (version == 0)
        version = 1;
    if (rsim_chance(sim, 20)) {
        bool latest = one->stands && version == one->version;
        PROMISE(sim, settings_table_forget(table, at + 1, version) == latest,
                "version %llu of %llu is forgotten, or not", (unsigned long long)version,
                (unsigned long long)one->version);
        one->stands &= !latest;
        sim->counts.settings_forgotten += latest;
        return;
    }
    bool news = !one->stands || version > one->version;
    char *json = arena_printf(&sim->arena, "{\"n\":%u}", (unsigned)rsim_between(sim, 0, 999));
    const struct version given = { .number = at + 1,
                                   .version = version,
                                   .deleted = rsim_chance(sim, 20),
                                   .name = setting_names[at],
                                   .json = json };
    PROMISE(sim, take(sim, table, &given, &changed) == ERR_OK, "a version is refused");
    PROMISE(sim, (changed != NULL) == news, "version %llu after %llu is news, or not",
            (unsigned long long)version, (unsigned long long)one->version);
    if (!news)
        return;
    PROMISE(sim,
            changed->number == at + 1 && changed->version == version &&
                changed->deleted == given.deleted && (changed->json == NULL) == given.deleted,
            "another version is told");
    one->stands = true;
    one->version = version;
    one->deleted = given.deleted;
    (void)snprintf(one->json, sizeof one->json, "%s", json);
    sim->counts.settings_taken++;
}

static void settings_fill(struct rsim *sim)
{
    struct settings_table table = { 0 };
    const struct settings *changed;

    for (uint32_t i = 0; i <= SETTINGS_MAX; i++) {
        const struct version given = { .number = i + 1, .version = 1, .name = "a", .json = "{}" };
        err e = take(sim, &table, &given, &changed);
        PROMISE(sim, e == (i < SETTINGS_MAX ? ERR_OK : ERR_FULL), "number %u: %d", i + 1, (int)e);
    }
    settings_table_deinit(&table);
}

static void settings_run(struct rsim *sim)
{
    struct settings_table table = { 0 };
    struct defined all[DEFINED] = { 0 };
    const struct settings *changed;

    for (uint32_t i = 0; i < 40; i++) {
        settings_step(sim, &table, all);
        settings_wrong(sim, &table);
        settings_look(sim, &table, all);
        if (rsim_chance(sim, 3)) {
            settings_table_clear(&table);
            memset(all, 0, sizeof all);
        }
    }
    const struct version large = { .number = 100,
                                   .version = 1,
                                   .name = run_of(sim, "", SETTINGS_NAME_MAX),
                                   .json = run_of(sim, "", SETTINGS_JSON_MAX) };
    PROMISE(sim,
            take(sim, &table, &large, &changed) == ERR_OK && changed != NULL &&
                strcmp(changed->json, large.json) == 0,
            "settings as large as they may be are refused");
    settings_table_deinit(&table);
    if (rsim_chance(sim, 2))
        settings_fill(sim);
}

/* ---- what counts are asked for ---- */

static void asks_run(struct rsim *sim)
{
    const char *targets[COUNT_TARGETS_MAX + 1];
    struct count_ask ask = { .collection = "a_z09", .targets = targets };
    uint64_t kind = rsim_between(sim, 0, 9);
    const char *field = NULL;

    ask.count = rsim_chance(sim, 30) ? COUNT_TARGETS_MAX : rsim_between(sim, 1, 9);
    ask.is_one = ask.count == 1 && rsim_chance(sim, 50);
    ask.is_counter = rsim_chance(sim, 50);
    for (uint32_t i = 0; i < ARRAY_SIZE(targets); i++)
        targets[i] = arena_printf(&sim->arena, "t%u", i);
    uint32_t at = (uint32_t)rsim_between(sim, 0, ask.count - 1);
    const char *of_target =
        ask.is_one ? "target_id" : arena_printf(&sim->arena, "target_ids[%u]", at);
    const char *of_name = ask.is_counter ? "counter" : "collection";

    if (kind == 0) {
        static const char *const bad[] = { "A", "a-b", "a b", "`", "{", "/", ":", "\xc3\xa9" };
        ask.collection = RSIM_PICK(sim, bad);
        field = of_name;
    } else if (kind == 1) {
        ask.collection = run_of(sim, "", COUNT_COLLECTION_BYTES + rsim_between(sim, 0, 1));
        field = strlen(ask.collection) > COUNT_COLLECTION_BYTES ? of_name : NULL;
    } else if (kind == 2) {
        ask.collection = "";
        field = ask.is_counter ? of_name : NULL;
    } else if (kind == 3) {
        ask.count = rsim_chance(sim, 50) ? 0 : COUNT_TARGETS_MAX + 1;
        field = "target_ids";
    } else if (kind == 4) {
        static const char *const bad[] = { "", "a\nb", "\x7f", "\xff" };
        targets[at] = RSIM_PICK(sim, bad);
        field = of_target;
    } else if (kind == 5) {
        targets[at] = run_of(sim, "", COUNT_TARGET_BYTES + rsim_between(sim, 0, 1));
        field = strlen(targets[at]) > COUNT_TARGET_BYTES ? of_target : NULL;
    } else if (kind == 6 && at > 0) {
        targets[at] = targets[rsim_between(sim, 0, at - 1)];
        field = of_target;
    }
    err e = count_ask_check(&ask, &sim->arena, &sim->detail);
    PROMISE(sim, e == (field == NULL ? ERR_OK : ERR_INVALID), "%s: %d",
            field == NULL ? "all well" : field, (int)e);
    if (field != NULL)
        rsim_refused(sim, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT, field);
    sim->counts.asks_refused += field != NULL;
    PROMISE(sim,
            slice_equal(count_ask_collection(&ask),
                        slice_from_text(ask.collection[0] == 0 && !ask.is_counter
                                            ? COUNT_COLLECTION_DEFAULT
                                            : ask.collection)),
            "of another collection");
}

/* ---- households ---- */

/* A minute's worth at once, then evenly; what is refused counts for neither. */
static void writes_run(struct rsim *sim)
{
    struct player_writes *writes = player_writes_new();
    struct player_write write = { .address = 7, .now_ms = 600000 };
    uint32_t retry_ms = 0, taken = 0;

    write.device = rsim_chance(sim, 70) ? 9 : 0;
    write.address_per_minute = (uint32_t)rsim_between(sim, 0, 20);
    write.device_per_minute = (uint32_t)rsim_between(sim, 0, 20);
    uint32_t of_device = write.device != 0 ? write.device_per_minute : 0;
    uint32_t of_address = write.address_per_minute;
    bool by_device = of_device > 0 && (of_address == 0 || of_device < of_address);
    uint32_t limit = by_device ? of_device : of_address;
    enum player_writes_told told = PLAYER_WRITES_OK;

    while (taken < 25 && told == PLAYER_WRITES_OK) {
        told = player_writes_take(writes, &write, &retry_ms);
        taken += told == PLAYER_WRITES_OK;
    }
    PROMISE(sim, limit == 0 ? taken == 25 : taken == limit, "%u at once of %u a minute", taken,
            limit);
    if (limit == 0) {
        player_writes_free(writes);
        return;
    }
    PROMISE(sim, told == (by_device ? PLAYER_WRITES_DEVICE : PLAYER_WRITES_ADDRESS),
            "another limit is told");
    PROMISE(sim, retry_ms > 0 && retry_ms <= 60000 / limit + 60, "to be tried again in %u ms",
            retry_ms);
    write.now_ms += retry_ms;
    PROMISE(sim, player_writes_take(writes, &write, &retry_ms) == PLAYER_WRITES_OK,
            "refused after the time that was told");
    if (by_device) /* Another household has its own. */
        write.device++;
    else
        write.address++;
    PROMISE(sim,
            (!by_device && of_device > 0 && of_device <= taken + 1) ||
                player_writes_take(writes, &write, &retry_ms) == PLAYER_WRITES_OK,
            "another household is refused");
    sim->counts.households_refused++;
    player_writes_free(writes);
}

void room_endpoints(struct rsim *sim)
{
    wire_run(sim);
    settings_run(sim);
    for (uint32_t i = 0; i < 6; i++) {
        asks_run(sim);
        writes_run(sim);
    }
}
