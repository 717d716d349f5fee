#include "node/core/definition/retention.h"

#include <string.h>

#include "node/core/definition/definition_row.h"
#include "node/core/player/event_log.h"
#include "node/core/rows/rows.h"

struct search {
    struct arena *arena;
    struct retention *found;
};

/* One that cannot be read says nothing: check_definition of the repair room tells of it. */
static bool look(void *user, struct slice key, struct slice value)
{
    struct search *search = user;

    if (definition_number_of(key) == DEFINITION_HEAD_NUMBER)
        return true;
    const defined *row =
        definition_row_decode(search->arena, key, arena_copy(search->arena, value));
    if (row == NULL || strcmp(row->name, RETENTION_NAME) != 0 ||
        row->body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION)
        return true;
    const Holdfast__V1__EventRetentionBody *body = row->body->event_retention;
    if (body->keep_ms > 0)
        search->found->keep_ms = (uint64_t)body->keep_ms;
    if (body->events_max > 0)
        search->found->events_max = body->events_max;
    return false;
}

err retention_find(struct apply_context *context, struct retention *ret_retention)
{
    const uint8_t letter = TABLE_DEFINITION;
    const struct state_range all = { .prefix = { &letter, 1 }, .limit = DEFINITIONS_MAX + 1 };
    struct search search = { context->arena, ret_retention };

    *ret_retention = (struct retention){ EVENT_KEEP_MS_DEFAULT, EVENTS_MAX_DEFAULT };
    return state_range_visit(context->state, &all, context->need, look, &search);
}

void retention_keep(struct meta *meta, const struct retention *retention)
{
    meta->events.keep_ms = retention->keep_ms;
    meta->events.events_max = retention->events_max;
    meta->events.unlearned = false;
}
