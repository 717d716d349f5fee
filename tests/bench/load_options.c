#include "load_options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define CONNECTIONS_MAX 8192u

enum kind { TEXT, NUMBER, REAL, FLAG };

struct row {
    const char *name;
    const char *standard;
    const char *help;
    size_t offset;
    enum kind kind;
    char letter;
};

static const struct row rows[] = {
#define LOAD_ROW(field, name, letter, kind, standard, help)                                        \
    { name, standard, help, offsetof(struct load_options, field), kind, letter },
    LOAD_OPTIONS(LOAD_ROW)
#undef LOAD_ROW
};

static _Noreturn void refuse(const char *name, const char *value)
{
    fprintf(stderr, "--%s: '%s' is not a number of its range; see --help\n", name, value);
    exit(2);
}

static void set(struct load_options *options, const struct row *row, const char *value)
{
    char *at = (char *)options + row->offset;
    char *end = NULL;
    unsigned long number;

    switch (row->kind) {
    case TEXT:
        memcpy(at, &value, sizeof value);
        return;
    case REAL:
        *(double *)(void *)at = strtod(value, &end);
        break;
    case NUMBER:
        number = strtoul(value, &end, 10);
        if (number > UINT32_MAX)
            refuse(row->name, value);
        *(unsigned *)(void *)at = (unsigned)number;
        break;
    case FLAG:
        *(bool *)(void *)at = strtoul(value, &end, 10) != 0;
        break;
    }
    if (end == value || *end != 0 || value[0] == '-')
        refuse(row->name, value);
}

static void print_help(const char *program, const char *about)
{
    printf("%s: %s\n\n", program, about);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        printf("  -%c, --%-12s %s%s%s%s\n", rows[i].letter, rows[i].name, rows[i].help,
               rows[i].standard[0] != 0 && rows[i].kind != FLAG ? " (" : "",
               rows[i].kind != FLAG ? rows[i].standard : "",
               rows[i].standard[0] != 0 && rows[i].kind != FLAG ? ")" : "");
    printf("  -h, --%-12s this text\n", "help");
}

static void prepare(char *letters, struct option *names)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        *letters++ = rows[i].letter;
        if (rows[i].kind != FLAG)
            *letters++ = ':';
        names[i] =
            (struct option){ .name = rows[i].name,
                             .has_arg = rows[i].kind != FLAG ? required_argument : no_argument,
                             .val = rows[i].letter };
    }
    *letters++ = 'h';
    *letters = 0;
    names[ARRAY_SIZE(rows)] = (struct option){ .name = "help", .val = 'h' };
}

void load_options_parse(int argc, char **argv, const char *about, struct load_options *ret_options)
{
    char letters[2 * ARRAY_SIZE(rows) + 2];
    struct option names[ARRAY_SIZE(rows) + 2] = { 0 };
    int letter;

    prepare(letters, names);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        set(ret_options, &rows[i], rows[i].standard);
    while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        if (letter == 'h') {
            print_help(argv[0], about);
            exit(0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            if (rows[i].letter == letter)
                set(ret_options, &rows[i], rows[i].kind == FLAG ? "1" : optarg);
        }
        if (letter == '?')
            exit(2);
    }
    if (optind < argc)
        refuse("", argv[optind]);
    if (ret_options->port == 0 || ret_options->port > 65535)
        refuse("port", "");
    if (ret_options->connections == 0 || ret_options->connections > CONNECTIONS_MAX)
        refuse("connections", "");
    if (ret_options->players == 0 || ret_options->batch == 0 || ret_options->targets == 0)
        refuse("players, --batch or --targets", "0");
}
