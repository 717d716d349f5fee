#include "node/rpc/count_subject.h"

#include "node/core/definition/collection.h"
#include "node/core/definition/counter_rule.h"

err count_subject_read(struct read_context *context, const char *name, bool is_counter,
                       uint64_t *ret_number)
{
    struct collection collection = { 0 };
    struct counter_rule rule = { 0 };

    err e = is_counter ? counter_rule_read(context, name, &rule)
                       : collection_read(context, name, &collection);
    *ret_number = is_counter ? rule.number : collection.number;
    return e;
}
