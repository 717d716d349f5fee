/* target_call: what verbs of favourites and of counters share: words that are targets, totals, top
 * lists and changes. */
#ifndef CLIENT_CLI_CALL_TARGET_CALL_H
#define CLIENT_CLI_CALL_TARGET_CALL_H

#include "client/cli/console/output.h"

/* ---- of verbs that print totals ---- */
extern const struct command_option option_fresh;
/* ---- of verbs that print top lists ---- */
extern const struct command_option option_window, option_limit;

#define TARGETS_DETAILS                                                                            \
    "Totals are gathered from all shards and may be some seconds old; --fresh gathers them now."

/* The words from `first` on as an array; the caller's to decref. */
json_t *target_words(const struct arguments *arguments, uint32_t first);
/* Totals: prints `counts` of the answer. Takes over `request`; the exit code. */
int target_counts_call(const struct arguments *arguments, const char *method, json_t *request);
/* A top list: `entries` of the answer, with --window and --limit. Takes over `request`; the exit
 * code. */
/* Where the target of the request stands. */
int target_rank_call(const struct arguments *arguments, const char *method, json_t *request);
int target_top_call(const struct arguments *arguments, const char *method, json_t *request);
/* A change under --op-id or a fresh id, of whose answer `columns` are printed as one row. Takes
 * over `request`; with an unknown outcome it prints the id: the caller repeats the call under it.
 */
int target_change_call(const struct arguments *arguments, const char *method, json_t *request,
                       const struct column *columns);

#endif
