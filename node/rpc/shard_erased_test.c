/* What a shard tells of players who are erased and brought back (node/core/shard/shard_erased.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/erasure.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/method.h"
#include "node/rpc/fixture_one_shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"

struct fixture {
    struct one_shard one;
    struct budget answers;
    enum reply_status last_status;
    uint32_t told;
    char id[UUID_TEXT_SIZE];
};

static void take_out(void *user, const struct shard_out *out)
{
    struct fixture *f = user;

    for (uint32_t i = 0; i < out->reply_count; i++) {
        f->last_status = out->replies[i].status;
        budget_give(&f->answers, out->replies[i].held);
    }
    f->told += out->erasure_count;
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_image image = { .number = 3,
                                 .rep = { .votes = true, .log_first_index = 1 },
                                 .answers = &f->answers };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = {
        .generation = 1, .epoch = 1, .owner = 7, .membership = { .config = 1, .count = 1 }
    };

    f->one.taken = take_out;
    f->one.user = f;
    budget_init(&f->answers, 400000);
    record.membership.members[0] = 7;
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &f->one.shard), ERR_OK);
    one_shard_step(&f->one, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    one_shard_policy(&f->one);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    shard_free(f->one.shard);
    budget_deinit(&f->answers);
    free(f);
    return 0;
}

static void call(struct fixture *f, uint32_t method, const ProtobufCMessage *request)
{
    one_shard_call(&f->one, method, request);
    assert_int_equal(f->last_status, REPLY_OK);
}

static char *fresh_id(struct fixture *f)
{
    one_shard_op_id(&f->one, f->id);
    return f->id;
}

/* Else readers of events would go on to see a player who is gone, or miss one who is back. */
static void what_is_erased_and_brought_back_is_told_once_each(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT, *amounts[] = { &gold };
    Holdfast__V1__ErasePlayerRequest erase = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;
    Holdfast__V1__RestorePlayerRequest restore = HOLDFAST__V1__RESTORE_PLAYER_REQUEST__INIT;

    grant.player_id = erase.player_id = restore.player_id = "42";
    grant.authority = "system:payments";
    erase.authority = restore.authority = "system:admin";
    gold.currency = "gold";
    gold.amount = 7;
    grant.n_currencies = 1;
    grant.currencies = amounts;
    grant.op_id = fresh_id(f);
    call(f, METHOD_GRANT, &grant.base);
    assert_int_equal(f->told, 0);
    erase.op_id = fresh_id(f);
    call(f, METHOD_ERASE_PLAYER, &erase.base);
    assert_int_equal(f->told, 1);
    restore.op_id = fresh_id(f);
    call(f, METHOD_RESTORE_PLAYER, &restore.base);
    assert_int_equal(f->told, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_erased_and_brought_back_is_told_once_each, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
