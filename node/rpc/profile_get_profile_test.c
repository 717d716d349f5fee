#include "node/rpc/fixture.h"
#include "holdfast/internal/v1/mailbox.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/link/frame.h"

static void replace(struct fixture *f, const char *name, const char *json)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &edit };

    edit.name = text_lend(name);
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = text_lend(json);
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.edits = edits;
    request.n_edits = 1;
    if (fixture_mutate(f, METHOD_UPDATE_PROFILE, &request.base) == NULL)
        fail_msg("%s", f->error->message);
}

static void an_unknown_player_has_version_zero(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"stranger";
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_non_null(response);
    assert_int_equal(response->profile->version, 0);
    assert_string_equal(response->profile->player_id, "stranger");
    assert_int_equal(fixture_as_of(f, response->as_of).counter, 2);
}

static void a_profile_is_read_whole_or_by_section_also_from_the_database(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    char *names[] = { (char *)"sections.pets", (char *)"sections.none" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 7));
    replace(f, "quests", "{}");
    replace(f, "pets", "[1]");
    fixture_restart(f);
    request.player_id = (char *)"ann";
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_int_equal(response->profile->version, 3);
    assert_int_equal(response->profile->created_at_ms, (int64_t)FIXTURE_START_MS);
    assert_int_equal(response->profile->n_sections, 2);
    assert_string_equal(response->profile->sections[0]->json, "[1]");
    assert_string_equal(response->profile->balances[0]->currency, "gold");
    request.include = names;
    request.n_include = 2;
    response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    assert_int_equal(response->profile->n_sections, 1);
    assert_string_equal(response->profile->sections[0]->name, "pets");
    assert_int_equal(response->profile->n_balances, 0);
}

static void mint(struct fixture *f, size_t count)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[64];

    item.kind = (char *)"sword";
    for (size_t i = 0; i < count; i++)
        items[i] = &item;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:match");
    request.items = items;
    request.n_items = count;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
}

static void send_text(struct fixture *f)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest request =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:mail");
    request.text = (char *)"hello";
    assert_non_null(fixture_mutate(f, METHOD_DELIVER_TO_PLAYER, &request.base));
}

/* The attributes of an item may have 1 KiB. */
static Holdfast__V1__ItemSpec *large_item(void)
{
    static Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    static char attributes[1024];

    memset(attributes, 'y', sizeof attributes - 1);
    memcpy(attributes, "{\"a\":\"", 6);
    memcpy(attributes + sizeof attributes - 3, "\"}", 2);
    item.kind = (char *)"hat";
    item.attributes = attributes;
    return &item;
}

/* 64 items a piece. */
static void send_hats(struct fixture *f)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest request =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    Holdfast__V1__ItemSpec *items[64];

    for (int i = 0; i < 64; i++)
        items[i] = large_item();
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:mail");
    request.items = items;
    request.n_items = 64;
    if (fixture_mutate(f, METHOD_DELIVER_TO_PLAYER, &request.base) == NULL)
        fail_msg("%s", f->error->message);
}

static void mint_large(struct fixture *f)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec *items[64];

    for (int i = 0; i < 64; i++)
        items[i] = large_item();
    request.player_id = (char *)"ann";
    request.authority = fixture_authority(f, "unheld");
    request.items = items;
    request.n_items = 64;
    for (int i = 0; i < 2; i++) {
        request.op_id = fixture_op_id(f);
        assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    }
}

static Holdfast__V1__Profile *get(struct fixture *f, size_t count, char **words)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.include = words;
    request.n_include = count;
    Holdfast__V1__GetProfileResponse *response = fixture_read(f, METHOD_GET_PROFILE, &request.base);
    return response != NULL ? response->profile : NULL;
}

static void each_word_brings_its_part_and_no_other(void **state)
{
    struct fixture *f = *state;
    char *words[] = { (char *)"mail", (char *)"items", (char *)"balances", (char *)"sections" };

    assert_non_null(fixture_grant(f, "ann", "unheld", 7));
    replace(f, "quests", "{}");
    mint(f, 2);
    send_text(f);
    fixture_restart(f);
    for (int i = 0; i < 4; i++) {
        Holdfast__V1__Profile *profile = get(f, 1, &words[i]);
        assert_non_null(profile);
        assert_int_equal(profile->item_count, 2);
        assert_int_equal(profile->mail != NULL, i == 0);
        assert_int_equal(profile->items != NULL, i == 1);
        assert_int_equal(profile->n_balances, i == 2 ? 1 : 0);
        assert_int_equal(profile->n_sections, i == 3 ? 1 : 0);
    }
    fixture_restart(f); /* One round loads what all of them need. */
    uint64_t rounds = f->need_rounds;
    Holdfast__V1__Profile *whole = get(f, 4, words);
    assert_int_equal(whole->mail->n_mails, 1);
    assert_string_equal(whole->mail->mails[0]->text, "hello");
    assert_int_equal(whole->mail->total, 1);
    assert_int_equal(whole->items->n_items, 2);
    assert_int_equal(whole->items->total, 2);
    assert_string_equal(whole->items->next_cursor, "");
    assert_int_equal(whole->n_sections, 1);
    assert_int_equal(whole->n_balances, 1);
    assert_in_range(f->need_rounds - rounds, 1, 3); /* The player's row and its sections first. */
    whole = get(f, 0, NULL);                        /* Sections and balances. */
    assert_true(whole->n_sections == 1 && whole->n_balances == 1);
    assert_true(whole->items == NULL && whole->mail == NULL);
}

/* The page goes on in ListItems and ListMail. */
static void more_than_a_page_has_a_cursor_for_its_list(void **state)
{
    struct fixture *f = *state;
    char *words[] = { (char *)"items", (char *)"mail" };
    Holdfast__V1__ListItemsRequest items = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;
    Holdfast__V1__ListMailRequest mail = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    for (int i = 0; i < 2; i++)
        mint(f, 64);
    for (int i = 0; i < 51; i++)
        send_text(f);
    Holdfast__V1__Profile *profile = get(f, 2, words);
    assert_int_equal(profile->items->n_items, 100);
    assert_int_equal(profile->items->total, 128);
    assert_int_equal(profile->mail->n_mails, 50);
    assert_int_equal(profile->mail->total, 51);
    items.player_id = mail.player_id = (char *)"ann";
    items.cursor = profile->items->next_cursor;
    mail.cursor = profile->mail->next_cursor;
    Holdfast__V1__ListItemsResponse *more_items = fixture_read(f, METHOD_LIST_ITEMS, &items.base);
    assert_int_equal(more_items->n_items, 28);
    Holdfast__V1__ListMailResponse *more_mail = fixture_read(f, METHOD_LIST_MAIL, &mail.base);
    assert_int_equal(more_mail->n_mails, 1);
}

static void a_word_that_is_none_is_refused_with_the_one_that_was_meant(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *word, *said;
    } cases[] = {
        { "item", "did you mean items?" },  { "Balance", "did you mean balances?" },
        { "mails", "did you mean mail?" },  { "everything", "balances, items or mail" },
        { "sections.", "sections.<name>" }, { "sections.Pets", "[a-z0-9_]" },
        { "", "balances, items or mail" },
    };
    char *words[] = { (char *)"items", NULL };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        words[1] = text_lend(cases[i].word);
        assert_null(get(f, 2, words));
        assert_string_equal(f->error->field, "include[1]");
        if (strstr(f->error->message, cases[i].said) == NULL)
            fail_msg("%s: %s", cases[i].word, f->error->message);
    }
}

/* The fullest player that there can be, in one answer. */
static void all_of_the_largest_player_fits_one_frame(void **state)
{
    struct fixture *f = *state;
    const size_t size = 236 * 1024;
    char *json = malloc(size + 1);
    char name[16];
    char *all[] = { (char *)"sections", (char *)"balances", (char *)"items", (char *)"mail" };

    assert_non_null(json);
    memset(json, 'x', size);
    json[0] = json[size - 1] = '"';
    json[size] = 0;
    for (int i = 0; i < 13; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        replace(f, name, json);
    }
    free(json);
    for (int i = 0; i < 50; i++)
        send_hats(f);
    mint_large(f);
    Holdfast__V1__Profile *profile = get(f, 4, all);
    size_t bytes = holdfast__v1__profile__get_packed_size(profile);
    assert_int_equal(profile->n_sections, 13);
    assert_int_equal(profile->items->n_items, 100);
    assert_in_range(profile->mail->n_mails, 2, 49); /* Cut by its bytes; the cursor goes on. */
    assert_string_not_equal(profile->mail->next_cursor, "");
    assert_in_range(bytes, 13 * size, FRAME_BODY_SIZE_MAX - 65536);
}

static void the_player_is_checked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;

    request.player_id = (char *)"";
    assert_null(fixture_read(f, METHOD_GET_PROFILE, &request.base));
    assert_string_equal(f->error->field, "player_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_unknown_player_has_version_zero),
        FIXTURE_TEST(a_profile_is_read_whole_or_by_section_also_from_the_database),
        FIXTURE_TEST(each_word_brings_its_part_and_no_other),
        FIXTURE_TEST(more_than_a_page_has_a_cursor_for_its_list),
        FIXTURE_TEST(a_word_that_is_none_is_refused_with_the_one_that_was_meant),
        FIXTURE_TEST(all_of_the_largest_player_fits_one_frame),
        FIXTURE_TEST(the_player_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
