#include "client/cli/dev/process_certs.h"

#include <stdio.h>
#include <string.h>

#include "runtime/identity/identity.h"

static bool is_role(const char *word)
{
    for (uint8_t role = ROLE_NODE; role < ROLE_END; role++) {
        if (strcmp(word, identity_role_name(role)) == 0)
            return true;
    }
    return false;
}

static err make_uri(const char *cluster, const char *who, char ret_uri[IDENTITY_TEXT_SIZE],
                    struct identity *ret_identity, struct tls_error *ret_error)
{
    struct identity_error why;
    int size = snprintf(ret_uri, IDENTITY_TEXT_SIZE, "holdfast://%s/%s%s", cluster, who,
                        is_role(who) ? "/*" : "");

    if (size < 0 || (size_t)size >= IDENTITY_TEXT_SIZE) {
        snprintf(ret_error->text, sizeof ret_error->text, "%.100s: over %u bytes", who,
                 IDENTITY_TEXT_SIZE - 1);
        return ERR_INVALID;
    }
    const struct identity_san san = { IDENTITY_URI, slice_from_text(ret_uri) };
    err e = identity_parse(&san, ret_identity, &why);
    if (e != ERR_OK)
        snprintf(ret_error->text, sizeof ret_error->text, "%.63s is no identity: %.150s", who,
                 why.text);
    return e == ERR_OK ? ERR_OK : ERR_INVALID;
}

err process_certs_make(const struct process_cert *cert, bool *ret_made,
                       char ret_file[CERTS_NAME_SIZE_MAX + 1], struct tls_error *ret_error)
{
    const char *who = cert->who;
    char uri[IDENTITY_TEXT_SIZE] = "";
    struct identity identity = { 0 };
    bool named = strchr(who, '/') != NULL;
    const char *stem = who;

    *ret_made = false;
    if (named || is_role(who)) {
        err e = make_uri(cert->cluster, who, uri, &identity, ret_error);
        if (e != ERR_OK)
            return e;
        if (named)
            stem = identity.name;
    }
    snprintf(ret_file, CERTS_NAME_SIZE_MAX + 1, "%s", stem);
    return certs_make_leaf(cert->directory,
                           &(struct certs_leaf){ .name = stem, .uri = uri[0] != 0 ? uri : NULL },
                           ret_made, ret_error);
}
