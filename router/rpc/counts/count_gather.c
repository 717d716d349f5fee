#include "router/rpc/counts/count_gather.h"

#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/error_code.h"
#include "router/core/count_sum.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/request/router_state.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define GATHER_MS_MAX   2000u
#define GATHERS_OPEN    4u /* At once; each has at most WINDOW calls out. */
#define GATHERS_WAITING 16u
#define WINDOW          64u
#define RETRY_MS        100u

/* Whose gathers may fill how much of the room. Anyone may get a player's token: players have a part
 * of it, and those who ask for `fresh` counts, which the memory cannot answer, a part of that. What
 * they leave is for keys. A gather counts as that of the best who waits for it. */
enum asker_kind { OF_KEYS, OF_PLAYERS, OF_PLAYERS_FRESH, ASKER_KINDS };
static const uint32_t open_max[ASKER_KINDS] = { GATHERS_OPEN, 3, 1 };
static const uint32_t waiting_max[ASKER_KINDS] = { GATHERS_WAITING, 8, 2 };

/* One target of one request, while a gather is to tell its count. */
struct wait {
    struct wait *next;
    struct wait **link; /* NULL: it waits for nothing. */
    struct asking *asking;
    uint32_t place; /* Of the target in the gather. */
};

/* A request that waits. In its arena. */
struct asking {
    struct request *request;
    const struct count_ask *ask;
    void (*reply)(struct request *request, const struct count_ask *ask,
                  const struct count_told *told);
    struct count_told *told;
    struct wait *waits; /* One a target. */
    uint32_t open;
    bool fresh;
    struct loop_timer timer; /* Of its deadline. */
};

struct part {
    struct caller_call call;
    struct gather *gather;
    uint8_t *body;
};

struct gather {
    struct gather *next;
    struct counts *counts;
    struct arena arena;
    struct slice collection; /* Or a counter. */
    bool is_counter;
    enum asker_kind kind;
    uint16_t asker; /* Of the request that made it: nodes count it there. */
    uint32_t target_count;
    struct slice targets[COUNT_TARGETS_MAX];
    struct wait *waits;
    /* Once it has begun. */
    bool begun;
    uint64_t begun_ms;
    struct count_sum sum;
    struct part *parts; /* By shard. */
    uint32_t next_shard;
    uint32_t open;
};

struct counts {
    struct router *router;
    struct count_memo *memo;
    struct gather *open;
    struct gather *waiting; /* In the order in which they will begin. */
    uint32_t open_count;
    uint32_t waiting_count;
    struct counts_stats stats;
};

static void begin_next(struct counts *counts);

static uint64_t now_ms(const struct counts *counts)
{
    return loop_now_ms(counts->router->options.loop);
}

/* ---- waiting ---- */

static void wait_begin(struct wait *wait, struct gather *gather, uint32_t place)
{
    wait->place = place;
    wait->next = gather->waits;
    wait->link = &gather->waits;
    if (wait->next != NULL)
        wait->next->link = &wait->next;
    gather->waits = wait;
    wait->asking->open++;
}

static void wait_end(struct wait *wait)
{
    if (wait->link == NULL)
        return;
    *wait->link = wait->next;
    if (wait->next != NULL)
        wait->next->link = wait->link;
    wait->link = NULL;
    wait->asking->open--;
}

static struct count_name name_of(const struct asking *asking, size_t place)
{
    return (struct count_name){ count_ask_collection(asking->ask),
                                slice_from_text(asking->ask->targets[place]),
                                asking->ask->is_counter };
}

/* ---- the life of a gather ---- */

static void unlink_gather(struct gather **list, struct gather *gather)
{
    while (*list != gather)
        list = &(*list)->next;
    *list = gather->next;
}

/* Calls that are out are called off. */
static void gather_free(struct gather *gather)
{
    struct counts *counts = gather->counts;

    CHECK(gather->waits == NULL);
    unlink_gather(gather->begun ? &counts->open : &counts->waiting, gather);
    if (gather->begun)
        counts->open_count--;
    else
        counts->waiting_count--;
    for (uint32_t i = 0; gather->begun && i < gather->next_shard; i++) {
        if (gather->parts[i].body != NULL)
            caller_cancel(&gather->parts[i].call);
        free(gather->parts[i].body);
    }
    arena_deinit(&gather->arena);
    free(gather);
}

static enum asker_kind kind_of(const struct asking *asking)
{
    if (asking->request->player == NULL)
        return OF_KEYS;
    return asking->fresh ? OF_PLAYERS_FRESH : OF_PLAYERS;
}

static struct gather *gather_new(struct asking *asking, const struct count_name *of)
{
    struct counts *counts = asking->request->router->counts;
    struct gather *gather = mem_zalloc(sizeof *gather);
    struct gather **last = &counts->waiting;

    while (*last != NULL)
        last = &(*last)->next;
    *last = gather;
    gather->counts = counts;
    gather->collection = arena_copy(&gather->arena, of->collection);
    gather->is_counter = of->is_counter;
    gather->kind = kind_of(asking);
    gather->asker = request_asker(asking->request);
    counts->waiting_count++;
    return gather;
}

/* Gathers for which no request waits any more have nothing to do. */
static void drop_idle(struct counts *counts)
{
    for (struct gather *each = counts->open, *next; each != NULL; each = next) {
        next = each->next;
        if (each->waits == NULL)
            gather_free(each);
    }
    for (struct gather *each = counts->waiting, *next; each != NULL; each = next) {
        next = each->next;
        if (each->waits == NULL)
            gather_free(each);
    }
}

/* ---- the end of a request ---- */

/* It waits for nothing from here on; its memory may go. */
static struct request *leave(struct asking *asking)
{
    for (size_t i = 0; i < asking->ask->count; i++)
        wait_end(&asking->waits[i]);
    loop_timer_stop(&asking->timer);
    return asking->request;
}

static void fail(struct asking *asking, const Holdfast__V1__ErrorDetail *detail)
{
    request_fail(leave(asking), detail);
}

static void reply(struct asking *asking)
{
    asking->reply(leave(asking), asking->ask, asking->told);
}

/* What stood before may be told instead. */
static bool take_stale(struct asking *asking, size_t place)
{
    struct counts *counts = asking->request->router->counts;
    const struct count_name name = name_of(asking, place);
    uint64_t now = now_ms(counts);
    uint64_t since = now > COUNT_STALE_MS_MAX ? now - COUNT_STALE_MS_MAX : 0;

    if (asking->fresh || !count_memo_recall(counts->memo, &name, since, &asking->told[place].known))
        return false;
    asking->told[place].stale = true;
    counts->stats.stale++;
    wait_end(&asking->waits[place]);
    return true;
}

static void on_deadline(void *user)
{
    struct asking *asking = user;
    struct counts *counts = asking->request->router->counts;
    Holdfast__V1__ErrorDetail detail;
    bool all = true;

    for (size_t i = 0; i < asking->ask->count && all; i++)
        all = asking->waits[i].link == NULL || take_stale(asking, i);
    if (all) {
        reply(asking);
    } else {
        refusal_make(asking->request->arena, &detail, CODE(UNAVAILABLE),
                     "the shards did not all tell their part of the count in time");
        detail.retry_after_ms = RETRY_MS;
        fail(asking, &detail);
    }
    drop_idle(counts);
    begin_next(counts);
}

/* ---- the end of a gather ---- */

static size_t place_in_ask(const struct wait *wait)
{
    return (size_t)(wait - wait->asking->waits);
}

static void gather_succeed(struct gather *gather)
{
    struct counts *counts = gather->counts;
    struct count_known known = { .collection_number = gather->sum.collection_number,
                                 .from_ms = gather->sum.from_ms,
                                 .to_ms = gather->sum.to_ms,
                                 .gathered_ms = gather->begun_ms };

    for (uint32_t i = 0; i < gather->target_count; i++) {
        const struct count_name name = { gather->collection, gather->targets[i],
                                         gather->is_counter };
        known.count = gather->sum.counts[i];
        count_memo_put(counts->memo, &name, &known);
    }
    while (gather->waits != NULL) {
        struct wait *wait = gather->waits;
        struct asking *asking = wait->asking;
        known.count = gather->sum.counts[wait->place];
        asking->told[place_in_ask(wait)] = (struct count_told){ known, false };
        wait_end(wait);
        if (asking->open == 0)
            reply(asking);
    }
    gather_free(gather);
    begin_next(counts);
}

/* `detail` is borrowed, of a node's answer or of the arena. */
static void gather_fail(struct gather *gather, const Holdfast__V1__ErrorDetail *detail)
{
    struct counts *counts = gather->counts;

    counts->stats.gathers_failed++;
    while (gather->waits != NULL) {
        struct asking *asking = gather->waits->asking;
        if (!refusal_may_be_stale(detail->code) || !take_stale(asking, place_in_ask(gather->waits)))
            fail(asking, detail);
        else if (asking->open == 0)
            reply(asking);
    }
    gather_free(gather);
    drop_idle(counts);
    begin_next(counts);
}

static void gather_fail_text(struct gather *gather, Holdfast__V1__ErrorCode code, const char *text)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(&gather->arena, &detail, code, "%s", text);
    if (code == CODE(UNAVAILABLE))
        detail.retry_after_ms = RETRY_MS;
    gather_fail(gather, &detail);
}

/* What was counted under another number than the later one is told no more, not even as stale. */
static void gather_conflict(struct gather *gather)
{
    const struct count_name name = { .collection = gather->collection,
                                     .is_counter = gather->is_counter };

    count_memo_note_life(gather->counts->memo, &name, gather->sum.collection_number,
                         gather->begun_ms);
    gather_fail_text(gather, CODE(UNAVAILABLE),
                     gather->is_counter
                         ? "the counter was made again, and not every shard knows it yet"
                         : "the collection was made again, and not every shard knows it yet");
}

/* ---- asking the shards ---- */

static void ask_on(struct gather *gather);

static err take_part(struct part *part, struct slice body)
{
    struct arena arena = { 0 };
    struct codec_scope scope = { .arena = &arena };
    ProtobufCMessage *message;

    err e = proto_decode(&holdfast__internal__v1__get_partials_response__descriptor, body, &scope,
                         &message);
    if (e == ERR_OK) {
        const Holdfast__Internal__V1__GetPartialsResponse *said = (const void *)message;
        e = count_sum_add(&part->gather->sum,
                          &(struct count_part){ .shard = part->call.shard,
                                                .collection_number = said->collection_number,
                                                .at_ms = said->at_ms,
                                                .count = said->n_counts,
                                                .counts = said->counts });
    }
    arena_deinit(&arena);
    return e;
}

static void shard_answered(struct caller_call *call, const struct caller_result *result)
{
    struct part *part = call->user;
    struct gather *gather = part->gather;

    free(part->body);
    part->body = NULL;
    gather->open--;
    if (result->detail != NULL) {
        gather_fail(gather, result->detail);
        return;
    }
    err e = take_part(part, result->body);
    if (e == ERR_CONFLICT)
        gather_conflict(gather);
    else if (e != ERR_OK)
        gather_fail_text(gather, CODE(INTERNAL), "a node's answer cannot be read");
    else if (count_sum_is_whole(&gather->sum))
        gather_succeed(gather);
    else
        ask_on(gather);
}

static struct slice request_bytes(struct gather *gather, uint32_t shard, struct part *part)
{
    Holdfast__Internal__V1__GetPartialsRequest ask =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    char *targets[COUNT_TARGETS_MAX];

    ask.shard = shard;
    ask.collection = text_lend((const char *)gather->collection.data);
    ask.is_counter = gather->is_counter;
    ask.n_target_ids = gather->target_count;
    ask.target_ids = targets;
    for (uint32_t i = 0; i < gather->target_count; i++)
        targets[i] = text_lend((const char *)gather->targets[i].data);
    size_t size = holdfast__internal__v1__get_partials_request__get_packed_size(&ask);
    part->body = mem_zalloc(size + 1);
    holdfast__internal__v1__get_partials_request__pack(&ask, part->body);
    return (struct slice){ part->body, size };
}

static void ask_on(struct gather *gather)
{
    const struct router *router = gather->counts->router;

    while (gather->next_shard < gather->sum.shard_count && gather->open < WINDOW) {
        uint32_t shard = gather->next_shard++;
        struct part *part = &gather->parts[shard];
        part->gather = gather;
        part->call = (struct caller_call){
            .method = METHOD_GET_PARTIALS,
            .asker = gather->asker,
            .priority = METHOD_PRIORITY_ORDINARY,
            .shard = shard,
            .deadline_ms = gather->begun_ms + GATHER_MS_MAX,
            .started_ns = loop_clock_ns(),
            .body = request_bytes(gather, shard, part),
            .done = shard_answered,
            .user = part,
        };
        gather->open++;
        caller_start(router->options.caller, &part->call);
    }
}

/* How many gathers of a list are of that kind, or of one that has still less of the room. */
static uint32_t count_kind(const struct gather *list, enum asker_kind kind)
{
    uint32_t count = 0;

    for (; list != NULL; list = list->next)
        count += list->kind >= kind;
    return count;
}

/* A kind has room where each that includes it has. */
static bool has_room(const struct gather *list, const uint32_t max[ASKER_KINDS],
                     enum asker_kind kind)
{
    for (unsigned each = OF_KEYS; each <= (unsigned)kind; each++) {
        if (count_kind(list, (enum asker_kind)each) >= max[each])
            return false;
    }
    return true;
}

/* The first that may begin; NULL: none. */
static struct gather *find_next(const struct counts *counts)
{
    struct gather *each = counts->waiting;

    while (each != NULL && !has_room(counts->open, open_max, each->kind))
        each = each->next;
    return each;
}

static void begin_next(struct counts *counts)
{
    struct gather *gather;

    while ((gather = find_next(counts)) != NULL) {
        uint32_t shard_count = shard_map_shard_count(counts->router->options.map);
        unlink_gather(&counts->waiting, gather);
        counts->waiting_count--;
        gather->next = counts->open;
        counts->open = gather;
        counts->open_count++;
        counts->stats.gathers++;
        gather->begun = true;
        gather->begun_ms = now_ms(counts);
        gather->parts = arena_zalloc(&gather->arena, shard_count * sizeof *gather->parts);
        count_sum_init(&gather->sum, shard_count, gather->target_count, &gather->arena);
        ask_on(gather);
    }
}

/* ---- finding a gather ---- */

static bool is_of(const struct gather *gather, const struct count_name *name)
{
    return gather->is_counter == name->is_counter &&
           slice_equal(gather->collection, name->collection);
}

static bool find_target(const struct gather *gather, const struct count_name *name,
                        uint32_t *ret_place)
{
    if (!is_of(gather, name))
        return false;
    for (uint32_t i = 0; i < gather->target_count; i++) {
        if (slice_equal(gather->targets[i], name->target)) {
            *ret_place = i;
            return true;
        }
    }
    return false;
}

static bool find_in(struct gather *list, const struct count_name *name, struct gather **ret_gather,
                    uint32_t *ret_place)
{
    for (*ret_gather = list; *ret_gather != NULL; *ret_gather = (*ret_gather)->next) {
        if (find_target(*ret_gather, name, ret_place))
            return true;
    }
    return false;
}

/* One that has not begun, with room for another target of that collection; NULL: there is no room.
 */
static struct gather *find_room(struct asking *asking, const struct count_name *name)
{
    const struct counts *counts = asking->request->router->counts;

    for (struct gather *each = counts->waiting; each != NULL; each = each->next) {
        if (each->target_count < COUNT_TARGETS_MAX && is_of(each, name))
            return each;
    }
    return has_room(counts->waiting, waiting_max, kind_of(asking)) ? gather_new(asking, name)
                                                                   : NULL;
}

static void join(struct asking *asking, size_t place, struct gather *gather, uint32_t at)
{
    if (kind_of(asking) < gather->kind) {
        gather->kind = kind_of(asking);
        gather->asker = request_asker(asking->request);
    }
    wait_begin(&asking->waits[place], gather, at);
}

/* What has begun may have read a shard before the request came: no answer to a `fresh` one. False:
 * too much waits already. */
static bool wait_for(struct asking *asking, size_t place)
{
    struct counts *counts = asking->request->router->counts;
    const struct count_name name = name_of(asking, place);
    struct gather *gather;
    uint32_t at;

    if ((!asking->fresh && find_in(counts->open, &name, &gather, &at)) ||
        find_in(counts->waiting, &name, &gather, &at)) {
        counts->stats.shared++;
        join(asking, place, gather, at);
        return true;
    }
    gather = find_room(asking, &name);
    if (gather == NULL)
        return false;
    at = gather->target_count++;
    gather->targets[at] = arena_copy(&gather->arena, name.target);
    join(asking, place, gather, at);
    return true;
}

/* ---- the public interface ---- */

struct counts *counts_new(struct router *router)
{
    struct counts *counts = mem_zalloc(sizeof *counts);

    counts->router = router;
    counts->memo = count_memo_new(router->options.count_memo_bytes);
    return counts;
}

void counts_free(struct counts *counts)
{
    if (counts == NULL)
        return;
    CHECK(counts->open == NULL && counts->waiting == NULL);
    count_memo_free(counts->memo);
    free(counts);
}

struct counts_stats counts_stats(const struct counts *counts)
{
    struct counts_stats stats = counts->stats;

    stats.memo = count_memo_stats(counts->memo);
    stats.gathering = counts->open_count;
    return stats;
}

static void on_cancel(struct request *request)
{
    struct asking *asking = request->state;
    struct counts *counts = request->router->counts;
    Holdfast__V1__ErrorDetail detail;

    refusal_make(request->arena, &detail, CODE(CANCELED), "the caller has gone");
    fail(asking, &detail);
    drop_idle(counts);
    begin_next(counts);
}

/* What is known, and waits for the rest. Where too much waits, what stood before is told. False:
 * nothing did. */
static bool find_all(struct asking *asking)
{
    struct counts *counts = asking->request->router->counts;
    uint64_t now = now_ms(counts);
    uint64_t age_ms = counts->router->options.count_age_ms;
    uint64_t since = asking->fresh ? UINT64_MAX : now > age_ms ? now - age_ms : 0;

    for (size_t i = 0; i < asking->ask->count; i++) {
        const struct count_name name = name_of(asking, i);
        asking->waits[i].asking = asking;
        if (!count_memo_find(counts->memo, &name, since, &asking->told[i].known) &&
            !wait_for(asking, i) && !take_stale(asking, i))
            return false;
    }
    return true;
}

static void await(struct asking *asking)
{
    struct request *request = asking->request;
    struct router *router = request->router;
    uint64_t now = loop_now_ms(router->options.loop);

    request->state = asking;
    request->cancel = on_cancel;
    loop_timer_init(&asking->timer, router->options.loop, on_deadline, asking);
    loop_timer_start(&asking->timer, request->answer_by_ms > now ? request->answer_by_ms - now : 0);
    begin_next(router->counts);
}

void counts_ask(struct request *request, const struct count_ask *ask, bool fresh,
                void (*reply_with)(struct request *request, const struct count_ask *ask,
                                   const struct count_told *told))
{
    struct counts *counts = request->router->counts;
    struct asking *asking = arena_zalloc(request->arena, sizeof *asking);
    Holdfast__V1__ErrorDetail detail;

    if (shard_map_shard_count(request->router->options.map) == 0) {
        request_fail_text(request, CODE(UNAVAILABLE), "the router does not know the cluster yet");
        return;
    }
    *asking =
        (struct asking){ .request = request, .ask = ask, .reply = reply_with, .fresh = fresh };
    asking->told = arena_zalloc(request->arena, ask->count * sizeof *asking->told);
    asking->waits = arena_zalloc(request->arena, ask->count * sizeof *asking->waits);
    if (!find_all(asking)) {
        refusal_make(request->arena, &detail, CODE(THROTTLED),
                     "too many counts are being gathered; nothing was done");
        detail.retry_after_ms = RETRY_MS;
        fail(asking, &detail);
        drop_idle(counts);
        begin_next(counts);
    } else if (asking->open == 0) {
        reply(asking);
    } else {
        await(asking);
    }
}
