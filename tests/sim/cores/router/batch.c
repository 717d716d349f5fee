/*
 * Batches (router/core/scatter.h) and mail to many (node_form.h): what is split, shared, refused
 * and joined, said from the shape that every Batch method has.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/core/node_form.h"
#include "router/core/scatter.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define SHARED_BYTES_MAX 8192u
#define ELEMENTS_MAX     12u

static char *maybe(struct rsim *sim, const char *text)
{
    return rsim_chance(sim, 50) ? text_lend("") : text_lend(text);
}

static char *id_make(struct rsim *sim, const char *kind)
{
    return rsim_chance(sim, 8)
               ? text_lend("")
               : arena_printf(&sim->arena, "%s%u", kind, (unsigned)rsim_between(sim, 0, 9));
}

static const char *first_of(const char *own, const char *shared)
{
    return own[0] != 0 ? own : shared;
}

/* ---- BatchStartSession: texts, numbers, an enumeration and a list are shared ---- */

struct starts {
    Holdfast__V1__BatchStartSessionRequest batch;
    Holdfast__V1__StartSessionRequest parts[ELEMENTS_MAX], was[ELEMENTS_MAX];
    Holdfast__V1__StartSessionRequest *list[ELEMENTS_MAX];
    uint32_t count;
};

static void starts_make(struct rsim *sim, struct starts *s)
{
    static char *includes[2][2] = { { (char *)(uintptr_t) "sections", NULL },
                                    { (char *)(uintptr_t) "balances", NULL } };

    s->count = (uint32_t)rsim_between(sim, 0, ELEMENTS_MAX);
    holdfast__v1__batch_start_session_request__init(&s->batch);
    s->batch.requests = s->list;
    s->batch.n_requests = s->count;
    s->batch.op_id = maybe(sim, "shared");
    s->batch.incarnation = maybe(sim, "1-7");
    s->batch.attempt = (uint32_t)rsim_between(sim, 0, 2);
    s->batch.grace_ms = (uint32_t)rsim_between(sim, 0, 1) * 900;
    s->batch.mode = (Holdfast__V1__StartMode)rsim_between(sim, 0, 3);
    s->batch.n_include = rsim_between(sim, 0, 1);
    s->batch.include = includes[0];
    for (uint32_t i = 0; i < s->count; i++) {
        Holdfast__V1__StartSessionRequest *one = s->list[i] = &s->parts[i];
        holdfast__v1__start_session_request__init(one);
        one->player_id = id_make(sim, "p");
        one->op_id = rsim_chance(sim, 50) ? text_lend("") : id_make(sim, "o");
        one->incarnation = maybe(sim, "1-8");
        one->attempt = (uint32_t)rsim_between(sim, 0, 1) * 5;
        one->grace_ms = (uint32_t)rsim_between(sim, 0, 1) * 70;
        one->mode = (Holdfast__V1__StartMode)rsim_between(sim, 0, 3);
        one->n_include = rsim_between(sim, 0, 1);
        one->include = one->n_include > 0 ? includes[1] : NULL;
        s->was[i] = *one;
    }
}

static void shared_check(struct rsim *sim, const struct starts *s)
{
    const Holdfast__V1__BatchStartSessionRequest *batch = &s->batch;

    for (uint32_t i = 0; i < s->count; i++) {
        const Holdfast__V1__StartSessionRequest *was = &s->was[i], *now = &s->parts[i];
        bool own_list = was->n_include > 0;

        PROMISE(sim, strcmp(now->player_id, was->player_id) == 0, "another player");
        PROMISE(sim, strcmp(now->op_id, first_of(was->op_id, batch->op_id)) == 0, "op_id");
        PROMISE(sim, strcmp(now->incarnation, first_of(was->incarnation, batch->incarnation)) == 0,
                "incarnation");
        PROMISE(sim, now->attempt == (was->attempt != 0 ? was->attempt : batch->attempt),
                "attempt");
        PROMISE(sim, now->grace_ms == (was->grace_ms != 0 ? was->grace_ms : batch->grace_ms),
                "grace_ms");
        PROMISE(sim, now->mode == (was->mode != 0 ? was->mode : batch->mode), "mode");
        PROMISE(sim, now->n_include == (own_list ? 1 : batch->n_include), "include");
        if (now->n_include > 0)
            PROMISE(sim, strcmp(now->include[0], own_list ? "balances" : "sections") == 0,
                    "include of another");
    }
    sim->counts.fields_shared++;
}

/* The place of the first that names a player and an op_id as an earlier one; count: there is none.
 */
static uint32_t repeated(const struct starts *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (s->parts[i].player_id[0] != 0 && s->parts[i].op_id[0] != 0 &&
                strcmp(s->parts[i].player_id, s->parts[k].player_id) == 0 &&
                strcmp(s->parts[i].op_id, s->parts[k].op_id) == 0)
                return i;
        }
    }
    return s->count;
}

static void distinct_check(struct rsim *sim, const struct starts *s,
                           const struct scatter_elements *elements)
{
    const struct method_info *method = method_find(METHOD_BATCH_START_SESSION);
    uint32_t place = repeated(s);

    err e = scatter_check_distinct(method, elements, &sim->arena, &sim->detail);
    PROMISE(sim, e == (place < s->count ? ERR_INVALID : ERR_OK),
            "element %u of %u repeats an operation, and is taken, or the other way round", place,
            s->count);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT),
                 arena_printf(&sim->arena, "requests[%u].op_id", place));
    sim->counts.operations_twice++;
}

static void starts_run(struct rsim *sim)
{
    const struct method_info *method = method_find(METHOD_BATCH_START_SESSION);
    struct starts s;
    struct scatter_elements elements;

    starts_make(sim, &s);
    PROMISE(sim,
            scatter_split(method, &s.batch.base, &sim->arena, &elements, &sim->detail) == ERR_OK,
            "a batch of %u is refused", s.count);
    PROMISE(sim, elements.count == s.count, "%u elements of %u", elements.count, s.count);
    for (uint32_t i = 0; i < s.count; i++)
        PROMISE(sim, elements.messages[i] == &s.parts[i].base, "the elements are in another order");
    PROMISE(sim, scatter_share(method, &s.batch.base, &sim->arena, &sim->detail) == ERR_OK,
            "shared fields are refused: %s", sim->detail.message);
    shared_check(sim, &s);
    distinct_check(sim, &s, &elements);
    sim->counts.batches_split++;
}

/* ---- BatchGrant: a shared authority, and how large shared fields may be ---- */

static void grants_run(struct rsim *sim)
{
    static const char *const authorities[] = { "", "unheld", "system:match", "root", "session" };
    const struct method_info *method = method_find(METHOD_BATCH_GRANT);
    Holdfast__V1__GrantRequest part, *list[] = { &part };
    Holdfast__V1__BatchGrantRequest batch;
    const char *authority = RSIM_PICK(sim, authorities);
    bool bad = strcmp(authority, "root") == 0 || strcmp(authority, "session") == 0;
    size_t size = rsim_chance(sim, 50) ? 0 : rsim_between(sim, 8100, 8200);
    char *reason = arena_alloc(&sim->arena, size + 1);

    memset(reason, 'r', size);
    reason[size] = 0;
    holdfast__v1__batch_grant_request__init(&batch);
    holdfast__v1__grant_request__init(&part);
    batch.authority = text_lend(authority);
    batch.reason = reason;
    /* Alone, it is what each element may get. */
    bool large = holdfast__v1__batch_grant_request__get_packed_size(&batch) > SHARED_BYTES_MAX;
    batch.requests = list;
    batch.n_requests = 1;
    part.reason = size > 0 ? text_lend("") : text_lend("own");
    err e = scatter_share(method, &batch.base, &sim->arena, &sim->detail);
    PROMISE(sim, e == (large || bad ? ERR_INVALID : ERR_OK),
            "%zu bytes and the authority \"%s\" are shared, or not", size, authority);
    sim->counts.fields_too_large += large;
    if (e != ERR_OK) {
        rsim_refused(sim, CODE(INVALID_ARGUMENT), large ? "" : "authority");
        PROMISE(sim, part.authority[0] == 0, "an element was changed");
        return;
    }
    PROMISE(sim, strcmp(part.authority, authority) == 0, "the authority is not shared");
    PROMISE(sim, strcmp(part.reason, size > 0 ? reason : "own") == 0, "the reason is not shared");
}

/* Each Batch method at its limit. */
static void limits_run(struct rsim *sim)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    const struct method_info *method = &all[rsim_between(sim, 0, count - 1)];
    Holdfast__V1__BatchGrantRequest batch;
    Holdfast__V1__GrantRequest **list = arena_zalloc(&sim->arena, 1001 * sizeof *list);
    struct scatter_elements elements;

    PROMISE(sim, scatter_limit(method) == (method->route == METHOD_SCATTER ? method->most : 0),
            "%s takes %u elements", method->name, scatter_limit(method));
    holdfast__v1__batch_grant_request__init(&batch);
    batch.requests = list;
    batch.n_requests = 999 + rsim_between(sim, 0, 2);
    err e = scatter_split(method_find(METHOD_BATCH_GRANT), &batch.base, &sim->arena, &elements,
                          &sim->detail);
    PROMISE(sim, e == (batch.n_requests > 1000 ? ERR_INVALID : ERR_OK), "%zu elements: %d",
            batch.n_requests, (int)e);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "requests");
    PROMISE(sim,
            strcmp(sim->detail.limit, "at most 1000") == 0 &&
                strcmp(sim->detail.value, "1001") == 0,
            "the limit or the value is another: %s, %s", sim->detail.limit, sim->detail.value);
    sim->counts.batches_too_many++;
}

/* Reads have no op_id, and the same player may be read twice. */
static void reads_run(struct rsim *sim)
{
    Holdfast__V1__GetProfileRequest parts[2], *list[] = { &parts[0], &parts[1] };
    Holdfast__V1__BatchGetProfileRequest batch;
    struct scatter_elements elements;
    const struct method_info *method = method_find(METHOD_BATCH_GET_PROFILE);
    Holdfast__V1__ReadOptions options, own;

    holdfast__v1__batch_get_profile_request__init(&batch);
    holdfast__v1__read_options__init(&options);
    holdfast__v1__read_options__init(&own);
    batch.requests = list;
    batch.n_requests = 2;
    batch.read = rsim_chance(sim, 50) ? &options : NULL;
    for (uint32_t i = 0; i < 2; i++) {
        holdfast__v1__get_profile_request__init(&parts[i]);
        parts[i].player_id = text_lend("ada");
    }
    parts[1].read = &own;
    if (scatter_split(method, &batch.base, &sim->arena, &elements, &sim->detail) != ERR_OK ||
        scatter_share(method, &batch.base, &sim->arena, &sim->detail) != ERR_OK ||
        scatter_check_distinct(method, &elements, &sim->arena, &sim->detail) != ERR_OK)
        rsim_broken(sim, "a batch of reads is refused: %s", sim->detail.message);
    PROMISE(sim, parts[0].read == batch.read && parts[1].read == &own, "a message is not shared");
}

/* ---- answers ---- */

static void answers_run(struct rsim *sim)
{
    struct scatter_outcome outcomes[8];
    Holdfast__V1__GrantResponse response;
    Holdfast__V1__ErrorDetail error;
    struct buf joined = { 0 };
    uint32_t count = (uint32_t)rsim_between(sim, 0, 8), failed = 0;
    size_t lengths[8];

    for (uint32_t i = 0; i < count; i++) {
        size_t length =
            rsim_chance(sim, 30) ? rsim_between(sim, 100, 140) : rsim_between(sim, 0, 3);
        if (rsim_chance(sim, 5))
            length = rsim_between(sim, 8000, 17000);
        char *text = arena_zalloc(&sim->arena, length + 1);
        uint8_t *bytes = arena_alloc(&sim->arena, length + 64);

        memset(text, 'm', length);
        lengths[i] = length;
        outcomes[i].failed = rsim_chance(sim, 40);
        failed += outcomes[i].failed;
        holdfast__v1__grant_response__init(&response);
        holdfast__v1__error_detail__init(&error);
        error.message = text;
        response.n_item_uids = length > 0;
        response.item_uids = &text;
        outcomes[i].bytes.data = bytes;
        outcomes[i].bytes.size = outcomes[i].failed
                                     ? holdfast__v1__error_detail__pack(&error, bytes)
                                     : holdfast__v1__grant_response__pack(&response, bytes);
    }
    scatter_join(outcomes, count, &joined);
    PROMISE(sim, scatter_joined_size(outcomes, count) == joined.size, "the size is told wrong");
    Holdfast__V1__BatchGrantResponse *read =
        holdfast__v1__batch_grant_response__unpack(NULL, joined.size, joined.data);
    PROMISE(sim, read != NULL, "an answer that cannot be read");
    PROMISE(sim, read->n_results == count && read->failed == failed, "%zu results, %u failed",
            read->n_results, read->failed);
    for (uint32_t i = 0; i < count; i++) {
        const Holdfast__V1__GrantResult *one = read->results[i];
        bool error_case = one->outcome_case == HOLDFAST__V1__GRANT_RESULT__OUTCOME_ERROR;

        PROMISE(sim, error_case == outcomes[i].failed, "an error is told as an answer");
        size_t length = error_case                       ? strlen(one->error->message)
                        : one->response->n_item_uids > 0 ? strlen(one->response->item_uids[0])
                                                         : 0;
        PROMISE(sim, length == lengths[i], "the answer of another element");
    }
    holdfast__v1__batch_grant_response__free_unpacked(read, NULL);
    buf_deinit(&joined);
    sim->counts.answers_joined++;
}

static void overflow_run(struct rsim *sim)
{
    static const enum method_id all[] = { METHOD_BATCH_GRANT, METHOD_BATCH_GET_PROFILE,
                                          METHOD_DELIVER_MAIL, METHOD_BATCH_END_SESSION };
    const struct method_info *method = method_find(RSIM_PICK(sim, all));

    scatter_overflow(method, &sim->arena, &sim->detail);
    /* What was written is not told as failed. */
    rsim_refused(sim,
                 method->id == METHOD_BATCH_GET_PROFILE ? CODE(UNAVAILABLE) : CODE(OUTCOME_UNKNOWN),
                 NULL);
}

/* ---- other forms ---- */

static void mail_check(struct rsim *sim, const Holdfast__V1__DeliverMailRequest *request,
                       const ProtobufCMessage *form)
{
    const Holdfast__Internal__V1__DeliverToPlayersRequest *all =
        (const Holdfast__Internal__V1__DeliverToPlayersRequest *)form;

    PROMISE(sim, all->n_requests == request->n_to_player_ids, "%zu recipients", all->n_requests);
    for (size_t i = 0; i < all->n_requests; i++) {
        const Holdfast__Internal__V1__DeliverToPlayerRequest *one = all->requests[i];

        PROMISE(sim, strcmp(one->player_id, request->to_player_ids[i]) == 0, "another recipient");
        PROMISE(sim,
                strcmp(one->op_id, request->op_id) == 0 &&
                    strcmp(one->authority, request->authority) == 0 &&
                    one->attempt == request->attempt,
                "another operation, or authority");
        PROMISE(sim,
                one->n_currencies == request->n_currencies &&
                    one->currencies == request->currencies && one->n_items == request->n_items &&
                    one->items == request->items,
                "other goods");
        PROMISE(sim,
                strcmp(one->text, request->text) == 0 && strcmp(one->reason, request->reason) == 0,
                "another text");
    }
    sim->counts.mail_spread++;
}

static void mail_run(struct rsim *sim)
{
    const struct method_info *method = method_find(METHOD_DELIVER_MAIL);
    Holdfast__V1__DeliverMailRequest request;
    Holdfast__V1__CurrencyAmount gold, *currencies[] = { &gold };
    Holdfast__V1__ItemSpec item, *items[] = { &item };
    const ProtobufCMessage *form = NULL;
    uint32_t few = (uint32_t)rsim_between(sim, 1, 4);
    size_t count = rsim_chance(sim, 70) ? few : rsim_chance(sim, 30) ? 0 : rsim_about(sim, 1000);
    size_t size = rsim_chance(sim, 70) ? 10 : rsim_between(sim, 8100, 8200);
    char **players = arena_alloc(&sim->arena, (count + 1) * sizeof *players);
    char *text = arena_zalloc(&sim->arena, size + 1);

    memset(text, 't', size);
    for (size_t i = 0; i < count; i++)
        players[i] = arena_printf(&sim->arena, "p%u", (unsigned)rsim_between(sim, 0, 9));
    holdfast__v1__deliver_mail_request__init(&request);
    holdfast__v1__currency_amount__init(&gold);
    holdfast__v1__item_spec__init(&item);
    request.op_id = text_lend("receipt:7");
    request.authority = text_lend("system:mail");
    request.reason = text_lend("gift");
    request.attempt = (uint32_t)rsim_between(sim, 0, 3);
    request.text = text;
    request.currencies = currencies;
    request.n_currencies = 1;
    request.items = items;
    request.n_items = 1;
    bool large = holdfast__v1__deliver_mail_request__get_packed_size(&request) > SHARED_BYTES_MAX;
    request.to_player_ids = players;
    request.n_to_player_ids = count;
    bool many = count == 0 || count > 1000;
    err e = node_form_make(method, &request.base, &sim->arena, &form, &sim->detail);
    PROMISE(sim, e == (many || large ? ERR_INVALID : ERR_OK), "%zu recipients of %zu bytes: %d",
            count, size, (int)e);
    if (e != ERR_OK) {
        rsim_refused(sim, CODE(INVALID_ARGUMENT), many ? "to_player_ids" : "");
        return;
    }
    mail_check(sim, &request, form);
    const struct scatter_elements elements = {
        (ProtobufCMessage *const
             *)(void *)((const Holdfast__Internal__V1__DeliverToPlayersRequest *)form)
            ->requests,
        (uint32_t)count
    };
    bool twice = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i && !twice; k++)
            twice = strcmp(players[i], players[k]) == 0;
    }
    e = scatter_check_distinct(method, &elements, &sim->arena, &sim->detail);
    PROMISE(sim, e == (twice ? ERR_INVALID : ERR_OK), "a recipient is named twice: %d", (int)e);
    if (twice)
        PROMISE(sim, strncmp(sim->detail.field, "to_player_ids[", 14) == 0, "told of \"%s\"",
                sim->detail.field);
}

static Holdfast__V1__SwapSide *side_make(struct rsim *sim, const char *player)
{
    static Holdfast__V1__CurrencyAmount *none[3];
    static char *no_items[3];
    Holdfast__V1__SwapSide *side = arena_alloc(&sim->arena, sizeof *side);

    if (rsim_chance(sim, 10))
        return NULL;
    holdfast__v1__swap_side__init(side);
    side->player_id = text_lend(player);
    side->authority = arena_printf(&sim->arena, "session:%s", player);
    if (rsim_chance(sim, 20))
        return side;
    side->gives = arena_alloc(&sim->arena, sizeof *side->gives);
    holdfast__v1__goods__init(side->gives);
    side->gives->n_currencies = rsim_between(sim, 0, 3);
    side->gives->currencies = none;
    side->gives->n_item_uids = rsim_between(sim, 0, 3);
    side->gives->item_uids = no_items;
    return side;
}

static void swap_run(struct rsim *sim)
{
    Holdfast__V1__SwapRequest request;
    const ProtobufCMessage *form = NULL;
    const Holdfast__V1__Goods nothing = { .n_currencies = 0 };

    holdfast__v1__swap_request__init(&request);
    request.op_id = text_lend("swap:1");
    request.attempt = (uint32_t)rsim_between(sim, 0, 3);
    request.reason = text_lend("fair");
    if (rsim_chance(sim, 50)) {
        request._if_version_case = HOLDFAST__V1__SWAP_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = rsim_between(sim, 0, 9);
    }
    request.a = side_make(sim, "ada");
    request.b = side_make(sim, "bob");
    PROMISE(sim,
            node_form_make(method_find(METHOD_SWAP), &request.base, &sim->arena, &form,
                           &sim->detail) == ERR_OK,
            "a swap has no form");
    const Holdfast__Internal__V1__SwapGoodsRequest *flat =
        (const Holdfast__Internal__V1__SwapGoodsRequest *)form;
    const Holdfast__V1__Goods *a =
        request.a != NULL && request.a->gives ? request.a->gives : &nothing;
    const Holdfast__V1__Goods *b =
        request.b != NULL && request.b->gives ? request.b->gives : &nothing;
    PROMISE(sim,
            strcmp(flat->op_id, "swap:1") == 0 && strcmp(flat->reason, "fair") == 0 &&
                flat->attempt == request.attempt,
            "another operation");
    bool versioned = request._if_version_case != 0;
    PROMISE(sim,
            (flat->_if_version_case != 0) == versioned &&
                (!versioned || flat->if_version == request.if_version),
            "another condition");
    PROMISE(sim,
            strcmp(flat->player_id, request.a != NULL ? "ada" : "") == 0 &&
                strcmp(flat->other_player_id, request.b != NULL ? "bob" : "") == 0,
            "other players");
    PROMISE(sim,
            strcmp(flat->authority, request.a != NULL ? "session:ada" : "") == 0 &&
                strcmp(flat->other_authority, request.b != NULL ? "session:bob" : "") == 0,
            "the authority of another");
    PROMISE(sim,
            flat->n_currencies == a->n_currencies && flat->n_item_uids == a->n_item_uids &&
                flat->n_other_currencies == b->n_currencies &&
                flat->n_other_item_uids == b->n_item_uids,
            "a side gives something else");
    sim->counts.swaps_flattened++;
}

/* Errors speak of the caller's fields. */
static void told_run(struct rsim *sim)
{
    static const struct {
        enum method_id method;
        const char *field, *told;
    } all[] = {
        { METHOD_SWAP, "player_id", "a.player_id" },
        { METHOD_SWAP, "authority", "a.authority" },
        { METHOD_SWAP, "other_authority", "b.authority" },
        { METHOD_SWAP, "changes", "" },
        { METHOD_SWAP, "reason", "reason" },
        { METHOD_DELIVER_MAIL, "player_id", "to_player_ids" },
        { METHOD_DELIVER_MAIL, "authority", "authority" },
        { METHOD_GRANT, "player_id", "player_id" },
    };
    size_t place = rsim_between(sim, 0, ARRAY_SIZE(all) - 1);
    bool begins = rsim_chance(sim, 70);
    Holdfast__V1__ErrorDetail detail;

    holdfast__v1__error_detail__init(&detail);
    detail.field = text_lend(all[place].field);
    detail.message = begins ? arena_printf(&sim->arena, "%s: too long", all[place].field)
                            : text_lend("too long");
    node_form_tell(method_find(all[place].method), NULL, &sim->arena, &detail);
    PROMISE(sim, strcmp(detail.field, all[place].told) == 0, "%s is told as %s", all[place].field,
            detail.field);
    char *wanted = arena_printf(&sim->arena, "%s%stoo long", begins ? all[place].told : "",
                                begins ? ": " : "");
    PROMISE(sim, strcmp(detail.message, wanted) == 0, "told as \"%s\"", detail.message);
}

void room_batch(struct rsim *sim)
{
    for (uint32_t i = 0; i < 6; i++) {
        starts_run(sim);
        grants_run(sim);
        reads_run(sim);
        answers_run(sim);
        overflow_run(sim);
        swap_run(sim);
        told_run(sim);
    }
    mail_run(sim);
    limits_run(sim);
}
