#include "router/core/name_form.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "holdfast/v1/transaction.pb-c.h"
#include "router/core/authority_walk.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define NAME_PREFIX    "user-name:"
#define SECTION_PREFIX "hf_"
#define SECTION_OWN    SECTION_PREFIX "name"
#define SECTION_HOLDER "holder"
#define SCHEMA_VERSION 1u
#define EDITS          5u
#define ENTITIES       2u

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;
typedef Holdfast__V1__SectionEdit section_edit;

/* What claims and releases have alike; of a rename, either of its two names. */
struct naming {
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail;
    const char *within; /* Of its fields in the request: "replaces.". */
    char *player_id, *name, *tag;
    bool releases;
    uint64_t version; /* That the sections of the name must have. */
};

/* ---- what is a name ---- */

static err refuse(const struct naming *naming, const char *field, const char *limit,
                  const char *value)
{
    const struct refusal_field wrong = { arena_printf(naming->arena, "%s%s", naming->within, field),
                                         limit, slice_from_text(value) };

    refusal_make_field(naming->arena, naming->detail, &wrong, "this is no name of a user");
    return ERR_INVALID;
}

static bool is_letter_or_digit(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

/* The codec has looked at its UTF-8; U+0080 to U+009F are control characters, too. */
static bool is_name(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t size = strlen(text);
    bool well = size > 0 && size <= NAME_BYTES_MAX && at[0] != ' ' && at[size - 1] != ' ';

    for (size_t i = 0; i < size && well; i++)
        well = at[i] >= 0x20 && at[i] != 0x7f && at[i] != '#' &&
               !(at[i] == 0xc2 && at[i + 1] >= 0x80 && at[i + 1] <= 0x9f);
    return well;
}

static err check(const struct naming *naming)
{
    size_t size = strlen(naming->tag);
    bool well = size > 0 && size <= NAME_TAG_BYTES_MAX;

    if (!is_name(naming->name))
        return refuse(naming, "name",
                      "1 to 32 bytes of UTF-8 without control characters and #, no space at either "
                      "end",
                      naming->name);
    for (size_t i = 0; i < size && well; i++)
        well = is_letter_or_digit(naming->tag[i]);
    return well ? ERR_OK : refuse(naming, "tag", "1 to 8 of a-z, A-Z and 0-9", naming->tag);
}

static err check_number(const struct naming *naming)
{
    if (naming->version > 0)
        return ERR_OK;
    return refuse(naming, "number", "the number of the binding, as FindByName tells it", "0");
}

static char *entity_of(const struct naming *naming)
{
    char *entity = arena_printf(naming->arena, NAME_PREFIX "%s#%s", naming->name, naming->tag);

    for (char *at = entity; *at != 0; at++) {
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    }
    return entity;
}

bool name_form_is_name(struct slice player_id)
{
    const size_t prefix = sizeof NAME_PREFIX - 1;

    return player_id.size >= prefix && memcmp(player_id.data, NAME_PREFIX, prefix) == 0;
}

void name_form_refuse_id(struct arena *arena, const char *field, struct slice player_id,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct refusal_field wrong = { field, "an id that does not begin with " NAME_PREFIX,
                                         player_id };

    refusal_make_field(arena, ret_detail, &wrong, "that is a name of users, not a player");
}

/* ---- players that a message names ---- */

struct write_check {
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail;
};

/* "player_id", "to_player_id", "to_player_ids". */
static bool names_players(const ProtobufCFieldDescriptor *field)
{
    static const char name[] = "player_id";
    const char *at = strstr(field->name, name);

    return field->type == PROTOBUF_C_TYPE_STRING && at != NULL &&
           (at == field->name || at[-1] == '_') &&
           (at[sizeof name - 1] == 0 || strcmp(at + sizeof name - 1, "s") == 0);
}

/* Of one field: its name, and where it stands in its list. */
static err check_player(struct write_check *check, const struct message_place *place,
                        const char *name, const char *player_id)
{
    struct slice id = slice_from_text(player_id != NULL ? player_id : "");

    if (!name_form_is_name(id))
        return ERR_OK;
    name_form_refuse_id(check->arena,
                        arena_printf(check->arena, "%s%s", message_path(place, check->arena), name),
                        id, check->detail);
    return ERR_INVALID;
}

static err check_field(struct write_check *check, const struct message_place *place,
                       const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)place->message;
    char *const *ids = (char *const *)(const void *)(base + field->offset);
    size_t count;
    err e = ERR_OK;

    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return check_player(check, place, field->name, ids[0]);
    memcpy(&count, base + field->quantifier_offset, sizeof count);
    memcpy(&ids, base + field->offset, sizeof ids);
    for (size_t i = 0; e == ERR_OK && i < count; i++) {
        if (name_form_is_name(slice_from_text(ids[i])))
            e = check_player(check, place, arena_printf(check->arena, "%s[%zu]", field->name, i),
                             ids[i]);
    }
    return e;
}

/* The home of a call, and of each element of a batch. */
static bool is_home(const ProtobufCFieldDescriptor *field, const struct message_place *place)
{
    bool outermost = place->outer == NULL;
    bool element =
        !outermost && place->outer->outer == NULL && strcmp(place->field->name, "requests") == 0;

    return field->id == 1 && strcmp(field->name, "player_id") == 0 && (outermost || element);
}

/* Sections of a player that UserService keeps. */
static err check_section(struct write_check *check, const struct message_place *place)
{
    const section_edit *edit = (const section_edit *)place->message;

    if (strncmp(edit->name, SECTION_PREFIX, sizeof SECTION_PREFIX - 1) != 0)
        return ERR_OK;
    const struct refusal_field wrong = {
        arena_printf(check->arena, "%sname", message_path(place, check->arena)),
        "a section that does not begin with " SECTION_PREFIX, slice_from_text(edit->name)
    };

    refusal_make_field(check->arena, check->detail, &wrong,
                       "UserService alone writes such a section");
    return ERR_INVALID;
}

static err visit_write(void *user, const struct message_place *place)
{
    const ProtobufCMessageDescriptor *descriptor = place->message->descriptor;
    err e = ERR_OK;

    if (descriptor == &holdfast__v1__section_edit__descriptor)
        return check_section(user, place);
    for (unsigned i = 0; e == ERR_OK && i < descriptor->n_fields; i++) {
        if (names_players(&descriptor->fields[i]) && !is_home(&descriptor->fields[i], place))
            e = check_field(user, place, &descriptor->fields[i]);
    }
    return e;
}

err name_form_check_writes(const struct method_info *method, const ProtobufCMessage *message,
                           struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct write_check check = { arena, ret_detail };

    bool writes = method->writes || method->scopes == METHOD_SCOPES_WRITE;

    /* What a person says of a shard's rows names the players that they are of. */
    if (!writes || method->route == METHOD_SHARD_WRITE ||
        (method->traits & METHOD_PASSES_REVIEW) != 0)
        return ERR_OK;
    return message_walk(&(struct message_visitor){ visit_write, &check, arena, ret_detail },
                        message);
}

/* ---- a transaction ---- */

static char *section_of_holder(const struct naming *naming)
{
    static const char digits[] = "0123456789abcdef";
    const struct hash128 hash = hash_u128(slice_from_text(naming->player_id));
    char hex[2 * sizeof hash.bytes + 1] = "";

    for (size_t i = 0; i < sizeof hash.bytes; i++) {
        hex[2 * i] = digits[hash.bytes[i] >> 4];
        hex[2 * i + 1] = digits[hash.bytes[i] & 15];
    }
    return arena_printf(naming->arena, "of_%s", hex);
}

static char *document(const struct naming *naming, bool of_holder)
{
    json_t *json = json_pack("{s:s,s:s}", "name", naming->name, "tag", naming->tag);

    CHECK(json != NULL); /* The codec has looked at its UTF-8. */
    if (of_holder)
        json_object_set_new(json, "playerId", json_string(naming->player_id));
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    char *kept = arena_printf(naming->arena, "%s", text != NULL ? text : "");

    free(text);
    json_decref(json);
    return kept;
}

static void put(const struct naming *naming, execute_request *execute, char *player_id,
                const section_edit *edit)
{
    Holdfast__V1__TransactionChange *change = arena_alloc(naming->arena, sizeof *change);
    Holdfast__V1__TransactionPatch *patch = arena_alloc(naming->arena, sizeof *patch);
    section_edit *kept = arena_alloc(naming->arena, sizeof *kept);

    holdfast__v1__transaction_change__init(change);
    holdfast__v1__transaction_patch__init(patch);
    *kept = *edit;
    patch->player_id = player_id;
    patch->edit = kept;
    change->change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH;
    change->patch = patch;
    execute->changes[execute->n_changes++] = change;
}

/* Makes the section, or deletes it. */
static section_edit edit_of(const struct naming *naming, char *section, char *json)
{
    section_edit edit = HOLDFAST__V1__SECTION_EDIT__INIT;

    edit.name = section;
    edit.schema_version = SCHEMA_VERSION;
    edit._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    edit.if_version = naming->version;
    if (naming->releases) {
        edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE;
        edit.delete_ = arena_alloc(naming->arena, sizeof *edit.delete_);
        holdfast__v1__delete_section__init(edit.delete_);
    } else {
        edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        edit.replace = json;
    }
    return edit;
}

static void add_other(const struct naming *naming, execute_request *execute, char *player_id)
{
    static char unheld[] = "unheld";
    Holdfast__V1__TransactionPlayer *other = arena_alloc(naming->arena, sizeof *other);

    holdfast__v1__transaction_player__init(other);
    other->player_id = player_id;
    other->authority = unheld;
    execute->others[execute->n_others++] = other;
}

/* It is a check, so that its refusal is told apart from that of the name. */
static void add_check(const struct naming *naming, execute_request *execute, char *player_id,
                      char *section)
{
    Holdfast__V1__TransactionCheck *wanted = arena_alloc(naming->arena, sizeof *wanted);

    holdfast__v1__transaction_check__init(wanted);
    wanted->player_id = player_id;
    wanted->check_case = HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION;
    wanted->section = arena_alloc(naming->arena, sizeof *wanted->section);
    holdfast__v1__section_check__init(wanted->section);
    wanted->section->name = section;
    wanted->section->version = naming->version;
    execute->n_checks = 1;
    execute->checks = arena_alloc(naming->arena, sizeof *execute->checks);
    execute->checks[0] = wanted;
}

/* The two sections of the name are made, or deleted. */
static void add_name(const struct naming *naming, execute_request *execute, char *entity)
{
    static char holder[] = SECTION_HOLDER, empty[] = "{}";
    section_edit of_name = edit_of(naming, holder, document(naming, true));
    section_edit beside = edit_of(naming, section_of_holder(naming), empty);

    add_other(naming, execute, entity);
    put(naming, execute, entity, &of_name);
    put(naming, execute, entity, &beside);
}

static void begin(const struct naming *naming, execute_request *execute)
{
    static char reason[] = "name";

    execute->player_id = naming->player_id;
    execute->reason = reason;
    execute->others = arena_alloc(naming->arena, ENTITIES * sizeof *execute->others);
    execute->changes = arena_alloc(naming->arena, EDITS * sizeof *execute->changes);
}

/* The section of the player, whatever version it has: the name's say whose it is. */
static void add_player(const struct naming *naming, execute_request *execute)
{
    static char own[] = SECTION_OWN;
    section_edit of_player = edit_of(naming, own, document(naming, false));

    of_player._if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION__NOT_SET;
    put(naming, execute, naming->player_id, &of_player);
}

/* A claim of a player without a name, or a release. */
static err fill(const struct naming *naming, execute_request *execute)
{
    static char own[] = SECTION_OWN;
    err e = check(naming);

    if (e != ERR_OK)
        return e;
    begin(naming, execute);
    if (!naming->releases)
        add_check(naming, execute, naming->player_id, own);
    add_name(naming, execute, entity_of(naming));
    add_player(naming, execute);
    return ERR_OK;
}

/* A claim by a player who gives up `old`; both may be one name, written in another way. */
static err fill_rename(const struct naming *naming, const struct naming *old,
                       execute_request *execute)
{
    struct naming claimed = *naming;
    err e = check(naming);

    if (e == ERR_OK)
        e = check(old);
    if (e == ERR_OK)
        e = check_number(old);
    if (e != ERR_OK)
        return e;
    char *entity = entity_of(naming), *left = entity_of(old);
    bool stays = strcmp(entity, left) == 0;

    begin(naming, execute);
    add_check(old, execute, left, section_of_holder(old));
    if (stays)
        claimed.version = old->version;
    else
        add_name(old, execute, left);
    add_name(&claimed, execute, entity);
    add_player(&claimed, execute);
    return ERR_OK;
}

#define TAKE_ENVELOPE(execute, request, PREFIX)                                                    \
    do {                                                                                           \
        (execute)->op_id = (request)->op_id;                                                       \
        (execute)->attempt = (request)->attempt;                                                   \
        (execute)->authority = (request)->authority;                                               \
        if ((request)->_if_version_case == PREFIX##___IF_VERSION_IF_VERSION) {                     \
            (execute)->_if_version_case =                                                          \
                HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST___IF_VERSION_IF_VERSION;                 \
            (execute)->if_version = (request)->if_version;                                         \
        }                                                                                          \
    } while (0)

static err make_claim(const Holdfast__V1__ClaimNameRequest *request, struct naming *naming,
                      execute_request *execute)
{
    TAKE_ENVELOPE(execute, request, HOLDFAST__V1__CLAIM_NAME_REQUEST);
    naming->player_id = request->player_id;
    naming->name = request->name;
    naming->tag = request->tag;
    if (request->replaces == NULL)
        return fill(naming, execute);
    struct naming old = *naming;

    old.within = "replaces.";
    old.name = request->replaces->name;
    old.tag = request->replaces->tag;
    old.version = request->replaces->number;
    old.releases = true;
    return fill_rename(naming, &old, execute);
}

static err make_release(const Holdfast__V1__ReleaseNameRequest *request, struct naming *naming,
                        execute_request *execute)
{
    TAKE_ENVELOPE(execute, request, HOLDFAST__V1__RELEASE_NAME_REQUEST);
    naming->player_id = request->player_id;
    naming->name = request->name;
    naming->tag = request->tag;
    naming->releases = true;
    naming->version = request->number;
    err e = check_number(naming);

    return e == ERR_OK ? fill(naming, execute) : e;
}

/* ---- a read ---- */

static err make_find(const Holdfast__V1__FindByNameRequest *request, struct naming *naming,
                     Holdfast__V1__GetProfileRequest *get)
{
    static char included[] = "sections." SECTION_HOLDER;

    naming->name = request->name;
    naming->tag = request->tag;
    err e = check(naming);

    if (e != ERR_OK)
        return e;
    get->player_id = entity_of(naming);
    get->read = request->read;
    get->settled = true; /* Else a claim that was answered may not have come to the name yet. */
    get->n_include = 1;
    get->include = arena_alloc(naming->arena, sizeof *get->include);
    get->include[0] = included;
    return ERR_OK;
}

err name_form_found(const Holdfast__V1__GetProfileResponse *profile, struct arena *arena,
                    Holdfast__V1__FindByNameResponse *ret_response)
{
    ret_response->as_of = profile->as_of;
    if (profile->profile == NULL || profile->profile->n_sections == 0)
        return ERR_OK;
    const Holdfast__V1__Section *holder = profile->profile->sections[0];
    json_t *json = json_loads(holder->json, 0, NULL);
    const char *player_id = json_string_value(json_object_get(json, "playerId"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *tag = json_string_value(json_object_get(json, "tag"));
    err e = player_id != NULL && name != NULL && tag != NULL ? ERR_OK : ERR_CORRUPT;

    if (e == ERR_OK) {
        ret_response->player_id = arena_printf(arena, "%s", player_id);
        ret_response->name = arena_printf(arena, "%s", name);
        ret_response->tag = arena_printf(arena, "%s", tag);
        ret_response->number = holder->version;
        ret_response->claimed_at_ms = holder->last_write_at_ms;
    }
    json_decref(json);
    return e;
}

err name_form_make(const struct method_info *method, const ProtobufCMessage *message,
                   struct arena *arena, const ProtobufCMessage **ret_message,
                   Holdfast__V1__ErrorDetail *ret_detail)
{
    struct naming naming = { .arena = arena, .detail = ret_detail, .within = "" };

    if (method->id == METHOD_FIND_BY_NAME) {
        Holdfast__V1__GetProfileRequest *get = arena_alloc(arena, sizeof *get);

        holdfast__v1__get_profile_request__init(get);
        *ret_message = &get->base;
        return make_find((const Holdfast__V1__FindByNameRequest *)message, &naming, get);
    }
    execute_request *execute = arena_alloc(arena, sizeof *execute);

    holdfast__v1__execute_transaction_request__init(execute);
    *ret_message = &execute->base;
    if (method->id == METHOD_CLAIM_NAME)
        return make_claim((const Holdfast__V1__ClaimNameRequest *)message, &naming, execute);
    return make_release((const Holdfast__V1__ReleaseNameRequest *)message, &naming, execute);
}

/* ---- refusals ---- */

static void tell(struct arena *arena, Holdfast__V1__ErrorDetail *detail, const char *field,
                 const char *limit, const char *why)
{
    detail->field = arena_printf(arena, "%s", field);
    detail->limit = arena_printf(arena, "%s", limit);
    detail->message = arena_printf(arena, "%s: %s", field, why);
}

void name_form_tell(const struct method_info *method, struct arena *arena,
                    Holdfast__V1__ErrorDetail *detail)
{
    bool conflict = detail->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT;
    const char *field = detail->field != NULL ? detail->field : "";
    /* The check of a claim without `replaces` wants no section. */
    bool renames = detail->limit != NULL && strcmp(detail->limit, "0") != 0;
    bool check = strstr(field, "checks") == field; /* "checks[0]" */

    if (conflict && check && renames)
        tell(arena, detail, "replaces.number", "the number under which this player has that name",
             "the name to be replaced is not bound to this player under that number");
    else if (conflict && check)
        tell(arena, detail, "player_id", "a player without a name",
             "the player has a name already; release it first");
    else if (conflict && strcmp(field, "changes") == 0 && method->id == METHOD_CLAIM_NAME)
        tell(arena, detail, "name", "a name that no player has",
             "a player has that name and tag already; choose another");
    else if (conflict && strcmp(field, "changes") == 0)
        tell(arena, detail, "number", "the number under which this player has that name",
             "the name is not bound to this player under that number");
    else if (strcmp(field, "others[0].authority") == 0)
        tell(arena, detail, "authority", "a key that may write players whom no server holds",
             "a name is written as a player whom no server holds");
}
