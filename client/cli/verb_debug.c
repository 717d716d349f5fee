#include <stdio.h>
#include <string.h>

#include "client/cli/debug_zip.h"
#include "client/cli/verb.h"

int verb_debug(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";

    if (strcmp(what, "zip") == 0 && arguments->word_count == 3)
        return debug_zip(arguments, arguments->words[2]);
#ifdef HOLDFAST_DEBUG_INJECT
    if (strcmp(what, "inject") == 0)
        return debug_inject(arguments);
#endif
    fprintf(stderr, "usage: holdfast debug zip FILE.zip [--endpoint URL,..] [--metrics URL,..] "
                    "[--log FILE,..] [--redact]\n");
    return 2;
}
