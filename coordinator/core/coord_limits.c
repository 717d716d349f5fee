#include "coordinator/core/coord_limits.h"

#include "runtime/base/check.h"

struct coord_limits coord_limits_default(void)
{
#define COORD_FIELD(name, def, min, max, doc) .name = (def),
    return (struct coord_limits){ COORD_LIMITS(COORD_FIELD) };
#undef COORD_FIELD
}

void coord_limits_check(const struct coord_limits *limits)
{
#define COORD_FIELD(name, def, min, max, doc)                                                      \
    CHECK((int64_t)limits->name >= (min) && (int64_t)limits->name <= (max));
    COORD_LIMITS(COORD_FIELD)
#undef COORD_FIELD
}
