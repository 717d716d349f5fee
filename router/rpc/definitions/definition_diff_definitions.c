#include <inttypes.h>
#include <string.h>

#include "router/rpc/definitions/definition_call.h"
#include "router/rpc/definitions/definition_value.h"

typedef Holdfast__V1__DiffDefinitionsRequest diff_request;
typedef Holdfast__Internal__V1__DefinitionVersion version_record;

static void add(struct request *request, Holdfast__V1__DiffDefinitionsResponse *response,
                char *field, char *before, char *after)
{
    struct arena *arena = request->arena;
    Holdfast__V1__DefinitionChange *change;

    if (strcmp(before, after) == 0)
        return;
    change = arena_alloc(arena, sizeof *change);
    holdfast__v1__definition_change__init(change);
    change->field = field;
    change->before = before;
    change->after = after;
    response->changes[response->n_changes++] = change;
}

static char *told_value(struct arena *arena, const ProtobufCMessage *body,
                        const ProtobufCFieldDescriptor *field)
{
    char *value = definition_value(arena, body, field);

    return value != NULL ? value : arena_printf(arena, "?");
}

/* The body of the kind; NULL: a later coordinator has a kind that is not known here. */
static const ProtobufCMessage *body_of(const version_record *record)
{
    const Holdfast__V1__DefinitionBody *body = record->body;
    bool known = body != NULL && body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND__NOT_SET;

    return known ? &body->currency->base : NULL; /* They share their place. */
}

/* Both are of one kind: that never changes. */
static void diff(struct request *request, const version_record *before, const version_record *after)
{
    Holdfast__V1__DiffDefinitionsResponse response = HOLDFAST__V1__DIFF_DEFINITIONS_RESPONSE__INIT;
    struct arena *arena = request->arena;
    const ProtobufCMessage *from = body_of(before), *to = body_of(after);

    if (from == NULL || to == NULL || from->descriptor != to->descriptor) {
        definition_fail_unknown(request, "kind", definition_body_kind(after->body));
        return;
    }
    const ProtobufCMessageDescriptor *type = to->descriptor;

    response.from_version = before->version;
    response.to_version = after->version;
    response.changes = arena_alloc(arena, (type->n_fields + 1) * sizeof *response.changes);
    for (unsigned i = 0; i < type->n_fields; i++)
        add(request, &response,
            arena_printf(arena, "%s.%s", definition_body_kind(after->body), type->fields[i].name),
            told_value(arena, from, &type->fields[i]), told_value(arena, to, &type->fields[i]));
    add(request, &response, arena_printf(arena, "deleted"),
        arena_printf(arena, "%s", before->deleted ? "true" : "false"),
        arena_printf(arena, "%s", after->deleted ? "true" : "false"));
    request_reply(request, &response.base);
}

/* Of the newest life. NULL: it is not kept. */
static const version_record *
version_of(const Holdfast__Internal__V1__FindDefinitionsResponse *answer, uint64_t version)
{
    for (size_t i = 0; i < answer->n_definitions; i++) {
        const version_record *record = answer->definitions[i]->version;
        if (record->number == answer->definitions[0]->version->number && record->version == version)
            return record;
    }
    return NULL;
}

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__FindDefinitionsResponse *answer = (const void *)message;
    const diff_request *asked = (const void *)request->message;

    if (answer->n_definitions == 0) {
        definition_fail_unknown(request, "name", asked->name);
        return;
    }
    uint64_t to =
        asked->to_version > 0 ? asked->to_version : answer->definitions[0]->version->version;
    uint64_t from = asked->from_version > 0 ? asked->from_version : to - 1;
    const version_record *before = version_of(answer, from);
    const version_record *after = version_of(answer, to);

    if (before == NULL || after == NULL)
        definition_fail_unknown(
            request, before == NULL ? "from_version" : "to_version",
            arena_printf(request->arena, "%" PRIu64, before == NULL ? from : to));
    else
        diff(request, before, after);
}

void definition_diff_definitions_handle(struct request *request)
{
    const diff_request *asked = (const void *)request->message;
    Holdfast__Internal__V1__FindDefinitionsRequest find =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;

    if (asked->kind[0] == 0 || asked->name[0] == 0) {
        definition_fail_unknown(request, asked->kind[0] == 0 ? "kind" : "name", "");
        return;
    }
    find.kind = asked->kind;
    find.name = asked->name;
    find.history = true;
    find.limit = DEFINITION_HISTORY_LIMIT;
    definition_find_ask(request, &find, told);
}
