#include "idl/error_rule.h"

#include "runtime/base/check.h"

static const struct error_rule rules[] = {
#define RULE_ROW(name, course, retry_after_ms, text)                                               \
    [HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name] = { course, retry_after_ms },
    ERROR_RULES(RULE_ROW)
#undef RULE_ROW
};

const struct error_rule *error_rule_get(Holdfast__V1__ErrorCode code)
{
    if ((unsigned)code >= ARRAY_SIZE(rules))
        return &rules[HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED];
    return &rules[code];
}

Holdfast__V1__ErrorDetail error_complete(const Holdfast__V1__ErrorDetail *detail)
{
    Holdfast__V1__ErrorDetail whole = *detail;

    if (!whole.final && whole.retry_after_ms == 0)
        whole.retry_after_ms = error_rule_get(whole.code)->retry_after_ms;
    return whole;
}
