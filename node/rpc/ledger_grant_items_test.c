#include "node/rpc/fixture.h"

#include <string.h>

static const Holdfast__V1__Item *find_item(struct fixture *f, const char *uid)
{
    Holdfast__V1__ListItemsResponse *page = fixture_items(f, "ann");
    size_t place = 0;

    while (place < page->n_items && strcmp(page->items[place]->uid, uid) != 0)
        place++;
    assert_true(place < page->n_items);
    return page->items[place];
}

static void uids_are_unique_across_entries_and_owners(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
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
        Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
        assert_non_null(response);
        for (size_t j = 0; j < 2; j++)
            memcpy(uids[count++], response->item_uids[j], 33);
        const Holdfast__V1__Item *item_told = find_item(f, uids[count - 1]);
        assert_string_equal(item_told->attributes, "{\"a\":2,\"z\":1}");
        assert_int_equal(item_told->minted_at_ms, (int64_t)f->now_ms);
        assert_int_equal(item_told->step, 1);
        if (i == 2)
            fixture_next_epoch(f);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(uids[i], uids[j]);
}

static void a_duplicate_grant_names_the_same_items(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };
    char uid[33];

    item.kind = (char *)"orb";
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:daily:1";
    request.items = items;
    request.n_items = 1;
    request.authority = fixture_authority(f, "unheld");
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);
    memcpy(uid, response->item_uids[0], sizeof uid);
    request.authority = fixture_authority(f, "system:match");
    response = fixture_mutate(f, METHOD_GRANT, &request.base);
    assert_non_null(response);
    assert_true(response->write->duplicate);
    assert_string_equal(response->item_uids[0], uid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(uids_are_unique_across_entries_and_owners),
        FIXTURE_TEST(a_duplicate_grant_names_the_same_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
