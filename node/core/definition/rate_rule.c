#include "node/core/definition/rate_rule.h"

#include "node/core/codec/text_rule.h"
#include "node/core/definition/definition_row.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define INDEX_VERSION_REFUSING 1u /* Of rules that refuse alone: apply version 8. */
#define INDEX_VERSION          2u

/* One rule after the other, of the row or of the definitions. */
struct listed {
    struct slice subject;
    struct rate_rule rule;
};

/* ---- the row ---- */
static void name_put(struct buf *out, struct slice name)
{
    CHECK(name.size <= DEFINITION_NAME_MAX);
    buf_put_u8(out, (uint8_t)name.size);
    buf_append(out, name.data, name.size);
}

static void entry_put(struct buf *out, const struct listed *entry, uint8_t version)
{
    buf_put_u64(out, entry->rule.number);
    buf_put_u64(out, entry->rule.generation);
    buf_put_u64(out, entry->rule.revision);
    buf_put_u32(out, entry->rule.limit);
    buf_put_u32(out, entry->rule.period_ms);
    if (version > INDEX_VERSION_REFUSING) {
        buf_put_u8(out, entry->rule.flags);
        buf_put_u64(out, entry->rule.age_ms);
    }
    name_put(out, entry->rule.name);
    name_put(out, entry->subject);
}

static bool is_sound(const struct listed *entry)
{
    const struct rate_rule *rule = &entry->rule;
    bool by_age = rule->flags && rule->age_ms > 0 && rule->limit == 0 && rule->period_ms == 0;
    bool by_rate = rule->age_ms == 0 && rule->limit > 0 && rule->period_ms > 0;

    return rule->number != DEFINITION_HEAD_NUMBER && (by_age || by_rate) &&
           text_is_name(entry->rule.name, DEFINITION_NAME_MAX) &&
           text_is_name(entry->subject, DEFINITION_NAME_MAX);
}

static bool entry_next(struct reader *reader, uint8_t version, struct listed *ret_entry)
{
    struct listed entry = { 0 };

    if (reader->bad || reader_left(reader) == 0)
        return false;
    entry.rule.number = read_u64(reader);
    entry.rule.generation = read_u64(reader);
    entry.rule.revision = read_u64(reader);
    entry.rule.limit = read_u32(reader);
    entry.rule.period_ms = read_u32(reader);
    if (version > INDEX_VERSION_REFUSING) {
        uint8_t flags = read_u8(reader);
        entry.rule.flags = flags != 0;
        entry.rule.age_ms = read_u64(reader);
        reader->bad |= flags > 1;
    }
    entry.rule.name = read_raw(reader, read_u8(reader));
    entry.subject = read_raw(reader, read_u8(reader));
    reader->bad |= reader->bad || !is_sound(&entry);
    *ret_entry = entry;
    return !reader->bad;
}

/* `reader` is bad where the row is none. */
static struct reader index_begin(struct slice value, uint8_t *ret_version)
{
    struct reader reader = reader_from(value);

    *ret_version = read_u8(&reader);
    reader.bad |= *ret_version != INDEX_VERSION_REFUSING && *ret_version != INDEX_VERSION;
    return reader;
}

bool rate_rules_row_is_sound(struct slice key, struct slice value)
{
    uint8_t version;
    struct reader reader = index_begin(value, &version);
    struct row_key own;
    struct listed entry;

    row_key_rate_rules(&own);
    while (entry_next(&reader, version, &entry)) {
    }
    return slice_equal(key, row_key_slice(&own)) && !reader.bad;
}

/* ---- looking rules up ---- */
struct search {
    struct arena *arena;
    struct slice subject;
    struct rate_rules *found; /* NULL: they are put into `index`. */
    struct buf *index;
    uint8_t version; /* Of the row: before there were rules that flag, or since. */
};

static uint8_t version_of(const struct apply_context *context)
{
    return context->version >= FLAG_APPLY_VERSION ? INDEX_VERSION : INDEX_VERSION_REFUSING;
}

static void look(struct search *search, const struct listed *entry)
{
    struct rate_rules *found = search->found;

    if (found == NULL) {
        entry_put(search->index, entry, search->version);
        return;
    }
    if (found->count == RATE_RULES_MAX || !slice_equal(entry->subject, search->subject))
        return;
    found->list[found->count] = entry->rule;
    found->list[found->count++].name = arena_copy(search->arena, entry->rule.name);
}

/* Rows of definitions come by number. */
static bool look_at_definition(void *user, struct slice key, struct slice value)
{
    struct search *search = user;
    const defined *row =
        definition_row_decode(search->arena, key, arena_copy(search->arena, value));

    if (row == NULL || row->body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE)
        return true;
    const Holdfast__V1__RateRuleBody *body = row->body->rate_rule;
    struct listed entry = {
        .subject = slice_from_text(body->subject),
        .rule = {
            .number = row->number,
            .generation = row->generation,
            .revision = row->revision,
            .limit = body->limit,
            .period_ms = body->period_ms,
            .name = slice_from_text(row->name),
        },
    };
    if (search->version > INDEX_VERSION_REFUSING && body->limit == 0) {
        entry.rule.flags = true;
        entry.rule.limit = body->flag_above;
        entry.rule.age_ms = body->account_age_ms;
    }
    if (is_sound(&entry))
        look(search, &entry);
    return true;
}

static err look_at_definitions(struct apply_context *context, struct search *search)
{
    const uint8_t letter = TABLE_DEFINITION;
    const struct state_range all = { .prefix = { &letter, 1 }, .limit = DEFINITIONS_MAX + 1 };

    return state_range_visit(context->state, &all, context->need, look_at_definition, search);
}

err rate_rules_index(struct apply_context *context)
{
    struct buf *out = context->scratch;
    struct search search = {
        .arena = context->arena,
        .index = out,
        .version = version_of(context),
    };
    struct row_key key;

    buf_clear(out);
    buf_put_u8(out, search.version);
    err e = look_at_definitions(context, &search);
    if (e != ERR_OK)
        return e;
    row_key_rate_rules(&key);
    state_put(context->state, row_key_slice(&key), buf_slice(out));
    return ERR_OK;
}

/* The row as it is of use here: one of an earlier apply version, which knows fewer rules, is made
 * again. ERR_NEED. *ret_value empty: there is none that can be read. */
static err index_find(struct apply_context *context, struct slice *ret_value)
{
    struct row_key key;

    *ret_value = (struct slice){ 0 };
    row_key_rate_rules(&key);
    enum state_found found = row_find(context->state, &key, context->need, ret_value);
    if (found == STATE_PRESENT && rate_rules_row_is_sound(row_key_slice(&key), *ret_value) &&
        ret_value->data[0] < version_of(context)) {
        err e = rate_rules_index(context);
        if (e != ERR_OK)
            return e;
        found = row_find(context->state, &key, context->need, ret_value);
    }
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT || !rate_rules_row_is_sound(row_key_slice(&key), *ret_value))
        *ret_value = (struct slice){ 0 };
    return ERR_OK;
}

err rate_rules_find(struct apply_context *context, struct slice subject,
                    struct rate_rules *ret_rules)
{
    struct search search = {
        .arena = context->arena,
        .subject = subject,
        .found = ret_rules,
        .version = version_of(context),
    };
    struct slice value;
    struct listed entry;
    uint8_t version;

    ret_rules->count = 0;
    err e = index_find(context, &value);
    if (e != ERR_OK)
        return e;
    if (value.size == 0)
        return look_at_definitions(context, &search);
    for (struct reader reader = index_begin(value, &version); entry_next(&reader, version, &entry);)
        look(&search, &entry);
    return ERR_OK;
}
