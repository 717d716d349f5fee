#include "router/rpc/counts/top_gather.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/request/router_state.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define GATHER_MS_MAX 2000u
#define WINDOW        64u
#define RETRY_MS      100u
/* Anyone may get a player's token: what players leave of the lists is for keys. */
#define PLAYERS_LISTS_MAX (TOP_LISTS_MAX / 2)

/* A request that waits. In its arena. */
struct top_wait {
    struct top_wait *next;
    struct top_list *list;
    struct request *request;
    const struct top_ask *ask;
    void (*reply)(struct request *request, const struct top_ask *ask, const struct top_told *told);
    struct loop_timer timer; /* Of its deadline. */
};

struct top_part {
    struct caller_call call;
    struct top_list *list;
    uint8_t *body; /* NULL: it is not out. */
};

/* One list: what is known of it, who waits for it, and the gather that is under way. */
struct top_list {
    struct tops *tops;
    bool used;
    char collection[65]; /* Or a counter. */
    bool is_counter;
    Holdfast__V1__TopWindow window;
    uint32_t limit;
    uint64_t asked_ms;
    struct top_wait *waits;
    /* Known since; 0: nothing is. */
    uint64_t known_ms, told_until_ms;
    struct arena known_arena;
    struct top_told known;
    /* Under way. */
    bool gathering;
    bool by_player; /* A player's token asked for it, and no key joined. */
    uint16_t asker; /* Of the request that began it: nodes count it there. */
    uint64_t begun_ms;
    struct arena arena;
    struct top_merge merge;
    struct top_part *parts; /* By shard. */
    uint32_t next_shard, open;
};

struct tops {
    struct router *router;
    struct top_list lists[TOP_LISTS_MAX];
};

static uint64_t now_ms(const struct tops *tops)
{
    return loop_now_ms(tops->router->options.loop);
}

/* ---- the end of a request ---- */
static struct request *leave(struct top_wait *wait)
{
    struct top_wait **link = &wait->list->waits;

    while (*link != wait)
        link = &(*link)->next;
    *link = wait->next;
    loop_timer_stop(&wait->timer);
    return wait->request;
}

static void tell(struct request *request, const struct top_wait *wait, bool stale)
{
    struct top_told told = wait->list->known;

    told.stale = stale || told.to_ms - told.from_ms > TOP_FRESH_MS;
    told.count = told.count < wait->ask->limit ? told.count : wait->ask->limit;
    wait->reply(request, wait->ask, &told);
}

static bool may_be_stale(const struct top_list *list)
{
    return list->known_ms > 0 && now_ms(list->tops) - list->known_ms <= TOP_STALE_MS_MAX;
}

/* What stood before may be told instead. */
static void fail(struct top_wait *wait, const Holdfast__V1__ErrorDetail *detail)
{
    const struct top_list *list = wait->list;
    struct request *request = leave(wait);

    if (refusal_may_be_stale(detail->code) && may_be_stale(list))
        tell(request, wait, true);
    else
        request_fail(request, detail);
}

/* ---- the end of a gather ---- */
static void gather_end(struct top_list *list)
{
    for (uint32_t i = 0; i < list->next_shard; i++) {
        if (list->parts[i].body != NULL)
            caller_cancel(&list->parts[i].call);
        free(list->parts[i].body);
    }
    list->gathering = false;
    list->next_shard = list->open = 0;
    top_merge_deinit(&list->merge);
    arena_deinit(&list->arena);
    list->arena = (struct arena){ 0 };
}

static void gather_fail(struct top_list *list, const Holdfast__V1__ErrorDetail *detail)
{
    while (list->waits != NULL)
        fail(list->waits, detail);
    gather_end(list);
}

static void gather_fail_text(struct top_list *list, Holdfast__V1__ErrorCode code, const char *text)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(&list->arena, &detail, code, "%s", text);
    if (code == CODE(UNAVAILABLE))
        detail.retry_after_ms = RETRY_MS;
    gather_fail(list, &detail);
}

/* How long a list is told that was so old when the last shard was read. */
static uint64_t told_for_ms(const struct top_merge *merge)
{
    int64_t left_ms = TOP_TELL_MS - (merge->to_ms - merge->from_ms);

    return (uint64_t)(left_ms < TOP_AGE_MIN_MS   ? TOP_AGE_MIN_MS
                      : left_ms > TOP_AGE_MAX_MS ? TOP_AGE_MAX_MS
                                                 : left_ms);
}

static void keep(struct top_list *list)
{
    const struct top_merge *merge = &list->merge;

    arena_reset(&list->known_arena);
    struct top_place *places = arena_alloc(&list->known_arena, (merge->count + 1) * sizeof *places);
    for (size_t i = 0; i < merge->count; i++) {
        const struct slice text = { (const uint8_t *)merge->places[i].target,
                                    strlen(merge->places[i].target) + 1 };
        places[i] = (struct top_place){ (const char *)arena_copy(&list->known_arena, text).data,
                                        merge->places[i].count };
    }
    list->known = (struct top_told){
        .places = places,
        .count = merge->count,
        .from_ms = merge->from_ms,
        .to_ms = merge->to_ms,
        .number = merge->collection_number,
    };
    list->known_ms = list->begun_ms;
    list->told_until_ms = list->begun_ms + told_for_ms(merge);
}

static bool is_of(const struct top_list *list, const char *collection, bool is_counter)
{
    return list->used && list->is_counter == is_counter &&
           strcmp(list->collection, collection) == 0;
}

/* The collection of `list` lives under that number: lists of another life are known no more. */
static void forget_others(struct top_list *list, uint64_t number)
{
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++) {
        struct top_list *each = &list->tops->lists[i];
        if (is_of(each, list->collection, list->is_counter) && each->known.number != number)
            each->known_ms = 0;
    }
}

static void gather_succeed(struct top_list *list)
{
    top_merge_finish(&list->merge);
    keep(list);
    forget_others(list, list->known.number);
    gather_end(list);
    while (list->waits != NULL) {
        struct top_wait *wait = list->waits;
        tell(leave(wait), wait, false);
    }
}

static void gather_conflict(struct top_list *list)
{
    forget_others(list, list->merge.collection_number);
    gather_fail_text(list, CODE(UNAVAILABLE),
                     list->is_counter
                         ? "the counter was made again, and not every shard knows it yet"
                         : "the collection was made again, and not every shard knows it yet");
}

/* ---- asking the shards ---- */
static void ask_on(struct top_list *list);

static err take_part(struct top_part *part, struct slice body)
{
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;

    err e = proto_decode(&holdfast__internal__v1__get_shard_top_response__descriptor, body, &scope,
                         &message);
    if (e == ERR_OK)
        e = top_merge_add(&part->list->merge, part->call.shard, (const void *)message);
    arena_deinit(&arena);
    return e;
}

static void shard_answered(struct caller_call *call, const struct caller_result *result)
{
    struct top_part *part = call->user;
    struct top_list *list = part->list;

    free(part->body);
    part->body = NULL;
    list->open--;
    if (result->detail != NULL) {
        gather_fail(list, result->detail);
        return;
    }
    err e = take_part(part, result->body);
    if (e == ERR_CONFLICT)
        gather_conflict(list);
    else if (e == ERR_UNAVAILABLE)
        gather_fail_text(list, CODE(UNAVAILABLE),
                         "a shard's new owner has not pulled the totals yet");
    else if (e != ERR_OK)
        gather_fail_text(list, CODE(INTERNAL), "a node's answer cannot be read");
    else if (top_merge_is_whole(&list->merge))
        gather_succeed(list);
    else
        ask_on(list);
}

static struct slice request_bytes(struct top_list *list, uint32_t shard, struct top_part *part)
{
    Holdfast__Internal__V1__GetShardTopRequest ask =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;

    ask.shard = shard;
    ask.collection = list->collection;
    ask.window = list->window;
    ask.limit = list->limit;
    ask.is_counter = list->is_counter;
    size_t size = holdfast__internal__v1__get_shard_top_request__get_packed_size(&ask);
    part->body = mem_zalloc(size + 1);
    holdfast__internal__v1__get_shard_top_request__pack(&ask, part->body);
    return (struct slice){ part->body, size };
}

static void ask_on(struct top_list *list)
{
    const struct router *router = list->tops->router;

    while (list->next_shard < list->merge.shard_count && list->open < WINDOW) {
        uint32_t shard = list->next_shard++;
        struct top_part *part = &list->parts[shard];
        part->list = list;
        part->call = (struct caller_call){
            .method = METHOD_GET_SHARD_TOP,
            .asker = list->asker,
            .priority = METHOD_PRIORITY_ORDINARY,
            .shard = shard,
            .deadline_ms = list->begun_ms + GATHER_MS_MAX,
            .started_ns = loop_clock_ns(),
            .body = request_bytes(list, shard, part),
            .done = shard_answered,
            .user = part,
        };
        list->open++;
        caller_start(router->options.caller, &part->call);
    }
}

static void gather_begin(struct top_list *list, const struct request *request)
{
    const struct router *router = list->tops->router;
    uint32_t shard_count = shard_map_shard_count(router->options.map);

    list->gathering = true;
    list->by_player = request->player != NULL;
    list->asker = request_asker(request);
    list->begun_ms = now_ms(list->tops);
    list->parts = arena_zalloc(&list->arena, shard_count * sizeof *list->parts);
    top_merge_init(&list->merge, shard_count, list->limit, &list->arena);
    ask_on(list);
}

/* ---- requests ---- */
static void on_deadline(void *user)
{
    struct top_wait *wait = user;
    struct top_list *list = wait->list;
    Holdfast__V1__ErrorDetail detail;

    refusal_make(wait->request->arena, &detail, CODE(UNAVAILABLE),
                 "the shards did not all tell their part of the list in time");
    detail.retry_after_ms = RETRY_MS;
    fail(wait, &detail);
    if (list->waits == NULL && list->gathering)
        gather_end(list);
}

static void on_cancel(struct request *request)
{
    struct top_wait *wait = request->state;
    struct top_list *list = wait->list;
    Holdfast__V1__ErrorDetail detail;

    refusal_make(request->arena, &detail, CODE(CANCELED), "the caller has gone");
    request_fail(leave(wait), &detail);
    if (list->waits == NULL && list->gathering)
        gather_end(list);
}

static uint32_t places_of(uint32_t limit)
{
    return limit <= 10 ? 10 : limit <= TOP_LIMIT_DEFAULT ? TOP_LIMIT_DEFAULT : TOP_LIMIT_MAX;
}

/* Whether `a` may go before `b`: what knows nothing, as of a collection that there is not, goes
 * before what does. */
static bool goes_before(const struct top_list *a, const struct top_list *b)
{
    if ((a->known_ms > 0) != (b->known_ms > 0))
        return a->known_ms == 0;
    return a->asked_ms < b->asked_ms;
}

static struct top_list *list_find(struct tops *tops, const struct top_ask *ask)
{
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++) {
        struct top_list *list = &tops->lists[i];
        if (list->window == ask->window && list->limit == places_of(ask->limit) &&
            is_of(list, ask->collection, ask->is_counter))
            return list;
    }
    return NULL;
}

/* In place of the one that was asked for longest ago; NULL: all are being gathered. */
static struct top_list *list_make(struct tops *tops, const struct top_ask *ask)
{
    struct top_list *oldest = NULL;

    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++) {
        struct top_list *list = &tops->lists[i];
        if (!list->gathering && (oldest == NULL || goes_before(list, oldest)))
            oldest = list;
    }
    if (oldest == NULL)
        return NULL;
    arena_deinit(&oldest->known_arena);
    *oldest = (struct top_list){
        .tops = tops,
        .used = true,
        .is_counter = ask->is_counter,
        .window = ask->window,
        .limit = places_of(ask->limit),
    };
    CHECK(strlen(ask->collection) < sizeof oldest->collection);
    memcpy(oldest->collection, ask->collection, strlen(ask->collection) + 1);
    return oldest;
}

static void await(struct top_wait *wait)
{
    struct request *request = wait->request;
    struct top_list *list = wait->list;
    uint64_t now = now_ms(list->tops);

    request->state = wait;
    request->cancel = on_cancel;
    wait->next = list->waits;
    list->waits = wait;
    loop_timer_init(&wait->timer, list->tops->router->options.loop, on_deadline, wait);
    loop_timer_start(&wait->timer, request->answer_by_ms > now ? request->answer_by_ms - now : 0);
    if (!list->gathering)
        gather_begin(list, request);
    list->by_player &= request->player != NULL;
}

/* Whether one more list may be gathered for this request. */
static bool has_room(const struct tops *tops, const struct request *request)
{
    uint32_t of_players = 0;

    if (request->player == NULL)
        return true;
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++)
        of_players += tops->lists[i].gathering && tops->lists[i].by_player;
    return of_players < PLAYERS_LISTS_MAX;
}

/* What is known of the same collection and window, with as many places or more; NULL: nothing. */
static struct top_list *find_known(struct tops *tops, const struct top_ask *ask)
{
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++) {
        struct top_list *list = &tops->lists[i];
        if (list->window == ask->window && list->limit >= ask->limit &&
            is_of(list, ask->collection, ask->is_counter) && may_be_stale(list))
            return list;
    }
    return NULL;
}

/* Too many are being gathered: what stood before is told. */
static void tell_known(struct top_wait *wait)
{
    struct request *request = wait->request;
    Holdfast__V1__ErrorDetail detail;

    wait->list = find_known(request->router->tops, wait->ask);
    if (wait->list != NULL) {
        tell(request, wait, true);
        return;
    }
    refusal_make(request->arena, &detail, CODE(THROTTLED),
                 "too many lists are being gathered; nothing was done");
    detail.retry_after_ms = RETRY_MS;
    request_fail(request, &detail);
}

void tops_ask(struct request *request, const struct top_ask *ask,
              void (*reply)(struct request *request, const struct top_ask *ask,
                            const struct top_told *told))
{
    struct tops *tops = request->router->tops;
    struct top_wait *wait = arena_zalloc(request->arena, sizeof *wait);

    if (shard_map_shard_count(request->router->options.map) == 0) {
        request_fail_text(request, CODE(UNAVAILABLE), "the router does not know the cluster yet");
        return;
    }
    struct top_list *list = list_find(tops, ask);
    if (list == NULL && has_room(tops, request))
        list = list_make(tops, ask);
    *wait = (struct top_wait){ .list = list, .request = request, .ask = ask, .reply = reply };
    if (list == NULL) {
        tell_known(wait);
        return;
    }
    list->asked_ms = now_ms(tops);
    if (list->known_ms > 0 && now_ms(tops) <= list->told_until_ms)
        tell(request, wait, false);
    else if (list->gathering || has_room(tops, request))
        await(wait);
    else
        tell_known(wait);
}

struct tops *tops_new(struct router *router)
{
    struct tops *tops = mem_zalloc(sizeof *tops);

    tops->router = router;
    return tops;
}

void tops_free(struct tops *tops)
{
    if (tops == NULL)
        return;
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++) {
        CHECK(!tops->lists[i].gathering);
        arena_deinit(&tops->lists[i].known_arena);
    }
    free(tops);
}
