/* Siblings that no answer holds together are told part by part, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "node/core/document/shown.h"

#define SIBLINGS 7u

/* Of two actors, the later dots of one written before the earlier ones, as a restore may give them.
 */
static void make(struct merge_record *record, uint64_t expires_ms)
{
    static uint8_t value[MERGE_VALUE_BYTES_MAX];

    *record = (struct merge_record){ .policy = MERGE_POLICY_VECTOR };
    for (uint32_t i = 0; i < SIBLINGS; i++)
        merge_record_add(record, merge_cell_new(&(struct merge_cell_form){
                                     .value = { value, sizeof value },
                                     .dot = { 5 + i % 2, 1 + i / 2 },
                                     .hlc = (uint64_t)(100 - i) << 16,
                                     .expires_ms = i == 0 ? expires_ms : 0 }));
}

/* As the context of an answer does. */
static void see(struct merge_token *token, const struct merge_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct merge_dot dot = record->cells[i]->dot;
        struct causal_entry *entry = &token->entries[dot.actor - 5];

        *entry = (struct causal_entry){ dot.actor,
                                        entry->upto > dot.counter ? entry->upto : dot.counter };
    }
    token->count = token->entries[1].actor != 0 ? 2 : 1;
}

static void each_part_has_what_the_context_has_not_seen(void **state)
{
    struct merge_token seen = { 0 };
    struct merge_record record;
    struct shown shown;
    uint32_t told = 0;
    (void)state;

    make(&record, 0);
    do {
        assert_true(shown_part(&record, 1000, &seen, &shown));
        assert_in_range(shown.record.count, 1, 2);
        told += shown.record.count;
        assert_int_equal(shown.unseen, SIBLINGS - told);
        see(&seen, &shown.record);
        merge_record_deinit(&shown.record);
    } while (shown.unseen > 0);
    assert_int_equal(told, SIBLINGS);
    /* Its caller has seen all, and asks again. */
    assert_true(shown_part(&record, 1000, &seen, &shown));
    assert_int_equal(shown.record.count, 2);
    assert_int_equal(shown.unseen, 0);
    merge_record_deinit(&shown.record);
    merge_record_deinit(&record);
}

static void what_has_expired_is_told_in_no_part(void **state)
{
    struct merge_record record;
    struct shown shown;
    (void)state;

    make(&record, 1000);
    assert_true(shown_part(&record, 1000, NULL, &shown));
    assert_int_equal(shown.record.count + shown.unseen, SIBLINGS - 1);
    merge_record_deinit(&shown.record);
    assert_true(shown_part(&record, 999, NULL, &shown));
    assert_int_equal(shown.record.count + shown.unseen, SIBLINGS);
    merge_record_deinit(&shown.record);
    merge_record_deinit(&record);
}

static void what_one_answer_holds_is_told_whole(void **state)
{
    static uint8_t value[SHOWN_BYTES_MAX / 4];
    struct merge_record record = { .policy = MERGE_POLICY_VECTOR };
    struct shown shown;
    (void)state;

    for (uint32_t i = 0; i < 4; i++)
        merge_record_add(&record, merge_cell_new(&(struct merge_cell_form){
                                      .value = { value, sizeof value }, .dot = { 5, 1 + i } }));
    assert_false(shown_part(&record, 0, NULL, &shown));
    merge_record_add(&record, merge_cell_new(&(struct merge_cell_form){ .value = { value, 1 },
                                                                        .dot = { 6, 1 } }));
    assert_true(shown_part(&record, 0, NULL, &shown));
    assert_int_equal(shown.unseen, 1);
    merge_record_deinit(&shown.record);
    record.policy = MERGE_POLICY_MERGE;
    assert_false(shown_part(&record, 0, NULL, &shown));
    merge_record_deinit(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_has_what_the_context_has_not_seen),
        cmocka_unit_test(what_has_expired_is_told_in_no_part),
        cmocka_unit_test(what_one_answer_holds_is_told_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
