#include "runtime/identity/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SCHEME     "holdfast://"
#define DNS_SUFFIX ".id.holdfast.internal"
#define QUERY      "scopes="

static const char *const role_names[ROLE_END] = { "unknown", "node", "router", "coordinator",
                                                  "client" };

const char *identity_role_name(uint8_t role)
{
    return role < ROLE_END ? role_names[role] : role_names[0];
}

static err complain(struct identity_error *ret_why, err e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static err complain(struct identity_error *ret_why, err e, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(ret_why->text, sizeof ret_why->text, format, arguments);
    va_end(arguments);
    return e;
}

static bool is_letter_or_digit(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_cluster_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_name_byte(uint8_t c)
{
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
}

static bool is_scopes_byte(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || c == '+';
}

/* What one part of an identity may be. */
struct part {
    const char *what;
    size_t size_max;
    bool (*is_byte)(uint8_t c);
    const char *alphabet;
};

static const struct part cluster_part = { "cluster", IDENTITY_CLUSTER_SIZE_MAX, is_cluster_byte,
                                          "a-z, 0-9 and '-'" };
static const struct part name_part = { "name", IDENTITY_NAME_SIZE_MAX, is_name_byte,
                                       "letters, digits, '-', '_' and '.', or '*' alone" };
static const struct part scopes_part = { "scopes", IDENTITY_SCOPES_SIZE_MAX, is_scopes_byte,
                                         "a-z and '+'" };

static err take_part(const struct part *part, struct slice text, char *ret_text,
                     struct identity_error *ret_why)
{
    if (text.size == 0)
        return complain(ret_why, ERR_INVALID, "its %s is empty", part->what);
    if (text.size > part->size_max)
        return complain(ret_why, ERR_TOO_LARGE, "its %s has %zu bytes; the limit is %zu",
                        part->what, text.size, part->size_max);
    for (size_t i = 0; i < text.size; i++) {
        if (!part->is_byte(text.data[i]))
            return complain(ret_why, ERR_INVALID, "byte %zu of its %s is 0x%02x; it may have %s",
                            i + 1, part->what, text.data[i], part->alphabet);
    }
    memcpy(ret_text, text.data, text.size);
    ret_text[text.size] = 0;
    return ERR_OK;
}

static err take_name(struct slice text, struct identity *ret_identity,
                     struct identity_error *ret_why)
{
    if (text.size == 1 && text.data[0] == '*') {
        memcpy(ret_identity->name, "*", 2);
        return ERR_OK;
    }
    return take_part(&name_part, text, ret_identity->name, ret_why);
}

static err take_role(struct slice text, struct identity *ret_identity,
                     struct identity_error *ret_why)
{
    for (uint8_t role = ROLE_NODE; role < ROLE_END; role++) {
        if (slice_equal(text, slice_from_text(role_names[role]))) {
            ret_identity->role = role;
            return ERR_OK;
        }
    }
    return complain(ret_why, ERR_INVALID,
                    "its role, of %zu bytes, is not node, router, coordinator or client",
                    text.size);
}

/* Up to the first `c`, which goes too. False: there is none, and *text is untouched. */
static bool take_until(struct slice *text, uint8_t c, struct slice *ret_part)
{
    const uint8_t *at = text->size > 0 ? memchr(text->data, c, text->size) : NULL;

    if (at == NULL)
        return false;
    size_t size = (size_t)(at - text->data);
    *ret_part = (struct slice){ text->data, size };
    *text = (struct slice){ at + 1, text->size - size - 1 };
    return true;
}

/* The label behind the last dot; the dot goes too. */
static bool take_last_label(struct slice *text, struct slice *ret_label)
{
    size_t at = text->size;

    while (at > 0 && text->data[at - 1] != '.')
        at--;
    if (at == 0)
        return false;
    *ret_label = (struct slice){ text->data + at, text->size - at };
    text->size = at - 1;
    return true;
}

static err take_scopes(struct slice query, struct identity *ret_identity,
                       struct identity_error *ret_why)
{
    const size_t key = strlen(QUERY);

    if (ret_identity->role != ROLE_CLIENT)
        return complain(ret_why, ERR_INVALID, "a %s has no scopes; a client may",
                        identity_role_name(ret_identity->role));
    if (query.size < key || memcmp(query.data, QUERY, key) != 0)
        return complain(ret_why, ERR_INVALID, "behind its '?' stands something else than scopes=");
    query = (struct slice){ query.data + key, query.size - key };
    return take_part(&scopes_part, query, ret_identity->scopes, ret_why);
}

static err parse_uri(struct slice rest, struct identity *ret_identity,
                     struct identity_error *ret_why)
{
    struct slice cluster, role, name;

    if (!take_until(&rest, '/', &cluster) || !take_until(&rest, '/', &role))
        return complain(ret_why, ERR_INVALID,
                        "it has fewer parts than holdfast://<cluster>/<role>/<name>");
    bool has_query = take_until(&rest, '?', &name);
    if (!has_query)
        name = rest;
    err e = take_part(&cluster_part, cluster, ret_identity->cluster, ret_why);
    if (e == ERR_OK)
        e = take_role(role, ret_identity, ret_why);
    if (e == ERR_OK)
        e = take_name(name, ret_identity, ret_why);
    if (e == ERR_OK && has_query)
        e = take_scopes(rest, ret_identity, ret_why);
    return e;
}

static err parse_dns(struct slice rest, struct identity *ret_identity,
                     struct identity_error *ret_why)
{
    struct slice cluster, role;

    if (!take_last_label(&rest, &cluster) || !take_last_label(&rest, &role))
        return complain(ret_why, ERR_INVALID,
                        "it has fewer parts than <name>.<role>.<cluster>" DNS_SUFFIX);
    err e = take_part(&cluster_part, cluster, ret_identity->cluster, ret_why);
    if (e == ERR_OK)
        e = take_role(role, ret_identity, ret_why);
    if (e == ERR_OK)
        e = take_name(rest, ret_identity, ret_why);
    return e;
}

/* Whether it means to name an identity, rightly spelled or not. */
static bool is_meant(const struct identity_san *san)
{
    const char *mark = san->kind == IDENTITY_URI ? "holdfast:" : DNS_SUFFIX;
    size_t size = strlen(mark);

    if (san->text.size < size)
        return false;
    const uint8_t *at = san->text.data;
    if (san->kind == IDENTITY_DNS)
        at += san->text.size - size;
    return strncasecmp((const char *)at, mark, size) == 0;
}

static err parse_meant(const struct identity_san *san, struct identity *ret_identity,
                       struct identity_error *ret_why)
{
    struct slice text = san->text;
    const size_t scheme = strlen(SCHEME), suffix = strlen(DNS_SUFFIX);

    if (text.size > IDENTITY_SAN_SIZE_MAX)
        return complain(ret_why, ERR_TOO_LARGE, "it has %zu bytes; the limit is %u", text.size,
                        IDENTITY_SAN_SIZE_MAX);
    if (san->kind == IDENTITY_DNS) {
        text.size -= suffix;
        if (memcmp(text.data + text.size, DNS_SUFFIX, suffix) != 0)
            return complain(ret_why, ERR_INVALID, "it does not end in '%s' in small letters",
                            DNS_SUFFIX);
        return parse_dns(text, ret_identity, ret_why);
    }
    if (text.size < scheme || memcmp(text.data, SCHEME, scheme) != 0)
        return complain(ret_why, ERR_INVALID, "it does not begin with '%s' in small letters",
                        SCHEME);
    return parse_uri((struct slice){ text.data + scheme, text.size - scheme }, ret_identity,
                     ret_why);
}

err identity_parse(const struct identity_san *san, struct identity *ret_identity,
                   struct identity_error *ret_why)
{
    struct identity parsed = { 0 };

    ret_why->text[0] = 0;
    if (!is_meant(san))
        return ERR_NOT_FOUND;
    err e = parse_meant(san, &parsed, ret_why);
    if (e == ERR_OK)
        *ret_identity = parsed;
    return e;
}

err identity_find(const struct identity_san *sans, size_t count, struct identity *ret_identity,
                  struct identity_error *ret_why)
{
    struct identity one = { 0 };
    bool found = false;

    ret_why->text[0] = 0;
    if (count > IDENTITY_SANS_MAX)
        return complain(ret_why, ERR_TOO_LARGE, "it has %zu alternative names; the limit is %u",
                        count, IDENTITY_SANS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct identity next;
        err e = identity_parse(&sans[i], &next, ret_why);
        if (e == ERR_NOT_FOUND)
            continue;
        if (e != ERR_OK)
            return e;
        if (found)
            return complain(ret_why, ERR_INVALID, "it names two identities, %.40s and %.40s",
                            one.name, next.name);
        found = true;
        one = next;
    }
    if (!found)
        return ERR_NOT_FOUND;
    *ret_identity = one;
    return ERR_OK;
}

void identity_print(const struct identity *identity, char ret_text[IDENTITY_TEXT_SIZE])
{
    snprintf(ret_text, IDENTITY_TEXT_SIZE, "%s%s/%s/%s%s%s", SCHEME, identity->cluster,
             identity_role_name(identity->role), identity->name,
             identity->scopes[0] != 0 ? "?" QUERY : "", identity->scopes);
}

bool identity_covers(const struct identity *identity, const char *name)
{
    return strcmp(identity->name, "*") == 0 || strcmp(identity->name, name) == 0;
}
