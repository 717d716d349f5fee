#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/earlier.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/forward/operation_tell.h"

typedef Holdfast__Internal__V1__OperationRecord Record;

static char *text(const char *literal)
{
    return text_lend(literal); /* Read only. */
}

static struct slice pack(struct arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = arena_alloc(arena, size + 1);

    (void)protobuf_c_message_pack(message, data);
    return (struct slice){ data, size };
}

static const Holdfast__V1__OperationStatus *tell(Record *record, uint32_t method,
                                                 struct arena *arena)
{
    Holdfast__Internal__V1__OperationAnswer answer = HOLDFAST__INTERNAL__V1__OPERATION_ANSWER__INIT;
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    answer.operation = record;
    request.entity = text("player:42");
    request.op_id = text("receipt:1");
    ProtobufCMessage *told =
        operation_tell(method_find(method), pack(arena, &answer.base), &request.base, arena);
    assert_non_null(told);
    assert_ptr_equal(told->descriptor, method_find(method)->response);
    return ((const Holdfast__V1__GetOperationResponse *)(const void *)told)->operation;
}

/* Whatever a player's operation was, its outcome is readable. */
static void each_mutation_has_its_result(void **state)
{
    size_t count, found = 0;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        bool stored = all[i].route == METHOD_MUTATION && all[i].id != METHOD_RESOLVE_OPERATION &&
                      strncmp(method_told(&all[i])->name, "holdfast.v1.", 12) == 0;
        const struct method_info *told = method_told(&all[i]);
        /* What does the deed of a method of an earlier version has a row of its own. */
        bool earlier = told != &all[i] && told->route == METHOD_MUTATION;
        print_message("%s\n", all[i].name);
        if (stored)
            assert_non_null(operation_result_field(earlier ? told : &all[i]));
        found += stored && !earlier;
    }
    unsigned fields = 0;
    for (unsigned i = 0; i < holdfast__v1__operation_status__descriptor.n_fields; i++)
        fields += (holdfast__v1__operation_status__descriptor.fields[i].flags &
                   PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    assert_int_equal(fields, found);
}

static void a_stored_answer_is_told_as_its_message(void **state)
{
    Holdfast__V1__GrantResponse grant = HOLDFAST__V1__GRANT_RESPONSE__INIT;
    Record record = HOLDFAST__INTERNAL__V1__OPERATION_RECORD__INIT;
    struct arena arena = { 0 };
    (void)state;

    grant.ledger_seq = 3;
    struct slice bytes = pack(&arena, &grant.base);
    record.state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED;
    record.method = text("holdfast.v1.LedgerService/Grant");
    record.attempt = 2;
    record.result = (ProtobufCBinaryData){ bytes.size, (uint8_t *)(uintptr_t)bytes.data };
    const Holdfast__V1__OperationStatus *status = tell(&record, METHOD_GET_OPERATION, &arena);
    assert_int_equal(status->state, record.state);
    assert_int_equal(status->attempt, 2);
    assert_int_equal(status->result_case, HOLDFAST__V1__OPERATION_STATUS__RESULT_GRANT);
    assert_int_equal(status->grant->ledger_seq, 3);
    status = tell(&record, METHOD_RESOLVE_OPERATION, &arena);
    assert_int_equal(status->grant->ledger_seq, 3);
    record.method = text("holdfast.v1.LedgerService/Lottery"); /* Of a later version. */
    status = tell(&record, METHOD_GET_OPERATION, &arena);
    assert_int_equal(status->result_case, HOLDFAST__V1__OPERATION_STATUS__RESULT__NOT_SET);
    assert_int_equal(status->state, record.state);
    arena_deinit(&arena);
}

static void tell_committed(Record *record, const char *method, const ProtobufCMessage *answer,
                           struct arena *arena)
{
    struct slice bytes = pack(arena, answer);

    record->state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED;
    record->method = text(method);
    record->result = (ProtobufCBinaryData){ bytes.size, (uint8_t *)(uintptr_t)bytes.data };
}

/* Outcomes of Mint and Consume stand in rows of earlier versions. */
static void an_earlier_answer_is_told_as_that_of_the_method_of_today(void **state)
{
    Holdfast__Internal__V1__MintResponse mint = HOLDFAST__INTERNAL__V1__MINT_RESPONSE__INIT;
    Holdfast__Internal__V1__ConsumeResponse consume =
        HOLDFAST__INTERNAL__V1__CONSUME_RESPONSE__INIT;
    Holdfast__V1__WriteInfo write = HOLDFAST__V1__WRITE_INFO__INIT;
    Holdfast__V1__Item item = HOLDFAST__V1__ITEM__INIT, *items[] = { &item };
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT,
                                 *balances[] = { &gold };
    Record record = HOLDFAST__INTERNAL__V1__OPERATION_RECORD__INIT;
    struct arena arena = { 0 };
    (void)state;

    write.version = 7;
    item.uid = text("00010000000000010000000000050000");
    item.kind = text("orb");
    mint.write = &write;
    mint.ledger_seq = 3;
    mint.items = items;
    mint.n_items = 1;
    tell_committed(&record, "holdfast.v1.InventoryService/Mint", &mint.base, &arena);
    const Holdfast__V1__OperationStatus *status = tell(&record, METHOD_GET_OPERATION, &arena);
    assert_string_equal(status->method, "holdfast.v1.InventoryService/Mint");
    assert_int_equal(status->result_case, HOLDFAST__V1__OPERATION_STATUS__RESULT_GRANT);
    assert_int_equal(status->grant->write->version, 7);
    assert_int_equal(status->grant->ledger_seq, 3);
    assert_int_equal(status->grant->n_item_uids, 1);
    assert_string_equal(status->grant->item_uids[0], item.uid);

    gold.currency = text("gold");
    gold.amount = 6;
    consume.write = &write;
    consume.ledger_seq = 4;
    consume.items = items;
    consume.n_items = 1;
    consume.balances = balances;
    consume.n_balances = 1;
    tell_committed(&record, "holdfast.v1.InventoryService/Consume", &consume.base, &arena);
    status = tell(&record, METHOD_RESOLVE_OPERATION, &arena);
    assert_string_equal(status->method, "holdfast.v1.InventoryService/Consume");
    assert_int_equal(status->result_case, HOLDFAST__V1__OPERATION_STATUS__RESULT_SPEND);
    assert_int_equal(status->spend->ledger_seq, 4);
    assert_string_equal(status->spend->items[0]->kind, "orb");
    assert_int_equal(status->spend->balances[0]->amount, 6);
    arena_deinit(&arena);
}

static void a_stored_refusal_is_told_with_what_to_do(void **state)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    Record record = HOLDFAST__INTERNAL__V1__OPERATION_RECORD__INIT;
    struct arena arena = { 0 };
    (void)state;

    refusal.code = CODE(SESSION_LOCKED);
    refusal.holder = text("1-100");
    refusal.final = true;
    record.state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_REFUSED;
    record.refusal = &refusal;
    const Holdfast__V1__ErrorDetail *told = tell(&record, METHOD_GET_OPERATION, &arena)->refusal;
    assert_non_null(told);
    assert_int_equal(told->outcome, HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED);
    assert_int_equal(told->action, HOLDFAST__V1__ACTION__ACTION_RAISE_ATTEMPT);
    assert_string_equal(told->entity, "player:42");
    assert_string_equal(told->op_id, "receipt:1");
    assert_string_equal(told->about->holder->incarnation, "1-100");
    arena_deinit(&arena);
}

static void what_cannot_be_read_is_not_told(void **state)
{
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    struct arena arena = { 0 };
    (void)state;

    assert_null(operation_tell(method_find(METHOD_GET_OPERATION), SLICE_LITERAL("\x0a\x7f"),
                               &request.base, &arena));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mutation_has_its_result),
        cmocka_unit_test(a_stored_answer_is_told_as_its_message),
        cmocka_unit_test(an_earlier_answer_is_told_as_that_of_the_method_of_today),
        cmocka_unit_test(a_stored_refusal_is_told_with_what_to_do),
        cmocka_unit_test(what_cannot_be_read_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
