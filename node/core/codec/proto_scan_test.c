#include "node/core/codec/proto_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/mailbox.pb-c.h"

#define MAIL_ID      1u
#define FROM         2u
#define CURRENCIES   3u
#define SENT_AT_MS   7u
#define OP_ID        10u
#define MAIL_BYTES   512u
#define FIELD_ABSENT 99u

static size_t pack(uint8_t bytes[MAIL_BYTES])
{
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    Holdfast__V1__CurrencyAmount amounts[2] = { HOLDFAST__V1__CURRENCY_AMOUNT__INIT,
                                                HOLDFAST__V1__CURRENCY_AMOUNT__INIT };
    Holdfast__V1__CurrencyAmount *pointers[] = { &amounts[0], &amounts[1] };

    mail.mail_id = (char *)"an id";
    mail.currencies = pointers;
    mail.n_currencies = 2;
    amounts[0].currency = (char *)"gold";
    amounts[0].amount = -1; /* Ten bytes. */
    amounts[1].currency = (char *)"gems";
    mail.sent_at_ms = 1790000000000;
    mail.op_id = (char *)"claim:a";
    return protobuf_c_message_pack(&mail.base, bytes);
}

static void fields_are_found_as_a_decoder_finds_them(void **state)
{
    uint8_t bytes[MAIL_BYTES];
    struct slice mail = { bytes, pack(bytes) };
    struct slice text = SLICE_LITERAL("untouched");
    uint64_t number = 3;
    (void)state;

    assert_false(proto_scan_bytes(mail, FIELD_ABSENT, &text));
    assert_false(proto_scan_bytes(mail, SENT_AT_MS, &text));
    assert_false(proto_scan_varint(mail, MAIL_ID, &number));
    assert_true(slice_equal(text, SLICE_LITERAL("untouched")));
    assert_int_equal(number, 3);
    assert_true(proto_scan_bytes(mail, MAIL_ID, &text));
    assert_true(slice_equal(text, SLICE_LITERAL("an id")));
    assert_true(proto_scan_varint(mail, SENT_AT_MS, &number));
    assert_int_equal(number, 1790000000000);
    /* The last occurrence counts. */
    assert_true(proto_scan_bytes(mail, CURRENCIES, &text));
    assert_true(proto_scan_bytes(text, 1, &text));
    assert_true(slice_equal(text, SLICE_LITERAL("gems")));
}

static void every_field_is_passed_in_the_order_of_the_bytes(void **state)
{
    static const uint32_t expected[] = { MAIL_ID, CURRENCIES, CURRENCIES, SENT_AT_MS, OP_ID };
    uint8_t bytes[MAIL_BYTES];
    struct slice mail = { bytes, pack(bytes) };
    struct reader reader = reader_from(mail);
    struct proto_field field;
    uint64_t amount;
    size_t count = 0;
    (void)state;

    while (proto_scan_next(&reader, &field)) {
        assert_int_equal(field.number, expected[count]);
        assert_int_equal(field.is_varint, field.number == SENT_AT_MS);
        assert_int_equal(field.is_bytes, field.number != SENT_AT_MS);
        if (count++ == 1) {
            assert_true(proto_scan_varint(field.bytes, 2, &amount));
            assert_int_equal((int64_t)amount, -1);
        }
    }
    assert_int_equal(count, 5);
    assert_true(proto_scan_ended(&reader));
}

/* Where a field begins the bytes are a message of those before it. */
static void what_is_cut_within_a_field_is_malformed(void **state)
{
    uint8_t bytes[MAIL_BYTES];
    size_t size = pack(bytes);
    size_t whole = 0;
    struct proto_field field;
    (void)state;

    for (size_t cut = 0; cut <= size; cut++) {
        struct reader reader = reader_from((struct slice){ bytes, cut });
        while (proto_scan_next(&reader, &field))
            ;
        whole += proto_scan_ended(&reader);
    }
    assert_int_equal(whole, 6);
    struct reader reader = reader_from(SLICE_LITERAL("\x0b\x0c")); /* A group: no such thing. */
    assert_false(proto_scan_next(&reader, &field));
    assert_false(proto_scan_ended(&reader));
}

/* A number has ten bytes at most, and field and length are numbers, too. */
static void a_number_of_eleven_bytes_is_malformed(void **state)
{
    static const uint8_t ten[] = {
        0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
    };
    static const uint8_t eleven[] = { 0x08, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x00 };
    struct reader reader = reader_from((struct slice){ ten, sizeof ten });
    struct proto_field field;
    (void)state;

    assert_true(proto_scan_next(&reader, &field));
    assert_true(field.varint == UINT64_MAX);
    assert_false(proto_scan_next(&reader, &field));
    assert_true(proto_scan_ended(&reader));
    reader = reader_from((struct slice){ eleven, sizeof eleven });
    while (proto_scan_next(&reader, &field))
        ;
    assert_false(proto_scan_ended(&reader));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found_as_a_decoder_finds_them),
        cmocka_unit_test(every_field_is_passed_in_the_order_of_the_bytes),
        cmocka_unit_test(what_is_cut_within_a_field_is_malformed),
        cmocka_unit_test(a_number_of_eleven_bytes_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
