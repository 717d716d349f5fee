#include "node/rpc/fixture_counter.h"

#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/favorite/favorite.h"

void fixture_define_counter(struct fixture *f, const struct fixture_counter *counter)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody rule = HOLDFAST__V1__COUNTER_BODY__INIT;
    Holdfast__Internal__V1__Defined *list[] = { &given };

    rule.max_value = counter->max_value;
    rule.add_max = counter->add_max;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &rule;
    given.number = counter->number;
    given.version = given.revision = counter->revision;
    given.name = text_lend(counter->name);
    given.body = &body;
    given.deleted = counter->deleted;
    request.generation = 1;
    request.to_revision = counter->revision;
    request.last = true;
    request.n_definitions = 1;
    request.definitions = list;
    assert_non_null(fixture_mutate(f, METHOD_DEFINE, &request.base));
}

void fixture_define_plays(struct fixture *f)
{
    fixture_define_counter(f, &(struct fixture_counter){ 9, 20, "plays", 0, 0, false });
}

const Holdfast__V1__AddToCounterResponse *fixture_addition(struct fixture *f,
                                                           const struct fixture_addition *addition)
{
    Holdfast__V1__AddToCounterRequest request = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;
    const char *authority = addition->authority;

    request.player_id = text_lend(addition->player);
    request.op_id = addition->op_id != NULL ? text_lend(addition->op_id) : fixture_op_id(f);
    request.authority = text_lend(authority != NULL ? authority : "system:match");
    request.counter = text_lend(addition->counter != NULL ? addition->counter : "plays");
    request.target_id = text_lend(addition->target);
    request.amount = addition->amount;
    return fixture_mutate(f, METHOD_ADD_TO_COUNTER, &request.base);
}

int64_t fixture_add(struct fixture *f, const char *player, const char *target, int64_t amount)
{
    const Holdfast__V1__AddToCounterResponse *told = fixture_addition(
        f, &(struct fixture_addition){ .player = player, .target = target, .amount = amount });

    return told != NULL ? told->value : -1;
}

int64_t fixture_value(struct fixture *f, const char *player, const char *target)
{
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;
    char *targets[] = { text_lend(target) };

    request.player_id = text_lend(player);
    request.counter = text_lend("plays");
    request.target_ids = targets;
    request.n_target_ids = 1;
    const Holdfast__V1__BatchGetPlayerCountersResponse *response =
        fixture_read(f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base);
    return response != NULL ? response->counters[0]->value : -1;
}

uint64_t fixture_part(struct fixture *f, const char *counter, const char *target)
{
    Holdfast__Internal__V1__GetPartialsRequest request =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    char *targets[] = { text_lend(target) };

    request.collection = text_lend(counter);
    request.target_ids = targets;
    request.n_target_ids = 1;
    request.is_counter = true;
    const Holdfast__Internal__V1__GetPartialsResponse *response =
        fixture_read(f, METHOD_GET_PARTIALS, &request.base);
    return response != NULL ? response->counts[0] : UINT64_MAX;
}

void fixture_count_all(struct fixture *f, const char *player)
{
    Holdfast__V1__ListPlayerCountersRequest list = HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;

    (void)fixture_add(f, player, "chess", 3);
    (void)fixture_add(f, player, "go", 5);
    (void)fixture_add(f, player, "chess", 4);
    (void)fixture_value(f, player, "chess");
    (void)fixture_part(f, "plays", "chess");
    list.player_id = text_lend(player);
    list.counter = text_lend("plays");
    (void)fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &list.base);
}

/* ---- rows against rows ---- */
struct sums {
    uint64_t count, sum;
};

/* Of one table, what is of this player, or of this target, under the number. */
static struct sums sum_rows(const struct fixture *f, enum table table,
                            const struct favorite_key *wanted)
{
    struct sums sums = { 0 };
    struct favorite_key key;
    struct added_row row;

    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        if (bytes.data[0] != (uint8_t)table || favorite_key_parse(bytes, &key) != ERR_OK ||
            key.collection != wanted->collection ||
            (wanted->entity.size > 0 && !slice_equal(key.entity, wanted->entity)) ||
            (wanted->target.size > 0 && !slice_equal(key.target, wanted->target)))
            continue;
        assert_int_equal(added_row_decode(buf_slice(&f->rows[i].value), &row), ERR_OK);
        sums.count++;
        sums.sum += (uint64_t)row.value;
    }
    return sums;
}

static void check_twin(const struct fixture *f, enum table twin, const struct favorite_key *key,
                       struct slice value)
{
    struct added_row row;

    assert_int_equal(added_row_decode(value, &row), ERR_OK);
    struct sums sums = sum_rows(f, twin, key);
    assert_int_equal(sums.count, 1);
    assert_int_equal(sums.sum, row.value);
}

void fixture_check_counters(struct fixture *f)
{
    struct favorite_key key;
    struct favorites_row own;
    struct partial_row partial;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        struct slice value = buf_slice(&f->rows[i].value);
        if (favorite_key_parse(bytes, &key) != ERR_OK)
            continue;
        if (bytes.data[0] == TABLE_ADDED)
            check_twin(f, TABLE_ADDER, &key, value);
        if (bytes.data[0] == TABLE_ADDER)
            check_twin(f, TABLE_ADDED, &key, value);
        if (bytes.data[0] == TABLE_FAVORITES) {
            assert_int_equal(favorites_row_decode(value, &own), ERR_OK);
            assert_int_equal(own.edges, sum_rows(f, TABLE_ADDED, &key).count);
        }
        if (bytes.data[0] == TABLE_PARTIAL) {
            assert_int_equal(partial_row_decode(value, &partial), ERR_OK);
            assert_int_equal(partial.count, sum_rows(f, TABLE_ADDER, &key).sum);
        }
    }
}

/* Some steps of a rebuild, wherever the shard is in it; each may be refused. */
static void recount(struct fixture *f, const char *id, Holdfast__V1__RebuildPart part,
                    uint32_t steps)
{
    Holdfast__V1__RebuildCountsRequest request = HOLDFAST__V1__REBUILD_COUNTS_REQUEST__INIT;

    request.rebuild_id = text_lend(id);
    request.part = part;
    request.rows = 1;
    for (uint32_t i = 0; i < steps; i++) {
        const Holdfast__V1__RebuildCountsResponse *response =
            fixture_mutate(f, METHOD_REBUILD_COUNTS, &request.base);
        if (response == NULL || response->done)
            return;
        request.step = response->next_step;
    }
}

void fixture_rebuild_all(struct fixture *f, uint32_t steps)
{
    Holdfast__Internal__V1__CheckCountsRequest request =
        HOLDFAST__INTERNAL__V1__CHECK_COUNTS_REQUEST__INIT;

    recount(f, "totals", HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS, steps);
    recount(f, "counts", HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS, steps);
    request.rows = 100;
    for (request.part = HOLDFAST__V1__REBUILD_PART__REBUILD_PART_COUNTS;
         request.part <= HOLDFAST__V1__REBUILD_PART__REBUILD_PART_TOTALS; request.part++)
        (void)fixture_read(f, METHOD_CHECK_COUNTS, &request.base);
}
