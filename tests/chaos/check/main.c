/*
 * holdfast-check: judges the history of a run, from its file alone. `./dev chaos` writes such
 * files; so can anybody.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/chaos/check/documents.h"
#include "tests/chaos/check/whole.h"

enum { EXIT_HOLDS, EXIT_VIOLATED, EXIT_UNREADABLE, EXIT_UNDECIDED };

static const char usage_text[] = "usage: holdfast-check [--json] HISTORY\n"
                                 "Judges what callers of a cluster were told: per player "
                                 "linearizable (calls without an answer may have\n"
                                 "taken place or not), fences kept, every coin somewhere, no mail "
                                 "claimed twice, replicas alike;\n"
                                 "of documents: nothing lost or back, each counted once, no member "
                                 "apart.\n"
                                 "Exits with 0: it holds; 1: it does not; 2: the file cannot be "
                                 "read; 3: a player could not be decided.\n";

struct tally {
    size_t answered, refused, open;
};

static struct tally tally_of(const struct history *history)
{
    struct tally tally = { 0 };

    for (size_t i = 0; i < history->call_count; i++) {
        switch (history->calls[i].timed.done.outcome) {
        case OUTCOME_OK:
            tally.answered++;
            break;
        case OUTCOME_REFUSED:
            tally.refused++;
            break;
        case OUTCOME_OPEN:
            tally.open++;
            break;
        }
    }
    return tally;
}

static void print_text(const struct history *history, const struct findings *findings,
                       size_t undecided)
{
    struct tally tally = tally_of(history);

    if (findings->text.size > 0)
        fwrite(findings->text.data, 1, findings->text.size, stdout);
    printf("%zu calls of %zu players: %zu carried out, %zu refused, %zu of unknown outcome; "
           "%zu faults of %zu kinds\n",
           history->call_count, history->players.count, tally.answered, tally.refused, tally.open,
           history->fault_count, history->kinds.count);
    printf("%zu edits and %zu reads of %zu documents\n", history->edits.edit_count,
           history->edits.look_count, history->edits.documents.count);
    printf("%zu violations, %zu players undecided\n", findings->count, undecided);
}

static void print_json(const struct history *history, const struct findings *findings,
                       size_t undecided)
{
    struct tally tally = tally_of(history);

    printf("{\"calls\":%zu,\"players\":%zu,\"carried_out\":%zu,\"refused\":%zu,\"unknown\":%zu,"
           "\"faults\":%zu,\"edits\":%zu,\"looks\":%zu,\"violations\":%zu,\"undecided\":%zu}\n",
           history->call_count, history->players.count, tally.answered, tally.refused, tally.open,
           history->fault_count, history->edits.edit_count, history->edits.look_count,
           findings->count, undecided);
}

static int judge(const struct history *history, bool json)
{
    struct findings findings = { 0 };
    size_t undecided;

    whole_order(history, &findings, &undecided);
    whole_conservation(history, &findings);
    whole_mails(history, &findings);
    whole_convergence(history, &findings);
    documents_judge(&history->edits, &findings);
    if (history->call_count == 0)
        finding_add(&findings, "the history has no calls: it proves nothing");
    (json ? print_json : print_text)(history, &findings, undecided);
    size_t violations = findings.count;
    findings_deinit(&findings);
    if (violations > 0)
        return EXIT_VIOLATED;
    return undecided > 0 ? EXIT_UNDECIDED : EXIT_HOLDS;
}

int main(int argc, char **argv)
{
    bool json = argc == 3 && strcmp(argv[1], "--json") == 0;
    struct history history;
    struct history_error error;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return 0;
    }
    if (argc != 2 && !json) {
        fputs(usage_text, stderr);
        return EXIT_UNREADABLE;
    }
    const char *path = argv[argc - 1];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "holdfast-check: %s: cannot be opened\n", path);
        return EXIT_UNREADABLE;
    }
    int result = EXIT_UNREADABLE;
    if (history_read(file, &history, &error) == ERR_OK)
        result = judge(&history, json);
    else
        fprintf(stderr, "holdfast-check: %s, line %zu: %s\n", path, error.line, error.message);
    history_deinit(&history);
    (void)fclose(file);
    return result;
}
