/*
 * identity: who a process is, as the alternative names of its certificate say (DESIGN section 11).
 * Pure: no I/O, safe on any bytes whatever; what comes from a certificate is not text until it was
 * read here.
 *
 *   URI   holdfast://<cluster>/<role>/<name>              holdfast://prod/node/node-1
 *         holdfast://<cluster>/client/<name>?scopes=a+b   holdfast://prod/client/ops?scopes=admin
 *   DNS   <name>.<role>.<cluster>.id.holdfast.internal    for issuers that write no URIs
 *
 * The name `*` is any name of that role: it proves the role, not which process. Nothing is decoded
 * or folded: percent signs, capitals in the scheme and empty parts are refused, so one identity has
 * one spelling. Other names beside it (hosts, addresses, other schemes) say nothing here.
 */
#ifndef RUNTIME_IDENTITY_IDENTITY_H
#define RUNTIME_IDENTITY_IDENTITY_H

#include "runtime/base/buf.h"

#define IDENTITY_CLUSTER_SIZE_MAX 63u
#define IDENTITY_NAME_SIZE_MAX    63u
#define IDENTITY_SCOPES_SIZE_MAX  63u
#define IDENTITY_SAN_SIZE_MAX     255u /* Of one alternative name that names an identity. */
#define IDENTITY_SANS_MAX         64u  /* Alternative names of one certificate. */
#define IDENTITY_TEXT_SIZE        256u /* An identity printed, with its NUL. */

/* Of a process, on the wire too (HELLO): numbers are never reused. */
enum hello_role { ROLE_NODE = 1, ROLE_ROUTER, ROLE_COORDINATOR, ROLE_CLIENT, ROLE_END };

/* "node", "router", ...; "unknown" for anything else. */
const char *identity_role_name(uint8_t role);

struct identity {
    uint8_t role;                                /* Of enum hello_role. */
    char cluster[IDENTITY_CLUSTER_SIZE_MAX + 1]; /* The cluster's name, as --cluster says it. */
    char name[IDENTITY_NAME_SIZE_MAX + 1];       /* "*": any. */
    char scopes[IDENTITY_SCOPES_SIZE_MAX + 1];   /* Client: "game+read"; "": none are told. */
};

struct identity_error {
    char text[192];
};

enum identity_san_kind { IDENTITY_URI, IDENTITY_DNS };

/* One alternative name as it stands in the certificate; any bytes. */
struct identity_san {
    enum identity_san_kind kind;
    struct slice text;
};

/* ERR_NOT_FOUND: it names no identity, which is no fault. ERR_INVALID, ERR_TOO_LARGE: it names
 * one and is malformed; ret_why says the part, the limit and the value. */
NODISCARD err identity_parse(const struct identity_san *san, struct identity *ret_identity,
                             struct identity_error *ret_why);
/* The one identity among `count` names. ERR_NOT_FOUND: none; ERR_INVALID also: two of them;
 * ERR_TOO_LARGE also: count over IDENTITY_SANS_MAX. */
NODISCARD err identity_find(const struct identity_san *sans, size_t count,
                            struct identity *ret_identity, struct identity_error *ret_why);
/* As a URI. */
void identity_print(const struct identity *identity, char ret_text[IDENTITY_TEXT_SIZE]);
/* The certificate covers a process of this name: it is that name, or any. */
bool identity_covers(const struct identity *identity, const char *name);

#endif
