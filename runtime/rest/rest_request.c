#include "runtime/rest/rest_request.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/rest/rest_text.h"

#define VERSION_DIGITS_MAX 20u

struct parameter {
    struct slice parts[REST_DEPTH_MAX]; /* Of its name. */
    size_t part_count;
    struct slice value;
    bool done;
};

struct making {
    const ProtobufCMessageDescriptor *type;
    const struct rest_found *found;
    struct arena *arena;
    struct buf *out;
    struct rest_flaw *flaw;
    struct rest_named named;
    struct parameter parameters[REST_PARAMETERS_MAX];
    size_t count;
};

static err refuse(struct making *making, const char *message, struct slice field, const char *limit)
{
    char shown[NEAREST_SHOWN_BYTES];

    making->flaw->message = message;
    making->flaw->field = arena_printf(making->arena, "%s", nearest_show(field, shown));
    making->flaw->limit = limit;
    making->flaw->value = (struct slice){ 0 };
    return ERR_INVALID;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  struct slice name)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (slice_equal(slice_from_text(type->fields[i].name), name))
            return &type->fields[i];
    }
    return NULL;
}

static void mark_named(struct making *making, const ProtobufCFieldDescriptor *field)
{
    size_t place = (size_t)(field - making->type->fields);

    CHECK(place < REST_FIELDS_MAX);
    making->named.bits |= 1ull << place;
}

/* ---- the query as a list ---- */

/* What callers say for a field that the idl names otherwise. */
static const struct alias {
    const char *said;
    const char *name;
} aliases[] = {
    { "limit", "page_size" },
    { "user_id", "player_id" },
    { "game_id", "target_id" },
    { "game_ids", "target_ids" },
};

/* The name in the idl, of a field that the request has. */
static struct slice without_alias(const struct making *making, struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
        struct slice meant = slice_from_text(aliases[i].name);
        if (slice_equal(name, slice_from_text(aliases[i].said)) &&
            find_field(making->type, name) == NULL && find_field(making->type, meant) != NULL)
            return meant;
    }
    return name;
}

static err read_name(struct making *making, struct slice name, struct parameter *parameter)
{
    struct slice rest = without_alias(making, name);

    while (rest.data != NULL) {
        if (parameter->part_count == REST_DEPTH_MAX)
            return refuse(making, "a name in the query has too many parts", name,
                          "4 names with dots between them");
        parameter->parts[parameter->part_count++] = rest_text_take(&rest, '.');
    }
    return ERR_OK;
}

static err read_parameter(struct making *making, struct slice item)
{
    struct parameter *parameter = &making->parameters[making->count];
    struct slice rest = item, name = rest_text_take(&rest, '='), text;

    *parameter = (struct parameter){ .done = false };
    if (!rest_text_decode(name, true, making->arena, &text) || text.size == 0 ||
        rest.data == NULL || !rest_text_decode(rest, true, making->arena, &parameter->value))
        return refuse(making, "a part of the query is not name=value, percent-encoded", name,
                      "name=value, with & between several");
    making->count++;
    return read_name(making, text, parameter);
}

static err read_query(struct making *making, struct slice query)
{
    err e = ERR_OK;

    while (query.size > 0 && e == ERR_OK) {
        struct slice item = rest_text_take(&query, '&');
        if (item.size == 0)
            continue;
        if (making->count == REST_PARAMETERS_MAX)
            return refuse(making, "the query has too many parameters", SLICE_LITERAL("query"),
                          "64");
        e = read_parameter(making, item);
    }
    return e;
}

/* The name of a parameter as far as its part at `depth`: the parts lie behind each other. */
static struct slice name_until(const struct parameter *parameter, size_t depth)
{
    const struct slice *last = &parameter->parts[depth];
    const uint8_t *first = parameter->parts[0].data;

    CHECK(depth < parameter->part_count);
    return (struct slice){ first, (size_t)(last->data + last->size - first) };
}

/* ---- writing ---- */

static void put_name(struct buf *out, struct slice name)
{
    if (out->data[out->size - 1] != '{')
        buf_put_u8(out, ',');
    rest_text_put_json(name, out);
    buf_put_u8(out, ':');
}

/* Numbers may stand in quotes; what is no number, the codec says. */
static void put_value(struct buf *out, const ProtobufCFieldDescriptor *field, struct slice text)
{
    bool is_word =
        slice_equal(text, SLICE_LITERAL("true")) || slice_equal(text, SLICE_LITERAL("false"));

    if (field->type == PROTOBUF_C_TYPE_BOOL && is_word)
        buf_append(out, text.data, text.size);
    else
        rest_text_put_json(text, out);
}

static bool is_same(const struct parameter *a, const struct parameter *b, size_t parts)
{
    if (a->part_count < parts || b->part_count < parts)
        return false;
    for (size_t i = 0; i < parts; i++) {
        if (!slice_equal(a->parts[i], b->parts[i]))
            return false;
    }
    return true;
}

static bool is_twin(const struct parameter *a, const struct parameter *b)
{
    return a->part_count == b->part_count && is_same(a, b, a->part_count);
}

static err refuse_unknown(struct making *making, const ProtobufCMessageDescriptor *type,
                          const struct parameter *parameter, size_t depth)
{
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;

    nearest_init(&nearest, parameter->parts[depth]);
    for (unsigned i = 0; i < type->n_fields; i++)
        nearest_offer_text(&nearest, type->fields[i].name);
    return refuse(making,
                  arena_printf(making->arena, "the query names a field that there is not%s",
                               nearest_hint(nearest.name, hint)),
                  name_until(parameter, depth), type->name);
}

/* All values of one name, which is whole. */
static err put_leaf(struct making *making, const ProtobufCFieldDescriptor *field, size_t first)
{
    struct parameter *leader = &making->parameters[first];
    struct slice name = name_until(leader, leader->part_count - 1);
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;

    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return refuse(making, "this field is no single value, so it does not fit a query", name,
                      "a number, a text, a boolean or an enum");
    if (repeated)
        buf_put_u8(making->out, '[');
    for (size_t i = first; i < making->count; i++) {
        struct parameter *each = &making->parameters[i];
        if (each->done || !is_twin(each, leader))
            continue;
        if (i > first && !repeated)
            return refuse(making, "the query names this field twice", name, "once");
        if (i > first)
            buf_put_u8(making->out, ',');
        put_value(making->out, field, each->value);
        each->done = true;
    }
    if (repeated)
        buf_put_u8(making->out, ']');
    return ERR_OK;
}

static bool is_in_path(const struct making *making, struct slice name)
{
    for (size_t i = 0; i < making->found->value_count; i++) {
        if (slice_equal(making->found->values[i].name, name))
            return true;
    }
    return false;
}

/* Members of the message in which the names that begin as `leader`'s first `depth` parts go on. As
 * deep as REST_DEPTH_MAX. */
static err put_members(struct making *making, const ProtobufCMessageDescriptor *type,
                       const struct parameter *leader, size_t depth)
{
    for (size_t i = 0; i < making->count; i++) {
        struct parameter *each = &making->parameters[i];
        if (each->done || each->part_count <= depth ||
            (leader != NULL && !is_same(each, leader, depth)))
            continue; /* What ends at the message itself is refused a level above. */
        struct slice name = each->parts[depth];
        const ProtobufCFieldDescriptor *field = find_field(type, name);
        if (field == NULL)
            return refuse_unknown(making, type, each, depth);
        if (depth == 0 && is_in_path(making, name))
            return refuse(making, "this field stands in the path", name, "none in the query");
        if (depth == 0)
            mark_named(making, field);
        put_name(making->out, name);
        if (each->part_count == depth + 1) {
            err e = put_leaf(making, field, i);
            if (e != ERR_OK)
                return e;
            continue;
        }
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_REPEATED)
            return refuse(making, "this field has no fields that a query could name",
                          name_until(each, depth), "its name without a dot");
        buf_put_u8(making->out, '{');
        err e = put_members(making, field->descriptor, each, depth + 1);
        if (e != ERR_OK)
            return e;
        buf_put_u8(making->out, '}');
    }
    return ERR_OK;
}

/* ---- path and If-Match ---- */

static void put_path(struct making *making)
{
    const struct rest_found *found = making->found;

    for (size_t i = 0; i < found->value_count; i++) {
        const ProtobufCFieldDescriptor *field = find_field(making->type, found->values[i].name);
        CHECK(field != NULL);
        mark_named(making, field);
        put_name(making->out, found->values[i].name);
        put_value(making->out, field, found->values[i].text);
    }
}

static bool is_number(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0 && text.size <= VERSION_DIGITS_MAX;
}

static err put_if_match(struct making *making, struct slice header)
{
    const ProtobufCFieldDescriptor *field = find_field(making->type, SLICE_LITERAL("if_version"));
    struct slice version = header;

    if (header.size == 0)
        return ERR_OK;
    if (field == NULL)
        return refuse(making, "this method takes no If-Match", SLICE_LITERAL("if-match"),
                      "a request that has the field if_version");
    if (version.size >= 2 && version.data[0] == '"' && version.data[version.size - 1] == '"')
        version = (struct slice){ version.data + 1, version.size - 2 };
    if (!is_number(version)) {
        err e = refuse(making, "If-Match is not one version", SLICE_LITERAL("if-match"),
                       "one version in quotes, as an ETag has it");
        making->flaw->value = header;
        return e;
    }
    for (size_t i = 0; i < making->count; i++) {
        if (slice_equal(making->parameters[i].parts[0], SLICE_LITERAL("if_version")))
            return refuse(making, "this field stands in the header If-Match, too",
                          SLICE_LITERAL("if_version"), "one of the two");
    }
    mark_named(making, field);
    put_name(making->out, SLICE_LITERAL("if_version"));
    put_value(making->out, field, version);
    return ERR_OK;
}

err rest_request_head(const struct rest_head *head, struct arena *arena, struct buf *out,
                      struct rest_named *ret_named, struct rest_flaw *ret_flaw)
{
    struct making making = {
        .type = method_find(head->found->route->method)->request,
        .found = head->found,
        .arena = arena,
        .out = out,
        .flaw = ret_flaw,
    };

    *ret_flaw = (struct rest_flaw){ 0 };
    buf_put_u8(out, '{');
    put_path(&making);
    err e = read_query(&making, head->query);
    if (e == ERR_OK)
        e = put_members(&making, making.type, NULL, 0);
    if (e == ERR_OK)
        e = put_if_match(&making, head->if_match);
    buf_put_u8(out, '}');
    *ret_named = making.named;
    return e;
}
