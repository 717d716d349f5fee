#include "client/cli/verb_table.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

static const struct verb *const *files;

void verb_table_set(const struct verb *const *rows)
{
    files = rows;
}

const struct verb *verb_at(size_t place)
{
    CHECK(files != NULL);
    for (size_t i = 0; files[i] != NULL; i++) {
        for (const struct verb *verb = files[i]; verb->words != NULL; verb++) {
            if (place-- == 0)
                return verb;
        }
    }
    return NULL;
}

struct slice verb_word(const struct verb *verb, uint32_t place)
{
    const char *word = verb->words;

    for (; place > 0 && *word != 0; place--) {
        word += strcspn(word, " ");
        word += *word == ' ';
    }
    return (struct slice){ (const uint8_t *)word, strcspn(word, " ") };
}

uint32_t verb_word_count(const struct verb *verb)
{
    return strchr(verb->words, ' ') == NULL ? 1 : 2;
}

bool verb_begins_with(const struct verb *verb, const char *word)
{
    return slice_equal(verb_word(verb, 0), slice_from_text(word));
}

bool verb_family_exists(const char *word)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb_begins_with(verb, word))
            return true;
    }
    return false;
}

bool verb_takes(const struct verb *verb, uint32_t count)
{
    const char *at = verb->arguments;
    uint32_t least = 0, most = 0;

    while (*at != 0) {
        size_t size = strcspn(at, " ");
        bool optional = *at == '[';
        const char *name = at + optional;

        if (name[0] == '-' && name[1] == '-')
            break;
        least += !optional;
        most = most == WORDS_MAX || memmem(at, size, "..", 2) != NULL ? WORDS_MAX : most + 1;
        at += size + (at[size] == ' ');
    }
    return count >= least && count <= most;
}

static bool matches(const struct verb *verb, const char *const *words, uint32_t count)
{
    uint32_t own = verb_word_count(verb);

    if (own > count)
        return false;
    for (uint32_t i = 0; i < own; i++) {
        if (!slice_equal(verb_word(verb, i), slice_from_text(words[i])))
            return false;
    }
    return true;
}

const struct verb *verb_named(const char *const *words, uint32_t count)
{
    const struct verb *longest = NULL, *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (matches(verb, words, count) &&
            (longest == NULL || verb_word_count(verb) > verb_word_count(longest)))
            longest = verb;
    }
    return longest;
}

const struct verb *verb_find(const char *const *words, uint32_t count)
{
    const struct verb *fits = NULL, *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        uint32_t own = verb_word_count(verb);
        if (matches(verb, words, count) && verb_takes(verb, count - own) &&
            (fits == NULL || own > verb_word_count(fits)))
            fits = verb;
    }
    return fits != NULL ? fits : verb_named(words, count);
}

/* What was meant is "'first second'", or "'first'" where `second` is empty. */
static void say_misspelt(const char *given, struct slice first, struct slice second,
                         char ret_why[VERB_WHY_BYTES])
{
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES], meant[NEAREST_HINT_BYTES] = "";

    if (first.size > 0)
        snprintf(meant, sizeof meant, "'%.*s%s%.*s'", (int)first.size, (const char *)first.data,
                 second.size > 0 ? " " : "", (int)second.size, (const char *)second.data);
    snprintf(ret_why, VERB_WHY_BYTES, "there is no verb '%s'%s",
             nearest_show(slice_from_text(given), shown),
             nearest_hint(slice_from_text(meant), hint));
}

static bool misspelt_second(const char *const *words, char ret_why[VERB_WHY_BYTES])
{
    struct nearest nearest;
    const struct verb *verb;
    char given[2 * NEAREST_SHOWN_BYTES];

    nearest_init(&nearest, slice_from_text(words[1]));
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb_begins_with(verb, words[0]) && verb_word_count(verb) == 2)
            nearest_offer(&nearest, verb_word(verb, 1));
    }
    if (nearest.name.size == 0 || slice_equal(nearest.name, slice_from_text(words[1])))
        return false;
    snprintf(given, sizeof given, "%.64s %.64s", words[0], words[1]);
    say_misspelt(given, slice_from_text(words[0]), nearest.name, ret_why);
    return true;
}

bool verb_misspelt(const char *const *words, uint32_t count, char ret_why[VERB_WHY_BYTES])
{
    const struct verb *found = verb_find(words, count), *verb;
    struct nearest nearest;

    CHECK(count > 0);
    if (found != NULL && verb_takes(found, count - verb_word_count(found)))
        return false;
    if (verb_family_exists(words[0]))
        return count > 1 && misspelt_second(words, ret_why);
    nearest_init(&nearest, slice_from_text(words[0]));
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        nearest_offer(&nearest, verb_word(verb, 0));
    say_misspelt(words[0], nearest.name, (struct slice){ 0 }, ret_why);
    return true;
}

bool verb_has_option(const struct verb *verb, const char *flag)
{
    for (size_t i = 0; verb->options[i] != NULL; i++) {
        if (strcmp(verb->options[i]->flag, flag) == 0)
            return true;
    }
    return false;
}

static bool is_among(const struct command_option *const *options, size_t count, const char *flag)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(options[i]->flag, flag) == 0)
            return true;
    }
    return false;
}

size_t options_gather(const struct command_option *ret_options[OPTIONS_MAX])
{
    const struct verb *verb;
    size_t count = 0;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        for (size_t k = 0; verb->options[k] != NULL; k++) {
            if (is_among(ret_options, count, verb->options[k]->flag))
                continue;
            CHECK(count < OPTIONS_MAX);
            ret_options[count++] = verb->options[k];
        }
    }
    return count;
}

const struct command_option *option_find(struct slice flag)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        for (size_t k = 0; verb->options[k] != NULL; k++) {
            if (slice_equal(slice_from_text(verb->options[k]->flag), flag))
                return verb->options[k];
        }
    }
    return NULL;
}
