#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/page_cursor.h"

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* Lists are alike: the fields of a page stand at the same numbers everywhere. */
static void every_list_pages_alike(void **state)
{
    size_t count, lists = 0;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const char *name = strchr(all[i].name, '/') + 1;
        bool list = strncmp(name, "List", 4) == 0 && !all[i].internal;
        const ProtobufCFieldDescriptor *size =
            protobuf_c_message_descriptor_get_field(all[i].request, 10);
        const ProtobufCFieldDescriptor *cursor =
            protobuf_c_message_descriptor_get_field(all[i].request, 11);

        if (list && all[i].id != METHOD_LIST_INCIDENTS && all[i].id != METHOD_POLL)
            assert_true(page_cursor_concerns(&all[i]));
        if (!page_cursor_concerns(&all[i]))
            continue;
        lists++;
        print_message("%s\n", all[i].name);
        assert_true(size != NULL && strcmp(size->name, "page_size") == 0);
        assert_int_equal(size->type, PROTOBUF_C_TYPE_UINT32);
        assert_true(cursor != NULL && strcmp(cursor->name, "cursor") == 0);
        assert_true(all[i].response->fields[0].label == PROTOBUF_C_LABEL_REPEATED);
    }
    assert_true(lists >= 13); /* That it found them at all: those of today. */
}

static Holdfast__V1__ListEntriesRequest request_of(const char *player)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = text_lend(player);
    return request;
}

static void a_cursor_is_opaque_and_leads_back_to_its_place(void **state)
{
    Holdfast__V1__ListEntriesRequest request = request_of("ann");
    Holdfast__V1__ReadOptions read = HOLDFAST__V1__READ_OPTIONS__INIT;
    char *place;
    (void)state;

    assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_OK);
    assert_string_equal(place, "");
    char *cursor = page_cursor_print(&request.base, "17", &arena);
    assert_null(strstr(cursor, "17"));
    assert_null(strpbrk(cursor, "+/="));
    request.cursor = cursor;
    request.page_size = 3; /* Neither of these is a filter. */
    request.read = &read;
    assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_OK);
    assert_string_equal(place, "17");
    assert_string_equal(page_cursor_print(&request.base, "17", &arena), cursor);
}

static void a_cursor_is_refused_by_another_list_and_with_other_filters(void **state)
{
    Holdfast__V1__ListEntriesRequest request = request_of("ann");
    Holdfast__V1__ListMailRequest mail = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    static const char *const nonsense[] = { "17", "!", "AAAA", "AAAAAAAA", "AAAAAAAAAAAA" };
    char *cursor, *place;
    (void)state;

    cursor = page_cursor_print(&request.base, "17", &arena);
    request.cursor = mail.cursor = cursor;
    mail.player_id = request.player_id;
    assert_int_equal(page_cursor_parse(&mail.base, &arena, &place), ERR_INVALID);
    request.ascending = true;
    assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_INVALID);
    request.ascending = false;
    request.currency = (char *)"gold";
    assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_INVALID);
    request = request_of("bob");
    request.cursor = cursor;
    assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_INVALID);
    request = request_of("ann");
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        request.cursor = text_lend(nonsense[i]);
        assert_int_equal(page_cursor_parse(&request.base, &arena, &place), ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_list_pages_alike),
        cmocka_unit_test(a_cursor_is_opaque_and_leads_back_to_its_place),
        cmocka_unit_test(a_cursor_is_refused_by_another_list_and_with_other_filters),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
