#include "node/core/session/timers.h"

#include <string.h>

#include "node/core/session/session_apply.h"
#include "runtime/base/check.h"

#define TIMERS_LOOKED_AT_MAX     256u
#define TIMERS_DUE_LOOKED_AT_MAX 1024u

struct search {
    uint64_t unix_ms;
    struct damage *damage;
    struct timer_row *timer;
    bool found;
    uint32_t seen;
    struct row_key last; /* Of those seen, once all that may be looked at were. */
};

/* Whether to look at the next one. */
static bool pass(struct search *search, struct slice key)
{
    if (++search->seen < TIMERS_DUE_LOOKED_AT_MAX)
        return true;
    CHECK(key.size <= sizeof search->last.bytes);
    memcpy(search->last.bytes, key.data, key.size);
    search->last.size = key.size;
    return true;
}

static bool take_first(void *context, struct slice key, struct slice value)
{
    struct search *search = context;
    struct timer_row timer;

    if (timer_row_decode(key, value, &timer) != ERR_OK) {
        damage_note(search->damage, (struct slice){ 0 }, TIMER_DAMAGE);
        return pass(search, key);
    }
    bool erases = timer_is_of_erasure(&timer) && timer.due_ms <= search->unix_ms;
    if (search->found && (erases || timer.due_ms > search->unix_ms))
        return erases && pass(search, key);
    *search->timer = timer;
    search->found = true;
    return erases && pass(search, key);
}

/* One page behind that key; the last key of a full one, of which none but erasures are due, is
 * search->last. */
static void look(struct state *state, struct slice after, struct search *search)
{
    const struct state_range range = { .prefix = SLICE_LITERAL("t"),
                                       .after = after,
                                       .limit = TIMERS_DUE_LOOKED_AT_MAX };
    struct need unused = { 0 };

    search->seen = 0;
    search->last.size = 0;
    (void)!state_range_visit(state, &range, &unused, take_first, search);
    need_deinit(&unused);
}

bool timers_first(struct state *state, struct timers_look *looked, uint64_t unix_ms,
                  struct damage *damage, struct timer_row *ret_timer)
{
    struct search search; /* Of a key, most bytes are never read: they are not zeroed each time. */

    search.unix_ms = unix_ms;
    search.damage = damage;
    search.timer = ret_timer;
    search.found = false;
    look(state, (struct slice){ 0 }, &search);
    if (search.last.size == 0) {
        looked->after.size = 0;
        return search.found;
    }
    if (looked->after.size == 0)
        looked->after = search.last;
    look(state, row_key_slice(&looked->after), &search);
    bool is_other = search.found && !timer_is_of_erasure(ret_timer) && ret_timer->due_ms <= unix_ms;
    if (!is_other) /* More of those may stand there. */
        looked->after = search.last;
    return search.found;
}

/* Keys to delete once the visit is over. */
struct forgetting {
    struct apply_context *context;
    struct slice entity;
    const struct timer_row *like;
    uint32_t seen, count;
    struct slice last; /* Of a full page, behind which more may be due; empty: none is. */
    struct slice keys[TIMERS_LOOKED_AT_MAX];
};

static bool collect(void *context, struct slice key, struct slice value)
{
    struct forgetting *f = context;
    struct timer_row timer;

    if (++f->seen == TIMERS_LOOKED_AT_MAX)
        f->last = arena_copy(f->context->arena, key);
    if (timer_row_decode(key, value, &timer) != ERR_OK)
        return true;
    if (timer.due_ms > f->context->owner_ms) {
        f->last = (struct slice){ 0 };
        return false;
    }
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
    uint32_t forgotten = 0;

    do {
        f.seen = f.count = 0;
        f.last = (struct slice){ 0 };
        (void)!state_range_visit(context->state, &range, &unused, collect, &f);
        for (uint32_t i = 0; i < f.count; i++)
            state_delete(context->state, f.keys[i]);
        forgotten += f.count;
        range.after = f.last;
    } while (f.last.size > 0 && context->version >= FORGET_ALL_APPLY_VERSION);
    need_deinit(&unused);
    return forgotten;
}

/* One page of all timers there are. */
struct dropping {
    struct apply_context *context;
    struct slice entity;
    uint32_t seen, count;
    struct slice last;
    struct slice keys[TIMERS_LOOKED_AT_MAX];
};

static bool take_own(void *context, struct slice key, struct slice value)
{
    struct dropping *d = context;

    (void)value;
    d->seen++;
    if (d->seen == TIMERS_LOOKED_AT_MAX)
        d->last = arena_copy(d->context->arena, key);
    if (slice_equal(row_entity(key), d->entity))
        d->keys[d->count++] = arena_copy(d->context->arena, key);
    return true;
}

void timers_drop(struct apply_context *context, struct slice entity)
{
    struct state_range range = { .prefix = SLICE_LITERAL("t"), .limit = TIMERS_LOOKED_AT_MAX };
    struct dropping d = { .context = context, .entity = entity };
    struct need unused = { 0 };

    do {
        d.seen = 0;
        d.count = 0;
        (void)!state_range_visit(context->state, &range, &unused, take_own, &d);
        for (uint32_t i = 0; i < d.count; i++)
            state_delete(context->state, d.keys[i]);
        range.after = d.last;
    } while (d.seen == TIMERS_LOOKED_AT_MAX);
    need_deinit(&unused);
}

struct renewing {
    struct apply_context *context;
    uint32_t count;
    struct row_key keys[RESERVATIONS_MAX];
};

/* One that cannot be read is told by who needs it. */
static bool take_reservation(void *context, struct slice key, struct slice value)
{
    struct renewing *r = context;
    struct reader reader = reader_from((struct slice){ key.data + key.size - 8, 8 });
    uint64_t expires_at_ms;

    if (reservation_row_decode(value, &expires_at_ms) == ERR_OK)
        row_key_reservation_timer(&r->keys[r->count++], expires_at_ms, r->context->player->entity,
                                  read_u64_be(&reader));
    return true;
}

err timers_renew(struct apply_context *context)
{
    struct player *player = context->player;
    struct renewing r = { .context = context };
    struct row_key first;

    if (player->session.state != SESSION_FREE)
        session_defer(context, session_due_ms(&player->session));
    row_key_reservation(&first, player->entity, 0);
    const struct state_range range = {
        .prefix = { first.bytes, first.size - 8 },
        .after = row_key_slice(&first),
        .limit = RESERVATIONS_MAX,
    };
    err e = state_range_visit(context->state, &range, context->need, take_reservation, &r);
    for (uint32_t i = 0; i < r.count; i++) {
        buf_clear(context->scratch);
        timer_row_encode(0, context->scratch);
        state_put(context->state, row_key_slice(&r.keys[i]), buf_slice(context->scratch));
    }
    return e;
}
