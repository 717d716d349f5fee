#include "node/core/document/rules.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "runtime/base/check.h"

#define TTL_MS_MAX 31536000000ll

typedef Holdfast__Internal__V1__DefinitionVersion definition_version;

void document_rules_clear(struct document_rules *rules)
{
    free(rules->list);
    *rules = (struct document_rules){ 0 };
}

void document_rules_deinit(struct document_rules *rules)
{
    document_rules_clear(rules);
}

static uint32_t place_of(const struct document_rules *rules, uint64_t number)
{
    uint32_t low = 0, high = rules->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rules->list[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool document_rules_deleted(const struct document_rules *rules, uint64_t number)
{
    uint32_t at = place_of(rules, number);

    return at < rules->count && rules->list[at].number == number && rules->list[at].deleted;
}

const struct document_rule *document_rules_find(const struct document_rules *rules,
                                                struct slice name)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct document_rule *rule = &rules->list[i];
        if (!rule->deleted && slice_equal(slice_from_text(rule->name), name))
            return rule;
    }
    return NULL;
}

/* Numbers of the API and of rows are two lists: either may grow. */
static enum merge_policy policy_of(Holdfast__V1__DocumentPolicy policy)
{
    switch (policy) {
    case HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_LAST_WRITE:
        return MERGE_POLICY_LWW;
    case HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_MERGE:
        return MERGE_POLICY_MERGE;
    case HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_SET:
        return MERGE_POLICY_SET;
    case HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR:
        return MERGE_POLICY_VECTOR;
    case HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER:
        return MERGE_POLICY_COUNTER;
    default:
        return MERGE_POLICY_NONE;
    }
}

static enum merge_durability durability_of(Holdfast__V1__DocumentDurability durability)
{
    if (durability == HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MEMORY)
        return MERGE_MEMORY;
    return durability == HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_MAJORITY
               ? MERGE_MAJORITY
               : MERGE_ONE;
}

/* False: of another kind, or not one that this program can follow. */
static bool rule_of(const definition_version *version, struct document_rule *ret_rule)
{
    const Holdfast__V1__DefinitionBody *body = version->body;

    if (body == NULL || body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS ||
        version->number == 0 || policy_of(body->documents->policy) == MERGE_POLICY_NONE ||
        body->documents->ttl_ms < 0 || body->documents->ttl_ms > TTL_MS_MAX ||
        !text_is_name(slice_from_text(version->name), DOCUMENT_NAME_BYTES_MAX))
        return false;
    *ret_rule = (struct document_rule){
        .number = version->number,
        .version = version->version,
        .deleted = version->deleted,
        .policy = policy_of(body->documents->policy),
        .durability = durability_of(body->documents->durability),
        .ttl_ms = (uint64_t)body->documents->ttl_ms,
        .bytes_max = body->documents->bytes_max,
    };
    memcpy(ret_rule->name, version->name, strlen(version->name) + 1);
    if (ret_rule->bytes_max == 0)
        ret_rule->bytes_max = DOCUMENT_BYTES_DEFAULT;
    if (ret_rule->bytes_max > DOCUMENT_BYTES_MAX)
        ret_rule->bytes_max = DOCUMENT_BYTES_MAX;
    return true;
}

static err put(struct document_rules *rules, const struct document_rule *rule)
{
    uint32_t at = place_of(rules, rule->number);
    bool known = at < rules->count && rules->list[at].number == rule->number;

    if (known && rules->list[at].version >= rule->version)
        return ERR_OK;
    if (!known && rules->count == DOCUMENT_RULES_MAX)
        return ERR_FULL;
    if (!known) {
        rules->list = mem_realloc(rules->list, (rules->count + 1) * sizeof *rules->list);
        memmove(&rules->list[at + 1], &rules->list[at], (rules->count - at) * sizeof *rules->list);
        rules->count++;
    }
    rules->deleted_count -= known && rules->list[at].deleted;
    rules->deleted_count += rule->deleted;
    rules->list[at] = *rule;
    return ERR_OK;
}

err document_rules_take(struct document_rules *rules, struct slice bytes)
{
    struct arena arena = { 0 };
    struct document_rule rule;
    const definition_version *version = (void *)arena_unpack(
        &arena, &holdfast__internal__v1__definition_version__descriptor, bytes);
    err e = version == NULL ? ERR_CORRUPT : ERR_OK;

    if (e == ERR_OK && rule_of(version, &rule))
        e = put(rules, &rule);
    arena_deinit(&arena);
    return e;
}
