#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

uint32_t fixture_check_player(struct fixture *f, const char *player,
                              struct fixture_unreadable *ret_rows)
{
    Holdfast__V1__CheckPlayerRequest request = HOLDFAST__V1__CHECK_PLAYER_REQUEST__INIT;
    char cursor[1200] = "";

    ret_rows->count = 0;
    ret_rows->player = false;
    request.player_id = text_lend(player);
    request.page_size = 5;
    do {
        request.cursor = cursor;
        Holdfast__V1__CheckPlayerResponse *page =
            fixture_read(f, METHOD_CHECK_PLAYER, &request.base);
        assert_non_null(page);
        for (size_t i = 0; i < page->n_rows; i++) {
            assert_true(page->rows[i]->why[0] != 0);
            if (page->rows[i]->table[0] == TABLE_PLAYER) {
                ret_rows->player = true;
                continue;
            }
            assert_true(ret_rows->count < FIXTURE_UNREADABLE_MAX);
            ret_rows->keys[ret_rows->count++] = strdup(page->rows[i]->key);
        }
        snprintf(cursor, sizeof cursor, "%s", page->next_cursor);
    } while (cursor[0] != 0);
    return ret_rows->count + ret_rows->player;
}

void fixture_unreadable_free(struct fixture_unreadable *rows)
{
    for (uint32_t i = 0; i < rows->count; i++)
        free(rows->keys[i]);
    rows->count = 0;
}

Holdfast__V1__RepairPlayerRequest *fixture_repair_request(struct fixture *f, const char *player)
{
    Holdfast__V1__RepairPlayerRequest *request =
        (void *)arena_message(&f->arena, &holdfast__v1__repair_player_request__descriptor);

    request->player_id = arena_text(&f->arena, slice_from_text(player));
    request->op_id = arena_text(&f->arena, slice_from_text(fixture_op_id(f)));
    request->authority = fixture_authority(f, "system:admin");
    request->reason = (char *)"spoilt";
    return request;
}

bool fixture_is_quarantined(struct fixture *f, const char *player)
{
    return meta_find_quarantined(applier_meta(f->applier), slice_from_text(player)) != NULL;
}
