#include <inttypes.h>
#include <stdio.h>

#include "client/backup/repository_verify.h"
#include "client/cli/restore_put.h"
#include "client/cli/verb.h"

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

static int restore(const struct arguments *arguments, const struct repository *repository,
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

int verb_restore(const struct arguments *arguments)
{
    struct repository repository;
    struct backup_error why;
    uint32_t wanted;

    if (arguments->word_count != 2) {
        fprintf(stderr, "usage: holdfast restore DIR [--number N] [--throttle MIB]\n");
        return 2;
    }
    if (argument_number("number", arguments->number, 0, 1000000, &wanted) != ERR_OK)
        return 2;
    if (repository_open(arguments->words[1], &repository, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: not restored: %s\n", why.text);
        return 1;
    }
    int code = restore(arguments, &repository, wanted, &why);
    repository_close(&repository);
    return code;
}
