#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "idl/method.h"
#include "runtime/base/check.h"

static void every_method_is_found_by_number_and_by_name(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(method_find(all[i].id), &all[i]);
        assert_ptr_equal(method_find_name(slice_from_text(all[i].name)), &all[i]);
        assert_true(i == 0 || all[i - 1].id < all[i].id);
    }
}

/* rest_request.h has a bit for each. */
static void every_request_has_at_most_64_fields(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++)
        assert_true(all[i].request->n_fields <= 64);
}

static void split_methods_name_an_existing_part(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        bool batch = all[i].route == METHOD_SCATTER;
        if (batch || all[i].element != 0)
            assert_non_null(method_find(all[i].element));
        if (!batch && all[i].element != 0)
            assert_true(all[i].route == METHOD_ROUTER || all[i].route == METHOD_STREAM);
        if (all[i].most > 0)
            assert_true(batch || all[i].route == METHOD_READ);
        assert_true(!batch || all[i].most > 0);
    }
}

/* What depends on the authority that a message names, or on what holds a player back, is said of
 * methods that have such a message, or a place in the log. */
static void rows_do_not_contradict_themselves(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *authority =
            protobuf_c_message_descriptor_get_field_by_name(all[i].request, "authority");
        /* The router's own go to nodes as the mutation that they name. */
        const struct method_info *sent =
            all[i].route == METHOD_ROUTER ? method_find(all[i].element) : &all[i];
        if (all[i].priority == METHOD_PRIORITY_AUTHORITY)
            assert_int_equal(sent->route, METHOD_MUTATION);
        if (authority != NULL && all[i].priority != METHOD_PRIORITY_BULK)
            assert_int_equal(all[i].priority, METHOD_PRIORITY_AUTHORITY);
        assert_true(all[i].traits == 0 || all[i].writes);
    }
    assert_true(method_find(METHOD_GRANT)->writes);
    assert_true(method_find(METHOD_EXPIRE_SERVER)->writes);
    assert_true(method_find(METHOD_SESSION_DUE)->writes);
    assert_false(method_find(METHOD_GET_BALANCES)->writes);
    assert_false(method_find(METHOD_READ_BACKUP)->writes);
    assert_false(method_find(METHOD_READ_DOCUMENTS)->writes);
    assert_true(method_find(METHOD_RESTORE_DOCUMENTS)->writes);
}

/* Routing and deduplication read the envelope by field number, so it must be alike everywhere. */
static void mutations_share_the_envelope(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (all[i].route != METHOD_MUTATION)
            continue;
        const ProtobufCFieldDescriptor *entity =
            protobuf_c_message_descriptor_get_field(all[i].request, 1);
        const ProtobufCFieldDescriptor *op_id =
            protobuf_c_message_descriptor_get_field(all[i].request, 2);
        assert_true(strcmp(entity->name, "player_id") == 0 || strcmp(entity->name, "entity") == 0);
        assert_string_equal(op_id->name, "op_id");
    }
}

/* Every operation that a caller asks for may depend on its player's version: with presence, since 0
 * means something. A seal depends on nothing. */
static void mutations_take_an_if_version(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (all[i].route != METHOD_MUTATION || all[i].id == METHOD_RESOLVE_OPERATION ||
            strncmp(all[i].name, "holdfast.v1.", 12) != 0)
            continue;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(all[i].request, 5);
        assert_non_null(field);
        assert_string_equal(field->name, "if_version");
        assert_true((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0);
        assert_int_equal(field->type, PROTOBUF_C_TYPE_UINT64);
    }
}

/* Every method that a player may call stands here, after a look at what its answers tell of others,
 * and what it may write. */
static void players_call_what_is_about_their_own_data_alone(void **state)
{
    static const enum method_id known[] = {
        METHOD_GET_PROFILE,
        METHOD_GET_BALANCES,
        METHOD_LIST_ENTRIES,
        METHOD_LIST_ITEMS,
        METHOD_LIST_MAIL,
        METHOD_LIST_RESERVATIONS,
        METHOD_LIST_FAVORITES,
        METHOD_BATCH_GET_STATUS,
        METHOD_FAVORITE,
        METHOD_UNFAVORITE,
        METHOD_LIST_PLAYER_COUNTERS,
        METHOD_BATCH_GET_PLAYER_COUNTERS,
        METHOD_EXPORT_PLAYER,
        METHOD_GET_USER,
        METHOD_GET_USER_FLAGS,
    };
    size_t count, open = 0;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (method_player_field(&all[i]) == NULL)
            continue;
        bool is_known = false;
        for (size_t j = 0; j < ARRAY_SIZE(known); j++)
            is_known = is_known || known[j] == all[i].id;
        assert_true(is_known);
        bool writes = all[i].id == METHOD_FAVORITE || all[i].id == METHOD_UNFAVORITE;
        bool beside = all[i].id == METHOD_GET_USER;
        assert_int_equal(all[i].route, writes   ? METHOD_MUTATION
                                       : beside ? METHOD_MEMBER_READ
                                                : METHOD_READ);
        assert_int_equal((all[i].traits & METHOD_SHARES_OUTCOMES) != 0, writes);
        assert_false(all[i].internal);
        assert_string_equal(method_player_field(&all[i]), "player_id");
        open++;
    }
    assert_int_equal(open, ARRAY_SIZE(known));
}

/* Likewise those that any player may call. */
static void any_player_may_read_counts_tops_and_metadata_and_nothing_else(void **state)
{
    size_t count, open = 0;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (!method_is_public(&all[i]))
            continue;
        assert_true(all[i].id == METHOD_GET_COUNT || all[i].id == METHOD_BATCH_GET_COUNTS ||
                    all[i].id == METHOD_GET_TOP || all[i].id == METHOD_GET_RANK ||
                    all[i].id == METHOD_BATCH_GET_TARGET_METADATA);
        assert_null(method_player_field(&all[i]));
        open++;
    }
    assert_int_equal(open, 5);
}

/* What carries a public method out is told as that one, and answers as its callers are answered. */
static void internal_mutations_are_told_as_the_public_ones_that_they_carry_out(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const struct method_info *told = method_told(&all[i]);
        assert_int_equal(told != &all[i], all[i].route == METHOD_MUTATION && all[i].internal);
        if (told != &all[i] && all[i].id != METHOD_MINT && all[i].id != METHOD_CONSUME)
            assert_int_equal(told->element, all[i].id);
    }
    assert_ptr_equal(method_find(METHOD_SWAP)->response, method_find(METHOD_SWAP_GOODS)->response);
    assert_string_equal(method_told(method_find(METHOD_DELIVER_TO_PLAYER))->name,
                        "holdfast.v1.MailboxService/DeliverMail");
}

static void unknown_methods_are_not_found(void **state)
{
    (void)state;
    assert_null(method_find(0));
    assert_null(method_find(METHOD_ID_MAX + 1));
    assert_null(method_find_name(SLICE_LITERAL("holdfast.v1.LedgerService/Steal")));
}

static void every_public_method_wants_a_scope_and_no_mutation_is_open_to_readers(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(all[i].scopes == 0, all[i].internal);
        if (all[i].route == METHOD_MUTATION)
            assert_int_equal(all[i].scopes & SCOPES_READ, 0);
        /* A batch is open to whom its parts are. */
        if (all[i].route == METHOD_SCATTER && !method_find(all[i].element)->internal)
            assert_int_equal(all[i].scopes, method_find(all[i].element)->scopes);
    }
    assert_int_equal(method_find(METHOD_SET_POLICY)->scopes, SCOPE_ADMIN);
    assert_int_equal(method_find(METHOD_REGISTER_SERVER)->scopes, SCOPE_GAME);
}

static void a_misspelt_method_finds_the_one_that_was_meant(void **state)
{
    static const struct {
        const char *given, *suggested;
    } cases[] = {
        { "holdfast.v1.LedgerService/Grnat", "LedgerService/Grant" },
        { "holdfast.v1.LegderService/Grant", "LedgerService/Grant" },
        { "holdfast.v1.ledgerservice/getBalance", "LedgerService/GetBalances" },
        { "LedgerService/Grant", "holdfast.v1.LedgerService/Grant" },
        { "holdfast.v2.LedgerService/Grant", "holdfast.v1.LedgerService/Grant" },
        { "holdfast.v1.StartSesion", "SessionService/StartSession" },
        { "holdfast.v1.ThiefService/Grant", "LedgerService/Grant" },
        { "holdfast.v1.LedgerService/", NULL },
        { "holdfast.v1.LedgerService/Teleport", NULL },
        { "holdfast.v1.InventoryService/Mint", "LedgerService/Grant" },
        { "holdfast.v1.InventoryService/Consume", "LedgerService/Spend" },
        { "holdfast.v1.LedgerService/Mint", "LedgerService/Grant" },
        { "LedgerService/Consume", "holdfast.v1.LedgerService/Spend" },
        { "favicon.ico", NULL },
        { "", NULL },
        { "/", NULL },
        { ".", NULL },
        { "holdfast.v1.", NULL },
    };
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = method_suggest(slice_from_text(cases[i].given));
        if (cases[i].suggested == NULL && found != NULL)
            fail_msg("%s: %s", cases[i].given, found);
        if (cases[i].suggested != NULL)
            assert_string_equal(found, cases[i].suggested);
    }
    /* What only other processes may call stays unnamed; every other one is found from near it. */
    for (size_t i = 0; i < count; i++) {
        char name[128];
        size_t size = strlen(all[i].name);

        memcpy(name, all[i].name, size + 1);
        name[size++] = 'x';
        const char *found = method_suggest((struct slice){ (const uint8_t *)name, size });
        const char *own = strrchr(all[i].name, '.') + 1;
        if (found != NULL && all[i].internal)
            assert_null(strstr(found, own));
        else if (!all[i].internal)
            assert_non_null(strstr(found, own));
    }
}

/* What stands in logs of an earlier version is told by its name of then, and never asked for. */
static void an_earlier_method_keeps_its_number_and_the_name_that_it_had(void **state)
{
    const struct method_info *mint = method_find(30);
    const struct method_info *consume = method_find(33);
    (void)state;

    assert_int_equal(mint->id, METHOD_MINT);
    assert_int_equal(consume->id, METHOD_CONSUME);
    assert_true(mint->internal && consume->internal);
    assert_int_equal(mint->traits, METHOD_ONLY_IN_LOGS);
    assert_int_equal(consume->traits, METHOD_ONLY_IN_LOGS);
    assert_string_equal(method_told_name(mint), "holdfast.v1.InventoryService/Mint");
    assert_string_equal(method_told_name(consume), "holdfast.v1.InventoryService/Consume");
    assert_ptr_equal(method_find_told(SLICE_LITERAL("holdfast.v1.InventoryService/Mint")), mint);
    assert_null(method_find_name(SLICE_LITERAL("holdfast.v1.InventoryService/Mint")));
    assert_ptr_equal(method_find_told(SLICE_LITERAL("holdfast.v1.LedgerService/Grant")),
                     method_find(METHOD_GRANT));
    assert_string_equal(method_told_name(method_find(METHOD_GRANT)),
                        "holdfast.v1.LedgerService/Grant");
    assert_null(method_find_told(SLICE_LITERAL("holdfast.v1.LedgerService/Steal")));
}

/* 4 KiB where no more is needed: names, cursors, statuses. A cursor of events has a place in each
 * shard. */
static void requests_are_as_long_as_their_methods_need(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        uint32_t limit = method_request_bytes_max(&all[i]);
        assert_in_range(limit, METHOD_BYTES_SMALL, METHOD_BYTES_LARGE);
        if (all[i].route == METHOD_SCATTER)
            assert_int_equal(limit, METHOD_BYTES_LARGE);
        else if (!all[i].writes && all[i].route != METHOD_ROUTER && all[i].id != METHOD_SUBSCRIBE)
            assert_true(limit <= METHOD_BYTES_IDS);
    }
    assert_int_equal(method_request_bytes_max(method_find(METHOD_GET_BALANCES)), 4096);
    assert_int_equal(method_request_bytes_max(method_find(METHOD_GRANT)), 131072);
    assert_int_equal(method_request_bytes_max(method_find(METHOD_UPDATE_PROFILE)), 4194304);
    assert_int_equal(method_request_bytes_max(method_find(METHOD_PUT_DOCUMENT)), 4194304);
    assert_int_equal(method_request_bytes_max(method_find(METHOD_DELETE_DOCUMENT)), 131072);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_found_by_number_and_by_name),
        cmocka_unit_test(every_request_has_at_most_64_fields),
        cmocka_unit_test(requests_are_as_long_as_their_methods_need),
        cmocka_unit_test(split_methods_name_an_existing_part),
        cmocka_unit_test(mutations_share_the_envelope),
        cmocka_unit_test(rows_do_not_contradict_themselves),
        cmocka_unit_test(mutations_take_an_if_version),
        cmocka_unit_test(any_player_may_read_counts_tops_and_metadata_and_nothing_else),
        cmocka_unit_test(players_call_what_is_about_their_own_data_alone),
        cmocka_unit_test(internal_mutations_are_told_as_the_public_ones_that_they_carry_out),
        cmocka_unit_test(unknown_methods_are_not_found),
        cmocka_unit_test(an_earlier_method_keeps_its_number_and_the_name_that_it_had),
        cmocka_unit_test(a_misspelt_method_finds_the_one_that_was_meant),
        cmocka_unit_test(every_public_method_wants_a_scope_and_no_mutation_is_open_to_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
