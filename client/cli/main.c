/* holdfast: the command line. Each verb is a row of a file of its own; see verb.h. */
#include <stdio.h>

#include "client/cli/command_line.h"
#include "client/cli/help.h"
#include "client/cli/console/output.h"
#include "client/cli/verb_rows.h"
#include "client/cli/verb_table.h"

static int run(struct arguments *arguments)
{
    if (arguments->version) {
        printf("holdfast %s\n", HOLDFAST_VERSION);
        return 0;
    }
    if (arguments->word_count == 0) {
        help_print();
        return arguments->help ? 0 : 2;
    }
    if (arguments->help)
        return help_print_verb(arguments->words, arguments->word_count);
    return command_line_run(arguments);
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";

    verb_table_set(verb_rows);
    if (command_line_parse(argc, argv, &arguments, why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    return output_finish(run(&arguments));
}
