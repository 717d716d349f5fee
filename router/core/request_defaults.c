#include "router/core/request_defaults.h"

#include <string.h>

#include "idl/scope.h"
#include "router/core/refusal.h"
#include "router/core/scatter.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"
#include "runtime/base/utf8.h"
#include "runtime/cluster/authority_text.h"

#define KEY_BYTES_MAX 150u
#define AUTHORITY_BYTES_MAX                                                                        \
    128u /* A token has 64, and a prefix. In a batch each element gets it. */

struct filling {
    struct request_defaults *defaults;
    const struct method_info *method;
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail;
};

/* The field of that name if it is one string; NULL: there is none. */
static char **text_find(ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    if (field == NULL || field->type != PROTOBUF_C_TYPE_STRING ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    return (char **)(void *)((char *)message + field->offset);
}

static bool is_empty(char *const *text)
{
    return *text == NULL || **text == 0;
}

static err refuse(struct filling *filling, const char *message, const char *field,
                  const char *limit, struct slice value)
{
    refusal_make_field(filling->arena, filling->detail,
                       &(struct refusal_field){ field, limit, value }, message);
    return ERR_INVALID;
}

/* ---- authority ---- */

static const char *scope_name(uint32_t scope)
{
    size_t count;
    const struct scope_info *all = scope_all(&count);

    for (size_t i = 0; i < count; i++) {
        if (all[i].scope == scope)
            return all[i].name;
    }
    return NULL;
}

/* Of the header, else of the key; NULL: neither says one. */
static err authority_default(struct filling *filling, char **ret_text)
{
    const struct request_defaults *defaults = filling->defaults;
    const char *scope = scope_name(defaults->key_scope);
    struct slice rest;

    *ret_text = scope != NULL ? arena_printf(filling->arena, "system:%s", scope) : NULL;
    if (defaults->authority.size == 0)
        return ERR_OK;
    if (defaults->authority.size > AUTHORITY_BYTES_MAX ||
        authority_text_read(defaults->authority, &rest) == AUTHORITY_TEXT_NONE)
        return refuse(filling, "a header is malformed", "holdfast-authority", AUTHORITY_TEXT_LIMIT,
                      slice_from_text(arena_printf(filling->arena, "%zu other bytes",
                                                   defaults->authority.size)));
    *ret_text = arena_printf(filling->arena, "%.*s", (int)defaults->authority.size,
                             (const char *)defaults->authority.data);
    return ERR_OK;
}

static void fill(struct filling *filling, ProtobufCMessage *message, char *authority)
{
    char **field = text_find(message, "authority");

    if (field == NULL || authority == NULL || !is_empty(field))
        return;
    *field = authority;
    filling->defaults->used = true;
}

static err fill_batch(struct filling *filling, ProtobufCMessage *batch, char *authority)
{
    char **shared = text_find(batch, "authority");
    struct scatter_elements elements;

    err e = scatter_split(filling->method, batch, filling->arena, &elements, filling->detail);
    if (e != ERR_OK)
        return e;
    if (shared != NULL && !is_empty(shared))
        authority = *shared;
    for (uint32_t i = 0; i < elements.count; i++)
        fill(filling, (ProtobufCMessage *)(uintptr_t)elements.messages[i], authority);
    return ERR_OK;
}

/* ---- op_id ---- */

/* An id that means something without `key:`. */
static bool is_typed(struct slice text)
{
    static const char *const kinds[] = {
        "receipt:", "claim:", "match:", "admin:", "season:", "key:"
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (text.size > strlen(kinds[i]) && memcmp(text.data, kinds[i], strlen(kinds[i])) == 0)
            return true;
    }
    return false;
}

/* As the draft of that header has it, a string in quotes; without them it is the same. */
static struct slice unquoted(struct slice text)
{
    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        return (struct slice){ text.data + 1, text.size - 2 };
    return text;
}

static err op_id_default(struct filling *filling, char **ret_text)
{
    struct slice key = unquoted(filling->defaults->idempotency_key);
    struct uuid uuid;

    if (key.size == 0 || key.size > KEY_BYTES_MAX || !ascii_is_visible(key))
        return refuse(filling, "a header is malformed", "idempotency-key",
                      "1 to 150 bytes of printable ASCII without spaces", key);
    bool whole = is_typed(key) || (uuid_parse(key, &uuid) == ERR_OK && uuid_is_v7(&uuid));
    *ret_text = arena_printf(filling->arena, "%s%.*s", whole ? "" : "key:", (int)key.size,
                             (const char *)key.data);
    return ERR_OK;
}

static err fill_op_id(struct filling *filling, ProtobufCMessage *message)
{
    char **field = text_find(message, "op_id");
    char *op_id;

    if (filling->method->id == METHOD_RESOLVE_OPERATION || field == NULL)
        return ERR_OK; /* Its op_id is what it asks about. */
    err e = op_id_default(filling, &op_id);
    if (e != ERR_OK)
        return e;
    if (is_empty(field)) {
        *field = op_id;
        filling->defaults->used = true;
        return ERR_OK;
    }
    if (strcmp(*field, op_id) == 0)
        return ERR_OK;
    return refuse(filling, "the header Idempotency-Key names one operation and the body another",
                  "op_id",
                  arena_printf(filling->arena, "\"%s\", as the header says, or none", op_id),
                  slice_from_text(*field));
}

/* Of a batch that is many operations under one id: each recipient's. */
static err fill_op_ids(struct filling *filling, ProtobufCMessage *batch)
{
    struct scatter_elements elements;
    err e = scatter_split(filling->method, batch, filling->arena, &elements, filling->detail);

    for (uint32_t i = 0; e == ERR_OK && i < elements.count; i++)
        e = fill_op_id(filling, (ProtobufCMessage *)(uintptr_t)elements.messages[i]);
    return e;
}

/* A mutation of nodes, or what else has an op_id and changes a shard or a definition. */
static bool takes_defaults(const struct method_info *part, ProtobufCMessage *message)
{
    bool changes = part->route == METHOD_COORDINATOR || part->route == METHOD_SHARD_WRITE ||
                   part->route == METHOD_MEMBER_WRITE;

    return part->route == METHOD_MUTATION || (changes && text_find(message, "op_id") != NULL);
}

err request_defaults_apply(struct request_defaults *defaults, const struct method_info *method,
                           ProtobufCMessage *message, struct arena *arena,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    struct filling filling = {
        .defaults = defaults,
        .method = method,
        .arena = arena,
        .detail = ret_detail,
    };
    const struct method_info *part = method->element != 0 ? method_find(method->element) : method;
    bool is_batch = method->route == METHOD_SCATTER;
    char *authority;

    defaults->used = false;
    if (!takes_defaults(part, message))
        return ERR_OK;
    if (is_batch && method->id != METHOD_DELIVER_MAIL && defaults->idempotency_key.size > 0)
        return refuse(&filling, "a batch is many operations", "idempotency-key",
                      "no key, since each element has an op_id", defaults->idempotency_key);
    err e = authority_default(&filling, &authority);
    if (e == ERR_OK && is_batch)
        e = fill_batch(&filling, message, authority);
    else if (e == ERR_OK)
        fill(&filling, message, authority);
    if (e != ERR_OK || defaults->idempotency_key.size == 0)
        return e;
    return is_batch ? fill_op_ids(&filling, message) : fill_op_id(&filling, message);
}
