/*
 * debug_bundle: the parts of `holdfast debug zip`. Each part is scrubbed (scrub.h) before it is
 * written; one that cannot be had is named in errors.txt, with the reason.
 */
#ifndef CLIENT_CLI_DEBUG_DEBUG_BUNDLE_H
#define CLIENT_CLI_DEBUG_DEBUG_BUNDLE_H

#include <jansson.h>

#include "client/cli/debug/archive.h"
#include "client/cli/console/arguments.h"
#include "client/cli/debug/scrub.h"

#define BUNDLE_BYTES_MAX     268435456u /* 256 MiB of all parts, before compression. */
#define BUNDLE_INCIDENTS_MAX 5000u
#define BUNDLE_LOG_BYTES     1048576u /* The end of each log. */
#define BUNDLE_FETCH_BYTES   4194304u /* Of one process's metrics. */
#define BUNDLE_FILES_MAX     64u      /* Of --metrics, and of --log. */

struct bundle {
    const struct arguments *arguments;
    struct archive *archive;
    struct scrub scrub;
    struct buf errors;
    uint32_t errors_count;
    uint64_t bytes;
    bool broken; /* The archive cannot be written. */
};

/* Those of `holdfast debug zip` alone. */
extern const struct command_option option_metrics, option_log, option_redact;

/* Takes the text's bytes, and leaves it empty. */
void bundle_add(struct bundle *bundle, const char *name, struct buf *text);
/* Takes `value`. */
void bundle_add_json(struct bundle *bundle, const char *name, json_t *value);
__attribute__((format(printf, 3, 4))) void bundle_miss(struct bundle *bundle, const char *name,
                                                       const char *format, ...);

/* Lists of the first router that answers. */
void bundle_take_cluster(struct bundle *bundle);
/* What --metrics and --log name. */
void bundle_take_metrics(struct bundle *bundle);
void bundle_take_logs(struct bundle *bundle);

#endif
