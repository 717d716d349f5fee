/*
 * What an op_id stands for, and how long (operation.proto, docs/operations.md): ids at the floor,
 * at the ends of the window and of how far they may be ahead; `key:` ids at the end of their day;
 * attempts, seals, another request under the same id; outcomes that are forgotten a few at a time;
 * and windows that a policy makes longer or shorter.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/op.h"
#include "node/core/codec/text_rule.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define IDS      160u
#define TURNS    120u
#define LEAST_MS 900000ull /* No outcome is forgotten earlier. */
#define DAY_MS   86400000ull
#define ROWS_MAX 4096u
#define WINDOWS  4u
#define LATE_MS  300000ull /* What was decided so long after its id was made was settled late. */
#define OPEN_MAX 40u       /* Payments on their way. */
#define FROM     0u
#define TO       1u

typedef Holdfast__Internal__V1__PruneOperationsRequest prune_request;

struct id {
    char *text;
    bool typed, key;
    uint64_t ms, decided_ms; /* ms: of a UUIDv7. */
    Holdfast__V1__OperationState state;
    bool sealed;
    bool pays;    /* A player of another shard, which is out of reach now and then. */
    int64_t gold; /* What the request asks for; too much is refused. */
    uint32_t attempt;
};

struct desk {
    struct rsim *sim;
    struct fixture_shards s;
    struct fixture *f; /* Of the player's shard. */
    char player[16], other[16];
    uint32_t open;
    struct id ids[IDS];
    uint32_t count, named;
    uint64_t floor_ms, window_ms;
    int64_t balance;
};

static bool chance(struct desk *d, uint32_t per_hundred)
{
    return rsim_chance(d->sim, per_hundred);
}

static bool is_past_floor(const struct desk *d, const struct id *id)
{
    return !id->typed && id->ms <= d->floor_ms;
}

/* A `key:` whose day is over stands for nothing; not while it is pending. */
static bool is_over(const struct desk *d, const struct id *id)
{
    return id->key && id->state != OPERATION(PENDING) && id->state != OPERATION(UNKNOWN) &&
           d->f->now_ms > id->decided_ms + DAY_MS;
}

static Holdfast__V1__OperationState state_of(const struct desk *d, const struct id *id)
{
    if (is_past_floor(d, id) && id->state == OPERATION(UNKNOWN))
        return OPERATION(EXPIRED);
    return is_over(d, id) ? OPERATION(UNKNOWN) : id->state;
}

/* ---- one request ---- */

static const void *pay(struct desk *d, const struct id *id, int64_t gold, uint32_t attempt)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = text_lend("gold");
    amount.amount = gold;
    request.player_id = d->player;
    request.to_player_id = d->other;
    request.op_id = id->text;
    request.attempt = attempt;
    request.authority = text_lend("unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(d->f, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static const void *spend(struct desk *d, const struct id *id, int64_t gold, uint32_t attempt)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    if (id->pays)
        return pay(d, id, gold, attempt);
    amount.currency = text_lend("gold");
    amount.amount = gold;
    request.player_id = d->player;
    request.op_id = id->text;
    request.attempt = attempt;
    request.authority = text_lend("unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(d->f, METHOD_SPEND, &request.base);
}

static void refused(struct desk *d, const void *told, Holdfast__V1__ErrorCode code)
{
    PROMISE(d->sim, told == NULL && d->f->error != NULL, "what has to be refused is done");
    PROMISE(d->sim, d->f->error->code == code, "refused with %d, not %d: %s",
            (int)d->f->error->code, (int)code, d->f->error->message);
    d->sim->counts.ids_turned_down++;
}

static void pending(struct desk *d, const void *told, bool again)
{
    PROMISE(d->sim, told == NULL && d->f->outcome.kind == OUTCOME_PENDING,
            "what is on its way is told as %d", (int)d->f->outcome.kind);
    PROMISE(d->sim, d->f->outcome.duplicate == again, "what is on its way is debited again");
    d->sim->counts.ids_pending_below += again;
}

/* It is decided now, for the first time or once more. */
static void decided(struct desk *d, struct id *id, const void *told, uint32_t attempt)
{
    bool enough = id->gold <= d->balance;

    id->decided_ms = d->f->now_ms;
    id->attempt = attempt;
    id->sealed = false;
    id->state = enough ? OPERATION(COMMITTED) : OPERATION(REFUSED);
    if (!enough) {
        refused(d, told, CODE(INSUFFICIENT_FUNDS));
        PROMISE(d->sim, d->f->error->final, "a refusal that is stored is told as one that is not");
        return;
    }
    if (id->pays) {
        pending(d, told, false);
        id->state = OPERATION(PENDING);
        d->open++;
    } else {
        PROMISE(d->sim, told != NULL, "a request is refused: %s", d->f->error->message);
    }
    PROMISE(d->sim, !d->f->outcome.duplicate, "a first call is told as a repetition");
    d->balance -= id->gold;
    d->sim->counts.ids_decided++;
}

static void ask(struct desk *d, struct id *id, uint32_t attempt)
{
    uint64_t now_ms = d->f->now_ms;
    bool ahead = !id->typed && id->ms > now_ms + LIMIT_OP_ID_AHEAD_MS;
    const void *told = spend(d, id, id->gold, attempt);

    if (ahead) {
        refused(d, told, CODE(INVALID_ARGUMENT));
        PROMISE(d->sim, !d->f->recorded, "an id too far ahead is logged");
    } else if (state_of(d, id) == OPERATION(EXPIRED)) {
        refused(d, told, CODE(OPERATION_EXPIRED));
    } else if (id->state == OPERATION(PENDING)) {
        pending(d, told, true);
    } else if (state_of(d, id) == OPERATION(UNKNOWN)) {
        if (!id->typed && id->ms + d->window_ms < now_ms)
            refused(d, told, CODE(OPERATION_EXPIRED));
        else
            decided(d, id, told, attempt);
    } else if (id->state == OPERATION(ABORTED)) {
        refused(d, told, CODE(OPERATION_ABORTED));
    } else if (id->state == OPERATION(COMMITTED)) {
        PROMISE(d->sim, told != NULL && d->f->outcome.duplicate, "a repetition is done again");
    } else if (attempt > id->attempt && !id->sealed && is_past_floor(d, id)) {
        refused(d, told, CODE(OPERATION_EXPIRED)); /* It would be forgotten at once. */
    } else if (attempt > id->attempt && !id->sealed) {
        decided(d, id, told, attempt);
    } else {
        refused(d, told, CODE(INSUFFICIENT_FUNDS));
        PROMISE(d->sim, d->f->outcome.duplicate, "a repetition is evaluated again");
    }
}

/* ---- ids ---- */

static struct id *any_id(struct desk *d)
{
    return &d->ids[rsim_between(d->sim, 0, d->count - 1)];
}

static void make_uuid(struct desk *d, struct id *id)
{
    uint64_t now_ms = d->f->now_ms;
    uint64_t oldest_ms = now_ms - d->window_ms;

    id->ms = now_ms;
    switch (rsim_between(d->sim, 0, 7)) {
    case 0:
        id->ms = rsim_about(d->sim, oldest_ms);
        break;
    case 1:
        id->ms = rsim_about(d->sim, now_ms + LIMIT_OP_ID_AHEAD_MS);
        break;
    case 2:
        if (d->floor_ms > 0)
            id->ms = rsim_about(d->sim, d->floor_ms);
        break;
    default:
        break;
    }
    const struct id *other = d->count > 0 && chance(d, 30) ? any_id(d) : NULL;
    if (other != NULL && !other->typed) /* Pages end within one millisecond, too. */
        id->ms = other->ms;
    id->text = arena_text(&d->sim->arena, slice_from_text(fixture_op_id_at(d->f, id->ms)));
}

static struct id *make_id(struct desk *d)
{
    struct id *id = &d->ids[d->count];

    *id = (struct id){ .state = OPERATION(UNKNOWN) };
    id->pays = d->open < OPEN_MAX && chance(d, 40);
    id->gold = chance(d, 25) ? d->balance + 1 : (int64_t)rsim_between(d->sim, 1, 5);
    if (chance(d, 60))
        make_uuid(d, id);
    if (id->text == NULL || id->typed) {
        id->typed = true;
        id->key = chance(d, 60);
        id->text = arena_printf(&d->sim->arena, "%s:%u", id->key ? "key" : "match", d->named++);
        if (!id->key)
            id->text = arena_printf(&d->sim->arena, "%s:1", id->text);
    }
    d->count++;
    return id;
}

/* ---- what else is done to ids ---- */

static void ask_other(struct desk *d)
{
    struct id *id = any_id(d);

    if (state_of(d, id) == OPERATION(COMMITTED) || state_of(d, id) == OPERATION(REFUSED) ||
        state_of(d, id) == OPERATION(PENDING))
        refused(d, spend(d, id, id->gold + 1, id->attempt + 9), CODE(OPERATION_ID_MISMATCH));
}

/* It is decided where it goes: the answer waits for that. */
static void seal_pending(struct desk *d, struct id *id)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&d->sim->arena, "player:%s", d->player);
    request.op_id = id->text;
    request.seal = true;
    const void *told = fixture_mutate(d->f, METHOD_RESOLVE_OPERATION, &request.base);
    PROMISE(d->sim, told == NULL && d->f->outcome.kind == OUTCOME_PENDING,
            "a seal of what is on its way does not wait");
    id->sealed = true;
}

/* The other shard is within reach: all that is on its way is decided. */
static void carry(struct desk *d)
{
    d->s.shards[TO].now_ms = d->f->now_ms;
    fixture_carry(&d->s, FROM, TO);
    for (uint32_t i = 0; i < d->count; i++) {
        struct id *id = &d->ids[i];
        if (id->state != OPERATION(PENDING))
            continue;
        id->state = id->sealed ? OPERATION(ABORTED) : OPERATION(COMMITTED);
        id->decided_ms = d->f->now_ms;
        d->balance += id->sealed ? id->gold : 0;
        d->open--;
    }
    PROMISE(d->sim, d->open == 0, "%u payments are not decided", d->open);
}

static void seal(struct desk *d)
{
    struct id *id = any_id(d);
    bool fresh = state_of(d, id) == OPERATION(UNKNOWN);

    if (!id->typed && id->ms > d->f->now_ms + LIMIT_OP_ID_AHEAD_MS)
        return;
    if (id->state == OPERATION(PENDING)) {
        seal_pending(d, id);
        return;
    }
    const Holdfast__Internal__V1__OperationRecord *record = fixture_seal(d->f, d->player, id->text);
    if (fresh) {
        id->state = OPERATION(ABORTED);
        id->sealed = true;
        id->decided_ms = d->f->now_ms;
    } else if (state_of(d, id) == OPERATION(REFUSED) && !id->sealed) {
        id->sealed = true;
        if (id->key)
            id->decided_ms = d->f->now_ms;
    }
    PROMISE(d->sim, record->state == state_of(d, id), "a seal of %s tells %d, not %d", id->text,
            (int)record->state, (int)state_of(d, id));
    d->sim->counts.ids_sealed++;
}

static void tell(struct desk *d)
{
    const struct id *id = any_id(d);
    const Holdfast__Internal__V1__OperationRecord *record =
        fixture_operation(d->f, d->player, id->text);
    Holdfast__V1__OperationState wanted = state_of(d, id);

    PROMISE(d->sim, record->state == wanted, "%s is told as %d, not %d", id->text,
            (int)record->state, (int)wanted);
    if (wanted == OPERATION(COMMITTED) || wanted == OPERATION(REFUSED))
        PROMISE(d->sim,
                (uint64_t)record->decided_at_ms == id->decided_ms &&
                    (record->attempt == id->attempt || id->sealed),
                "%s is told to be decided at another time, or attempt", id->text);
    PROMISE(d->sim, (record->refusal != NULL) == (wanted == OPERATION(REFUSED)),
            "a refusal is told, or not");
    PROMISE(d->sim, (record->result.len > 0) == (wanted == OPERATION(COMMITTED)),
            "a result is told, or not");
}

/* ---- forgetting ---- */

static bool is_stored(const struct id *id)
{
    return id->state != OPERATION(UNKNOWN);
}

/* The next row behind `after`, or the first one; rows stand in the order of their ids. */
static struct id *next_up_to(struct desk *d, const char *after, uint64_t ms)
{
    struct id *next = NULL;

    for (uint32_t i = 0; i < d->count; i++) {
        struct id *id = &d->ids[i];
        if (!id->typed && is_stored(id) && id->ms <= ms &&
            (after == NULL || strcmp(id->text, after) > 0) &&
            (next == NULL || strcmp(id->text, next->text) < 0))
            next = id;
    }
    return next;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void forget(struct desk *d, const prune_request *request, const char *after)
{
    uint64_t youngest_ms = d->f->now_ms - LEAST_MS;
    uint64_t floor_ms = at_most(request->floor_ms, youngest_ms);
    uint64_t decided_ms = request->decided_ms > LATE_MS
                              ? at_most(request->decided_ms, youngest_ms + LATE_MS)
                              : floor_ms + LATE_MS;
    uint32_t seen = 0;
    struct id *id;

    for (uint32_t i = 0; i < d->count; i++) {
        if (is_over(d, &d->ids[i]))
            d->ids[i].state = OPERATION(UNKNOWN);
    }
    if (request->rows_max == 0)
        return;
    while (seen < request->rows_max && (id = next_up_to(d, after, floor_ms)) != NULL) {
        bool goes = id->state != OPERATION(PENDING) && id->decided_ms <= decided_ms;
        after = id->text;
        seen++;
        if (goes)
            id->state = OPERATION(UNKNOWN);
        if (seen == request->rows_max)
            floor_ms = id->ms;
        d->sim->counts.ids_forgotten += goes;
        d->sim->counts.ids_kept_below += !goes;
    }
    if (floor_ms > d->floor_ms)
        d->floor_ms = floor_ms;
}

/* The counts of what is stored. */
static void check_counts(struct desk *d)
{
    const struct meta *meta = applier_meta(d->f->applier);
    uint64_t operations = 0, keys = 0;

    for (uint32_t i = 0; i < d->count; i++) {
        operations += !d->ids[i].typed && is_stored(&d->ids[i]);
        keys += d->ids[i].key && is_stored(&d->ids[i]) && d->ids[i].state != OPERATION(PENDING);
    }
    PROMISE(d->sim, meta->operation_count == operations,
            "%" PRIu64 " outcomes are counted, not %" PRIu64, meta->operation_count, operations);
    PROMISE(d->sim, meta->key_count == keys, "%" PRIu64 " keys are counted, not %" PRIu64,
            meta->key_count, keys);
    PROMISE(d->sim, meta->floor_ms == d->floor_ms, "the floor is %" PRIu64 ", not %" PRIu64,
            meta->floor_ms, d->floor_ms);
}

static void prune(struct desk *d)
{
    prune_request request = HOLDFAST__INTERNAL__V1__PRUNE_OPERATIONS_REQUEST__INIT;
    const struct id *from = chance(d, 30) ? any_id(d) : NULL;
    struct row_key after = { 0 };
    struct buf body = { 0 };
    struct op_id id;
    const char *why;

    request.floor_ms = d->f->now_ms - rsim_between(d->sim, 0, 2 * d->window_ms);
    request.rows_max = chance(d, 60) ? (uint32_t)rsim_between(d->sim, 0, 4) : ROWS_MAX;
    if (chance(d, 50))
        request.decided_ms = d->f->now_ms - rsim_between(d->sim, 0, 2 * d->window_ms);
    if (from != NULL && !from->typed) {
        PROMISE(d->sim, op_id_parse(slice_from_text(from->text), &id, &why) == ERR_OK, "%s", why);
        row_key_operation(&after, entity_of_player(&d->sim->arena, d->player), &id);
        request.after = (ProtobufCBinaryData){ after.size, after.bytes };
    }
    fixture_checkpoint(d->f); /* See forget_rows. */
    forget(d, &request, after.size > 0 ? from->text : NULL);
    owner_op_encode(METHOD_PRUNE_OPERATIONS, (struct slice){ 0 }, &request.base, &body);
    fixture_commit(d->f, buf_slice(&body));
    buf_deinit(&body);
    check_counts(d);
}

static void set_window(struct desk *d)
{
    static const uint64_t windows[WINDOWS] = { LEAST_MS, LEAST_MS + 1, 3600000, DAY_MS };
    uint64_t window_ms = RSIM_PICK(d->sim, windows);

    fixture_policy(d->f, window_ms, 0);
    if (window_ms > d->window_ms && d->f->now_ms - d->window_ms - 1 > d->floor_ms)
        d->floor_ms = d->f->now_ms - d->window_ms - 1; /* What was expired stays so. */
    d->window_ms = window_ms;
    check_counts(d);
}

static void set_window_wrong(struct desk *d)
{
    static const uint64_t wrong[] = { LEAST_MS - 1, 604800001 };
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;

    policy.version = applier_meta(d->f->applier)->policy.version + 1;
    policy.operation_window_ms = RSIM_PICK(d->sim, wrong);
    request.policy = &policy;
    refused(d, fixture_mutate(d->f, METHOD_APPLY_POLICY, &request.base), CODE(INVALID_ARGUMENT));
}

/* Under an id that is always known. */
static void earn(struct desk *d)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = text_lend("gold");
    amount.amount = d->balance;
    request.player_id = d->player;
    request.op_id = text_lend("claim:first");
    request.authority = text_lend("system:payments");
    request.currencies = amounts;
    request.n_currencies = 1;
    PROMISE(d->sim, fixture_mutate(d->f, METHOD_GRANT, &request.base) != NULL,
            "a grant is refused");
}

/* ---- turns ---- */

/* To the end of some key's day, or on by a while. */
static void pass(struct desk *d)
{
    const struct id *id = d->count > 0 ? any_id(d) : NULL;
    uint64_t now_ms = d->f->now_ms + 1 + rsim_between(d->sim, 0, 50);

    if (chance(d, 12))
        now_ms += rsim_between(d->sim, 0, 2 * LEAST_MS);
    if (id != NULL && id->key && is_stored(id) && chance(d, 10) &&
        id->decided_ms + DAY_MS > now_ms + 1)
        now_ms = rsim_about(d->sim, id->decided_ms + DAY_MS);
    d->f->now_ms = now_ms;
}

/* A page of one row that was deleted and is still in the database takes a round of reading for each
 * of them, which the fixture does not wait for: what was deleted is written first. */
static void forget_rows(struct desk *d)
{
    fixture_checkpoint(d->f);
    fixture_evict(d->f, 0);
}

static void turn(struct desk *d)
{
    uint64_t die = rsim_between(d->sim, 0, 99);

    pass(d);
    if (die < 50 || d->count == 0)
        ask(d, make_id(d), (uint32_t)rsim_between(d->sim, 0, 1));
    else if (die < 64)
        ask(d, any_id(d), (uint32_t)rsim_between(d->sim, 0, 5));
    else if (die < 70)
        ask_other(d);
    else if (die < 76)
        seal(d);
    else if (die < 82)
        prune(d);
    else if (die < 84)
        set_window(d);
    else if (die < 85)
        carry(d);
    else if (die < 86)
        set_window_wrong(d);
    else if (die < 90)
        fixture_restart(d->f);
    else
        forget_rows(d);
    if (d->count > 0)
        tell(d);
}

/* Once all is decided the owner forgets it by itself, what was settled late too. */
static void all_goes(struct desk *d)
{
    carry(d);
    (void)fixture_pass(d->f, 2 * d->window_ms + DAY_MS + 4 * LEAST_MS);
    const struct meta *meta = applier_meta(d->f->applier);
    PROMISE(d->sim, meta->operation_count == 0 && meta->key_count == 0,
            "%" PRIu64 " outcomes and %" PRIu64 " keys are never forgotten", meta->operation_count,
            meta->key_count);
}

void room_ids(struct rsim *sim)
{
    struct desk *d = mem_zalloc(sizeof *d);

    d->sim = sim;
    fixture_shards_init(&d->s);
    d->f = &d->s.shards[FROM];
    fixture_name_on(FROM, "ann", d->player);
    fixture_name_on(TO, "bob", d->other);
    d->window_ms = DAY_MS;
    d->balance = 1000;
    earn(d);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(d);
    all_goes(d);
    fixture_shards_deinit(&d->s);
    free(d);
}
