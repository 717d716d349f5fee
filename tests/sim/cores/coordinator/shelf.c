/*
 * How much may be defined (coordinator/core/definition_change.c; docs/definitions.md, Limits): a
 * change is made exactly if what stands then is within each limit, of all of them in number and in
 * bytes, of rules about one subject, of currencies with those of the policy. What is refused names
 * the limit, and changes nothing; what is deleted makes room, however full it is. A change's texts
 * have limits, too.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define COUNT_MAX      4096u
#define BYTES_MAX      (240u * 1024u)
#define SUBJECT_MAX    8u
#define CURRENCIES_MAX 64u
#define ITEMS_MAX      40u
#define CURRENCY_FIRST                                                                             \
    40u /* The first that is defined here; the policy lists those below, too.                      \
         */
#define FIRST   (UINT64_C(1) << 40) /* Number of the first one that stands already. */
#define DEED(x) HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_##x
#define KIND(x) HOLDFAST__V1__DEFINITION_BODY__KIND_##x

typedef Holdfast__Internal__V1__ChangeDefinitionRequest change_request;
typedef Holdfast__V1__DefinitionBody definition_body;

/* That was made here. */
struct item {
    char name[65];
    uint32_t kind, subject;
    bool stands;
    uint64_t bytes;
};

/* A body, and all that it may hold. */
struct parts {
    definition_body body;
    Holdfast__V1__CounterBody counter;
    Holdfast__V1__CurrencyBody currency;
    Holdfast__V1__RateRuleBody rule;
    char subject[16];
};

struct shelf {
    struct rsim *sim;
    struct world *world;
    struct item items[ITEMS_MAX];
    uint32_t count, ops; /* All that there ever were; op ids that were used. */
    uint64_t bytes;      /* Of those that stand, with their names, as shards keep them. */
    uint32_t currencies; /* Of the policy: c0 to .. */
    uint64_t call;
    bool answered;
    enum wire_status status;
    Holdfast__V1__ErrorCode code;
    char field[64];
};

/* ---- asking ---- */

static void answered(void *user, const struct coord_answer *answer)
{
    struct shelf *s = user;

    PROMISE(s->sim, answer->call == s->call && !s->answered, "answered twice");
    s->answered = true;
    s->status = answer->status;
    s->code = 0;
    s->field[0] = '\0';
    if (answer->status != WIRE_REFUSED)
        return;
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, answer->body.size, answer->body.data);

    CHECK(refusal != NULL);
    s->code = refusal->code;
    (void)snprintf(s->field, sizeof s->field, "%s", refusal->field);
    PROMISE(s->sim, s->code != CODE(CAPACITY_FULL) || refusal->limit[0] != '\0',
            "a refusal names no limit");
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

static void body_make(struct shelf *s, const struct item *item, struct parts *ret_parts)
{
    struct parts *parts = ret_parts;

    holdfast__v1__definition_body__init(&parts->body);
    holdfast__v1__counter_body__init(&parts->counter);
    holdfast__v1__currency_body__init(&parts->currency);
    holdfast__v1__rate_rule_body__init(&parts->rule);
    parts->counter.max_value = (int64_t)(UINT64_C(1) << rsim_between(s->sim, 0, 50));
    parts->counter.add_max = (int64_t)(UINT64_C(1) << rsim_between(s->sim, 0, 50));
    parts->currency.max_balance = parts->counter.max_value;
    (void)snprintf(parts->subject, sizeof parts->subject, "subject_%u", item->subject);
    parts->rule.subject = parts->subject;
    parts->rule.limit = (uint32_t)rsim_between(s->sim, 1, 1000);
    parts->rule.period_ms = 1000;
    parts->body.kind_case = (Holdfast__V1__DefinitionBody__KindCase)item->kind;
    if (item->kind == KIND(COUNTER))
        parts->body.counter = &parts->counter;
    else if (item->kind == KIND(CURRENCY))
        parts->body.currency = &parts->currency;
    else
        parts->body.rate_rule = &parts->rule;
}

/* What a shard keeps of it: beside body and name some fields of a fixed size. */
static uint64_t bytes_of(const definition_body *body, const char *name)
{
    return holdfast__v1__definition_body__get_packed_size(body) + strlen(name) + 64;
}

/* Until shards have said how far they are. */
static void send(struct shelf *s, struct slice body)
{
    s->code = CODE(UNAVAILABLE);
    for (uint32_t tries = 0; tries < 100 && s->code == CODE(UNAVAILABLE); tries++) {
        s->call++;
        s->answered = false;
        world_step(s->world, (struct coord_event){ .type = COORD_ASK,
                                                   .call = s->call,
                                                   .method = METHOD_CHANGE_DEFINITION,
                                                   .body = body });
        world_run(s->world, 20);
        for (uint32_t i = 0; i < 50 && !s->answered; i++)
            world_run(s->world, 20);
        PROMISE(s->sim, s->answered, "a change is never answered");
    }
    PROMISE(s->sim, s->status == WIRE_OK || s->status == WIRE_REFUSED, "status %d", (int)s->status);
}

static void ask(struct shelf *s, const struct item *item, const definition_body *body, bool dry_run)
{
    static const char *const kinds[] = { [KIND(CURRENCY)] = "currency",
                                         [KIND(COUNTER)] = "counter",
                                         [KIND(RATE_RULE)] = "rate_rule" };
    change_request request = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    uint8_t bytes[512];

    request.deed = body != NULL ? DEED(PUT) : DEED(DELETE);
    request.body = (definition_body *)(uintptr_t)body;
    request.kind = text_lend(body != NULL ? "" : kinds[item->kind]);
    request.name = text_lend(item->name);
    request.op_id = arena_printf(&s->sim->arena, "admin:%u", ++s->ops);
    request.dry_run = dry_run;
    size_t size = holdfast__internal__v1__change_definition_request__pack(&request, bytes);

    send(s, (struct slice){ bytes, size });
}

/* ---- the limits ---- */

static uint32_t standing_of(const struct shelf *s, uint32_t kind, uint32_t subject)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ITEMS_MAX; i++)
        count += s->items[i].stands && s->items[i].kind == kind && s->items[i].subject == subject;
    return count;
}

/* Currencies that the policy and the definitions declare, each name once. */
static uint32_t currencies_with(const struct shelf *s, const struct item *more)
{
    uint32_t count = s->currencies;

    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        const struct item *item = &s->items[i];

        count += (item->stands || item == more) && CURRENCY_FIRST + i >= s->currencies;
    }
    return count;
}

/* Whether there is room for the item as `bytes`. */
static bool fits(const struct shelf *s, const struct item *item, uint64_t bytes)
{
    bool is_new = !item->stands;

    if (s->bytes - (is_new ? 0 : item->bytes) + bytes > BYTES_MAX)
        return false;
    if (is_new && s->count >= COUNT_MAX)
        return false;
    if (is_new && item->kind == KIND(RATE_RULE))
        return standing_of(s, item->kind, item->subject) < SUBJECT_MAX;
    if (is_new && item->kind == KIND(CURRENCY))
        return currencies_with(s, item) <= CURRENCIES_MAX;
    return true;
}

static void put_turn(struct shelf *s, struct item *item)
{
    bool dry_run = rsim_chance(s->sim, 15);
    struct parts parts;

    body_make(s, item, &parts);
    uint64_t bytes = bytes_of(&parts.body, item->name);
    bool room = fits(s, item, bytes);

    ask(s, item, &parts.body, dry_run);
    PROMISE(s->sim, (s->status == WIRE_OK) == room,
            "%u definitions of %llu bytes, and one of kind %u with %llu more is %s", s->count,
            (unsigned long long)s->bytes, item->kind, (unsigned long long)bytes,
            room ? "refused" : "taken");
    PROMISE(s->sim, room || s->code == CODE(CAPACITY_FULL), "refused with %d", (int)s->code);
    s->sim->counts.shelves_full += !room;
    if (!room || dry_run)
        return;
    s->bytes += bytes - (item->stands ? item->bytes : 0);
    s->count += !item->stands;
    item->stands = true;
    item->bytes = bytes;
}

static void delete_turn(struct shelf *s, struct item *item)
{
    if (!item->stands || item->kind == KIND(CURRENCY))
        return;
    ask(s, item, NULL, false);
    PROMISE(s->sim, s->status == WIRE_OK, "of %llu bytes none can be deleted: %d, %s",
            (unsigned long long)s->bytes, (int)s->code, s->field);
    s->bytes -= item->bytes;
    item->stands = false;
    s->sim->counts.shelves_emptied++;
}

/* What a change says beside the definition: each text and the time to wait, at their limits. */
static void texts_turn(struct shelf *s)
{
    static const struct {
        const char *field;
        size_t least, most;
    } texts[] = { { "op_id", 1, 160 }, { "reason", 0, 64 }, { "author", 0, 64 } };
    change_request request = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    char **places[] = { &request.op_id, &request.reason, &request.author };
    struct item item = { .kind = KIND(COUNTER), .name = "texts" };
    const char *bad = NULL;
    struct parts parts;
    uint8_t bytes[1024];

    body_make(s, &item, &parts);
    request.deed = DEED(PUT);
    request.body = &parts.body;
    request.name = item.name;
    request.dry_run = true;
    request.wait_ms = 59999u + (uint32_t)rsim_between(s->sim, 0, 2);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        size_t size = rsim_chance(s->sim, 50) ? 1 : rsim_about(s->sim, texts[i].most);

        if (rsim_chance(s->sim, 10))
            size = 0;
        *places[i] = arena_zalloc(&s->sim->arena, size + 1);
        memset(*places[i], 't', size);
        if (bad == NULL && (size < texts[i].least || size > texts[i].most))
            bad = texts[i].field;
    }
    if (bad == NULL && request.wait_ms > 60000)
        bad = "wait_ms";
    size_t size = holdfast__internal__v1__change_definition_request__pack(&request, bytes);

    send(s, (struct slice){ bytes, size });
    PROMISE(s->sim, (s->code == CODE(INVALID_ARGUMENT)) == (bad != NULL),
            "a change with a wrong %s is taken, or one for \"%s\" refused", bad, s->field);
    PROMISE(s->sim, bad == NULL || strcmp(bad, s->field) == 0, "%s is wrong, %s is named", bad,
            s->field);
}

/* ---- what stands already ---- */

/* As etcd has it. */
static void record_put(struct shelf *s, const char *name, bool deleted)
{
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    definition_body body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__Internal__V1__DefinitionVersion record =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    struct cluster_key key = cluster_key_definition(WORLD_CLUSTER, FIRST + s->count, 1);
    uint8_t bytes[256];

    counter.max_value = counter.add_max = 1;
    body.kind_case = KIND(COUNTER);
    body.counter = &counter;
    record.number = FIRST + s->count++;
    record.version = 1;
    record.name = text_lend(name);
    record.body = &body;
    record.deleted = deleted;
    size_t size = holdfast__internal__v1__definition_version__pack(&record, bytes);

    s->bytes += deleted ? 0 : bytes_of(&body, name);
    s->world->revision++;
    world_step(s->world, (struct coord_event){ .type = COORD_PUT,
                                               .key = cluster_key_slice(&key),
                                               .value = { bytes, size },
                                               .create_revision = s->world->revision,
                                               .mod_revision = s->world->revision });
}

/* Shards have followed all of it. */
static void followed(struct shelf *s)
{
    for (uint32_t i = 0; i < WORLD_SHARDS; i++) {
        s->world->defined[i][0] = 1;
        s->world->defined[i][1] = (uint64_t)s->world->revision;
    }
    world_run(s->world, 200);
}

/* All but few of the numbers are given, most of them to what was deleted since. */
static void fill_numbers(struct shelf *s)
{
    uint32_t left = (uint32_t)rsim_between(s->sim, 1, 4);

    while (s->count + left < COUNT_MAX)
        record_put(s, "used_once", s->count % 10 != 0);
    followed(s);
}

/* All but some hundred bytes. */
static void fill_bytes(struct shelf *s)
{
    uint64_t left = rsim_between(s->sim, 150, 900);
    char name[65];

    for (uint32_t i = 0; s->bytes + 140 + left < BYTES_MAX; i++) {
        memset(name, 'n', sizeof name);
        name[rsim_between(s->sim, 40, 64)] = '\0';
        record_put(s, name, false);
    }
    followed(s);
}

static void policy_put(struct shelf *s)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *list[CURRENCIES_MAX];
    struct buf value = { 0 };
    uint8_t bytes[4096];

    s->currencies = (uint32_t)rsim_between(s->sim, 50, 60);
    policy.version = 2;
    for (uint32_t i = 0; i < s->currencies; i++) {
        list[i] = arena_alloc(&s->sim->arena, sizeof *list[i]);
        holdfast__v1__currency_policy__init(list[i]);
        list[i]->name = arena_printf(&s->sim->arena, "c%u", i);
    }
    policy.currencies = list;
    policy.n_currencies = s->currencies;
    CHECK(holdfast__v1__policy__get_packed_size(&policy) <= sizeof bytes);
    buf_append(&value, bytes, holdfast__v1__policy__pack(&policy, bytes));
    world_put(s->world, cluster_key_policy(WORLD_CLUSTER), &value);
}

/* Names of different lengths; of currencies some are the policy's, too. */
static void items_make(struct shelf *s, uint32_t kind)
{
    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        struct item *item = &s->items[i];
        uint32_t length = (uint32_t)rsim_between(s->sim, 0, 50);

        item->kind = kind;
        item->subject = (uint32_t)rsim_between(s->sim, 0, 2);
        if (kind == KIND(CURRENCY))
            (void)snprintf(item->name, sizeof item->name, "c%u", CURRENCY_FIRST + i);
        else
            (void)snprintf(item->name, sizeof item->name, "item_%u_%.*s", i, (int)length,
                           "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz");
    }
}

void room_shelf(struct rsim *sim)
{
    static const uint32_t kinds[] = { KIND(COUNTER), KIND(COUNTER), KIND(RATE_RULE),
                                      KIND(CURRENCY) };
    struct shelf *s = arena_zalloc(&sim->arena, sizeof *s);
    uint32_t what = (uint32_t)(sim->seed % ARRAY_SIZE(kinds));

    s->sim = sim;
    s->world = world_new();
    s->world->limits.audit_interval_ms = 0;
    world_replace_coordinator(s->world);
    world_start(s->world);
    s->world->watch = (struct world_watch){ .user = s, .answered = answered };
    items_make(s, kinds[what]);
    if (what == 0)
        fill_numbers(s);
    else if (what == 1)
        fill_bytes(s);
    else if (what == 3)
        policy_put(s);
    for (uint32_t i = 0; i < 30; i++) {
        struct item *item = &s->items[rsim_between(sim, 0, what < 2 ? 11 : ITEMS_MAX - 1)];

        if (rsim_chance(sim, 20))
            texts_turn(s);
        else if (rsim_chance(sim, 75))
            put_turn(s, item);
        else
            delete_turn(s, item);
    }
    world_free(s->world);
}
