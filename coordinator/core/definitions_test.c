#include "coordinator/core/definitions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/core/candidates.h"
#include "coordinator/core/world.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/buf.h"

#define NUMBER 77u

/* As etcd has it: a counter whose `max_value` is told by its version. */
static void put_of(struct world *world, uint64_t number, uint64_t version, int64_t revision,
                   int64_t max_value)
{
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    definition_record record = HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    uint8_t bytes[256];

    counter.max_value = max_value;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    record.number = number;
    record.version = version;
    record.name = text_lend("kills");
    record.body = &body;
    assert_true(holdfast__internal__v1__definition_version__get_packed_size(&record) <=
                sizeof bytes);
    size_t size = holdfast__internal__v1__definition_version__pack(&record, bytes);
    assert_true(
        definitions_put(world->coord, number, version, (struct slice){ bytes, size }, revision));
}

static void put(struct world *world, uint64_t version, int64_t revision, int64_t max_value)
{
    put_of(world, NUMBER, version, revision, max_value);
}

static int64_t newest_max(struct world *world)
{
    const struct definition *definition = definition_find(world->coord, NUMBER);

    assert_non_null(definition);
    definition_record *record = definition_unpack(definition_newest(definition));
    int64_t max_value = record->body->counter->max_value;

    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    return max_value;
}

static void an_old_version_is_forgotten(void **state)
{
    struct world *world = world_new();

    (void)state;
    put(world, 1, 10, 100);
    put(world, 2, 20, 200);
    definitions_deleted(world->coord, NUMBER, 1);
    assert_int_equal(newest_max(world), 200);
    assert_int_equal(definitions_revision(world->coord), 20);
    definitions_deleted(world->coord, NUMBER, 1); /* It is gone already. */
    assert_int_equal(newest_max(world), 200);
    world_free(world);
}

/* What etcd lost, the coordinator does not know better: it has to see that shards are ahead. */
static void a_newest_version_that_etcd_lost_goes(void **state)
{
    struct world *world = world_new();

    (void)state;
    put(world, 1, 10, 100);
    uint32_t bytes = definition_find(world->coord, NUMBER)->bytes;

    put(world, 2, 20, INT64_C(1) << 40);
    assert_true(definition_find(world->coord, NUMBER)->bytes > bytes);
    definitions_deleted(world->coord, NUMBER, 2);
    assert_int_equal(definition_find(world->coord, NUMBER)->bytes, bytes);
    assert_int_equal(newest_max(world), 100);
    assert_int_equal(definitions_revision(world->coord), 10);
    assert_null(definition_get(definition_find(world->coord, NUMBER), 2));
    definitions_deleted(world->coord, NUMBER, 1);
    assert_null(definition_find(world->coord, NUMBER));
    assert_int_equal(definitions_revision(world->coord), 0);
    definitions_deleted(world->coord, NUMBER, 1);
    world_free(world);
}

static void another_version_of_that_number_takes_its_place(void **state)
{
    struct world *world = world_new();

    (void)state;
    put(world, 1, 10, 100);
    put(world, 2, 20, 200);
    put(world, 1, 30, 111);
    assert_int_equal(newest_max(world), 200);
    put(world, 2, 31, 222);
    assert_int_equal(newest_max(world), 222);
    assert_int_equal(definitions_revision(world->coord), 31);
    assert_int_equal(definition_find(world->coord, NUMBER)->count, 2);
    world_free(world);
}

/* A range tells them in the order of their keys, not of their versions. */
static void versions_come_in_any_order(void **state)
{
    static const uint64_t order[] = { 3, 1, 4, 2, 5 };
    struct world *world = world_new();

    (void)state;
    for (size_t i = 0; i < 5; i++)
        put(world, order[i], (int64_t)order[i] * 10, (int64_t)order[i] * 100);
    const struct definition *definition = definition_find(world->coord, NUMBER);

    assert_int_equal(definition->count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(definition->versions[i].version, i + 1);
        assert_int_equal(definition->versions[i].revision, (i + 1) * 10);
        assert_ptr_equal(definition_get(definition, i + 1), &definition->versions[i]);
    }
    assert_int_equal(newest_max(world), 500);
    definitions_deleted(world->coord, NUMBER, 3);
    assert_null(definition_get(definition, 3));
    assert_int_equal(definition_get(definition, 4)->revision, 40);
    definitions_deleted(world->coord, NUMBER, 5);
    assert_int_equal(newest_max(world), 400);
    world_free(world);
}

static void the_others_stay_when_one_goes(void **state)
{
    struct world *world = world_new();

    (void)state;
    for (uint64_t number = 5; number > 0; number--)
        put_of(world, number, 1, (int64_t)(100 - number), 1);
    definitions_deleted(world->coord, 2, 1);
    definitions_deleted(world->coord, 4, 1);
    assert_int_equal(world->coord->definitions.count, 3);
    for (uint64_t number = 1; number <= 5; number++) {
        const struct definition *definition = definition_find(world->coord, number);

        assert_int_equal(definition == NULL, number == 2 || number == 4);
        assert_true(definition == NULL || definition->number == number);
    }
    assert_int_equal(definitions_revision(world->coord), 99);
    world_free(world);
}

/* ---- names ---- */
struct answer {
    bool came, refused;
};

static void answered(void *user, const struct coord_answer *told)
{
    struct answer *answer = user;

    answer->came = true;
    answer->refused = told->status == WIRE_REFUSED;
}

/* Whether it is done. */
static bool ask(struct world *world, const Holdfast__Internal__V1__ChangeDefinitionRequest *request)
{
    struct answer answer = { 0 };
    uint8_t bytes[256];

    world->watch = (struct world_watch){ .user = &answer, .answered = answered };
    assert_true(protobuf_c_message_get_packed_size(&request->base) <= sizeof bytes);
    size_t size = protobuf_c_message_pack(&request->base, bytes);
    world_step(world, (struct coord_event){ .type = COORD_ASK,
                                            .call = 1,
                                            .method = METHOD_CHANGE_DEFINITION,
                                            .body = { bytes, size } });
    for (uint32_t i = 0; i < 400 && !answer.came; i++)
        world_run(world, 20);
    world->watch = (struct world_watch){ 0 };
    assert_true(answer.came);
    return !answer.refused;
}

static bool make_under(struct world *world, const char *name, const char *op_id)
{
    Holdfast__Internal__V1__ChangeDefinitionRequest request =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;

    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    request.body = &body;
    request.name = text_lend(name);
    request.op_id = text_lend(op_id);
    return ask(world, &request);
}

/* Whether a counter of that name is made. */
static bool make(struct world *world, const char *name)
{
    return make_under(world, name, "admin:1");
}

static bool discard_under(struct world *world, const char *name, const char *op_id)
{
    Holdfast__Internal__V1__ChangeDefinitionRequest request =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;

    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_DELETE;
    request.kind = text_lend("counter");
    request.name = text_lend(name);
    request.op_id = text_lend(op_id);
    return ask(world, &request);
}

/* Whether the counter of that name is deleted. */
static bool discard(struct world *world, const char *name)
{
    return discard_under(world, name, "admin:2");
}

/* ---- out of a backup ---- */
struct restored {
    const char *name;
    uint64_t number, version;
    int64_t max_value, at_ms;
    uint32_t wait_ms;
};

static bool restore_of(struct world *world, const struct restored *restored)
{
    Holdfast__Internal__V1__ChangeDefinitionRequest request =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    definition_record record = HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;

    counter.max_value = restored->max_value;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    record.number = restored->number;
    record.version = restored->version;
    record.name = text_lend(restored->name);
    record.body = &body;
    record.author = text_lend("key-7");
    record.reason = text_lend("season two");
    record.op_id = text_lend("admin:9");
    record.at_ms = restored->at_ms;
    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_RESTORE;
    request.restored = &record;
    request.wait_ms = restored->wait_ms;
    return ask(world, &request);
}

/* Whether a counter of that name is made with that number and version. */
static bool restore(struct world *world, const char *name, uint64_t number, uint64_t version,
                    int64_t max_value)
{
    return restore_of(world,
                      &(struct restored){ name, number, version, max_value, 1700000000000, 0 });
}

static void a_definition_of_a_backup_keeps_its_number_and_version(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    assert_true(restore(world, "kills", NUMBER, 5, 900));
    assert_int_equal(newest_max(world), 900);
    const struct definition *definition = definition_find(world->coord, NUMBER);

    assert_int_equal(definition->count, 1);
    assert_int_equal(definition_newest(definition)->version, 5);
    definition_record *record = definition_unpack(definition_newest(definition));

    assert_string_equal(record->author, "key-7");
    assert_string_equal(record->reason, "season two");
    assert_int_equal(record->at_ms, 1700000000000);
    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    assert_true(restore(world, "kills", NUMBER, 5, 900)); /* It stands already. */
    assert_int_equal(definition_find(world->coord, NUMBER)->count, 1);
    assert_true(make_under(world, "kills", "admin:10"));
    assert_int_equal(definition_newest(definition_find(world->coord, NUMBER))->version, 6);
    world_free(world);
}

static void a_definition_of_a_backup_takes_no_others_place(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    assert_true(restore(world, "kills", NUMBER, 5, 900));
    assert_false(restore(world, "kills", NUMBER + 1, 5, 900));
    assert_false(restore(world, "wins", NUMBER, 5, 900));
    assert_false(restore(world, "kills", NUMBER, 4, 900));
    assert_false(restore(world, "kills", NUMBER, 5, 901));
    assert_false(restore(world, "wins", 0, 1, 900));
    assert_false(restore(world, "wins", NUMBER + 1, 0, 900));
    assert_false(restore(world, "Wins", NUMBER + 1, 1, 900));
    assert_true(discard_under(world, "kills", "admin:11"));
    assert_false(restore(world, "kills", NUMBER, 5, 900)); /* What was deleted here stays so. */
    assert_true(restore(world, "kills", NUMBER + 1, 5, 900));
    assert_int_equal(world->coord->definitions.count, 2);
    world_free(world);
}

/* A version follows each one that is restored; callers read the time as a date. */
static void numbers_of_a_backup_are_within_bounds(void **state)
{
    static const struct restored wrong[] = {
        { "kills", NUMBER, UINT64_MAX, 900, 1700000000000, 0 },
        { "kills", NUMBER, (uint64_t)INT64_MAX + 1, 900, 1700000000000, 0 },
        { "kills", NUMBER, 5, 900, -1, 0 },
        { "kills", NUMBER, 5, 900, INT64_MAX, 0 },
        { "kills", NUMBER, 5, 900, 1700000000000, 60001 },
    };
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(restore_of(world, &wrong[i]));
    assert_int_equal(world->coord->definitions.count, 0);
    assert_true(restore_of(world, &(struct restored){ "kills", NUMBER, INT64_MAX, 900, 0, 60000 }));
    assert_true(make_under(world, "kills", "admin:10"));
    assert_true(definition_newest(definition_find(world->coord, NUMBER))->version >
                (uint64_t)INT64_MAX);
    world_free(world);
}

/* Counters that stand, as etcd has them; together they take so many bytes, or a little less. */
static void fill(struct world *world, uint64_t bytes)
{
    const struct definitions *all = &world->coord->definitions;
    uint64_t taken = 0;

    for (uint64_t number = 1; taken + all->list[0]->bytes <= bytes; number++) {
        put_of(world, number, 1, 1, 100);
        taken += all->list[0]->bytes;
    }
}

/* The last one that fits leaves no room for another; it can still be deleted, and be made again. */
static void a_full_table_can_be_made_smaller(void **state)
{
    char name[] = "a_name_that_is_as_long_as_many_are_00";
    struct world *world = world_new();
    uint32_t made = 0;

    (void)state;
    world_start(world);
    world_run(world, 3000);
    put_of(world, NUMBER, 1, 1, 100);
    fill(world, DEFINITIONS_BYTES_MAX - 1000);
    for (uint32_t i = 0; i < 100 && made == i; i++) {
        name[sizeof name - 3] = (char)('0' + i / 10);
        name[sizeof name - 2] = (char)('0' + i % 10);
        made += make(world, name);
    }
    assert_in_range(made, 5, 20);
    name[sizeof name - 3] = (char)('0' + (made - 1) / 10);
    name[sizeof name - 2] = (char)('0' + (made - 1) % 10);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < world->coord->definitions.count; i++)
        bytes += world->coord->definitions.list[i]->bytes;
    assert_true(bytes <= DEFINITIONS_BYTES_MAX);
    assert_true(discard(world, name));
    assert_true(make(world, "a_shorter_name"));
    world_free(world);
}

static void a_definition_of_a_backup_needs_room(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    put_of(world, NUMBER, 1, 1, 100);
    fill(world, DEFINITIONS_BYTES_MAX);
    assert_false(restore(world, "wins", UINT64_C(1) << 41, 1, 900));
    world_free(world);
}

/* ---- what was deleted ---- */
#define DAY_MS    86400000u
#define GONE_KEPT 8u

static uint64_t number_of(struct world *world, const char *name)
{
    const struct definition *definition =
        definition_named(world->coord, HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER, name);

    return definition != NULL ? definition->number : 0;
}

static void a_deleted_definition_keeps_its_last_version(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    assert_true(make_under(world, "kills", "admin:1"));
    uint64_t number = number_of(world, "kills");

    assert_true(discard_under(world, "kills", "admin:2"));
    world_run(world, 3000);
    assert_int_equal(definition_find(world->coord, number)->count, 2);
    assert_true(make_under(world, "kills", "admin:1")); /* It finds what it made, and makes none. */
    assert_int_equal(number_of(world, "kills"), 0);
    world->coord->wall_ahead_ms += DAY_MS + 10000;
    world_run(world, 3000);
    assert_int_equal(definition_find(world->coord, number)->count, 1);
    assert_true(definition_newest(definition_find(world->coord, number))->deleted);
    world_free(world);
}

static void few_deleted_definitions_stay_and_no_number_comes_again(void **state)
{
    struct world *world = world_new();
    uint64_t first = 0;
    char name[16];

    (void)state;
    world->coord->limits.definitions_gone_kept = GONE_KEPT;
    world_start(world);
    world_run(world, 3000);
    for (uint32_t i = 0; i < GONE_KEPT + 5; i++) {
        snprintf(name, sizeof name, "kills%u", i);
        assert_true(make_under(world, name, "admin:1"));
        first = i == 0 ? number_of(world, name) : first;
        assert_true(discard_under(world, name, "admin:2"));
    }
    assert_non_null(definition_find(world->coord, first));
    world->coord->wall_ahead_ms += DAY_MS + 10000;
    world->deaf_node = 1; /* Its shards do not hear of the last ones. */
    snprintf(name, sizeof name, "kills%u", GONE_KEPT + 4);
    assert_true(make_under(world, name, "admin:3"));
    world_run(world, 5000);
    assert_non_null(definition_find(world->coord, first));
    world->deaf_node = 0;
    world_run(world, 20000);
    assert_null(definition_find(world->coord, first));
    assert_int_equal(world->coord->definitions.count, GONE_KEPT + 1);
    assert_int_equal(world_stats(world).definitions_pending, 0);
    assert_true(make_under(world, "kills0", "admin:1"));
    assert_int_not_equal(number_of(world, "kills0"), first);
    world_free(world);
}

/* ---- what is told ---- */
static void how_long_shards_have_been_behind_is_told(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    assert_true(make(world, "wins"));
    world_run(world, 1000);
    assert_int_equal(world_stats(world).definitions_lag_seconds, 0);
    world->deaf_node = 1;
    assert_true(make(world, "kills"));
    world_run(world, 100);
    for (uint64_t seconds = 0; seconds < 5; seconds++) {
        assert_in_range(world_stats(world).definitions_lag_seconds, seconds, seconds + 1);
        assert_in_range(world_stats(world).definitions_pending, 2, 3);
        world_run(world, 1000);
    }
    world->deaf_node = 0;
    world_run(world, 5000);
    assert_int_equal(world_stats(world).definitions_lag_seconds, 0);
    assert_int_equal(world_stats(world).definitions_pending, 0);
    world_free(world);
}

struct found {
    Holdfast__V1__ErrorCode code; /* 0: it is answered. */
    bool hinted;
};

static void list_answered(void *user, const struct coord_answer *told)
{
    struct found *found = user;

    if (told->status != WIRE_REFUSED)
        return;
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, told->body.size, told->body.data);

    assert_non_null(refusal);
    found->code = refusal->code;
    found->hinted = strstr(refusal->message, "counter") != NULL;
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

static struct found list(struct world *world, const char *kind)
{
    Holdfast__Internal__V1__FindDefinitionsRequest request =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    struct found found = { 0 };
    uint8_t bytes[64];

    world->watch = (struct world_watch){ .user = &found, .answered = list_answered };
    request.kind = text_lend(kind);
    request.limit = 10;
    size_t size = holdfast__internal__v1__find_definitions_request__pack(&request, bytes);
    world_step(world, (struct coord_event){ .type = COORD_ASK,
                                            .call = 2,
                                            .method = METHOD_FIND_DEFINITIONS,
                                            .body = { bytes, size } });
    world_settle(world);
    world->watch = (struct world_watch){ 0 };
    return found;
}

struct told_history {
    size_t count;
    bool first_is_current, falls;
};

static void history_answered(void *user, const struct coord_answer *told)
{
    struct told_history *history = user;
    Holdfast__Internal__V1__FindDefinitionsResponse *response =
        holdfast__internal__v1__find_definitions_response__unpack(NULL, told->body.size,
                                                                  told->body.data);

    assert_int_equal(told->status, WIRE_OK);
    assert_non_null(response);
    history->count = response->n_definitions;
    history->first_is_current = response->n_definitions > 0 && response->definitions[0]->current;
    history->falls = true;
    for (size_t i = 1; i < response->n_definitions; i++)
        history->falls = history->falls && response->definitions[i - 1]->version->at_ms >=
                                               response->definitions[i]->version->at_ms;
    holdfast__internal__v1__find_definitions_response__free_unpacked(response, NULL);
}

/* The numbers of lives come out of hashes, and tell nothing of their order. */
static void a_history_begins_with_the_newest_life(void **state)
{
    struct world *world = world_new();
    Holdfast__Internal__V1__FindDefinitionsRequest request =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    struct told_history history = { 0 };
    char op_id[32];
    uint8_t bytes[64];

    (void)state;
    world_start(world);
    for (uint32_t life = 1; life <= 6; life++) {
        snprintf(op_id, sizeof op_id, "make:%u", life);
        assert_true(make_under(world, "plays", op_id));
        snprintf(op_id, sizeof op_id, "discard:%u", life);
        assert_true(life == 6 || discard_under(world, "plays", op_id));
    }
    world->watch = (struct world_watch){ .user = &history, .answered = history_answered };
    request.kind = text_lend("counter");
    request.name = text_lend("plays");
    request.history = true;
    request.limit = 20;
    size_t size = holdfast__internal__v1__find_definitions_request__pack(&request, bytes);
    world_step(world, (struct coord_event){ .type = COORD_ASK,
                                            .call = 2,
                                            .method = METHOD_FIND_DEFINITIONS,
                                            .body = { bytes, size } });
    world_settle(world);
    world->watch = (struct world_watch){ 0 };
    assert_int_equal(history.count, 11);
    assert_true(history.first_is_current);
    assert_true(history.falls);
    world_free(world);
}

static void a_list_that_cannot_be_told_is_refused(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    assert_int_equal(list(world, "").code, 0);
    assert_int_equal(list(world, "counter").code, 0);
    struct found found = list(world, "counters");

    assert_int_equal(found.code, CODE(INVALID_ARGUMENT));
    assert_true(found.hinted);
    assert_false(list(world, "zzzzzzzzzzzz").hinted);
    world_step(world, (struct coord_event){ .type = COORD_LOST });
    assert_int_equal(list(world, "counter").code, CODE(UNAVAILABLE));
    world_free(world);
}

/* What the one before wrote last may be of that name: it is read once the election itself is. */
static void no_name_is_given_before_the_election_was_read(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    assert_true(make(world, "wins"));
    world_depose(world);
    world_replace_coordinator(world);
    world->mirror_stopped = true;
    world_elect(world);
    world_run(world, 3000);
    assert_false(make(world, "kills"));
    world->mirror_stopped = false;
    world_refresh(world);
    world_run(world, 100);
    assert_true(make(world, "kills"));
    world_free(world);
}

/* Of two candidates the later one leads once the earlier one's key has gone, and not before. */
/* Of the first only etcd knows: its answer was lost, and the watch is behind. A second one would
 * take the shards past it. */
static void a_version_that_is_not_seen_yet_is_waited_for(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    world->fault = WORLD_ANSWER_LOST;
    world->mirror_stopped = true;
    (void)make_under(world, "gems", "admin:1");
    world->fault = WORLD_WELL;
    world_run(world, 3000);
    assert_int_equal(world_stats(world).definitions, 0);
    assert_false(make_under(world, "wins", "admin:2"));
    world->mirror_stopped = false;
    world_refresh(world);
    world_run(world, 100);
    assert_int_equal(world_stats(world).definitions, 1);
    assert_true(make_under(world, "wins", "admin:2"));
    world_free(world);
}

/* The first caller was told that the outcome is unknown, and etcd may carry its write out yet. */
static void a_name_on_its_way_is_given_to_no_other(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    world->fault = WORLD_SILENT;
    (void)make_under(world, "gems", "admin:1");
    assert_false(make_under(world, "gems", "admin:2"));
    world->fault = WORLD_WELL;
    world_run(world, 5000);
    assert_int_equal(world_stats(world).definitions, 1);
    world_free(world);
}

static void older_candidates_have_to_be_gone(void **state)
{
    struct candidates candidates = { 0 };
    char key[] = "election/00";

    (void)state;
    assert_false(candidates_are_over(&candidates, 20));
    candidates_put(&candidates, SLICE_LITERAL("election/old"), 10);
    candidates_put(&candidates, SLICE_LITERAL("election/own"), 20);
    candidates_put(&candidates, SLICE_LITERAL("election/own"), 20);
    candidates_put(&candidates, SLICE_LITERAL("election/new"), 30);
    assert_false(candidates_are_over(&candidates, 20));
    candidates_deleted(&candidates, SLICE_LITERAL("election/unknown"));
    candidates_deleted(&candidates, SLICE_LITERAL("election/old"));
    assert_true(candidates_are_over(&candidates, 20));
    assert_int_equal(candidates.count, 2);
    for (uint32_t i = 0; i < CANDIDATES_MAX; i++) {
        key[9] = (char)('a' + i / 8);
        key[10] = (char)('a' + i % 8);
        candidates_put(&candidates, slice_from_text(key), 40);
    }
    assert_false(candidates_are_over(&candidates, 20)); /* Which ones there are is not known. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_version_is_forgotten),
        cmocka_unit_test(a_newest_version_that_etcd_lost_goes),
        cmocka_unit_test(another_version_of_that_number_takes_its_place),
        cmocka_unit_test(versions_come_in_any_order),
        cmocka_unit_test(the_others_stay_when_one_goes),
        cmocka_unit_test(a_definition_of_a_backup_keeps_its_number_and_version),
        cmocka_unit_test(a_definition_of_a_backup_needs_room),
        cmocka_unit_test(a_deleted_definition_keeps_its_last_version),
        cmocka_unit_test(few_deleted_definitions_stay_and_no_number_comes_again),
        cmocka_unit_test(a_definition_of_a_backup_takes_no_others_place),
        cmocka_unit_test(numbers_of_a_backup_are_within_bounds),
        cmocka_unit_test(a_full_table_can_be_made_smaller),
        cmocka_unit_test(how_long_shards_have_been_behind_is_told),
        cmocka_unit_test(a_history_begins_with_the_newest_life),
        cmocka_unit_test(a_list_that_cannot_be_told_is_refused),
        cmocka_unit_test(a_name_on_its_way_is_given_to_no_other),
        cmocka_unit_test(a_version_that_is_not_seen_yet_is_waited_for),
        cmocka_unit_test(older_candidates_have_to_be_gone),
        cmocka_unit_test(no_name_is_given_before_the_election_was_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
