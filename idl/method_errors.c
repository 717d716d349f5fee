#include "idl/method_errors.h"

#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"

/* One bit for each code. */
struct given {
    uint32_t open;
    uint32_t final;
};

enum kind { OPEN = 1, FINAL = 2, BOTH = OPEN | FINAL };

#define OPEN_BIT(name, kind, when, what_to_do)  | (((kind)&OPEN) != 0 ? 1u << CODE(name) : 0u)
#define FINAL_BIT(name, kind, when, what_to_do) | (((kind)&FINAL) != 0 ? 1u << CODE(name) : 0u)
#define GIVEN_v1(enumerator)                                                                       \
    {                                                                                              \
        0u ERRORS_##enumerator(OPEN_BIT), 0u ERRORS_##enumerator(FINAL_BIT)                        \
    }
#define GIVEN_debug__v1(enumerator) GIVEN_v1(enumerator)
#define GIVEN_internal__v1(enumerator)                                                             \
    {                                                                                              \
        UINT32_MAX, UINT32_MAX                                                                     \
    }

static const struct given given[METHOD_ID_MAX + 1] = {
#define GIVEN_ROW(number, enumerator, package, ...)                                                \
    [METHOD_##enumerator] = GIVEN_##package(enumerator),
    METHOD_TABLE(GIVEN_ROW)
#undef GIVEN_ROW
};

bool error_is_given(uint32_t method, Holdfast__V1__ErrorCode code, bool final)
{
    const struct method_info *info = method_find(method);

    if (method > METHOD_ID_MAX || (unsigned)code >= 32)
        return false;
    if (info != NULL)
        method = method_told(info)->id;
    return ((final ? given[method].final : given[method].open) & 1u << code) != 0;
}
