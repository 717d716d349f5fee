#include <inttypes.h>
#include <stdio.h>

#include "client/backup/repository_verify.h"
#include "client/cli/console/options.h"
#include "client/cli/backup/restore_put.h"
#include "client/cli/verb.h"

static const struct command_option option_number_of = {
    .flag = "number",
    .value = "N",
    .initial = "0",
    .meaning = "which backup of the directory; 0: the newest",
};

/* Which backup; 0: refused. One that was begun later and has no end is not passed over silently. */
static uint64_t choose(const struct repository *repository, uint32_t wanted,
                       struct backup_error *ret_why)
{
    uint64_t newest = repository_newest(repository);
    uint64_t interrupted = repository_interrupted(repository);

    if (wanted > 0)
        return wanted;
    if (interrupted == 0 && newest > 0)
        return newest;
    if (newest > 0)
        backup_why(ret_why,
                   "backup %" PRIu64 " was interrupted; to restore the one before it: --number "
                   "%" PRIu64,
                   interrupted, newest);
    else
        backup_why(ret_why, "%s holds no complete backup%s", repository->path,
                   interrupted > 0 ? ": the one that is there was interrupted" : "");
    return 0;
}

static int restore_from(const struct arguments *arguments, struct repository *repository,
                        uint32_t wanted, struct backup_error *ret_why)
{
    struct verify_counts counts = { 0 };
    struct manifest manifest;
    uint64_t number = choose(repository, wanted, ret_why);

    if (number == 0 ||
        repository_verify(repository, number, &manifest, &counts, ret_why) != ERR_OK) {
        fprintf(stderr, "holdfast: not restored: %s\n", ret_why->text);
        return 1;
    }
    int code = restore_put(arguments, repository, &manifest);
    manifest_deinit(&manifest);
    return code;
}

static int restore(const struct arguments *arguments)
{
    struct repository repository;
    struct backup_error why;
    uint32_t wanted;

    if (option_number(arguments, &option_number_of, 0, 1000000, &wanted) != ERR_OK)
        return 2;
    if (repository_open(arguments->words[0], &repository, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: not restored: %s\n", why.text);
        return 1;
    }
    int code = restore_from(arguments, &repository, wanted, &why);
    repository_close(&repository);
    return code;
}

const struct verb verb_restore[] = {
    {
        .words = "restore",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "DIR",
        .summary = "a backup into a new, empty cluster",
        .details = "Interrupted, it goes on when it is run again.",
        .options = VERB_OPTIONS(&option_number_of, &option_throttle, OPTIONS_OF_CALLS),
        .run = restore,
    },
    { .words = NULL },
};
