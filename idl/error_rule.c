#include "idl/error_rule.h"

#include <string.h>

#include "runtime/base/check.h"

#define OUTCOME(name) HOLDFAST__V1__OUTCOME__OUTCOME_##name
#define ACTION(name)  HOLDFAST__V1__ACTION__ACTION_##name

static const struct error_rule rules[] = {
#define RULE_ROW(name, course, open, final, retry_after_ms, text)                                  \
    [HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##                                                       \
        name] = { course, ACTION(open), ACTION(final), retry_after_ms },
    ERROR_RULES(RULE_ROW)
#undef RULE_ROW
};

const struct error_rule *error_rule_get(Holdfast__V1__ErrorCode code)
{
    if ((unsigned)code >= ARRAY_SIZE(rules))
        return &rules[HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED];
    return &rules[code];
}

/* What a reservation posted decides more than the code: what came back needs a new reservation, and
 * what is on its way has not been decided. */
static Holdfast__V1__Action final_action(const Holdfast__V1__ErrorDetail *detail,
                                         const struct error_rule *rule)
{
    if (detail->about != NULL && detail->about->came_back)
        return ACTION(REREAD);
    if (detail->about != NULL && detail->about->on_its_way)
        return ACTION(RAISE_ATTEMPT);
    return rule->final;
}

Holdfast__V1__ErrorDetail error_complete(const Holdfast__V1__ErrorDetail *detail)
{
    Holdfast__V1__ErrorDetail whole = *detail;
    const struct error_rule *rule = error_rule_get(whole.code);

    if (whole.outcome == OUTCOME(REFUSED)) {
        whole.action = final_action(&whole, rule);
    } else {
        whole.outcome = rule->course == ERROR_UNKNOWN ? OUTCOME(UNKNOWN) : OUTCOME(NOT_APPLIED);
        whole.action = rule->open;
        if (whole.retry_after_ms == 0)
            whole.retry_after_ms = rule->retry_after_ms;
    }
    if (whole.action != ACTION(RETRY_SAME) && whole.action != ACTION(RAISE_ATTEMPT))
        whole.retry_after_ms = 0;
    CHECK(IMPLIES(whole.outcome == OUTCOME(UNKNOWN), whole.action == ACTION(RETRY_SAME)));
    CHECK(IMPLIES(whole.action == ACTION(RETRY_SAME), whole.retry_after_ms > 0));
    return whole;
}

/* The value's name without the enum's own, in lower case. */
static void print_word(const ProtobufCEnumDescriptor *type, int value, const char *prefix,
                       char ret_word[ERROR_WORD_SIZE])
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);
    size_t skip = strlen(prefix);

    if (found == NULL)
        found = protobuf_c_enum_descriptor_get_value(type, 0);
    CHECK(found != NULL && strncmp(found->name, prefix, skip) == 0);
    const char *name = found->name + skip;
    size_t size = strlen(name);
    CHECK(size < ERROR_WORD_SIZE);
    for (size_t i = 0; i <= size; i++)
        ret_word[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
}

struct error_words error_words_of(const Holdfast__V1__ErrorDetail *detail)
{
    struct error_words words;

    print_word(&holdfast__v1__error_code__descriptor, (int)detail->code, "ERROR_CODE_", words.code);
    print_word(&holdfast__v1__action__descriptor, (int)detail->action, "ACTION_", words.action);
    return words;
}
