/*
 * What a caller may say (router/core/access.h, authority_walk.h, session_guard.h): messages of
 * every public method, filled at random. What they say of authorities is noted while they are made,
 * so nothing here walks through a message as the router does.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "router/core/access.h"
#include "router/core/session_guard.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define NOTES_MAX 64u
#define DEPTH     5u
#define PLAYERS   4u

enum says { SAYS_NOTHING, SAYS_SCOPE, SAYS_UNREAL, SAYS_SESSION, SAYS_UNHELD };

/* An authority somewhere in a message. */
struct note {
    char **text;
    const char *was;
    enum says says;
    uint32_t scope;
    bool has_player;
    const char *plain; /* Of a session's token that is its player's; NULL: it is not. */
    bool is_token, has_mac;
    bool posts; /* What a reservation holds: two systems may. */
};

struct message {
    struct rsim *sim;
    struct note notes[NOTES_MAX];
    uint32_t count;
    struct session_secrets secrets, others;
};

static const char *player_name(struct rsim *sim)
{
    static const char *const names[PLAYERS] = { "ada", "bob", "eve", "" };

    return RSIM_PICK(sim, names);
}

/* ---- making messages ---- */

static const ProtobufCFieldDescriptor *beside(const ProtobufCMessageDescriptor *type,
                                              const char *authority)
{
    char name[80];
    int prefix = (int)(strlen(authority) - strlen("authority"));

    (void)snprintf(name, sizeof name, "%.*splayer_id", prefix, authority);
    return protobuf_c_message_descriptor_get_field_by_name(type, name);
}

static void session_make(struct message *m, struct note *note, const char *player)
{
    struct rsim *sim = m->sim;
    struct session_token token = { .incarnation = { rsim_between(sim, 1, 3),
                                                    rsim_between(sim, 1, 99) },
                                   .fence = rsim_between(sim, 1, 9) };
    char text[SESSION_TOKEN_TEXT_SIZE], plain[64];
    uint64_t what = rsim_between(sim, 0, 9);

    (void)snprintf(plain, sizeof plain, "%llu-%llu-%llu",
                   (unsigned long long)token.incarnation.generation,
                   (unsigned long long)token.incarnation.revision, (unsigned long long)token.fence);
    session_token_print(what == 1 ? &m->others : &m->secrets,
                        slice_from_text(what == 2 ? "mallory" : player), &token, text);
    note->is_token = what != 4;
    note->has_mac = what != 3;
    if (what == 3)
        (void)snprintf(text, sizeof text, "%s", plain);
    if (what == 4)
        (void)snprintf(text, sizeof text, "no token");
    note->says = SAYS_SESSION;
    note->plain = what == 0 || what > 4 ? arena_printf(&sim->arena, "session:%s", plain) : NULL;
    note->was = arena_printf(&sim->arena, "session:%s", text);
}

static void authority_make(struct message *m, struct note *note, const char *player)
{
    static const char *const unreal[] = { "system:root", "system:game", "system:read",
                                          "system:", "system:admin/3f09c2a7be41" };
    size_t count;
    const struct scope_info *scopes = scope_all(&count);
    struct rsim *sim = m->sim;

    switch (rsim_between(sim, 0, 9)) {
    case 0:
        note->was = RSIM_PICK(sim, unreal);
        note->says = SAYS_UNREAL;
        break;
    case 1:
        note->was = "unheld";
        note->says = SAYS_UNHELD;
        break;
    case 2:
        note->was = rsim_chance(sim, 50) ? "" : "1-2-3";
        break;
    case 3:
    case 4:
    case 5: {
        const struct scope_info *one = &scopes[rsim_between(sim, 1, 5)];
        CHECK(count > 5);
        note->was = arena_printf(&sim->arena, "system:%s", one->name);
        note->says = SAYS_SCOPE;
        note->scope = one->scope;
        break;
    }
    default:
        session_make(m, note, player);
    }
}

static void fill(struct message *m, ProtobufCMessage *message, uint32_t depth);

static ProtobufCMessage *make(struct message *m, const ProtobufCMessageDescriptor *type,
                              uint32_t depth)
{
    ProtobufCMessage *message = arena_alloc(&m->sim->arena, type->sizeof_message);

    protobuf_c_message_init(type, message);
    fill(m, message, depth);
    return message;
}

static void fill_messages(struct message *m, ProtobufCMessage *message,
                          const ProtobufCFieldDescriptor *field, uint32_t depth)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    char *base = (char *)message;

    if (depth == 0 || m->count > NOTES_MAX / 2 || rsim_chance(m->sim, 30))
        return;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        ProtobufCMessage *one = make(m, type, depth - 1);
        memcpy(base + field->offset, &one, sizeof one);
        return;
    }
    size_t count = rsim_between(m->sim, 1, 3);
    ProtobufCMessage **list = arena_alloc(&m->sim->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = make(m, type, depth - 1);
    memcpy(base + field->offset, &list, sizeof list);
    memcpy(base + field->quantifier_offset, &count, sizeof count);
}

/* Of a oneof one member is set; its memory is that of all the others. */
static bool is_chosen(struct rsim *sim, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
    uint32_t kind;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
        return true;
    memcpy(&kind, (char *)message + field->quantifier_offset, sizeof kind);
    if (kind != 0 || rsim_chance(sim, 50))
        return false;
    kind = field->id;
    memcpy((char *)message + field->quantifier_offset, &kind, sizeof kind);
    return true;
}

static void fill(struct message *m, ProtobufCMessage *message, uint32_t depth)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    char *base = (char *)message;

    /* Players first: the tokens beside them are theirs. */
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const char *player = player_name(m->sim);
        size_t size = strlen(field->name);

        if (field->type == PROTOBUF_C_TYPE_STRING && field->label != PROTOBUF_C_LABEL_REPEATED &&
            (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 && size >= 9 &&
            strcmp(field->name + size - 9, "player_id") == 0)
            memcpy(base + field->offset, &player, sizeof player);
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const ProtobufCFieldDescriptor *beside_it;
        size_t size = strlen(field->name);
        const char *player = "";

        if (!is_chosen(m->sim, message, field))
            continue;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            fill_messages(m, message, field, depth);
        if (field->type == PROTOBUF_C_TYPE_UINT64 && field->label == PROTOBUF_C_LABEL_NONE)
            memcpy(base + field->offset, &m->sim->seed, sizeof m->sim->seed);
        if (field->type != PROTOBUF_C_TYPE_STRING || field->label == PROTOBUF_C_LABEL_REPEATED ||
            size < 9 || strcmp(field->name + size - 9, "authority") != 0 || m->count == NOTES_MAX)
            continue;
        beside_it = beside(type, field->name);
        struct note *note = &m->notes[m->count++];
        *note = (struct note){ .text = (char **)(void *)(base + field->offset) };
        note->has_player = beside_it != NULL;
        note->posts = message->descriptor == &holdfast__v1__post_reservation_request__descriptor;
        if (beside_it != NULL)
            memcpy(&player, base + beside_it->offset, sizeof player);
        authority_make(m, note, player != NULL ? player : "");
        *note->text = text_lend(note->was);
    }
}

/* ---- scopes ---- */

static bool is_denied(const struct note *note, uint32_t scopes)
{
    switch (note->says) {
    case SAYS_SCOPE:
        return (scopes & note->scope) == 0 ||
               (note->posts && (note->scope & (SCOPE_MATCH | SCOPE_ADMIN)) == 0);
    case SAYS_SESSION:
        return (scopes & SCOPE_GAME) == 0;
    case SAYS_UNHELD:
        return (scopes & (SCOPE_GAME | SCOPE_ADMIN)) == 0;
    default:
        return false;
    }
}

static void scopes_check(struct rsim *sim, const struct message *m, ProtobufCMessage *message)
{
    uint32_t scopes =
        rsim_chance(sim, 10) ? SCOPES_ALL : (uint32_t)rsim_between(sim, 0, SCOPES_ALL);
    bool denied = false, unreal = false;

    for (uint32_t i = 0; i < m->count; i++) {
        denied |= is_denied(&m->notes[i], scopes);
        unreal |= m->notes[i].says == SAYS_UNREAL;
    }
    err e = access_check_message(message, scopes, &sim->arena, &sim->detail);
    if (scopes == SCOPES_ALL) /* A caller without a key, where access is open. */
        PROMISE(sim, e == ERR_OK, "all scopes do not suffice");
    else if (!denied && !unreal)
        PROMISE(sim, e == ERR_OK, "%s: rights that the key has are denied: %s",
                message->descriptor->name, sim->detail.message);
    else
        PROMISE(sim, (e == ERR_PERMISSION && denied) || (e == ERR_INVALID && unreal),
                "%s: rights that the key lacks are given (%d)", message->descriptor->name, (int)e);
    sim->counts.rights_denied += e == ERR_PERMISSION;
    sim->counts.rights_unreal += e == ERR_INVALID;
    if (e == ERR_PERMISSION)
        rsim_refused(sim, CODE(PERMISSION_DENIED), NULL);
    if (e == ERR_INVALID)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
    if (e != ERR_OK) { /* The path says which one: "others[1].authority". */
        const char *field = sim->detail.field;
        size_t size = field != NULL ? strlen(field) : 0;
        PROMISE(sim, size >= 9 && strcmp(field + size - 9, "authority") == 0,
                "the refusal is about \"%s\", which is no authority", field);
    }
}

static void method_check(struct rsim *sim, const struct method_info *method)
{
    uint32_t scopes = rsim_chance(sim, 50) ? 1u << rsim_between(sim, 0, 8)
                                           : (uint32_t)rsim_between(sim, 0, SCOPES_ALL);
    err e = access_check_method(method, scopes, &sim->arena, &sim->detail);

    PROMISE(sim, e == ((method->scopes & scopes) != 0 ? ERR_OK : ERR_PERMISSION),
            "%s is open to the scopes %u, or is not", method->name, scopes);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(PERMISSION_DENIED), NULL);
    PROMISE(sim, sim->detail.limit != NULL && sim->detail.value != NULL, "scopes are not told");
}

/* ---- tokens of sessions ---- */

static void note_check(struct rsim *sim, const struct note *note)
{
    const char *now = *note->text;
    const char *wanted = note->was;

    if (note->says == SAYS_SESSION && note->has_player && note->is_token) {
        wanted = note->plain;
        sim->counts.tokens_taken_off += note->plain != NULL;
        sim->counts.tokens_not_believed += note->plain == NULL;
    }
    if (wanted != NULL)
        PROMISE(sim, strcmp(now, wanted) == 0, "an authority \"%s\" goes to the node as \"%s\"",
                note->was, now);
    else
        PROMISE(sim, strncmp(now, "session:18446744073709551615-", 29) == 0,
                "a token that is not believed goes on as \"%s\"", now);
}

static void guard_check(struct rsim *sim, struct message *m, ProtobufCMessage *message)
{
    const struct session_secrets none = { .count = 0 };
    bool known = rsim_chance(sim, 90);
    struct session_guard guard = { .secrets = known ? &m->secrets : &none };
    struct session_guard_found found;
    uint64_t wrong[SESSION_GUARD_REASONS] = { 0 };
    bool session = false, system = false, admin = false, changed = false;

    for (uint32_t i = 0; i < m->count; i++) {
        const struct note *note = &m->notes[i];
        bool for_node = note->says == SAYS_SESSION && note->has_player;

        session |= for_node;
        changed |= for_node && note->is_token;
        system |= strncmp(note->was, "system:", 7) == 0;
        admin |= strcmp(note->was, "system:admin") == 0;
        if (for_node && note->is_token && note->plain == NULL)
            wrong[note->has_mac ? SESSION_GUARD_WRONG_MAC : SESSION_GUARD_NO_MAC]++;
    }
    err e = session_guard_message(&guard, message, &sim->arena, &found, &sim->detail);
    PROMISE(sim, e == (session && !known ? ERR_UNAVAILABLE : ERR_OK),
            "%s: a session without a secret, or with: %d", message->descriptor->name, (int)e);
    if (e != ERR_OK) {
        sim->counts.secrets_unknown++;
        rsim_refused(sim, CODE(UNAVAILABLE), NULL);
        return;
    }
    PROMISE(sim, found.changed == changed && found.system == system && found.admin == admin,
            "%s: what a request says of itself is told wrong", message->descriptor->name);
    for (uint32_t i = 0; i < m->count; i++)
        note_check(sim, &m->notes[i]);
    for (uint32_t i = 0; i < SESSION_GUARD_REASONS; i++)
        PROMISE(sim, guard.refused[i] == wrong[i], "tokens that were not believed are miscounted");
}

/* ---- players' own tokens ---- */

static void player_check(struct rsim *sim, const struct method_info *method,
                         ProtobufCMessage *message)
{
    static const char *const ids[] = { "ada", "eve" };
    struct access_player player = { RSIM_PICK(sim, ids), false };
    const char *name = method_player_field(method);
    char *named = NULL;

    if (name != NULL) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(method->request, name);
        memcpy(&named, (char *)message + field->offset, sizeof named);
        if (rsim_chance(sim, 20)) {
            named = NULL;
            memcpy((char *)message + field->offset, &named, sizeof named);
        }
    }
    bool empty = named == NULL || named[0] == 0;
    bool own = name != NULL && (empty || strcmp(named, player.id) == 0);
    err e = access_check_player(method, &player, message, &sim->arena, &sim->detail);
    if (method_is_public(method)) { /* It tells what belongs to no player. */
        PROMISE(sim, e == ERR_OK && !player.filled, "%s is public, and refused", method->name);
        return;
    }
    PROMISE(sim, e == (own ? ERR_OK : ERR_PERMISSION), "%s: a token of %s reads \"%s\", or not",
            method->name, player.id, named);
    PROMISE(sim, player.filled == (own && empty), "%s: a player is filled in, or not",
            method->name);
    sim->counts.own_player += own;
    sim->counts.other_player += !own && name != NULL;
    if (!own) {
        rsim_refused(sim, CODE(PERMISSION_DENIED), name != NULL ? name : "authorization");
        return;
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(method->request, name);
    memcpy(&named, (char *)message + field->offset, sizeof named);
    PROMISE(sim, strcmp(named, player.id) == 0, "%s: it is about another player", method->name);
}

/* A player's own operations are named by ids that are not kept for good. */
static void player_op_check(struct rsim *sim)
{
    static const struct {
        const char *op_id;
        bool good;
    } all[] = {
        { "", true },        { "0190c0de-0000-7000-8000-000000000001", true },
        { "key:7", true },   { "receipt:7", false },
        { "keys:7", false }, { "admin:x", false },
    };
    Holdfast__V1__GrantRequest request;
    size_t place = rsim_between(sim, 0, ARRAY_SIZE(all) - 1);

    holdfast__v1__grant_request__init(&request);
    request.op_id = text_lend(all[place].op_id);
    err e = access_check_player_op(&request.base, &sim->arena, &sim->detail);
    PROMISE(sim, e == (all[place].good ? ERR_OK : ERR_PERMISSION), "the op_id \"%s\": %d",
            all[place].op_id, (int)e);
    if (e != ERR_OK)
        rsim_refused(sim, CODE(PERMISSION_DENIED), "op_id");
}

static void secrets_make(struct rsim *sim, struct session_secrets *secrets)
{
    struct token_secret_record record = { .rotated_at_ms = 0 };

    for (size_t i = 0; i < sizeof record.current; i++)
        record.current[i] = (uint8_t)(1 + rsim_between(sim, 0, 254));
    session_secrets_init(secrets, "sim", &record);
}

/* An authority stands in no message of the API deeper than eight others. */
static void depth_check(struct rsim *sim)
{
    ProtobufCFieldDescriptor inner = {
        .name = "inner", .id = 1, .label = PROTOBUF_C_LABEL_NONE, .type = PROTOBUF_C_TYPE_MESSAGE
    };
    struct nested {
        ProtobufCMessage base;
        struct nested *inner;
    } messages[12];
    ProtobufCMessageDescriptor type = { .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                        .name = "Nested",
                                        .sizeof_message = sizeof(struct nested),
                                        .n_fields = 1,
                                        .fields = &inner };
    size_t depth = rsim_between(sim, 0, ARRAY_SIZE(messages) - 1);
    uint32_t scopes = SCOPE_GAME;

    inner.offset = offsetof(struct nested, inner);
    inner.descriptor = &type;
    for (size_t i = 0; i <= depth; i++)
        messages[i] = (struct nested){ { &type, 0, NULL }, i < depth ? &messages[i + 1] : NULL };
    err e = access_check_message(&messages[0].base, scopes, &sim->arena, &sim->detail);
    PROMISE(sim, e == (depth <= 8 ? ERR_OK : ERR_INVALID), "%zu messages deep: %d", depth, (int)e);
    if (e != ERR_OK)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
}

void room_rights(struct rsim *sim)
{
    struct message *m = arena_zalloc(&sim->arena, sizeof *m);
    size_t count;
    const struct method_info *all = method_all(&count);

    m->sim = sim;
    secrets_make(sim, &m->secrets);
    secrets_make(sim, &m->others);
    depth_check(sim);
    player_op_check(sim);
    for (uint32_t i = 0; i < 24; i++) {
        const struct method_info *method = &all[rsim_between(sim, 0, count - 1)];

        m->count = 0;
        method_check(sim, method);
        ProtobufCMessage *message = make(m, method->request, DEPTH);
        player_check(sim, method, message);
        m->count = 0; /* The player was filled in: other tokens are its own now. */
        message = make(m, method->request, DEPTH);
        scopes_check(sim, m, message);
        guard_check(sim, m, message);
    }
}
