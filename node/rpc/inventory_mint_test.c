#include "node/rpc/fixture.h"

#include <string.h>

static void uids_are_unique_across_entries_and_owners(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__MintRequest request = HOLDFAST__V1__MINT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item };
    char uids[12][33];
    size_t count = 0;

    item.kind = (char *)"orb";
    item.attributes = (char *)" { \"z\":1 , \"a\":2 } ";
    request.player_id = (char *)"ann";
    request.items = items;
    request.n_items = 2;
    for (int i = 0; i < 6; i++) {
        request.op_id = fixture_op_id(f);
        request.authority = fixture_authority(f, "unheld");
        Holdfast__V1__MintResponse *response = fixture_mutate(f, METHOD_MINT, &request.base);
        assert_non_null(response);
        assert_string_equal(response->items[0]->attributes, "{\"a\":2,\"z\":1}");
        assert_int_equal(response->items[0]->minted_at_ms, (int64_t)f->now_ms);
        for (size_t j = 0; j < 2; j++)
            memcpy(uids[count++], response->items[j]->uid, 33);
        if (i == 2)
            fixture_next_epoch(f);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(uids[i], uids[j]);
}

static void a_duplicate_mint_names_the_same_items(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__MintRequest request = HOLDFAST__V1__MINT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };
    char uid[33];

    item.kind = (char *)"orb";
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:daily:1";
    request.items = items;
    request.n_items = 1;
    request.authority = fixture_authority(f, "unheld");
    Holdfast__V1__MintResponse *response = fixture_mutate(f, METHOD_MINT, &request.base);
    memcpy(uid, response->items[0]->uid, sizeof uid);
    request.authority = fixture_authority(f, "system:match");
    response = fixture_mutate(f, METHOD_MINT, &request.base);
    assert_non_null(response);
    assert_true(response->write->duplicate);
    assert_string_equal(response->items[0]->uid, uid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(uids_are_unique_across_entries_and_owners),
        FIXTURE_TEST(a_duplicate_mint_names_the_same_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
