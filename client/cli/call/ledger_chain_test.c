#include "client/cli/call/ledger_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/base64.h"

#define ENTRIES 6

/* An export of one player, and what is found in it. */
struct file {
    char *lines[ENTRIES + 1]; /* The entries, then the head. */
    struct chain_check check;
    char faults[2048];
};

static void note(void *user, const char *text)
{
    struct file *file = user;
    size_t used = strlen(file->faults);

    (void)snprintf(file->faults + used, sizeof file->faults - used, "%s\n", text);
}

static char *line_of(const char *name, json_t *value)
{
    json_t *line = json_pack("{s:s, s:o}", "playerId", "ann", name, value);
    char *text = json_dumps(line, JSON_COMPACT);

    json_decref(line);
    return text;
}

static json_t *hash_text(const uint8_t hash[CHAIN_HASH_BYTES])
{
    struct buf text = { 0 };

    base64_encode((struct slice){ hash, CHAIN_HASH_BYTES }, true, &text);
    json_t *value = json_stringn((const char *)text.data, text.size);
    buf_deinit(&text);
    return value;
}

static json_t *entry_of(int seq)
{
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:s, s:s, s:[{s:s, s:s, s:s}], s:[s], s:s}", "seq",
        (char[]){ (char)('0' + seq), 0 }, "kind", "LEDGER_KIND_SPEND", "opId", "claim:x", "atMs",
        "1750000000000", "dot", "epoch", "1", "owner", "7", "counter", "12", "authority", "unheld",
        "reason", "tax", "changes", "currency", "gold", "amount", "-5", "balanceAfter", "10",
        "counterparts", "bob", "mailOpId", "claim:w");
}

static void file_init(struct file *file)
{
    uint8_t hash[CHAIN_HASH_BYTES];
    const char *why;

    *file = (struct file){ .check = { .fault = note } };
    file->check.user = file;
    chain_genesis("ann", hash);
    for (int i = 0; i < ENTRIES; i++) {
        json_t *entry = entry_of(i + 1);
        assert_int_equal(chain_hash(hash, entry, hash, &why), ERR_OK);
        json_object_set_new(entry, "hash", hash_text(hash));
        file->lines[i] = line_of("entry", entry);
    }
    file->lines[ENTRIES] =
        line_of("head", json_pack("{s:i, s:o}", "seq", ENTRIES, "hash", hash_text(hash)));
}

static const char *read_file(struct file *file)
{
    for (int i = 0; i <= ENTRIES; i++) {
        if (file->lines[i] != NULL)
            chain_check_line(&file->check, slice_from_text(file->lines[i]));
        free(file->lines[i]);
    }
    chain_check_end(&file->check);
    return file->faults;
}

static void drop(struct file *file, int place)
{
    free(file->lines[place]);
    file->lines[place] = NULL;
}

static void replace(char *line, const char *from, const char *to)
{
    char *at = strstr(line, from);

    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
}

static void an_untouched_export_has_no_fault(void **state)
{
    struct file file;
    (void)state;

    file_init(&file);
    assert_string_equal(read_file(&file), "");
    assert_int_equal(file.check.entries, ENTRIES);
    assert_int_equal(file.check.players, 1);
}

static void the_chain_begins_with_the_players_name(void **state)
{
    uint8_t ann[CHAIN_HASH_BYTES];
    uint8_t bob[CHAIN_HASH_BYTES];
    (void)state;

    chain_genesis("ann", ann);
    chain_genesis("bob", bob);
    assert_memory_not_equal(ann, bob, sizeof ann);
}

static void an_edited_entry_is_named_and_no_other(void **state)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        { "\"-5\"", "\"-4\"" },
        { "\"gold\"", "\"gems\"" },
        { "claim:x", "claim:y" },
        { "LEDGER_KIND_SPEND", "LEDGER_KIND_GRANT" },
        { "unheld", "system" },
        { "\"10\"", "\"90\"" },
        { "1750000000000", "1750000000001" },
        { "\"12\"", "\"13\"" },
        { "tax", "tip" },
        { "bob", "cat" },
        { "claim:w", "claim:v" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct file file;
        file_init(&file);
        replace(file.lines[2], edits[i].from, edits[i].to);
        assert_string_equal(read_file(&file),
                            "player ann: entry 3 was edited: its hash does not follow from what it "
                            "says and from the entry before\n");
    }
}

static void what_is_missing_is_named(void **state)
{
    struct file file;
    (void)state;

    file_init(&file);
    drop(&file, 0);
    assert_string_equal(read_file(&file), "player ann: entry 1 is missing\n");
    file_init(&file);
    drop(&file, 2);
    drop(&file, 3);
    assert_string_equal(read_file(&file), "player ann: entries 3 to 4 are missing\n");
    file_init(&file);
    drop(&file, ENTRIES - 1);
    assert_string_equal(read_file(&file),
                        "player ann: the ledger has 6 entries, the file ends at entry 5\n");
    file_init(&file);
    drop(&file, ENTRIES);
    assert_string_equal(read_file(&file),
                        "player ann: the file ends at entry 6, without the ledger's head\n");
}

static void what_is_out_of_place_is_named(void **state)
{
    struct file file;
    (void)state;

    file_init(&file);
    char *third = file.lines[2];
    file.lines[2] = file.lines[3];
    file.lines[3] = third;
    assert_string_equal(read_file(&file), "player ann: entry 3 is missing\n"
                                          "player ann: entry 3 stands after entry 4\n");
}

static void rubbish_is_a_fault_and_nothing_worse(void **state)
{
    static const char *const lines[] = {
        "",
        "{",
        "[]",
        "{\"playerId\":\"\",\"head\":{}}",
        "{\"playerId\":\"ann\"}",
        "{\"playerId\":7,\"entry\":{}}",
        "{\"playerId\":\"ann\",\"entry\":{},\"head\":{}}",
    };
    (void)state;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct file file = { .check = { .fault = note } };
        file.check.user = &file;
        chain_check_line(&file.check, slice_from_text(lines[i]));
        assert_int_equal(file.check.faults, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_export_has_no_fault),
        cmocka_unit_test(the_chain_begins_with_the_players_name),
        cmocka_unit_test(an_edited_entry_is_named_and_no_other),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(what_is_out_of_place_is_named),
        cmocka_unit_test(rubbish_is_a_fault_and_nothing_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
