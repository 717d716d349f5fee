/* The kinds of definitions: their names, what their bodies may hold, and what of that is for ever.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "coordinator/core/definition_kind.h"
#include "idl/limit.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/cluster/endpoint_url.h"

#define AMOUNT_MAX         9007199254740991ll
#define EDGES_DEFAULT      10000u
#define EDGES_MAX          100000u
#define SCALE_MAX          9u
#define RATE_MAX           1000000u
#define PERIOD_MS_MIN      1000u
#define PERIOD_MS_MAX      86400000u
#define KEEP_MS_MIN        1000
#define KEEP_MS_MAX        31536000000ll
#define EVENTS_MIN         10u
#define EVENTS_MAX         100000000u
#define CURRENCY_NAME      32u
#define DOCUMENT_BYTES     65536u
#define DOCUMENT_BYTES_MAX 1048576u
#define DEPTH_MAX          LIMIT_DOCUMENT_DEPTH

typedef Holdfast__V1__DefinitionBody definition_body;

static const struct kind {
    uint32_t kind;
    const char *name;
} kinds[] = {
    { HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY, "currency" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION, "collection" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER, "counter" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE, "rate_rule" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION, "event_retention" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS, "documents" },
    { HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS, "settings" },
};

const char *definition_kind_name(uint32_t kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (kinds[i].kind == kind)
            return kinds[i].name;
    }
    return NULL;
}

uint32_t definition_kind_find(const char *name, const char **ret_hint)
{
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(name));
    *ret_hint = "";
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
        nearest_offer_text(&nearest, kinds[i].name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (slice_equal(nearest.name, slice_from_text(kinds[i].name)))
            *ret_hint = kinds[i].name;
    }
    return 0;
}

static bool fault(struct definition_fault *ret_fault, const char *field, const char *limit,
                  int64_t value)
{
    ret_fault->field = field;
    snprintf(ret_fault->limit, sizeof ret_fault->limit, "%s", limit);
    snprintf(ret_fault->value, sizeof ret_fault->value, "%lld", (long long)value);
    return false;
}

static bool fault_text(struct definition_fault *ret_fault, const char *field, const char *limit,
                       const char *value)
{
    ret_fault->field = field;
    snprintf(ret_fault->limit, sizeof ret_fault->limit, "%s", limit);
    snprintf(ret_fault->value, sizeof ret_fault->value, "%.64s", value);
    return false;
}

static bool is_name(const char *name, size_t most)
{
    size_t size = strlen(name);

    return size >= 1 && size <= most &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

static bool check_name(const definition_body *body, const char *name,
                       struct definition_fault *ret_fault)
{
    bool currency = body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY;

    if (is_name(name, currency ? CURRENCY_NAME : DEFINITION_NAME_MAX))
        return true;
    return fault_text(ret_fault, "name", currency ? "1 to 32 of [a-z0-9_]" : "1 to 64 of [a-z0-9_]",
                      name);
}

static bool check_currency(Holdfast__V1__CurrencyBody *currency, struct definition_fault *ret_fault)
{
    if (currency->max_balance == 0)
        currency->max_balance = AMOUNT_MAX;
    if (currency->max_balance < 1 || currency->max_balance > AMOUNT_MAX)
        return fault(ret_fault, "body.currency.max_balance", "1 to 9007199254740991",
                     currency->max_balance);
    if (currency->min_balance > 0 || currency->min_balance < -AMOUNT_MAX)
        return fault(ret_fault, "body.currency.min_balance", "-9007199254740991 to 0",
                     currency->min_balance);
    if (currency->scale > SCALE_MAX)
        return fault(ret_fault, "body.currency.scale", "0 to 9", currency->scale);
    return true;
}

static bool fault_unsigned(struct definition_fault *ret_fault, const char *field, const char *limit,
                           uint64_t value)
{
    (void)fault(ret_fault, field, limit, 0);
    snprintf(ret_fault->value, sizeof ret_fault->value, "%" PRIu64, value);
    return false;
}

static bool check_collection(Holdfast__V1__CollectionBody *collection,
                             struct definition_fault *ret_fault)
{
    if (collection->conflict_policy !=
            HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_HIGHEST_VERSION &&
        collection->conflict_policy != HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE)
        return fault(ret_fault, "body.collection.conflict_policy", "highest_version or last_write",
                     (int64_t)collection->conflict_policy);
    if (collection->edges_max == 0)
        collection->edges_max = EDGES_DEFAULT;
    if (collection->edges_max > EDGES_MAX)
        return fault(ret_fault, "body.collection.edges_max", "1 to 100000", collection->edges_max);
    struct endpoint_url url;
    if (collection->metadata_url[0] != 0 &&
        endpoint_url_parse(slice_from_text(collection->metadata_url), &url) != ERR_OK)
        return fault_text(ret_fault, "body.collection.metadata_url", ENDPOINT_URL_RULE,
                          collection->metadata_url);
    return true;
}

static bool check_counter(Holdfast__V1__CounterBody *counter, struct definition_fault *ret_fault)
{
    if (counter->max_value == 0)
        counter->max_value = AMOUNT_MAX;
    if (counter->add_max == 0)
        counter->add_max = AMOUNT_MAX;
    if (counter->max_value < 1 || counter->max_value > AMOUNT_MAX)
        return fault(ret_fault, "body.counter.max_value", "1 to 9007199254740991",
                     counter->max_value);
    if (counter->add_max < 1 || counter->add_max > AMOUNT_MAX)
        return fault(ret_fault, "body.counter.add_max", "1 to 9007199254740991", counter->add_max);
    return true;
}

/* It stands alone. */
static bool check_age(const Holdfast__V1__RateRuleBody *rule, struct definition_fault *ret_fault)
{
    if (rule->limit > 0)
        return fault(ret_fault, "body.rate_rule.limit", "absent, with account_age_ms", rule->limit);
    if (rule->flag_above > 0)
        return fault(ret_fault, "body.rate_rule.flag_above", "absent, with account_age_ms",
                     rule->flag_above);
    if (rule->period_ms > 0)
        return fault(ret_fault, "body.rate_rule.period_ms", "absent, with account_age_ms",
                     rule->period_ms);
    if (rule->account_age_ms < PERIOD_MS_MIN || rule->account_age_ms > (uint64_t)KEEP_MS_MAX)
        return fault_unsigned(ret_fault, "body.rate_rule.account_age_ms", "1000 to 31536000000",
                              rule->account_age_ms);
    return true;
}

static bool check_rule(const Holdfast__V1__RateRuleBody *rule, struct definition_fault *ret_fault)
{
    if (!is_name(rule->subject, DEFINITION_NAME_MAX))
        return fault_text(ret_fault, "body.rate_rule.subject", "1 to 64 of [a-z0-9_]",
                          rule->subject);
    if (rule->account_age_ms > 0)
        return check_age(rule, ret_fault);
    if (rule->flag_above > 0 && rule->limit > 0)
        return fault(ret_fault, "body.rate_rule.limit", "absent, with flag_above", rule->limit);
    if (rule->flag_above > RATE_MAX)
        return fault(ret_fault, "body.rate_rule.flag_above", "1 to 1000000", rule->flag_above);
    if (rule->flag_above == 0 && (rule->limit < 1 || rule->limit > RATE_MAX))
        return fault(ret_fault, "body.rate_rule.limit", "1 to 1000000", rule->limit);
    if (rule->period_ms < PERIOD_MS_MIN || rule->period_ms > PERIOD_MS_MAX)
        return fault(ret_fault, "body.rate_rule.period_ms", "1000 to 86400000", rule->period_ms);
    return true;
}

static bool check_retention(const Holdfast__V1__EventRetentionBody *retention,
                            struct definition_fault *ret_fault)
{
    if (retention->keep_ms < KEEP_MS_MIN || retention->keep_ms > KEEP_MS_MAX)
        return fault(ret_fault, "body.event_retention.keep_ms", "1000 to 31536000000",
                     retention->keep_ms);
    if (retention->events_max < EVENTS_MIN || retention->events_max > EVENTS_MAX)
        return fault(ret_fault, "body.event_retention.events_max", "10 to 100000000",
                     retention->events_max);
    return true;
}

static bool check_documents(Holdfast__V1__DocumentsBody *documents,
                            struct definition_fault *ret_fault)
{
    if (documents->policy < HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_LAST_WRITE ||
        documents->policy > HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER)
        return fault(ret_fault, "body.documents.policy",
                     "last_write, merge, set, vector or counter", (int64_t)documents->policy);
    if (documents->durability > HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MAJORITY)
        return fault(ret_fault, "body.documents.durability", "memory, one or majority",
                     (int64_t)documents->durability);
    if (documents->ttl_ms != 0 &&
        (documents->ttl_ms < KEEP_MS_MIN || documents->ttl_ms > KEEP_MS_MAX))
        return fault(ret_fault, "body.documents.ttl_ms", "0, or 1000 to 31536000000",
                     documents->ttl_ms);
    if (documents->durability == HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_UNSPECIFIED)
        documents->durability = HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_ONE;
    if (documents->bytes_max == 0)
        documents->bytes_max = DOCUMENT_BYTES;
    if (documents->bytes_max > DOCUMENT_BYTES_MAX)
        return fault(ret_fault, "body.documents.bytes_max", "1 to 1048576", documents->bytes_max);
    return true;
}

static bool is_too_deep(const json_t *value, uint32_t depth)
{
    const char *name;
    json_t *each;
    size_t i;

    if (!json_is_object(value) && !json_is_array(value))
        return false;
    if (depth == DEPTH_MAX)
        return true;
    json_object_foreach((json_t *)(uintptr_t)value, name, each)
    {
        if (is_too_deep(each, depth + 1))
            return true;
    }
    json_array_foreach(value, i, each)
    {
        if (is_too_deep(each, depth + 1))
            return true;
    }
    return false;
}

/* Told as it is given, but for the space around it. */
static void trim(char *text)
{
    static const char space[] = " \t\r\n";
    size_t first = strspn(text, space), size = strlen(text + first);

    while (size > 0 && strchr(space, text[first + size - 1]) != NULL)
        size--;
    memmove(text, text + first, size);
    text[size] = 0;
}

static bool check_settings(const Holdfast__V1__SettingsBody *settings,
                           struct definition_fault *ret_fault)
{
    char shown[NEAREST_SHOWN_BYTES];
    json_error_t why;
    bool is_object, is_flat;

    if (settings->json[0] != 0)
        trim(settings->json);
    json_t *given = json_loads(settings->json, JSON_REJECT_DUPLICATES, &why);
    is_object = json_is_object(given);
    is_flat = !is_too_deep(given, 0);
    json_decref(given);
    if (is_object && is_flat)
        return true;
    return fault_text(ret_fault, "body.settings.json",
                      is_flat ? "a JSON object, no member twice" : "nested at most 64 deep",
                      nearest_show(slice_from_text(settings->json), shown));
}

bool definition_body_check(definition_body *body, const char *name,
                           struct definition_fault *ret_fault)
{
    if (!check_name(body, name, ret_fault))
        return false;
    switch (body->kind_case) {
    case HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY:
        return check_currency(body->currency, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION:
        return check_collection(body->collection, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER:
        return check_counter(body->counter, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE:
        return check_rule(body->rate_rule, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION:
        return check_retention(body->event_retention, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS:
        return check_documents(body->documents, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS:
        return check_settings(body->settings, ret_fault);
    case HOLDFAST__V1__DEFINITION_BODY__KIND__NOT_SET:
    default:
        break;
    }
    return fault_text(ret_fault, "body",
                      "one of currency, collection, counter, rate_rule, event_retention, "
                      "documents and settings",
                      "");
}

const char *definition_frozen(const definition_body *before, const definition_body *after)
{
    CHECK(before->kind_case == after->kind_case);
    if (before->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE &&
        strcmp(before->rate_rule->subject, after->rate_rule->subject) != 0)
        return "body.rate_rule.subject";
    if (before->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY &&
        before->currency->scale != after->currency->scale)
        return "body.currency.scale";
    if (before->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION &&
        before->collection->conflict_policy != after->collection->conflict_policy)
        return "body.collection.conflict_policy";
    if (before->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS &&
        before->documents->policy != after->documents->policy)
        return "body.documents.policy";
    return NULL;
}
