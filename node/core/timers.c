#include "node/core/timers.h"

#define TIMERS_LOOKED_AT_MAX 256u

struct search {
    struct damage *damage;
    struct timer_row *timer;
    bool found;
};

static bool take_first(void *context, struct slice key, struct slice value)
{
    struct search *search = context;

    search->found = timer_row_decode(key, value, search->timer) == ERR_OK;
    if (!search->found)
        damage_note(search->damage, (struct slice){ 0 }, "a timer's row cannot be read");
    return !search->found;
}

bool timers_first(struct state *state, struct damage *damage, struct timer_row *ret_timer)
{
    struct state_range range = { .prefix = SLICE_LITERAL("t"), .limit = TIMERS_LOOKED_AT_MAX };
    struct search search = { .damage = damage, .timer = ret_timer };
    struct need unused = { 0 };

    (void)!state_range_visit(state, &range, &unused, take_first, &search);
    need_deinit(&unused);
    return search.found;
}

/* Keys to delete once the visit is over. */
struct forgetting {
    struct apply_context *context;
    struct slice entity;
    const struct timer_row *like;
    uint32_t count;
    struct slice keys[TIMERS_LOOKED_AT_MAX];
};

static bool collect(void *context, struct slice key, struct slice value)
{
    struct forgetting *f = context;
    struct timer_row timer;

    if (timer_row_decode(key, value, &timer) != ERR_OK)
        return true;
    if (timer.due_ms > f->context->owner_ms)
        return false;
    bool alike = f->like == NULL || (timer.reservation_seq == f->like->reservation_seq &&
                                     timer.fence == f->like->fence);
    if (alike && slice_equal(timer.entity, f->entity))
        f->keys[f->count++] = arena_copy(f->context->arena, key);
    return true;
}

uint32_t timers_forget(struct apply_context *context, struct slice entity,
                       const struct timer_row *like)
{
    struct state_range range = { .prefix = SLICE_LITERAL("t"), .limit = TIMERS_LOOKED_AT_MAX };
    struct forgetting f = { .context = context, .entity = entity, .like = like };
    struct need unused = { 0 };

    (void)!state_range_visit(context->state, &range, &unused, collect, &f);
    need_deinit(&unused);
    for (uint32_t i = 0; i < f.count; i++)
        state_delete(context->state, f.keys[i]);
    return f.count;
}
