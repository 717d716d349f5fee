/* holdfast certs: a CA and certificates for development. */
#include <stdio.h>
#include <string.h>

#include "client/cli/console/options.h"
#include "client/cli/dev/process_certs.h"
#include "client/cli/verb.h"

#define NAMES_BYTES_MAX 1024u

static const struct command_option option_dir = {
    .flag = "dir",
    .value = "DIR",
    .initial = "certs",
    .meaning = "where they are made",
};
static const struct command_option option_names = {
    .flag = "names",
    .value = "LIST",
    .initial = "node,router,coordinator,client",
    .meaning = "one certificate each: ROLE, ROLE/NAME, client/NAME?scopes=game+read, or any name",
};

static int make_certs(const struct arguments *arguments)
{
    const char *dir = option_text(arguments, &option_dir);
    const char *list = option_text(arguments, &option_names);
    struct tls_error why = { "" };
    char names[NAMES_BYTES_MAX];
    char *rest = NULL;
    bool made;

    if (strlen(list) >= sizeof names) {
        fprintf(stderr, "holdfast: --names has over %u bytes\n", NAMES_BYTES_MAX - 1);
        return 2;
    }
    if (certs_make_ca(dir, option_text(arguments, &option_cluster), &made, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s\n", why.text);
        return 1;
    }
    printf("%s/ca.crt %s\n", dir, made ? "made" : "kept");
    snprintf(names, sizeof names, "%s", list);
    for (char *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        char file[CERTS_NAME_SIZE_MAX + 1];
        const struct process_cert cert = { dir, option_text(arguments, &option_cluster), name };
        if (process_certs_make(&cert, &made, file, &why) != ERR_OK) {
            fprintf(stderr, "holdfast: %s\n", why.text);
            return 1;
        }
        printf("%s/%s.crt %s\n", dir, file, made ? "made" : "kept");
    }
    return 0;
}

const struct verb verb_certs[] = {
    {
        .words = "certs",
        .topic = VERB_TOPIC_DEV,
        .arguments = "",
        .summary = "make a development CA and certificates",
        .details =
            "A ROLE is node, router, coordinator or client. ROLE/NAME makes NAME.crt, which\n"
            "proves which process it is; ROLE alone makes ROLE.crt, which proves the role and\n"
            "fits any name. Any other word makes a certificate without an identity, for the\n"
            "public port. What exists and says the same is kept.",
        .options = VERB_OPTIONS(&option_dir, &option_names, &option_cluster),
        .run = make_certs,
    },
    { .words = NULL },
};
