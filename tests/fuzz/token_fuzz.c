/*
 * token_fuzz: session tokens as callers bring them, and the answers of nodes that get one. The
 * first byte picks: a text; a good token with one byte changed; an encoded StartSessionResponse.
 */
#include <string.h>

#include "router/core/session_guard.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

enum kind { KIND_TEXT, KIND_CHANGED, KIND_ANSWER };

#define PLAYER SLICE_LITERAL("ada")

static const struct session_secrets *secrets_of(void)
{
    static const struct token_secret_record record = { .current = { 7 }, .previous = { 8 } };
    static struct session_secrets secrets;

    if (secrets.count == 0)
        session_secrets_init(&secrets, "dev", &record);
    return &secrets;
}

/* The form that nodes know is all there is of a token but its MAC; what is believed, was given. */
static void check_text(struct slice text)
{
    char again[SESSION_TOKEN_TEXT_SIZE];
    struct session_token token, plain;

    if (session_token_parse(text, &token) != ERR_OK)
        return;
    CHECK(session_token_parse(token.plain, &plain) == ERR_OK && plain.mac.size == 0);
    CHECK(incarnation_compare(token.incarnation, plain.incarnation) == 0);
    CHECK(token.fence == plain.fence);
    CHECK(!session_token_is_genuine(secrets_of(), PLAYER, &plain));
    session_token_print(secrets_of(), PLAYER, &token, again);
    CHECK(session_token_is_genuine(secrets_of(), PLAYER, &token) ==
          slice_equal(text, slice_from_text(again)));
}

static void check_changed(struct slice input)
{
    const struct session_token token = { .incarnation = { 1, 77 }, .fence = 3 };
    char text[SESSION_TOKEN_TEXT_SIZE];

    if (input.size < 2)
        return;
    session_token_print(secrets_of(), PLAYER, &token, text);
    text[input.data[0] % strlen(text)] = (char)input.data[1];
    if (strlen(text) > 0)
        check_text(slice_from_text(text));
}

static void check_answer(struct slice answer)
{
    struct session_guard guard = { .secrets = secrets_of() };
    struct arena arena = { 0 };
    struct slice whole, again;

    if (session_guard_sign(&guard, PLAYER, answer, &arena, &whole) == ERR_OK) {
        CHECK(whole.size > answer.size);
        /* It has its MAC: nothing signs it twice. */
        CHECK(session_guard_sign(&guard, PLAYER, whole, &arena, &again) == ERR_CORRUPT);
    }
    arena_deinit(&arena);
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };

    switch (input.data[0] % (KIND_ANSWER + 1)) {
    case KIND_TEXT:
        check_text(rest);
        break;
    case KIND_CHANGED:
        check_changed(rest);
        break;
    default:
        check_answer(rest);
        break;
    }
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const uint8_t answer[] = { 0x0a, 0x02, 0x08, 0x01, 0x12, 0x05, '1',
                                      '-',  '2',  '-',  '3',  0x18, 0x03 };
    const struct session_token token = { .incarnation = { 1, 77 }, .fence = 3 };
    char text[SESSION_TOKEN_TEXT_SIZE];

    session_token_print(secrets_of(), PLAYER, &token, text);
    fuzz_seed_add_kind(seeds, "good", KIND_TEXT, slice_from_text(text));
    fuzz_seed_add_kind(seeds, "plain", KIND_TEXT, SLICE_LITERAL("1-77-3"));
    fuzz_seed_add_kind(seeds, "changed", KIND_CHANGED, SLICE_LITERAL("\x08z"));
    fuzz_seed_add_kind(seeds, "answer", KIND_ANSWER, (struct slice){ answer, sizeof answer });
}
