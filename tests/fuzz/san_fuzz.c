/*
 * san_fuzz: the alternative names of a certificate, which say who a process is. The first byte
 * says which kind of name the rest is; from 2 on the rest is a list of names, each behind a byte of
 * kind and a byte of length.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/identity/identity.h"
#include "tests/fuzz/fuzz.h"

static bool is_plain(const char *text, size_t size_max)
{
    size_t size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        if (text[i] <= 0x20 || text[i] > 0x7e || strchr("%/?#@:", text[i]) != NULL)
            return false;
    }
    return size <= size_max;
}

/* What was read is one spelling: printed, it is the same URI and reads as the same identity. */
static void check_identity(const struct identity_san *san, const struct identity *identity)
{
    char printed[IDENTITY_TEXT_SIZE];
    struct identity again;
    struct identity_error why;

    CHECK(identity->role >= ROLE_NODE && identity->role < ROLE_END);
    CHECK(identity->cluster[0] != 0 && is_plain(identity->cluster, IDENTITY_CLUSTER_SIZE_MAX));
    CHECK(identity->name[0] != 0 && is_plain(identity->name, IDENTITY_NAME_SIZE_MAX));
    CHECK(strchr(identity->name, '*') == NULL || strcmp(identity->name, "*") == 0);
    CHECK(is_plain(identity->scopes, IDENTITY_SCOPES_SIZE_MAX));
    CHECK(identity->scopes[0] == 0 || identity->role == ROLE_CLIENT);
    identity_print(identity, printed);
    if (san->kind == IDENTITY_URI)
        CHECK(slice_equal(san->text, slice_from_text(printed)));
    const struct identity_san same = { IDENTITY_URI, slice_from_text(printed) };
    CHECK(identity_parse(&same, &again, &why) == ERR_OK);
    CHECK(again.role == identity->role && strcmp(again.name, identity->name) == 0);
    CHECK(identity_covers(identity, identity->name));
}

static void check_one(const struct identity_san *san)
{
    struct identity identity;
    struct identity_error why;
    err e = identity_parse(san, &identity, &why);

    CHECK((e == ERR_INVALID || e == ERR_TOO_LARGE) == (why.text[0] != 0));
    CHECK(e == ERR_OK || e == ERR_NOT_FOUND || e == ERR_INVALID || e == ERR_TOO_LARGE);
    if (e == ERR_OK)
        check_identity(san, &identity);
}

/* Two identities are none, and a malformed one spoils a good one. */
static void check_list(struct slice rest)
{
    struct identity_san sans[IDENTITY_SANS_MAX + 1] = { 0 };
    struct identity identity;
    struct identity_error why;
    size_t count = 0, found = 0, bad = 0;

    while (rest.size >= 2 && count < ARRAY_SIZE(sans)) {
        size_t size = rest.data[1];
        size = size < rest.size - 2 ? size : rest.size - 2;
        sans[count] = (struct identity_san){ rest.data[0] % 2 == 0 ? IDENTITY_URI : IDENTITY_DNS,
                                             { rest.data + 2, size } };
        err e = identity_parse(&sans[count++], &identity, &why);
        found += e == ERR_OK;
        bad += e != ERR_OK && e != ERR_NOT_FOUND;
        rest = (struct slice){ rest.data + 2 + size, rest.size - 2 - size };
    }
    err e = identity_find(sans, count, &identity, &why);
    if (count > IDENTITY_SANS_MAX)
        CHECK(e == ERR_TOO_LARGE);
    else if (bad > 0 || found > 1)
        CHECK(e == ERR_INVALID || e == ERR_TOO_LARGE);
    else
        CHECK(e == (found == 1 ? ERR_OK : ERR_NOT_FOUND));
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };
    if (input.data[0] >= 2) {
        check_list(rest);
        return;
    }
    check_one(&(struct identity_san){ input.data[0] == 0 ? IDENTITY_URI : IDENTITY_DNS, rest });
}

static void add(struct buf *list, uint8_t kind, const char *text)
{
    buf_put_u8(list, kind);
    buf_put_u8(list, (uint8_t)strlen(text));
    buf_append(list, text, strlen(text));
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char *const uris[] = {
        "holdfast://prod/node/node-1",        "holdfast://prod/router/*",
        "holdfast://prod/coordinator/c.1_x",  "holdfast://prod/client/ops?scopes=admin+read",
        "holdfast://prod/node/node%2d1",      "holdfast://prod/node/node-1?scopes=admin",
        "holdfast://prod/client/ops?scopes=", "HOLDFAST://prod/node/node-1",
        "spiffe://prod/node/node-1",
    };
    struct buf list = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(uris); i++) {
        const char name[] = { 'u', 'r', 'i', '-', (char)('a' + i), 0 };
        fuzz_seed_add_kind(seeds, name, 0, slice_from_text(uris[i]));
    }
    fuzz_seed_add_kind(seeds, "dns", 1, SLICE_LITERAL("*.node.prod.id.holdfast.internal"));
    add(&list, 1, "localhost");
    add(&list, 0, uris[0]);
    fuzz_seed_add_kind(seeds, "one-of-two", 2, buf_slice(&list));
    add(&list, 0, uris[1]);
    fuzz_seed_add_kind(seeds, "two", 2, buf_slice(&list));
    buf_deinit(&list);
}
