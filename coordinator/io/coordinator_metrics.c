#include "coordinator/io/coordinator_metrics.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define FRESH_MS 50u /* One scrape counts the core's state once. */

/* What a series' callback gets. */
struct field {
    struct coordinator_metrics *owner;
    size_t offset;
};

#define COORD_FIELD(name, doc) FIELD_##name,
enum {
    COORD_COUNTERS(COORD_FIELD) COORD_GAUGES(COORD_FIELD) AUDIT_COUNTERS(COORD_FIELD)
        AUDIT_GAUGES(COORD_FIELD) FIELD_COUNT
};
#undef COORD_FIELD

struct coordinator_metrics {
    const struct coord *core;
    struct loop *loop;
    uint64_t taken_ms;
    bool taken;
    struct coord_stats stats;
    struct field fields[FIELD_COUNT];
};

static double read_field(void *context)
{
    const struct field *field = context;
    struct coordinator_metrics *owner = field->owner;

    if (!owner->taken || loop_now_ms(owner->loop) - owner->taken_ms > FRESH_MS) {
        coord_stats_get(owner->core, &owner->stats);
        owner->taken_ms = loop_now_ms(owner->loop);
        owner->taken = true;
    }
    return (double)*(const uint64_t *)(const void *)((const char *)&owner->stats + field->offset);
}

struct coordinator_metrics *coordinator_metrics_new(struct metrics *metrics,
                                                    const struct coord *core, struct loop *loop)
{
    struct coordinator_metrics *owner = mem_zalloc(sizeof *owner);

    owner->core = core;
    owner->loop = loop;
#define FIELD_ADD(register, name, series, doc)                                                     \
    owner->fields[FIELD_##name] = (struct field){ owner, offsetof(struct coord_stats, name) };     \
    register(metrics, &(struct metric_info){ series, doc, NULL }, read_field,                      \
             &owner->fields[FIELD_##name]);
#define COORD_FIELD(name, doc)                                                                     \
    FIELD_ADD(metrics_counter_callback, name, "holdfast_coordinator_" #name "_total", doc)
    COORD_COUNTERS(COORD_FIELD)
#undef COORD_FIELD
#define COORD_FIELD(name, doc)                                                                     \
    FIELD_ADD(metrics_gauge_callback, name, "holdfast_coordinator_" #name, doc)
    COORD_GAUGES(COORD_FIELD)
#undef COORD_FIELD
#define COORD_FIELD(name, doc)                                                                     \
    FIELD_ADD(metrics_counter_callback, name, "holdfast_" #name "_total", doc)
    AUDIT_COUNTERS(COORD_FIELD)
#undef COORD_FIELD
#define COORD_FIELD(name, doc) FIELD_ADD(metrics_gauge_callback, name, "holdfast_" #name, doc)
    AUDIT_GAUGES(COORD_FIELD)
#undef COORD_FIELD
    return owner;
}

void coordinator_metrics_free(struct coordinator_metrics *metrics)
{
    free(metrics);
}
