#include "client/cli/debug/debug_bundle.h"
#include "client/cli/debug/debug_zip.h"
#include "client/cli/console/options.h"
#include "client/cli/verb.h"

static int zip(const struct arguments *arguments)
{
    return debug_zip(arguments, arguments->words[0]);
}

const struct verb verb_debug[] = {
    {
        .words = "debug zip",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "FILE.zip",
        .summary = "an archive for a support case, without secrets",
        .details =
            "It holds no players' documents. What could not be had stands in its errors.txt.",
        .options = VERB_OPTIONS(&option_metrics, &option_log, &option_redact, OPTIONS_OF_CALLS),
        .run = zip,
    },
    { .words = NULL },
};
