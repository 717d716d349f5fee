#include "client/cli/backup/restore_definitions.h"

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"

#define IN_FORCE_MS_MAX  120000u
#define IN_FORCE_WAIT_MS 5000

/* NULL: why. */
static json_t *ask(struct backup_link *link, struct slice text, json_t *request,
                   struct backup_error *ret_why)
{
    json_t *definition = json_loadb((const char *)text.data, text.size, 0, NULL);

    if (!json_is_object(definition)) {
        backup_why(ret_why, "a definition of the backup is no JSON object");
        json_decref(definition);
        json_decref(request);
        return NULL;
    }
    json_object_set(request, "definition", definition);
    json_t *answer = backup_link_call(link, "BackupService/RestoreDefinition", request);

    if (answer == NULL)
        backup_why(ret_why, "the definition of the %s %s (number %s): %s",
                   answer_text(definition, "kind"), answer_text(definition, "name"),
                   answer_text(definition, "number"), link->why);
    json_decref(definition);
    return answer;
}

static bool ask_all(struct backup_link *link, const struct manifest *manifest, bool dry_run,
                    struct backup_error *ret_why)
{
    for (uint32_t i = 0; i < manifest->definition_count; i++) {
        json_t *answer = ask(link, buf_slice(&manifest->definitions[i]),
                             json_pack("{s:b}", "dryRun", dry_run), ret_why);

        if (answer == NULL)
            return false;
        json_decref(answer);
    }
    return true;
}

bool restore_definitions_check(struct backup_link *link, const struct manifest *manifest,
                               struct backup_error *ret_why)
{
    return ask_all(link, manifest, true, ret_why);
}

/* Shards take definitions in the order in which they were made. */
static bool wait_for_last(struct backup_link *link, const struct manifest *manifest,
                          struct backup_error *ret_why)
{
    uint64_t end_ms = monotonic_ms() + IN_FORCE_MS_MAX;
    struct slice last = buf_slice(&manifest->definitions[manifest->definition_count - 1]);
    bool in_force = false;

    while (!in_force) {
        json_t *answer = ask(link, last, json_pack("{s:i}", "waitMs", IN_FORCE_WAIT_MS), ret_why);

        if (answer == NULL)
            return false;
        in_force = json_is_true(json_object_get(json_object_get(answer, "definition"), "inForce"));
        json_decref(answer);
        if (!in_force && monotonic_ms() >= end_ms) {
            backup_why(ret_why, "the shards do not take the definitions: are their nodes up?");
            return false;
        }
    }
    return true;
}

bool restore_definitions_put(struct backup_link *link, const struct manifest *manifest,
                             struct backup_error *ret_why)
{
    return manifest->definition_count == 0 ||
           (ask_all(link, manifest, false, ret_why) && wait_for_last(link, manifest, ret_why));
}
