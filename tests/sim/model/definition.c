/*
 * Definitions: what a team changes while all else goes wrong, and what must hold. A version has one
 * content and one number for ever; a shard's versions never go back; what is told as in force
 * stands in the log of every shard; an op_id makes one version; and in the end all shards have what
 * etcd has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/definition/definition.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/events/event.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/favorites/rate.h"
#include "tests/sim/favorites/review.h"

#define ASKS_MAX     60u
#define WRITES_MAX   256u
#define NAMES        4u
#define COLLECTIONS  2u /* Behind them, in runs with favourites (favorite.h). */
#define EDGES_MAX    6u
#define NUMBERS_MAX  64u
#define KIND_COUNTER HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER
#define RETENTION    (NAMES + COLLECTIONS) /* Likewise, in runs with events (event.h). */
#define RULES        3u                    /* In runs with rate rules (rate.h). */
#define KIND_RULE    HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE
#define KIND_KEPT    HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION
#define KIND_EDGES   HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION

typedef Holdfast__Internal__V1__ChangeDefinitionRequest change_request;
typedef Holdfast__Internal__V1__DefinitionVersion version_record;

/* A caller's change; asked again under its op_id until it is answered. */
struct ask {
    struct buf request;
    char op_id[24];
    bool answered;
    uint64_t asked_ms;
};

/* A version as etcd got it. */
struct write_seen {
    uint64_t number, version, revision, generation;
    uint32_t restores; /* Of etcd, before it. */
    struct buf bytes;
};

/* What a shard had of one number: the highest stamp. */
struct stand {
    uint64_t number, generation, revision;
    bool gone;
};

struct definitions_sim {
    struct ask asks[ASKS_MAX];
    uint32_t ask_count;
    struct write_seen writes[WRITES_MAX];
    uint32_t write_count;
    struct stand stands[SIM_SHARDS_MAX][NUMBERS_MAX];
    uint32_t stand_count[SIM_SHARDS_MAX];
    uint64_t generation[SIM_SHARDS_MAX], revision[SIM_SHARDS_MAX]; /* Of the heads. */
    bool
        closed; /* All that was asked for is in force: the end is near, and no caller asks again. */
    struct arena arena;
    struct need need;
};

static struct definitions_sim *own(struct sim *sim)
{
    if (sim->definitions == NULL)
        sim->definitions = mem_zalloc(sizeof *sim->definitions);
    return sim->definitions;
}

void definition_free_all(struct sim *sim)
{
    struct definitions_sim *d = sim->definitions;

    for (uint32_t i = 0; d != NULL && i < d->ask_count; i++)
        buf_deinit(&d->asks[i].request);
    for (uint32_t i = 0; d != NULL && i < d->write_count; i++)
        buf_deinit(&d->writes[i].bytes);
    if (d != NULL) {
        arena_deinit(&d->arena);
        need_deinit(&d->need);
    }
    free(d);
    sim->definitions = NULL;
}

/* ---- asking ---- */

/* Of currencies and counters there are two names each, and of collections. */
struct bodies {
    Holdfast__V1__CurrencyBody currency;
    Holdfast__V1__CounterBody counter;
    Holdfast__V1__CollectionBody edges;
    Holdfast__V1__EventRetentionBody kept;
    Holdfast__V1__RateRuleBody rule;
};

static void bodies_init(struct bodies *bodies)
{
    holdfast__v1__currency_body__init(&bodies->currency);
    holdfast__v1__counter_body__init(&bodies->counter);
    holdfast__v1__collection_body__init(&bodies->edges);
    holdfast__v1__event_retention_body__init(&bodies->kept);
    holdfast__v1__rate_rule_body__init(&bodies->rule);
}

static void fill_rule(struct sim *sim, Holdfast__V1__RateRuleBody *rule)
{
    uint64_t kind = review_runs(sim) ? sim_between(sim, 0, 3) : 0;

    if (kind == 1) {
        rule->account_age_ms = sim_between(sim, 1000, 20000);
        return;
    }
    if (kind > 1)
        rule->flag_above = (uint32_t)sim_between(sim, 1, 3);
    else
        rule->limit = (uint32_t)sim_between(sim, 1, 5);
    rule->period_ms = (uint32_t)sim_between(sim, 1000, 9000);
}

static void fill_body(struct sim *sim, Holdfast__V1__DefinitionBody *body, struct bodies *bodies,
                      uint32_t place)
{
    Holdfast__V1__CurrencyBody *currency = &bodies->currency;
    Holdfast__V1__CounterBody *counter = &bodies->counter;

    if (body->kind_case == KIND_EDGES) {
        bodies->edges.conflict_policy =
            place % 2 == 1 ? HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE
                           : HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_HIGHEST_VERSION;
        bodies->edges.edges_max = (uint32_t)sim_between(sim, 1, EDGES_MAX);
        body->collection = &bodies->edges;
    } else if (body->kind_case == KIND_RULE) {
        bodies->rule.subject = text_lend(place == RETENTION + RULES ? "likes" : "favorites");
        fill_rule(sim, &bodies->rule);
        body->rate_rule = &bodies->rule;
    } else if (body->kind_case == KIND_KEPT) {
        bodies->kept.keep_ms = (int64_t)sim_between(sim, 1000, 4000);
        bodies->kept.events_max = (uint32_t)sim_between(sim, 10, 60);
        body->event_retention = &bodies->kept;
    } else if (body->kind_case == KIND_COUNTER) {
        counter->max_value = (int64_t)sim_between(sim, 1, 1000);
        if (counter->max_value % 3 == 0) /* Else there is no other bound. */
            counter->add_max = 1 + counter->max_value / 2;
        body->counter = counter;
    } else {
        currency->max_balance = (int64_t)sim_between(sim, 1, 1000);
        body->currency = currency;
    }
}

/* In runs with reviews there are edges to be reviewed. */
static bool favorites_are_wanted(const struct sim *sim)
{
    return review_runs(sim) && !favorite_is_defined(sim);
}

/* The first one that runs with favourites ask for is that of the default, the second one that runs
 * with counters do is theirs. */
static bool is_opening(struct sim *sim)
{
    uint32_t asked = own(sim)->ask_count;

    return (asked == 0 && favorite_runs(sim)) || (asked == 1 && counter_runs(sim)) ||
           favorites_are_wanted(sim);
}

/* A name's kind. */
static uint32_t choose_name(struct sim *sim, char ret_name[16], Holdfast__V1__DefinitionBody *body,
                            const char **ret_kind)
{
    bool edges = favorite_runs(sim);

    if (event_runs(sim) && own(sim)->ask_count > 0 && !favorites_are_wanted(sim) &&
        sim_chance(sim, 150)) {
        snprintf(ret_name, 16, "events");
        body->kind_case = KIND_KEPT;
        *ret_kind = "event_retention";
        return RETENTION;
    }
    if (rate_runs(sim) && own(sim)->ask_count > 0 && !favorites_are_wanted(sim) &&
        sim_chance(sim, 400)) {
        uint32_t rule = (uint32_t)sim_between(sim, 1, RULES);
        snprintf(ret_name, 16, "r%u", rule);
        body->kind_case = KIND_RULE;
        *ret_kind = "rate_rule";
        return RETENTION + rule;
    }
    uint32_t place = (uint32_t)sim_between(sim, 0, NAMES + (edges ? COLLECTIONS : 0) - 1);

    if (is_opening(sim))
        place = own(sim)->ask_count == 0 || favorites_are_wanted(sim) ? NAMES : 1;
    if (place >= NAMES) {
        snprintf(ret_name, 16, "%s", place == NAMES ? "favorites" : "likes");
        body->kind_case = KIND_EDGES;
        *ret_kind = "collection";
        return place;
    }
    snprintf(ret_name, 16, "d%u", place);
    body->kind_case = place % 2 == 0 ? HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY : KIND_COUNTER;
    *ret_kind = place % 2 == 0 ? "currency" : "counter";
    return place;
}

static void ask_new(struct sim *sim)
{
    struct definitions_sim *d = own(sim);
    struct ask *ask = &d->asks[d->ask_count];
    change_request request = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    struct bodies bodies;
    const char *kind;
    char name[16];

    bodies_init(&bodies);
    uint32_t place = choose_name(sim, name, &body, &kind);
    uint64_t die = sim_between(sim, 0, 9);

    snprintf(ask->op_id, sizeof ask->op_id, "def-%u", d->ask_count);
    request.name = name;
    request.op_id = ask->op_id;
    request.author = text_lend("key");
    request.wait_ms = sim_chance(sim, 500) ? 2000 : 0;
    if (sim_chance(sim, 200)) {
        request._if_version_case =
            HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = sim_between(sim, 0, 4);
    }
    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    request.kind = text_lend(kind);
    bool opens = is_opening(sim);
    uint64_t mortal = counter_runs(sim) && place == 1 ? 6 : 8;
    bool goes = place >= NAMES ? d->ask_count > 0 && die == 9 : die >= mortal && place % 2 == 1;
    if (goes && !opens) {
        request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_DELETE;
    } else if (die >= 5 && d->ask_count > 0 && !opens) {
        request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_ROLL_BACK;
        request.version = sim_between(sim, 1, 3);
    } else {
        fill_body(sim, &body, &bodies, place);
        request.body = &body;
    }
    size_t size = holdfast__internal__v1__change_definition_request__get_packed_size(&request);

    holdfast__internal__v1__change_definition_request__pack(&request,
                                                            buf_reserve(&ask->request, size));
    ask->request.size += size;
    d->ask_count++;
}

static struct ask *ask_open(struct sim *sim)
{
    struct definitions_sim *d = own(sim);

    for (uint32_t i = 0; i < d->ask_count; i++) {
        if (!d->asks[i].answered && d->asks[i].asked_ms + 3000 < sim->now_ms)
            return &d->asks[i];
    }
    return NULL;
}

/* At a coordinator's tick: whether or not it decides, but for the end, when callers are to be
 * served. */
bool definition_ask(struct sim *sim, uint32_t place, struct coord_event *ret_event)
{
    struct definitions_sim *d = own(sim);
    struct ask *ask = NULL;

    if (sim_without(sim, WITHOUT_definitions))
        return false;
    bool first = is_opening(sim);

    if (!sim->quiet && d->ask_count < ASKS_MAX && (first || sim_chance(sim, 60))) {
        ask_new(sim);
        ask = &d->asks[d->ask_count - 1];
    } else if (!sim->quiet || (!d->closed && coord_is_active(sim->coords[place].core))) {
        ask = ask_open(sim);
    }
    if (ask == NULL)
        return false;
    ask->asked_ms = sim->now_ms;
    *ret_event = (struct coord_event){ .type = COORD_ASK,
                                       .call = (uint64_t)(ask - d->asks) + 1,
                                       .method = METHOD_CHANGE_DEFINITION,
                                       .body = buf_slice(&ask->request) };
    return true;
}

/* ---- what etcd gets ---- */
static struct write_seen *write_find(struct definitions_sim *d, uint64_t number, uint64_t version,
                                     uint64_t revision)
{
    for (uint32_t i = d->write_count; i > 0; i--) {
        struct write_seen *seen = &d->writes[i - 1];
        if (seen->number == number && seen->version == version &&
            (revision == 0 || seen->revision == revision))
            return seen;
    }
    return NULL;
}

static version_record *unpack(struct slice bytes)
{
    version_record *record =
        holdfast__internal__v1__definition_version__unpack(NULL, bytes.size, bytes.data);
    CHECK(record != NULL);
    return record;
}

/* A number is one definition's, whatever became of the etcd that it was given in. */
static void check_number(struct sim *sim, const version_record *record)
{
    struct definitions_sim *d = own(sim);

    for (uint32_t i = 0; i < d->write_count; i++) {
        if (d->writes[i].number != record->number)
            continue;
        version_record *other = unpack(buf_slice(&d->writes[i].bytes));
        if (strcmp(other->name, record->name) != 0)
            sim_fail(sim, 0, "the number of definition %s is given to %s", other->name,
                     record->name);
        if (other->deleted && d->writes[i].restores == sim->etcd.restores)
            sim_fail(sim, 0, "definition %s has a version after its deletion", record->name);
        holdfast__internal__v1__definition_version__free_unpacked(other, NULL);
    }
}

/* What a clock that jumped made a day old was forgotten, and its op_id with it. */
static void check_op(struct sim *sim, const version_record *record)
{
    struct definitions_sim *d = own(sim);

    for (uint32_t i = 0; i < d->write_count; i++) {
        version_record *other = unpack(buf_slice(&d->writes[i].bytes));
        struct cluster_key key = cluster_key_definition(SIM_CLUSTER, other->number, other->version);
        if (d->writes[i].restores == sim->etcd.restores &&
            strcmp(other->op_id, record->op_id) == 0 &&
            etcd_find(sim, cluster_key_slice(&key)) != NULL)
            sim_fail(sim, 0, "op %s makes version %u of %s, and made one before", record->op_id,
                     (uint32_t)record->version, record->name);
        holdfast__internal__v1__definition_version__free_unpacked(other, NULL);
    }
}

void definition_written_to_etcd(struct sim *sim, const struct cluster_key_parts *parts,
                                struct slice value, bool remove)
{
    struct definitions_sim *d = own(sim);

    if (remove) {
        if (sim->counts.clock_jumps == 0) /* What was deleted may be a day old then. */
            sim_fail(sim, 0, "version %u of a definition is forgotten", (uint32_t)parts->version);
        return;
    }
    version_record *record = unpack(value);
    struct cluster_key before = cluster_key_definition(SIM_CLUSTER, parts->number,
                                                       parts->version > 1 ? parts->version - 1 : 1);
    struct cluster_key key = cluster_key_definition(SIM_CLUSTER, parts->number, parts->version);

    if (etcd_find(sim, cluster_key_slice(&key)) != NULL)
        sim_fail(sim, 0, "version %u of %s is written twice", (uint32_t)parts->version,
                 record->name);
    if (parts->version > 1 && etcd_find(sim, cluster_key_slice(&before)) == NULL)
        sim_fail(sim, 0, "version %u of %s comes without the one before", (uint32_t)parts->version,
                 record->name);
    check_number(sim, record);
    check_op(sim, record);
    sim_say(sim, "etcd     definition %s number %llu version %u of %s%s", record->name,
            (unsigned long long)record->number, (uint32_t)record->version, record->op_id,
            record->deleted ? ", deleted" : "");
    sim->counts.definitions_made++;
    sim->counts.definitions_rolled_back += record->rolled_back_to > 0;
    sim->counts.definitions_deleted += record->deleted != 0;
    sim->counts.definitions_made_again += record->version == 1 && d->write_count > NAMES;
    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    CHECK(d->write_count < WRITES_MAX);
    struct write_seen *seen = &d->writes[d->write_count++];

    *seen = (struct write_seen){
        .number = parts->number,
        .version = parts->version,
        .generation = etcd_generation(sim),
        .restores = sim->etcd.restores,
        .revision = (uint64_t)sim->etcd.revision + !sim->etcd.txn_wrote,
    };
    buf_append(&seen->bytes, value.data, value.size);
}

/* ---- what shards log ---- */
static const defined_head *head_of(struct sim *sim, uint32_t shard)
{
    struct definitions_sim *d = own(sim);
    struct state *state = applier_state(sim->oracle->shards[shard].applier);
    struct row_key key;
    defined_head *head = NULL;

    row_key_definition(&key, 0);
    if (state_find(state, row_key_slice(&key), &(struct slice){ 0 }) == STATE_MISSING)
        CHECK(state_load(state, state_load_generation(state), row_key_slice(&key), NULL));
    CHECK(definition_head_get(state, &d->arena, &d->need, &head) == ERR_OK);
    return head;
}

static struct stand *stand_get(struct definitions_sim *d, uint32_t shard, uint64_t number)
{
    for (uint32_t i = 0; i < d->stand_count[shard]; i++) {
        if (d->stands[shard][i].number == number)
            return &d->stands[shard][i];
    }
    CHECK(d->stand_count[shard] < NUMBERS_MAX);
    struct stand *stand = &d->stands[shard][d->stand_count[shard]++];
    *stand = (struct stand){ .number = number };
    return stand;
}

static const defined *row_of(struct sim *sim, uint32_t shard, uint64_t number)
{
    struct state *state = applier_state(sim->oracle->shards[shard].applier);
    struct row_key key;
    struct slice value;

    row_key_definition(&key, number);
    if (state_find(state, row_key_slice(&key), &value) != STATE_PRESENT)
        return NULL;
    struct slice copy = arena_copy(&own(sim)->arena, value);
    defined *row =
        (void *)arena_unpack(&own(sim)->arena, &holdfast__internal__v1__defined__descriptor, copy);
    CHECK(row != NULL);
    return row;
}

/* What a row says is what etcd got under that version, then. */
static void check_content(struct sim *sim, uint32_t shard, const defined *row)
{
    const struct write_seen *seen = write_find(own(sim), row->number, row->version, row->revision);

    if (seen == NULL) {
        sim_fail(sim, shard, "version %u of %s at revision %u was never written",
                 (uint32_t)row->version, row->name, (uint32_t)row->revision);
        return;
    }
    version_record *record = unpack(buf_slice(&seen->bytes));
    size_t size = holdfast__v1__definition_body__get_packed_size(record->body);
    uint8_t bytes[2][256];

    CHECK(size <= sizeof bytes[0]);
    holdfast__v1__definition_body__pack(record->body, bytes[0]);
    if (holdfast__v1__definition_body__get_packed_size(row->body) != size ||
        holdfast__v1__definition_body__pack(row->body, bytes[1]) != size ||
        memcmp(bytes[0], bytes[1], size) != 0 || record->deleted)
        sim_fail(sim, shard, "version %u of %s is not what etcd got", (uint32_t)row->version,
                 row->name);
    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
}

static void look_at_number(struct sim *sim, uint32_t shard, uint64_t number)
{
    struct stand *stand = stand_get(own(sim), shard, number);
    const defined *row = row_of(sim, shard, number);

    if (row == NULL) {
        stand->gone = stand->generation > 0;
        return;
    }
    int order =
        definition_order(row->generation, row->revision, stand->generation, stand->revision);
    if (order < 0 || (order == 0 && stand->gone))
        sim_fail(sim, shard, "definition %s goes back to version %u", row->name,
                 (uint32_t)row->version);
    stand->generation = row->generation;
    stand->revision = row->revision;
    stand->gone = false;
    check_content(sim, shard, row);
}

bool definition_collection(struct sim *sim, uint32_t shard, const char *name,
                           struct sim_collection *ret_collection)
{
    struct definitions_sim *d = own(sim);

    *ret_collection = (struct sim_collection){ 0 };
    for (uint32_t i = 0; i < d->stand_count[shard]; i++) {
        const defined *row = row_of(sim, shard, d->stands[shard][i].number);
        if (row == NULL || row->body->kind_case != KIND_EDGES || strcmp(row->name, name) != 0 ||
            row->number < ret_collection->number)
            continue; /* Of two lives the later one, until what etcd has lost is swept. */
        *ret_collection = (struct sim_collection){
            .number = row->number,
            .edges_max = row->body->collection->edges_max,
            .last_write = row->body->collection->conflict_policy ==
                          HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE,
        };
    }
    return ret_collection->number > 0;
}

static int rule_order(const void *a, const void *b)
{
    const struct sim_rule *left = a, *right = b;

    return left->number < right->number ? -1 : left->number > right->number;
}

uint32_t definition_rules(struct sim *sim, uint32_t shard, const char *subject,
                          struct sim_rule ret_rules[SIM_RULES_MAX])
{
    struct definitions_sim *d = own(sim);
    struct sim_rule all[NUMBERS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < d->stand_count[shard]; i++) {
        const defined *row = row_of(sim, shard, d->stands[shard][i].number);
        if (row == NULL || row->body->kind_case != KIND_RULE ||
            strcmp(row->body->rate_rule->subject, subject) != 0)
            continue;
        const Holdfast__V1__RateRuleBody *body = row->body->rate_rule;
        all[count++] = (struct sim_rule){
            .number = row->number,
            .generation = row->generation,
            .revision = row->revision,
            .limit = body->limit > 0 ? body->limit : body->flag_above,
            .period_ms = body->period_ms,
            .flags = body->limit == 0,
            .age_ms = body->account_age_ms,
        };
    }
    qsort(all, count, sizeof *all, rule_order);
    count = count < SIM_RULES_MAX ? count : SIM_RULES_MAX;
    memcpy(ret_rules, all, count * sizeof *all);
    return count;
}

bool definition_counter(struct sim *sim, uint32_t shard, const char *name,
                        struct sim_counter *ret_counter)
{
    struct definitions_sim *d = own(sim);

    *ret_counter = (struct sim_counter){ 0 };
    for (uint32_t i = 0; i < d->stand_count[shard]; i++) {
        const defined *row = row_of(sim, shard, d->stands[shard][i].number);
        if (row == NULL || row->body->kind_case != KIND_COUNTER || strcmp(row->name, name) != 0 ||
            row->number < ret_counter->number)
            continue; /* Of two lives the later one, as above. */
        *ret_counter = (struct sim_counter){
            .number = row->number,
            .value_max = row->body->counter->max_value,
            .add_max = row->body->counter->add_max,
        };
    }
    return ret_counter->number > 0;
}

void definition_retention(struct sim *sim, uint32_t shard, uint64_t *ret_keep_ms,
                          uint64_t *ret_events_max)
{
    struct definitions_sim *d = own(sim);
    uint64_t number = UINT64_MAX;

    *ret_keep_ms = 7ull * 24 * 3600 * 1000;
    *ret_events_max = 1000000;
    for (uint32_t i = 0; i < d->stand_count[shard]; i++) {
        const defined *row = row_of(sim, shard, d->stands[shard][i].number);
        if (row == NULL || row->body->kind_case != KIND_KEPT || row->number > number)
            continue; /* Of two lives the earlier one, until what etcd has lost is swept. */
        number = row->number;
        *ret_keep_ms = (uint64_t)row->body->event_retention->keep_ms;
        *ret_events_max = row->body->event_retention->events_max;
    }
}

bool definition_row(struct sim *sim, uint32_t shard, uint64_t number,
                    struct sim_definition *ret_row)
{
    const defined *row = row_of(sim, shard, number);

    if (row == NULL)
        return false;
    *ret_row = (struct sim_definition){
        .version = row->version,
        .body = hash_u64(arena_pack(&own(sim)->arena, &row->body->base)),
    };
    return true;
}

void definition_logged(struct sim *sim, uint32_t shard, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__DefineRequest *request = (const void *)message;
    struct definitions_sim *d = own(sim);

    arena_reset(&d->arena);
    const defined_head *head = head_of(sim, shard);
    int order = definition_order(head->generation, head->revision, d->generation[shard],
                                 d->revision[shard]);

    if (order < 0)
        sim_fail(sim, shard, "the shard follows definitions up to %u, and did up to %u",
                 (uint32_t)head->revision, (uint32_t)d->revision[shard]);
    sim->counts.defines++;
    sim->counts.defines_late += order == 0;
    sim->counts.definitions_swept +=
        head->generation > d->generation[shard] && d->generation[shard];
    d->generation[shard] = head->generation;
    d->revision[shard] = head->revision;
    sim_say(sim, "DEFINE   s%u above %u.%u: follows definitions up to %u.%u, has %u", shard,
            (uint32_t)request->generation, (uint32_t)request->from_revision,
            (uint32_t)head->generation, (uint32_t)head->revision, head->count);
    for (size_t i = 0; i < request->n_definitions; i++) {
        const defined *given = request->definitions[i];
        struct stand *stand = stand_get(d, shard, given->number);
        sim_say(sim, "DEFINE   s%u %s number %llu version %u at %u%s", shard, given->name,
                (unsigned long long)given->number, (uint32_t)given->version,
                (uint32_t)given->revision, given->deleted ? ", deleted" : "");
        /* A deletion has no row to be looked at: from here on it is what the shard had last. */
        if (order > 0 && given->deleted && row_of(sim, shard, given->number) == NULL &&
            definition_order(request->generation, given->revision, stand->generation,
                             stand->revision) > 0) {
            stand->generation = request->generation;
            stand->revision = given->revision;
        }
    }
    for (uint32_t i = 0; i < d->stand_count[shard]; i++)
        look_at_number(sim, shard, d->stands[shard][i].number);
}

/* ---- what callers are told ---- */
static void check_in_force(struct sim *sim, const version_record *made)
{
    const struct write_seen *seen = write_find(own(sim), made->number, made->version, 0);

    sim->counts.definitions_in_force++;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const defined_head *head = head_of(sim, i);
        if (head->generation < seen->generation ||
            (head->generation == seen->generation && head->revision < seen->revision))
            sim_fail(sim, i, "version %u of %s is told as in force, and not logged here",
                     (uint32_t)made->version, made->name);
    }
}

static void check_made(struct sim *sim, const struct ask *ask,
                       const Holdfast__Internal__V1__ChangeDefinitionResponse *response)
{
    const version_record *made = response->made;
    const struct write_seen *seen = write_find(own(sim), made->number, made->version, 0);

    if (seen == NULL) {
        sim_fail(sim, 0, "version %u of %s is told as made, and etcd has none",
                 (uint32_t)made->version, made->name);
        return;
    }
    if (!response->unchanged && strcmp(made->op_id, ask->op_id) != 0)
        sim_fail(sim, 0, "op %s is told of what op %s made", ask->op_id, made->op_id);
    sim->counts.definitions_told_again += response->duplicate != 0;
    if (response->in_force)
        check_in_force(sim, made);
}

void definition_answered(struct sim *sim, const struct coord_answer *answer)
{
    struct definitions_sim *d = own(sim);
    struct ask *ask = &d->asks[answer->call - 1];

    CHECK(answer->call >= 1 && answer->call <= d->ask_count);
    arena_reset(&d->arena);
    if (answer->status == WIRE_OK) {
        Holdfast__Internal__V1__ChangeDefinitionResponse *response =
            holdfast__internal__v1__change_definition_response__unpack(NULL, answer->body.size,
                                                                       answer->body.data);
        CHECK(response != NULL && response->made != NULL);
        ask->answered = true;
        check_made(sim, ask, response);
        holdfast__internal__v1__change_definition_response__free_unpacked(response, NULL);
        return;
    }
    if (answer->status != WIRE_REFUSED) {
        sim->counts.definitions_unknown++;
        return; /* It is asked again. */
    }
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, answer->body.size, answer->body.data);
    CHECK(refusal != NULL);
    if (refusal->code != CODE(UNAVAILABLE))
        ask->answered = true;
    sim->counts.definitions_conflicted += refusal->code == CODE(VERSION_CONFLICT);
    if (refusal->code == CODE(OPERATION_ID_MISMATCH) || refusal->code == CODE(CAPACITY_FULL))
        sim_fail(sim, 0, "op %s is refused: %s", ask->op_id, refusal->message);
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

/* ---- the end ---- */

/* The newest version of each definition in etcd, one after the other; NULL: no more. */
static const struct etcd_kv *newest_next(const struct sim *sim, uint32_t *at,
                                         struct cluster_key_parts *ret_parts)
{
    for (; *at < sim->etcd.kv_count; (*at)++) {
        const struct etcd_kv *kv = &sim->etcd.kvs[*at];
        struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, slice_from_text(kv->key));

        if (kv->create_revision == 0 || parts.kind != CLUSTER_KEY_DEFINITION)
            continue;
        struct cluster_key next =
            cluster_key_definition(SIM_CLUSTER, parts.number, parts.version + 1);
        if (etcd_find(sim, cluster_key_slice(&next)) != NULL)
            continue;
        (*at)++;
        *ret_parts = parts;
        return kv;
    }
    return NULL;
}

static bool shard_defines(const struct sim *sim, uint32_t shard)
{
    return applier_meta(sim->oracle->shards[shard].applier)->apply_version >=
           DEFINITION_APPLY_VERSION;
}

uint32_t definition_pending(struct sim *sim)
{
    struct cluster_key_parts parts;
    uint32_t pending = 0, at = 0, define = 0;
    uint64_t newest = 0;
    const struct etcd_kv *kv;

    while ((kv = newest_next(sim, &at, &parts)) != NULL) {
        if ((uint64_t)kv->mod_revision > newest)
            newest = (uint64_t)kv->mod_revision;
    }
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const defined_head *head = head_of(sim, i);
        bool even = head->generation == etcd_generation(sim) && head->revision == newest;
        define += shard_defines(sim, i);
        pending += shard_defines(sim, i) && !even && (newest > 0 || head->generation > 0);
    }
    /* A shard that takes none yet cannot say how far it is: changes wait for it. */
    for (uint32_t i = 0; i < own(sim)->ask_count && define == sim->shard_count && !own(sim)->closed;
         i++)
        pending += !own(sim)->asks[i].answered;
    own(sim)->closed = sim->quiet && (own(sim)->closed || pending == 0);
    return pending;
}

/* No shard keeps what etcd does not have. */
static void check_known(struct sim *sim, uint32_t shard)
{
    const struct definitions_sim *d = own(sim);

    for (uint32_t i = 0; i < d->stand_count[shard] && shard_defines(sim, shard); i++) {
        const defined *row = row_of(sim, shard, d->stands[shard][i].number);
        if (row == NULL)
            continue;
        struct cluster_key key = cluster_key_definition(SIM_CLUSTER, row->number, row->version);
        if (etcd_find(sim, cluster_key_slice(&key)) == NULL)
            sim_fail(sim, shard, "definition %s is there, and etcd has none", row->name);
    }
}

void definition_check_end(struct sim *sim)
{
    struct cluster_key_parts parts;
    uint32_t at = 0, live = 0;
    const struct etcd_kv *kv;

    arena_reset(&own(sim)->arena);
    while ((kv = newest_next(sim, &at, &parts)) != NULL) {
        version_record *record = unpack(buf_slice(&kv->value));
        live += !record->deleted;
        for (uint32_t i = 0; i < sim->shard_count; i++) {
            const defined *row = row_of(sim, i, parts.number);
            if (!shard_defines(sim, i))
                continue;
            if ((row == NULL) != record->deleted || (row != NULL && row->version != parts.version))
                sim_fail(sim, i, "definition %s is not at version %u as etcd has it", record->name,
                         (uint32_t)parts.version);
        }
        holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    }
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        check_known(sim, i);
        if (shard_defines(sim, i) && head_of(sim, i)->count != live)
            sim_fail(sim, i, "the shard has %u definitions, etcd has %u", head_of(sim, i)->count,
                     live);
    }
}
