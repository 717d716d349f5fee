#include <stdio.h>
#include <string.h>

#include "client/cli/verb.h"
#include "runtime/tls/certs.h"

#define NAMES_BYTES_MAX 1024u

int verb_certs(const struct arguments *arguments)
{
    struct tls_error why = { "" };
    char names[NAMES_BYTES_MAX];
    char *rest = NULL;
    bool made;

    if (strlen(arguments->names) >= sizeof names) {
        fprintf(stderr, "holdfast: --names has over %u bytes\n", NAMES_BYTES_MAX - 1);
        return 2;
    }
    if (certs_make_ca(arguments->dir, arguments->cluster, &made, &why) != ERR_OK) {
        fprintf(stderr, "holdfast: %s\n", why.text);
        return 1;
    }
    printf("%s/ca.crt %s\n", arguments->dir, made ? "made" : "kept");
    snprintf(names, sizeof names, "%s", arguments->names);
    for (char *name = strtok_r(names, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        if (certs_make_leaf(arguments->dir, &(struct certs_leaf){ .name = name }, &made, &why) !=
            ERR_OK) {
            fprintf(stderr, "holdfast: %s\n", why.text);
            return 1;
        }
        printf("%s/%s.crt %s\n", arguments->dir, name, made ? "made" : "kept");
    }
    return 0;
}
