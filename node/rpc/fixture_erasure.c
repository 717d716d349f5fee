#include "node/rpc/fixture_erasure.h"

#include <stdio.h>
#include <string.h>

#include "node/core/definition/player_rate.h"
#include "node/core/favorite/partial.h"
#include "node/rpc/fixture_counter.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

int fixture_erasure_setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);

    fixture_init_shard(f, 0, 1); /* Of a cluster: partials know their hours. */
    fixture_define_favorites(f);
    fixture_define_haste(f);
    fixture_define_plays(f);
    applier_set_erasure_rows(f->applier, 2);
    *state = f;
    return 0;
}

/* ---- rows against rows ---- */
static uint64_t rows_with_target(const struct fixture *f, const struct favorite_key *of)
{
    struct favorite_key key;
    struct favorite_row edge;
    struct added_row row;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        if (favorite_key_parse(bytes, &key) != ERR_OK || key.collection != of->collection ||
            !slice_equal(key.target, of->target))
            continue;
        if (bytes.data[0] == TABLE_FAVORER) {
            assert_int_equal(favorer_row_read(bytes, buf_slice(&f->rows[i].value), &key, &edge),
                             ERR_OK);
            sum += favorite_edge_counts(&edge);
        }
        if (bytes.data[0] != TABLE_ADDER)
            continue;
        assert_int_equal(added_row_decode(buf_slice(&f->rows[i].value), &row), ERR_OK);
        sum += (uint64_t)row.value;
    }
    return sum;
}

void fixture_check_erased_counts(struct fixture *f)
{
    struct favorite_key key;
    struct partial_row partial;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        if (bytes.data[0] != TABLE_PARTIAL || favorite_key_parse(bytes, &key) != ERR_OK)
            continue;
        assert_int_equal(partial_row_decode(buf_slice(&f->rows[i].value), &partial), ERR_OK);
        assert_int_equal(partial.count, rows_with_target(f, &key));
    }
}

uint64_t fixture_edges_digest(struct fixture *f)
{
    struct buf all = { 0 };

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key), value = buf_slice(&f->rows[i].value);
        struct partial_row partial;
        if (strchr("fFgGBJQVP", key.data[0]) == NULL)
            continue;
        buf_put_bytes(&all, key);
        if (key.data[0] != TABLE_PARTIAL) {
            buf_put_bytes(&all, value);
            continue;
        }
        assert_int_equal(partial_row_decode(value, &partial), ERR_OK);
        buf_put_u64(&all, partial.count);
        hours_encode(&partial.hours, &all);
    }
    uint64_t digest = hash_u64(buf_slice(&all));
    buf_deinit(&all);
    return digest;
}

uint32_t fixture_edges_of(struct fixture *f, const char *entity)
{
    struct row_key share;
    uint32_t count = 0;

    row_key_rate(&share, slice_from_text(entity), OUTCOME_SHARE_SUBJECT);

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key);
        struct favorite_key of = { 0 };
        if (strchr("fFgGBJQV", key.data[0]) == NULL || slice_equal(key, row_key_slice(&share)))
            continue;
        (void)!favorite_key_parse(key, &of);
        count += slice_equal(row_entity(key), slice_from_text(entity)) ||
                 slice_equal(of.entity, slice_from_text(entity));
    }
    return count;
}

/* ---- calls ---- */
Holdfast__V1__Erasure *fixture_erase_player(struct fixture *f, const char *player, int64_t grace_ms)
{
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:admin");
    request._grace_ms_case = 10;
    request.grace_ms = grace_ms;
    const Holdfast__V1__ErasePlayerResponse *response =
        fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base);
    return response != NULL ? response->erasure : NULL;
}

Holdfast__V1__Erasure *fixture_undo_erasure(struct fixture *f, const char *player)
{
    Holdfast__V1__RestorePlayerRequest request = HOLDFAST__V1__RESTORE_PLAYER_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:admin");
    const Holdfast__V1__RestorePlayerResponse *response =
        fixture_mutate(f, METHOD_RESTORE_PLAYER, &request.base);
    return response != NULL ? response->erasure : NULL;
}

Holdfast__V1__Erasure *fixture_erasure(struct fixture *f, const char *player)
{
    Holdfast__V1__GetErasureRequest request = HOLDFAST__V1__GET_ERASURE_REQUEST__INIT;

    request.player_id = text_lend(player);
    const Holdfast__V1__GetErasureResponse *response =
        fixture_read(f, METHOD_GET_ERASURE, &request.base);
    assert_non_null(response);
    return response->erasure;
}

void fixture_some_rows(struct fixture *f, const char *player)
{
    assert_non_null(fixture_favorite(f, player, "pong"));
    f->now_ms += HOUR;
    assert_non_null(fixture_favorite(f, player, "chess"));
    assert_non_null(fixture_favorite(f, player, "go"));
    assert_non_null(fixture_favorite(f, player, "tetris"));
    assert_non_null(fixture_unfavorite(f, player, "tetris"));
    assert_int_equal(fixture_add(f, player, "pong", 5), 5);
    f->now_ms += HOUR;
    assert_int_equal(fixture_add(f, player, "pong", 2), 7);
    assert_int_equal(fixture_add(f, player, "go", 3), 3);
    assert_int_equal(fixture_add(f, player, "chess", 1), 1);
}

const Holdfast__V1__ListFlaggedEdgesResponse *fixture_flagged(struct fixture *f, uint32_t page_size,
                                                              const char *cursor)
{
    Holdfast__V1__ListFlaggedEdgesRequest request = HOLDFAST__V1__LIST_FLAGGED_EDGES_REQUEST__INIT;

    request.shard = f->shard;
    request.page_size = page_size;
    request.cursor = text_lend(cursor);
    const Holdfast__V1__ListFlaggedEdgesResponse *response =
        fixture_read(f, METHOD_LIST_FLAGGED_EDGES, &request.base);
    assert_non_null(response);
    return response;
}

const char *fixture_flagged_targets(struct fixture *f)
{
    static char all[256];
    char cursor[600] = "";

    all[0] = '\0';
    do {
        const Holdfast__V1__ListFlaggedEdgesResponse *response = fixture_flagged(f, 1, cursor);
        size_t used = strlen(all);
        if (response->n_edges > 0)
            snprintf(all + used, sizeof all - used, "%s:%s ", response->edges[0]->player_id,
                     response->edges[0]->target_id);
        snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
    } while (cursor[0] != '\0');
    return all;
}

void fixture_some_flagged(struct fixture *f)
{
    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "pong"));
    f->now_ms += HOUR;
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "bob", "chess"));
    f->now_ms += HOUR;
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "go"));
}

void fixture_pass_steps(struct fixture *f)
{
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
}

int fixture_erasure_teardown(void **state)
{
    fixture_check_erased_counts(*state);
    return fixture_teardown(state);
}
