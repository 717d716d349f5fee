#include "tests/chaos/check/linear.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define TRIED_FIRST 1024u

/* What an event of the list is. At one time they have this order, so that what touches overlaps. */
enum role {
    ROLE_TAKE, /* Of a SEND that was refused: its gold may go. */
    ROLE_CALL,
    ROLE_BACK, /* Of a SEND without an answer: its gold may come back, after it went. */
    ROLE_ANSWER,
};

/* In a list ordered by time, from which what is placed is taken out. */
struct event {
    struct event *before, *after;
    struct event *answer; /* Of a call that has one. */
    struct event *take;   /* Of a call that may have one. */
    struct event *call;   /* Of all but calls. */
    size_t deed;
    int64_t at;
    enum role role;
    bool placed;
};

struct placed {
    struct event *event;
    bool took_take; /* It took its TAKE, which was not placed, out of the list with it. */
    struct player_state state; /* Before it. */
};

/* What was tried: hashes of 128 bits, in open addressing. All zeroes: free. */
struct tried {
    struct hash128 *hashes;
    size_t capacity; /* A power of two. */
    size_t count;
};

struct search {
    const struct timed_deed *deeds;
    struct event *events;
    struct event head; /* Of the list; before the first event. */
    struct placed *stack;
    size_t depth;
    size_t answered_left; /* Not placed yet, of those that must be. */
    struct hash128 set;   /* Of what is placed: the sum, whatever the order. */
    struct player_state state;
    struct tried tried;
    struct linear_failure failure;
};

/* ---- what was tried ---- */

static bool is_free(struct hash128 hash)
{
    static const struct hash128 none;

    return hash128_equal(hash, none);
}

static size_t home_of(const struct tried *tried, struct hash128 hash)
{
    return (size_t)load_u64(hash.bytes) & (tried->capacity - 1);
}

/* Whether it was there already. */
static bool tried_put(struct tried *tried, struct hash128 hash)
{
    size_t at = home_of(tried, hash);

    while (!is_free(tried->hashes[at])) {
        if (hash128_equal(tried->hashes[at], hash))
            return true;
        at = (at + 1) & (tried->capacity - 1);
    }
    tried->hashes[at] = hash;
    tried->count++;
    return false;
}

static void tried_grow(struct tried *tried)
{
    struct tried larger = { .capacity = tried->capacity > 0 ? tried->capacity * 2 : TRIED_FIRST };

    larger.hashes = mem_zalloc(sizeof *larger.hashes * larger.capacity);
    for (size_t i = 0; i < tried->capacity; i++) {
        if (!is_free(tried->hashes[i]))
            (void)tried_put(&larger, tried->hashes[i]);
    }
    free(tried->hashes);
    *tried = larger;
}

static bool was_tried(struct search *s, const struct player_state *state)
{
    struct hash128 hash;
    uint8_t bytes[48];

    memcpy(bytes, s->set.bytes, sizeof s->set.bytes);
    memcpy(bytes + 16, &state->gold, 8);
    memcpy(bytes + 24, &state->document, 8);
    memcpy(bytes + 32, &state->version, 8);
    uint64_t session = state->fence << 1 | (state->held ? 1 : 0);
    memcpy(bytes + 40, &session, 8);
    hash = hash_u128((struct slice){ bytes, sizeof bytes });
    if (s->tried.count * 2 >= s->tried.capacity)
        tried_grow(&s->tried);
    return tried_put(&s->tried, hash);
}

/* ---- the list ---- */

static int by_time(const void *a, const void *b)
{
    const struct event *one = a, *other = b;

    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    if (one->role != other->role)
        return one->role < other->role ? -1 : 1;
    return one->deed < other->deed ? -1 : 1;
}

static size_t events_make(struct search *s, size_t count)
{
    size_t events = 0;

    for (size_t i = 0; i < count; i++) {
        const struct timed_deed *deed = &s->deeds[i];
        bool is_send = deed->done.deed == DEED_SEND;
        bool is_open = deed->done.outcome == OUTCOME_OPEN;
        struct event event = { .deed = i, .at = deed->called_at, .role = ROLE_CALL };
        s->events[events++] = event;
        if (is_send && deed->done.outcome != OUTCOME_OK) {
            event.role = is_open ? ROLE_BACK : ROLE_TAKE;
            s->events[events++] = event;
        }
        if (is_open)
            continue;
        CHECK(deed->answered_at >= deed->called_at);
        event.role = ROLE_ANSWER;
        event.at = deed->answered_at;
        s->events[events++] = event;
        s->answered_left++;
    }
    qsort(s->events, events, sizeof *s->events, by_time);
    return events;
}

static void list_make(struct search *s, size_t count)
{
    struct event **calls = mem_zalloc(sizeof *calls * (count + 1));
    struct event *last = &s->head;

    s->events = mem_zalloc(sizeof *s->events * (count * 3 + 1));
    size_t events = events_make(s, count);
    for (size_t i = 0; i < events; i++) {
        if (s->events[i].role == ROLE_CALL)
            calls[s->events[i].deed] = &s->events[i];
    }
    for (size_t i = 0; i < events; i++) {
        struct event *event = &s->events[i];
        event->before = last;
        last->after = event;
        last = event;
        event->call = calls[event->deed];
        if (event->role == ROLE_ANSWER)
            event->call->answer = event;
        if (event->role == ROLE_TAKE)
            event->call->take = event;
    }
    free(calls);
}

static void unlink_event(struct event *event)
{
    event->before->after = event->after;
    if (event->after != NULL)
        event->after->before = event->before;
}

/* The reverse, if nothing changed since. */
static void relink_event(struct event *event)
{
    event->before->after = event;
    if (event->after != NULL)
        event->after->before = event;
}

/* ---- the search ---- */

static void set_toggle(struct search *s, const struct event *event)
{
    uint64_t name[2] = { event->deed, event->role };
    struct hash128 hash = hash_u128((struct slice){ (const uint8_t *)name, sizeof name });

    for (size_t i = 0; i < sizeof hash.bytes; i++)
        s->set.bytes[i] ^= hash.bytes[i];
}

static bool comes_back(struct player_state *state, int64_t gold)
{
    return !__builtin_add_overflow(state->gold, gold, &state->gold);
}

/* What comes of it now; false: it cannot be now. */
static bool event_step(const struct search *s, const struct event *event,
                       struct player_state *ret_state)
{
    const struct deed_done *done = &s->deeds[event->deed].done;

    *ret_state = s->state;
    switch (event->role) {
    case ROLE_TAKE:
        return player_take(ret_state, done->gold);
    case ROLE_BACK:
        return event->call->placed && comes_back(ret_state, done->gold);
    default:
        if (event->take != NULL && event->take->placed)
            return comes_back(ret_state, done->gold);
        return player_step(&s->state, done, ret_state);
    }
}

static bool place(struct search *s, struct event *event)
{
    struct player_state after;

    if (!event_step(s, event, &after))
        return false;
    set_toggle(s, event);
    if (was_tried(s, &after)) {
        set_toggle(s, event);
        return false;
    }
    struct placed *placed = &s->stack[s->depth++];
    *placed = (struct placed){ .event = event, .state = s->state };
    s->state = after;
    event->placed = true;
    unlink_event(event);
    if (event->take != NULL && !event->take->placed) {
        placed->took_take = true;
        unlink_event(event->take);
    }
    if (event->answer != NULL) {
        unlink_event(event->answer);
        s->answered_left--;
    }
    return true;
}

/* Takes the last one back; what the search goes on after, NULL: there is none. */
static struct event *take_back(struct search *s)
{
    if (s->depth == 0)
        return NULL;
    struct placed *last = &s->stack[--s->depth];
    struct event *event = last->event;
    if (event->answer != NULL) {
        relink_event(event->answer);
        s->answered_left++;
    }
    if (last->took_take)
        relink_event(event->take);
    relink_event(event);
    event->placed = false;
    set_toggle(s, event);
    s->state = last->state;
    return event;
}

static void note_failure(struct search *s, const struct event *answer)
{
    if (s->depth < s->failure.placed && s->failure.stuck != SIZE_MAX)
        return;
    s->failure = (struct linear_failure){
        .placed = s->depth,
        .last = s->depth > 0 ? s->stack[s->depth - 1].event->deed : SIZE_MAX,
        .stuck = answer->deed,
        .state = s->state,
    };
}

static enum verdict search(struct search *s)
{
    struct event *event = s->head.after;

    while (s->answered_left > 0) {
        if (s->tried.count > LINEAR_TRIED_MAX)
            return VERDICT_UNDECIDED;
        CHECK(event != NULL); /* The answer of what is left is still in the list. */
        if (event->role == ROLE_ANSWER) {
            note_failure(s, event);
            event = take_back(s);
            if (event == NULL)
                return VERDICT_BROKEN;
            event = event->after;
        } else if (place(s, event)) {
            event = s->head.after;
        } else {
            event = event->after;
        }
    }
    return VERDICT_HOLDS;
}

enum verdict linear_check(const struct timed_deed *deeds, size_t count,
                          struct linear_failure *ret_failure)
{
    struct search s = { .deeds = deeds, .failure = { .stuck = SIZE_MAX } };

    s.stack = mem_zalloc(sizeof *s.stack * (count * 2 + 1));
    list_make(&s, count);
    enum verdict verdict = search(&s);
    *ret_failure = s.failure;
    free(s.stack);
    free(s.events);
    free(s.tried.hashes);
    return verdict;
}
