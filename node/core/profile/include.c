#include "node/core/profile/include.h"

#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define WORDS_MAX    (SECTIONS_MAX + 4u)
#define OLD_SECTIONS 13u /* Field of StartSessionRequest. */
#define WIRE_BYTES   2u
#define WORDS_LIMIT  "sections, sections.<name>, balances, items or mail"
#define ONE_SECTION  "sections."

static const struct {
    const char *word;
    size_t flag; /* Where it stands in struct include. */
} words_known[] = {
    { "sections", offsetof(struct include, sections) },
    { "balances", offsetof(struct include, balances) },
    { "items", offsetof(struct include, items) },
    { "mail", offsetof(struct include, mail) },
};

/* The part behind "sections."; size 0: it is no such word, or nothing is behind. */
static struct slice section_of(struct slice word)
{
    const size_t prefix = sizeof ONE_SECTION - 1;

    if (word.size <= prefix || memcmp(word.data, ONE_SECTION, prefix) != 0)
        return (struct slice){ 0 };
    return (struct slice){ word.data + prefix, word.size - prefix };
}

static bool take_word(struct include *include, struct slice word)
{
    struct slice name = section_of(word);

    for (size_t i = 0; i < ARRAY_SIZE(words_known); i++) {
        if (slice_equal(word, slice_from_text(words_known[i].word))) {
            *(bool *)((char *)include + words_known[i].flag) = true;
            return true;
        }
    }
    if (!text_is_name(name, SECTION_NAME_BYTES_MAX))
        return false;
    include->names[include->name_count++] = name;
    return true;
}

static err refuse_word(struct arena *arena, struct refusal *refusal, size_t place, const char *word)
{
    struct nearest nearest;
    char hint[NEAREST_HINT_BYTES];
    const char *field = arena_printf(arena, "include[%zu]", place);
    struct slice given = slice_from_text(word);

    if (section_of(given).size > 0)
        return refuse_invalid(arena, refusal, field, "sections.<1 to 64 of [a-z0-9_]>",
                              text_shorten(arena, given));
    nearest_init(&nearest, given);
    for (size_t i = 0; i < ARRAY_SIZE(words_known); i++)
        nearest_offer_text(&nearest, words_known[i].word);
    return refuse_invalid(
        arena, refusal, field,
        arena_printf(arena, "%s%s", WORDS_LIMIT, nearest_hint(nearest.name, hint)),
        text_shorten(arena, given));
}

err include_parse(struct arena *arena, struct refusal *refusal, size_t count, char *const *words,
                  struct include *ret_include)
{
    *ret_include = (struct include){ .sections = count == 0, .balances = count == 0 };
    if (count > WORDS_MAX)
        return refuse_number(arena, refusal, "include", "at most 68 words", (int64_t)count);
    ret_include->names = arena_alloc(arena, (count + 1) * sizeof *ret_include->names);
    for (size_t i = 0; i < count; i++) {
        if (!take_word(ret_include, slice_from_text(words[i])))
            return refuse_word(arena, refusal, i, words[i]);
    }
    return ERR_OK;
}

/* What protobuf-c keeps of a field that it does not know begins with its length. */
static void take_old_section(struct include *include, const ProtobufCMessageUnknownField *field)
{
    struct reader reader = reader_from((struct slice){ field->data, field->len });
    uint64_t size = read_compact(&reader);

    if (!reader.bad && size == reader_left(&reader))
        include->names[include->name_count++] = (struct slice){ reader.at, (size_t)size };
}

struct include include_of_session(struct arena *arena,
                                  const Holdfast__V1__StartSessionRequest *request)
{
    struct include include;
    struct refusal unused;

    /* What was checked passes again. */
    if (include_parse(arena, &unused, request->n_include, request->include, &include) != ERR_OK)
        include = (struct include){ .sections = true, .balances = true };
    if (request->n_include > 0 || request->base.n_unknown_fields == 0)
        return include;
    include.names =
        arena_alloc(arena, (request->base.n_unknown_fields + 1) * sizeof *include.names);
    for (unsigned i = 0; i < request->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &request->base.unknown_fields[i];
        if (field->tag == OLD_SECTIONS && field->wire_type == WIRE_BYTES)
            take_old_section(&include, field);
    }
    include.sections = include.name_count == 0;
    return include;
}

bool include_has_section(const struct include *include, struct slice name)
{
    for (size_t i = 0; i < include->name_count && !include->sections; i++) {
        if (slice_equal(name, include->names[i]))
            return true;
    }
    return include->sections;
}
