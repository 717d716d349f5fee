#include "node/core/definition/counter_rule.h"

#include "node/core/definition/name_index.h"

static bool is_amount(uint64_t amount)
{
    return amount > 0 && amount <= (uint64_t)COUNTER_VALUE_MAX;
}

static uint64_t amount_of(int64_t stated)
{
    return (uint64_t)(stated > 0 ? stated : COUNTER_VALUE_MAX);
}

static bool of_body(const Holdfast__V1__DefinitionBody *body, uint64_t ret_facts[2])
{
    if (body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER)
        return false;
    ret_facts[0] = amount_of(body->counter->max_value);
    ret_facts[1] = amount_of(body->counter->add_max);
    return is_amount(ret_facts[0]) && is_amount(ret_facts[1]);
}

static void put_facts(struct buf *out, const struct named *named)
{
    buf_put_u64(out, named->facts[0]);
    buf_put_u64(out, named->facts[1]);
}

static void read_facts(struct reader *reader, struct named *ret_named)
{
    ret_named->facts[0] = read_u64(reader);
    ret_named->facts[1] = read_u64(reader);
    reader->bad |= !is_amount(ret_named->facts[0]) || !is_amount(ret_named->facts[1]);
}

static const struct name_kind counters = {
    .row = ROW_NAMES_COUNTERS,
    .noun = "counter",
    .fallback = "",
    .of_body = of_body,
    .put = put_facts,
    .read = read_facts,
};

static err told(err e, const struct named *named, struct counter_rule *ret_rule)
{
    if (e == ERR_OK)
        *ret_rule = (struct counter_rule){ .number = named->number,
                                           .value_max = (int64_t)named->facts[0],
                                           .add_max = (int64_t)named->facts[1] };
    return e;
}

err counter_rule_check(struct check_context *context, const char *given,
                       struct counter_rule *ret_rule)
{
    struct named named;

    err e = name_check(context, &counters, given, &named);
    return told(e, &named, ret_rule);
}

err counter_rule_read(struct read_context *context, const char *given,
                      struct counter_rule *ret_rule)
{
    struct named named;

    err e = name_read(context, &counters, given, &named);
    return told(e, &named, ret_rule);
}

err counter_rule_get(struct apply_context *context, const char *given,
                     struct counter_rule *ret_rule)
{
    struct named named;

    err e = name_get(context, &counters, given, &named);
    return told(e, &named, ret_rule);
}

bool counter_rule_known(struct state *state, struct arena *arena, const char *given,
                        struct counter_rule *ret_rule)
{
    struct named named;

    return told(name_known(state, arena, &counters, given, &named), &named, ret_rule) == ERR_OK;
}

err counter_rule_index(struct apply_context *context)
{
    return name_index(context, &counters);
}

bool counter_names_are_sound(struct slice key, struct slice value)
{
    return name_row_is_sound(&counters, key, value);
}
