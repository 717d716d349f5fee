/* event_kind: the kinds of events, as people write them and as the API does. */
#ifndef CLIENT_CLI_CALL_EVENT_KIND_H
#define CLIENT_CLI_CALL_EVENT_KIND_H

#include <jansson.h>

#include "client/cli/console/arguments.h"

#define EVENT_KINDS_TEXT "favorite, ledger, session, definition or erasure"

extern const struct command_option option_event_kind, option_event_prefix, option_event_entity;

/* "EVENT_KIND_LEDGER" of "ledger"; NULL: there is no such kind. */
const char *event_kind_name(const char *word);
/* And back. */
const char *event_kind_word(const char *name);
/* False: --kind is no kind; says so on standard error. */
bool event_kind_check(const struct arguments *arguments);
/* Of a request: kinds, entityPrefix and entity, as the options say. */
void event_filter_set(const struct arguments *arguments, json_t *request);

#endif
