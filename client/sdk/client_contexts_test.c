#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/sdk/client_contexts.h"

static const struct client_document hall = { "guild:7", "rooms", "hall" };

static struct client_contexts *table(size_t documents_max)
{
    struct client_contexts *contexts;

    assert_int_equal(client_contexts_new(documents_max, &contexts), ERR_OK);
    return contexts;
}

static void keep(struct client_contexts *contexts, const char *key, const char *context)
{
    struct client_document document = { "guild:7", "rooms", key };

    assert_int_equal(client_contexts_keep(contexts, &document, context), ERR_OK);
}

static const char *get(struct client_contexts *contexts, const char *key)
{
    return client_contexts_get(contexts, &(struct client_document){ "guild:7", "rooms", key });
}

static void the_last_context_stands(void **state)
{
    struct client_contexts *contexts = table(4);

    (void)state;
    assert_string_equal(client_contexts_get(contexts, &hall), "");
    keep(contexts, "hall", "d1.longer");
    keep(contexts, "hall", "d1.b");
    assert_string_equal(client_contexts_get(contexts, &hall), "d1.b");
    keep(contexts, "hall", "");
    assert_string_equal(client_contexts_get(contexts, &hall), "d1.b");
    client_contexts_free(contexts);
}

/* Texts that are equal once they are joined belong to different documents. */
static void no_two_documents_share_a_context(void **state)
{
    struct client_document left = { "a:b", "c", "de" };
    struct client_document right = { "a:b", "cd", "e" };
    struct client_contexts *contexts = table(4);

    (void)state;
    assert_int_equal(client_contexts_keep(contexts, &left, "d1.left"), ERR_OK);
    assert_string_equal(client_contexts_get(contexts, &right), "");
    assert_int_equal(client_contexts_keep(contexts, &right, "d1.right"), ERR_OK);
    assert_string_equal(client_contexts_get(contexts, &left), "d1.left");
    client_contexts_free(contexts);
}

static void a_full_table_drops_what_was_used_least_recently(void **state)
{
    struct client_contexts *contexts = table(2);

    (void)state;
    keep(contexts, "hall", "d1.hall");
    keep(contexts, "yard", "d1.yard");
    assert_string_equal(get(contexts, "hall"), "d1.hall");
    keep(contexts, "tower", "d1.tower");
    assert_string_equal(get(contexts, "yard"), "");
    assert_string_equal(get(contexts, "hall"), "d1.hall");
    assert_string_equal(get(contexts, "tower"), "d1.tower");
    client_contexts_free(contexts);
}

static void a_document_is_forgotten_alone(void **state)
{
    struct client_contexts *contexts = table(3);

    (void)state;
    keep(contexts, "hall", "d1.hall");
    keep(contexts, "yard", "d1.yard");
    keep(contexts, "tower", "d1.tower");
    client_contexts_forget(contexts, &hall);
    client_contexts_forget(contexts, &hall);
    assert_string_equal(get(contexts, "hall"), "");
    assert_string_equal(get(contexts, "yard"), "d1.yard");
    assert_string_equal(get(contexts, "tower"), "d1.tower");
    keep(contexts, "hall", "d1.again");
    assert_string_equal(get(contexts, "hall"), "d1.again");
    assert_string_equal(get(contexts, "yard"), "d1.yard");
    client_contexts_free(contexts);
}

static void what_no_router_takes_is_refused(void **state)
{
    char text[CLIENT_CONTEXT_BYTES_MAX + 2];
    struct client_document document = { "guild:7", "rooms", text };
    struct client_contexts *contexts;

    (void)state;
    assert_int_equal(client_contexts_new(0, &contexts), ERR_INVALID);
    assert_int_equal(client_contexts_new(CLIENT_CONTEXTS_DOCUMENTS_MAX + 1, &contexts),
                     ERR_INVALID);
    contexts = table(1);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    keep(contexts, "hall", "d1.hall");
    assert_int_equal(client_contexts_keep(contexts, &hall, text), ERR_TOO_LARGE);
    text[CLIENT_CONTEXT_BYTES_MAX] = '\0';
    keep(contexts, "hall", text);
    assert_string_equal(get(contexts, "hall"), text);
    text[201] = '\0';
    assert_int_equal(client_contexts_keep(contexts, &document, "d1.long"), ERR_TOO_LARGE);
    assert_string_equal(client_contexts_get(contexts, &document), "");
    client_contexts_forget(contexts, &document);
    text[200] = '\0';
    keep(contexts, text, "d1.long");
    assert_string_equal(client_contexts_get(contexts, &document), "d1.long");
    client_contexts_free(contexts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_context_stands),
        cmocka_unit_test(no_two_documents_share_a_context),
        cmocka_unit_test(a_full_table_drops_what_was_used_least_recently),
        cmocka_unit_test(a_document_is_forgotten_alone),
        cmocka_unit_test(what_no_router_takes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
