/* What definitions may say (coordinator/core/definition_kind.h, docs/definitions.md): each field at
 * its limits, its default, and what is for ever. */
#include <string.h>

#include "coordinator/core/definition_kind.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define AMOUNT_MAX 9007199254740991ll

struct body {
    struct rsim *sim;
    Holdfast__V1__DefinitionBody body;
    Holdfast__V1__CurrencyBody currency;
    Holdfast__V1__CollectionBody collection;
    Holdfast__V1__CounterBody counter;
    Holdfast__V1__RateRuleBody rule;
    Holdfast__V1__EventRetentionBody retention;
    Holdfast__V1__DocumentsBody documents;
    Holdfast__V1__SettingsBody settings;
    const char *stored;     /* Of settings. */
    const char *name, *bad; /* The first field that is wrong; NULL: none. */
};

/* About its limits. `none`: 0 stands for a default. */
static int64_t number_make(struct body *b, const char *field, const int64_t limits[2], bool none)
{
    int64_t number = limits[rsim_between(b->sim, 0, 1)];

    if (rsim_chance(b->sim, 60))
        number = none ? 0 : limits[0];
    else
        number += (int64_t)rsim_between(b->sim, 0, 2) - 1;
    if (b->bad == NULL && (number < limits[0] || number > limits[1]) && !(none && number == 0))
        b->bad = field;
    return number;
}

static char *name_make(struct body *b, const char *field, size_t most)
{
    static const char *const names[] = { "gold", "", "Gold", "a-b", "z_9", "a b" };
    size_t place = rsim_between(b->sim, 0, 9), size = rsim_about(b->sim, most);

    if (place < 6) {
        if (b->bad == NULL && place != 0 && place != 4)
            b->bad = field;
        return text_lend(names[place]);
    }
    if (place < 8)
        return text_lend("gold");
    char *text = arena_zalloc(&b->sim->arena, size + 1);
    memset(text, 'n', size);
    if (b->bad == NULL && size > most)
        b->bad = field;
    return text;
}

#define LIMITS(low, high) ((const int64_t[]){ (low), (high) })

static void currency_make(struct body *b)
{
    holdfast__v1__currency_body__init(&b->currency);
    b->currency.max_balance =
        number_make(b, "body.currency.max_balance", LIMITS(1, AMOUNT_MAX), true);
    b->currency.min_balance =
        number_make(b, "body.currency.min_balance", LIMITS(-AMOUNT_MAX, 0), true);
    b->currency.scale = (uint32_t)rsim_between(b->sim, 0, rsim_chance(b->sim, 70) ? 9 : 10);
    if (b->bad == NULL && b->currency.scale > 9)
        b->bad = "body.currency.scale";
    b->body.currency = &b->currency;
}

static void collection_make(struct body *b)
{
    holdfast__v1__collection_body__init(&b->collection);
    b->collection.conflict_policy =
        (Holdfast__V1__ConflictPolicy)rsim_between(b->sim, rsim_chance(b->sim, 20) ? 0 : 1, 2);
    if (b->collection.conflict_policy == 0)
        b->bad = b->bad != NULL ? b->bad : "body.collection.conflict_policy";
    b->collection.edges_max =
        (uint32_t)number_make(b, "body.collection.edges_max", LIMITS(1, 100000), true);
    b->body.collection = &b->collection;
}

static void counter_make(struct body *b)
{
    holdfast__v1__counter_body__init(&b->counter);
    b->counter.max_value = number_make(b, "body.counter.max_value", LIMITS(1, AMOUNT_MAX), true);
    b->counter.add_max = number_make(b, "body.counter.add_max", LIMITS(1, AMOUNT_MAX), true);
    b->body.counter = &b->counter;
}

/* A field that this form of a rule does not have, now and then. */
static uint32_t absent_make(struct body *b, const char *field)
{
    bool there = rsim_chance(b->sim, 15);

    if (there && b->bad == NULL)
        b->bad = field;
    return there ? 1000 : 0;
}

/* A rule has a limit, or a number above which edges are flagged, and a period; or an age alone. */
static void rule_make(struct body *b)
{
    uint64_t form = rsim_between(b->sim, 0, 2);

    holdfast__v1__rate_rule_body__init(&b->rule);
    b->body.rate_rule = &b->rule;
    b->rule.subject = name_make(b, "body.rate_rule.subject", 64);
    if (form == 2) {
        b->rule.limit = absent_make(b, "body.rate_rule.limit");
        b->rule.flag_above = absent_make(b, "body.rate_rule.flag_above");
        b->rule.period_ms = absent_make(b, "body.rate_rule.period_ms");
        b->rule.account_age_ms =
            rsim_chance(b->sim, 50) ? 1000 + rsim_between(b->sim, 0, 1) * 31535999000u : 999;
        if (rsim_chance(b->sim, 20))
            b->rule.account_age_ms = 31536000001u;
        if (b->bad == NULL &&
            (b->rule.account_age_ms < 1000 || b->rule.account_age_ms > 31536000000u))
            b->bad = "body.rate_rule.account_age_ms";
        return;
    }
    if (form == 1) {
        b->rule.limit = absent_make(b, "body.rate_rule.limit");
        b->rule.flag_above =
            rsim_chance(b->sim, 20) ? 1000001 : 1 + (uint32_t)rsim_between(b->sim, 0, 1) * 999999;
        if (b->bad == NULL && b->rule.flag_above > 1000000)
            b->bad = "body.rate_rule.flag_above";
    } else {
        b->rule.limit = (uint32_t)number_make(b, "body.rate_rule.limit", LIMITS(1, 1000000), false);
    }
    b->rule.period_ms =
        (uint32_t)number_make(b, "body.rate_rule.period_ms", LIMITS(1000, 86400000), false);
}

static void retention_make(struct body *b)
{
    holdfast__v1__event_retention_body__init(&b->retention);
    b->retention.keep_ms = (__typeof__(b->retention.keep_ms))number_make(
        b, "body.event_retention.keep_ms", LIMITS(1000, 31536000000ll), false);
    b->retention.events_max = (__typeof__(b->retention.events_max))number_make(
        b, "body.event_retention.events_max", LIMITS(10, 100000000), false);
    b->body.event_retention = &b->retention;
}

static void documents_make(struct body *b)
{
    uint64_t policy =
        rsim_between(b->sim, rsim_chance(b->sim, 80), rsim_chance(b->sim, 80) ? 5 : 6);
    uint64_t durability = rsim_between(b->sim, 0, rsim_chance(b->sim, 80) ? 3 : 4);

    holdfast__v1__documents_body__init(&b->documents);
    b->body.documents = &b->documents;
    b->documents.policy = (Holdfast__V1__DocumentPolicy)policy;
    b->documents.durability = (Holdfast__V1__DocumentDurability)durability;
    if (b->bad == NULL && (policy == 0 || policy == 6))
        b->bad = "body.documents.policy";
    if (b->bad == NULL && durability == 4)
        b->bad = "body.documents.durability";
    b->documents.ttl_ms =
        number_make(b, "body.documents.ttl_ms", LIMITS(1000, 31536000000ll), true);
    b->documents.bytes_max =
        (uint32_t)number_make(b, "body.documents.bytes_max", LIMITS(1, 1048576), true);
}

static void settings_make(struct body *b)
{
    static const struct {
        const char *given, *stored; /* NULL: refused. */
    } all[] = { { "{}", "{}" },
                { " {\"a\": [1.50, {}]}\n", "{\"a\": [1.50, {}]}" },
                { "{\"\xC3\xA9\":\"\\u00e9\"}", "{\"\xC3\xA9\":\"\\u00e9\"}" },
                { "", NULL },
                { "[{}]", NULL },
                { "{\"a\":1,\"a\":2}", NULL },
                { "{}{}", NULL },
                { "{\"a\":\"\\ud800\"}", NULL } };
    uint64_t place = rsim_between(b->sim, 0, ARRAY_SIZE(all) - 1);

    holdfast__v1__settings_body__init(&b->settings);
    b->body.settings = &b->settings;
    b->settings.json = (char *)arena_printf(&b->sim->arena, "%s", all[place].given);
    b->stored = all[place].stored;
    if (b->bad == NULL && b->stored == NULL)
        b->bad = "body.settings.json";
}

static void body_make(struct body *b)
{
    static void (*const all[])(struct body * b) = { currency_make, collection_make, counter_make,
                                                    rule_make,     retention_make,  documents_make,
                                                    settings_make };
    uint32_t kind = (uint32_t)rsim_between(b->sim, 0, ARRAY_SIZE(all) - 1);
    bool none = rsim_chance(b->sim, 3);

    holdfast__v1__definition_body__init(&b->body);
    b->bad = NULL;
    b->name = name_make(b, "name", 64);
    if (kind == 0 && !none && b->bad == NULL && strlen(b->name) > 32)
        b->bad = "name";
    if (none) {
        b->bad = b->bad != NULL ? b->bad : "body";
        return;
    }
    b->body.kind_case =
        (Holdfast__V1__DefinitionBody__KindCase)(HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY +
                                                 kind);
    all[kind](b);
}

static void defaults_check(struct body *b, const struct body *was)
{
    switch (b->body.kind_case) {
    case HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY:
        PROMISE(b->sim,
                b->currency.max_balance ==
                        (was->currency.max_balance != 0 ? was->currency.max_balance : AMOUNT_MAX) &&
                    b->currency.min_balance == was->currency.min_balance,
                "max_balance");
        break;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION:
        PROMISE(b->sim,
                b->collection.edges_max ==
                    (was->collection.edges_max != 0 ? was->collection.edges_max : 10000),
                "edges_max");
        break;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER:
        PROMISE(b->sim,
                b->counter.max_value ==
                        (was->counter.max_value != 0 ? was->counter.max_value : AMOUNT_MAX) &&
                    b->counter.add_max ==
                        (was->counter.add_max != 0 ? was->counter.add_max : AMOUNT_MAX),
                "max_value or add_max");
        break;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS:
        PROMISE(b->sim,
                b->documents.bytes_max ==
                        (was->documents.bytes_max != 0 ? was->documents.bytes_max : 65536) &&
                    b->documents.durability ==
                        (was->documents.durability != 0
                             ? was->documents.durability
                             : HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_ONE) &&
                    b->documents.ttl_ms == was->documents.ttl_ms,
                "bytes_max or durability");
        break;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS:
        PROMISE(b->sim, strcmp(b->settings.json, b->stored) == 0, "settings are stored as %s",
                b->settings.json);
        break;
    default:
        break;
    }
}

/* That kind's field which never changes, if it does from one body to the other. */
static const char *frozen_make(struct body *a, struct body *b, uint64_t kind)
{
    switch (kind) {
    case HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY:
        currency_make(a);
        currency_make(b);
        return a->currency.scale != b->currency.scale ? "body.currency.scale" : NULL;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE:
        rule_make(a);
        rule_make(b);
        if (rsim_chance(a->sim, 50))
            b->rule.subject = a->rule.subject;
        return strcmp(a->rule.subject, b->rule.subject) != 0 ? "body.rate_rule.subject" : NULL;
    case HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS:
        documents_make(a);
        documents_make(b);
        return a->documents.policy != b->documents.policy ? "body.documents.policy" : NULL;
    default:
        collection_make(a);
        collection_make(b);
        return a->collection.conflict_policy != b->collection.conflict_policy
                   ? "body.collection.conflict_policy"
                   : NULL;
    }
}

static void frozen_check(struct rsim *sim)
{
    static const Holdfast__V1__DefinitionBody__KindCase kinds[] = {
        HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY, HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE,
        HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS,
        HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION
    };
    struct body a = { .sim = sim }, b = { .sim = sim };

    holdfast__v1__definition_body__init(&a.body);
    holdfast__v1__definition_body__init(&b.body);
    a.body.kind_case = b.body.kind_case = RSIM_PICK(sim, kinds);
    const char *wanted = frozen_make(&a, &b, a.body.kind_case);
    const char *frozen = definition_frozen(&a.body, &b.body);
    PROMISE(sim,
            (frozen == NULL) == (wanted == NULL) && (wanted == NULL || strcmp(frozen, wanted) == 0),
            "what is for ever changes: %s", wanted);
}

static void names_check(struct rsim *sim)
{
    static const char *const names[] = { "currency",        "collection", "counter", "rate_rule",
                                         "event_retention", "documents",  "settings" };
    uint32_t place = (uint32_t)rsim_between(sim, 0, ARRAY_SIZE(names) - 1);
    uint32_t kind = HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY + place;
    const char *hint = NULL;

    PROMISE(sim, strcmp(definition_kind_name(kind), names[place]) == 0, "kind %u", kind);
    PROMISE(sim, definition_kind_find(names[place], &hint) == kind && hint[0] == 0, "%s",
            names[place]);
    char *near_miss = arena_printf(&sim->arena, "%sx", names[place]);
    PROMISE(sim, definition_kind_find(near_miss, &hint) == 0 && strcmp(hint, names[place]) == 0,
            "%s is no kind; \"%s\" is meant", near_miss, hint);
    PROMISE(sim, definition_kind_find("zzzzzzzzzzzz", &hint) == 0 && hint[0] == 0, "meant: %s",
            hint);
    PROMISE(sim, definition_kind_name(kind + 1000) == NULL && definition_kind_name(0) == NULL,
            "a kind that there is not");
}

void room_kinds(struct rsim *sim)
{
    for (uint32_t i = 0; i < 40; i++) {
        struct body b = { .sim = sim }, was;
        struct definition_fault fault = { .field = NULL };

        body_make(&b);
        was = b;
        bool good = definition_body_check(&b.body, b.name, &fault);
        PROMISE(sim, good == (b.bad == NULL),
                "a definition with a wrong %s is taken, or a good one "
                "is refused for %s",
                b.bad, fault.field);
        if (good)
            defaults_check(&b, &was);
        else
            PROMISE(sim, strcmp(fault.field, b.bad) == 0 && fault.limit[0] != 0,
                    "it is %s that is wrong, not %s", b.bad, fault.field);
        sim->counts.definitions_refused += !good;
        frozen_check(sim);
    }
    names_check(sim);
}
