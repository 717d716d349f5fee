#include "client/cli/call/event_kind.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"

const struct command_option option_event_kind = {
    .flag = "kind",
    .value = "KIND",
    .initial = "",
    .meaning = EVENT_KINDS_TEXT " alone",
};
const struct command_option option_event_prefix = {
    .flag = "prefix",
    .value = "TEXT",
    .initial = "",
    .meaning = "events of entities that begin with it: player:42",
};
const struct command_option option_event_entity = {
    .flag = "entity",
    .value = "ENTITY",
    .initial = "",
    .meaning = "events of this entity alone: player:42",
};

static const struct {
    const char *word, *name;
} kinds[] = {
    { "favorite", "EVENT_KIND_FAVORITE" }, { "ledger", "EVENT_KIND_LEDGER" },
    { "session", "EVENT_KIND_SESSION" },   { "definition", "EVENT_KIND_DEFINITION" },
    { "erasure", "EVENT_KIND_ERASURE" },
};

const char *event_kind_name(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].name;
    }
    return NULL;
}

const char *event_kind_word(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].word;
    }
    return NULL;
}

bool event_kind_check(const struct arguments *arguments)
{
    const char *word = option_text(arguments, &option_event_kind);

    if (word[0] == '\0' || event_kind_name(word) != NULL)
        return true;
    fprintf(stderr, "holdfast: --kind is " EVENT_KINDS_TEXT ", not %s\n", word);
    return false;
}

void event_filter_set(const struct arguments *arguments, json_t *request)
{
    const char *word = option_text(arguments, &option_event_kind);

    json_object_set_new(request, "entityPrefix",
                        json_string(option_text(arguments, &option_event_prefix)));
    json_object_set_new(request, "entity",
                        json_string(option_text(arguments, &option_event_entity)));
    if (word[0] != '\0')
        json_object_set_new(request, "kinds", json_pack("[s]", event_kind_name(word)));
}
