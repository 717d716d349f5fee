/* holdfast: the command line. Each verb is a file of its own; see verb_table.h. */
#include <stdio.h>

#include "client/cli/verb_table.h"

int main(int argc, char **argv)
{
    struct arguments arguments;
    char why[VERB_WHY_BYTES] = "";

    if (arguments_parse(argc, argv, &arguments, why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    if (arguments.version) {
        printf("holdfast %s\n", HOLDFAST_VERSION);
        return 0;
    }
    if (arguments.help || arguments.word_count == 0) {
        verb_print_help();
        return arguments.help ? 0 : 2;
    }
    if (verb_misspelt(&arguments, why)) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    return verb_find(arguments.words[0])->run(&arguments);
}
