#include "client/cli/console/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

static const struct option_given *find_given(const struct arguments *arguments, const char *flag)
{
    for (uint32_t i = 0; i < arguments->given_count; i++) {
        if (strcmp(arguments->given[i].flag, flag) == 0)
            return &arguments->given[i];
    }
    return NULL;
}

const char *option_text(const struct arguments *arguments, const struct command_option *option)
{
    const struct option_given *given = find_given(arguments, option->flag);
    const char *text = option->environment != NULL ? getenv(option->environment) : NULL;

    CHECK(option->value != NULL);
    if (given != NULL)
        return given->text;
    if (text != NULL && text[0] != 0)
        return text;
    return option->initial != NULL ? option->initial : "";
}

bool option_is_set(const struct arguments *arguments, const struct command_option *option)
{
    CHECK(option->value == NULL);
    return find_given(arguments, option->flag) != NULL;
}

err argument_number(const char *name, const char *text, uint32_t min, uint32_t max,
                    uint32_t *ret_number)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != 0 || number < min || number > max) {
        char shown[NEAREST_SHOWN_BYTES];
        fprintf(stderr, "holdfast: %s is a number from %u to %u, not '%s'\n", name, min, max,
                nearest_show(slice_from_text(text), shown));
        return ERR_INVALID;
    }
    *ret_number = (uint32_t)number;
    return ERR_OK;
}

err option_number(const struct arguments *arguments, const struct command_option *option,
                  uint32_t min, uint32_t max, uint32_t *ret_number)
{
    char name[64];

    snprintf(name, sizeof name, "--%s", option->flag);
    return argument_number(name, option_text(arguments, option), min, max, ret_number);
}

bool list_next(const char **list, struct slice *ret_element)
{
    size_t size = strcspn(*list, ",");

    if (**list == 0)
        return false;
    *ret_element = (struct slice){ (const uint8_t *)*list, size };
    *list += size + ((*list)[size] == ',');
    return true;
}

err arguments_give(struct arguments *arguments, const char *flag, const char *text)
{
    uint32_t place = 0;

    while (place < arguments->given_count && strcmp(arguments->given[place].flag, flag) != 0)
        place++;
    if (place == OPTIONS_GIVEN_MAX)
        return ERR_TOO_LARGE;
    arguments->given[place] = (struct option_given){ flag, text };
    if (place == arguments->given_count)
        arguments->given_count++;
    return ERR_OK;
}

void arguments_skip_words(struct arguments *arguments, uint32_t count)
{
    CHECK(count <= arguments->word_count);
    arguments->word_count -= count;
    memmove(arguments->words, arguments->words + count,
            arguments->word_count * sizeof arguments->words[0]);
}
