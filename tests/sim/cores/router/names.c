/*
 * Names of users (router/core/name_form.h) over a shard that knows sections alone: players claim,
 * rename, release and look for names. Who has which name is kept beside it, by docs/users.md. Then
 * what callers may not write.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/core/name_form.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define CODE(name)   HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name
#define PLAYERS      4u
#define NAMES        8u
#define SECTIONS_MAX 64u
#define STEPS        40u

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;
typedef Holdfast__V1__SectionEdit section_edit;

static const char *const player_ids[PLAYERS] = { "ada", "bob", "user-nam", "Zo\xc3\xab" };
/* Those in a row are one name; letters beyond ASCII count as they are written. */
static const struct {
    const char *name, *tag;
    uint32_t of; /* Which name it is. */
} texts[] = { { "Ada", "1", 0 },       { "aDA", "1", 0 },      { "Ada", "12zZ", 1 },
              { "ADA", "12ZZ", 1 },    { "\xc3\xa9", "a", 2 }, { "\xc3\x89", "A", 3 },
              { "a b", "0", 4 },       { "[@`{", "Az", 5 },    { "[@`{", "9", 6 },
              { "[\xc2\xa0{", "9", 7 } };

struct section {
    char entity[64], name[64], json[160];
    uint64_t version; /* Of the last write. */
    bool stands;
};

struct bound {
    const char *player; /* NULL: it is free. */
    const char *name, *tag;
    uint64_t number, at_ms;
};

struct world {
    struct rsim *sim;
    struct section sections[SECTIONS_MAX];
    uint32_t section_count;
    struct bound names[NAMES];
    uint64_t highest[NAMES]; /* Numbers only rise. */
    uint64_t now_ms, transactions;
};

/* ---- the shard ---- */

static struct section *section_of(struct world *w, const char *entity, const char *name)
{
    for (uint32_t i = 0; i < w->section_count; i++) {
        struct section *section = &w->sections[i];
        if (strcmp(section->entity, entity) == 0 && strcmp(section->name, name) == 0)
            return section;
    }
    CHECK(w->section_count < SECTIONS_MAX);
    struct section *made = &w->sections[w->section_count++];
    (void)snprintf(made->entity, sizeof made->entity, "%s", entity);
    (void)snprintf(made->name, sizeof made->name, "%s", name);
    return made;
}

static uint64_t version_now(struct world *w, const char *entity, const char *name)
{
    const struct section *section = section_of(w, entity, name);

    return section->stands ? section->version : 0;
}

static err refuse(struct world *w, const char *field, uint64_t limit)
{
    w->sim->detail = (Holdfast__V1__ErrorDetail)HOLDFAST__V1__ERROR_DETAIL__INIT;
    w->sim->detail.code = CODE(VERSION_CONFLICT);
    w->sim->detail.field = arena_printf(&w->sim->arena, "%s", field);
    w->sim->detail.limit = arena_printf(&w->sim->arena, "%llu", (unsigned long long)limit);
    w->sim->detail.message = w->sim->detail.field;
    return ERR_CONFLICT;
}

/* Who takes part is declared once, as a player whom no server holds. */
static void look_at_others(struct world *w, const execute_request *execute)
{
    for (size_t i = 0; i < execute->n_others; i++) {
        const Holdfast__V1__TransactionPlayer *other = execute->others[i];

        PROMISE(w->sim, name_form_is_name(slice_from_text(other->player_id)), "'%s' takes part",
                other->player_id);
        PROMISE(w->sim, strcmp(other->authority, "unheld") == 0, "a name is held");
        for (size_t k = 0; k < i; k++)
            PROMISE(w->sim, strcmp(other->player_id, execute->others[k]->player_id) != 0,
                    "'%s' takes part twice", other->player_id);
    }
}

static void look_at_change(struct world *w, const execute_request *execute,
                           const Holdfast__V1__TransactionPatch *patch)
{
    bool declared = strcmp(patch->player_id, execute->player_id) == 0;

    for (size_t i = 0; i < execute->n_others; i++)
        declared |= strcmp(patch->player_id, execute->others[i]->player_id) == 0;
    PROMISE(w->sim, declared, "'%s' takes no part", patch->player_id);
}

static err judge(struct world *w, const execute_request *execute)
{
    look_at_others(w, execute);
    for (size_t i = 0; i < execute->n_checks; i++) {
        const Holdfast__V1__TransactionCheck *check = execute->checks[i];

        PROMISE(w->sim, check->check_case == HOLDFAST__V1__TRANSACTION_CHECK__CHECK_SECTION,
                "a check of something else");
        if (version_now(w, check->player_id, check->section->name) != check->section->version)
            return refuse(w, "checks[0]", check->section->version);
    }
    for (size_t i = 0; i < execute->n_changes; i++) {
        const Holdfast__V1__TransactionPatch *patch = execute->changes[i]->patch;

        PROMISE(w->sim,
                execute->changes[i]->change_case == HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH,
                "a change of something else");
        look_at_change(w, execute, patch);
        if (patch->edit->_if_version_case == HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION &&
            version_now(w, patch->player_id, patch->edit->name) != patch->edit->if_version)
            return refuse(w, "changes", patch->edit->if_version);
    }
    return ERR_OK;
}

static err execute_all(struct world *w, const execute_request *execute)
{
    err e = judge(w, execute);

    w->transactions++;
    for (size_t i = 0; e == ERR_OK && i < execute->n_changes; i++) {
        const section_edit *edit = execute->changes[i]->patch->edit;
        struct section *section = section_of(w, execute->changes[i]->patch->player_id, edit->name);

        section->version = w->transactions; /* As of the whole player: one number for both. */
        section->stands = edit->edit_case == HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        PROMISE(w->sim,
                section->stands || edit->edit_case == HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE,
                "an edit of another kind");
        PROMISE(w->sim, !section->stands || edit->schema_version > 0, "no version of a schema");
        (void)snprintf(section->json, sizeof section->json, "%s",
                       section->stands ? edit->replace : "");
    }
    return e;
}

/* ---- what users ask for ---- */

static const struct bound *bound_of(const struct world *w, const char *player)
{
    for (uint32_t i = 0; i < NAMES; i++) {
        if (w->names[i].player != NULL && strcmp(w->names[i].player, player) == 0)
            return &w->names[i];
    }
    return NULL;
}

static const execute_request *made(struct world *w, enum method_id id,
                                   const ProtobufCMessage *request)
{
    const ProtobufCMessage *message = NULL;
    err e = name_form_make(method_find(id), request, &w->sim->arena, &message, &w->sim->detail);

    PROMISE(w->sim, e == ERR_OK, "a request is refused: %s", w->sim->detail.message);
    return (const execute_request *)message;
}

/* NULL `field`: it has to be carried out. */
static bool carried_out(struct world *w, enum method_id id, const execute_request *execute,
                        const char *field)
{
    err e = execute_all(w, execute);

    PROMISE(w->sim, (e == ERR_OK) == (field == NULL), "%s, wanted: %s",
            e == ERR_OK ? "carried out" : w->sim->detail.field, field == NULL ? "done" : field);
    if (e != ERR_OK) {
        name_form_tell(method_find(id), &w->sim->arena, &w->sim->detail);
        rsim_refused(w->sim, CODE(VERSION_CONFLICT), field);
        w->sim->counts.names_refused++;
    }
    return e == ERR_OK;
}

static void bind(struct world *w, uint32_t text, const char *player)
{
    struct bound *bound = &w->names[texts[text].of];
    const struct section *holder = NULL;

    for (uint32_t i = 0; i < w->section_count; i++) {
        if (strcmp(w->sections[i].name, "holder") == 0 && w->sections[i].stands &&
            strstr(w->sections[i].json, player) != NULL)
            holder = &w->sections[i];
    }
    PROMISE(w->sim, holder != NULL, "%s has claimed a name, and has none", player);
    PROMISE(w->sim, holder->version > w->highest[texts[text].of], "a number came again");
    w->highest[texts[text].of] = holder->version;
    *bound =
        (struct bound){ player, texts[text].name, texts[text].tag, holder->version, w->now_ms };
    w->sim->counts.names_bound++;
}

/* The envelope is the caller's. */
static void look_at_envelope(struct world *w, const execute_request *execute, const char *player,
                             bool conditional)
{
    bool has = execute->_if_version_case ==
               HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST___IF_VERSION_IF_VERSION;

    PROMISE(w->sim,
            strcmp(execute->op_id, "name:1") == 0 && execute->attempt == 3 &&
                strcmp(execute->authority, "session:1-2-3") == 0 &&
                strcmp(execute->player_id, player) == 0,
            "another envelope");
    PROMISE(w->sim, has == conditional && (!has || execute->if_version == 9),
            "another version of the player");
}

static void claim(struct world *w, const char *player, uint32_t text)
{
    Holdfast__V1__ClaimNameRequest request = HOLDFAST__V1__CLAIM_NAME_REQUEST__INIT;
    Holdfast__V1__NameBinding replaces = HOLDFAST__V1__NAME_BINDING__INIT;
    uint32_t old = (uint32_t)rsim_between(w->sim, 0, ARRAY_SIZE(texts) - 1);
    struct bound *left = &w->names[texts[old].of];
    const struct bound *now = &w->names[texts[text].of];
    bool renames = rsim_chance(w->sim, 50), conditional = rsim_chance(w->sim, 50);
    const char *field = NULL;

    request.player_id = text_lend(player);
    request.op_id = text_lend("name:1");
    request.attempt = 3;
    request.authority = text_lend("session:1-2-3");
    if (conditional) {
        request._if_version_case = HOLDFAST__V1__CLAIM_NAME_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = 9;
    }
    request.name = text_lend(texts[text].name);
    request.tag = text_lend(texts[text].tag);
    replaces.name = text_lend(texts[old].name);
    replaces.tag = text_lend(texts[old].tag);
    replaces.number = left->number > 0 ? rsim_about(w->sim, left->number + 1) : 1;
    if (renames) {
        bool is_own = left->player == player && replaces.number == left->number;
        request.replaces = &replaces;
        field = !is_own ? "replaces.number" : now->player != NULL && now != left ? "name" : NULL;
    } else {
        field = bound_of(w, player) != NULL ? "player_id" : now->player != NULL ? "name" : NULL;
    }
    const execute_request *execute = made(w, METHOD_CLAIM_NAME, &request.base);
    look_at_envelope(w, execute, player, conditional);
    if (!carried_out(w, METHOD_CLAIM_NAME, execute, field))
        return;
    if (renames && now != left)
        *left = (struct bound){ 0 };
    w->sim->counts.names_replaced += renames;
    bind(w, text, player);
}

static void release(struct world *w, const char *player, uint32_t text)
{
    Holdfast__V1__ReleaseNameRequest request = HOLDFAST__V1__RELEASE_NAME_REQUEST__INIT;
    struct bound *bound = &w->names[texts[text].of];
    bool conditional = rsim_chance(w->sim, 50);

    if (bound->player != NULL && rsim_chance(w->sim, 60))
        player = bound->player;
    request.player_id = text_lend(player);
    request.op_id = text_lend("name:1");
    request.attempt = 3;
    request.authority = text_lend("session:1-2-3");
    if (conditional) {
        request._if_version_case = HOLDFAST__V1__RELEASE_NAME_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = 9;
    }
    request.name = text_lend(texts[text].name);
    request.tag = text_lend(texts[text].tag);
    request.number = bound->number > 0 ? rsim_about(w->sim, bound->number + 1) : 1;
    bool is_own = bound->player == player && request.number == bound->number;
    const execute_request *execute = made(w, METHOD_RELEASE_NAME, &request.base);
    look_at_envelope(w, execute, player, conditional);
    if (carried_out(w, METHOD_RELEASE_NAME, execute, is_own ? NULL : "number"))
        *bound = (struct bound){ 0 };
}

static void find(struct world *w, uint32_t text)
{
    Holdfast__V1__FindByNameRequest request = HOLDFAST__V1__FIND_BY_NAME_REQUEST__INIT;
    Holdfast__V1__FindByNameResponse found = HOLDFAST__V1__FIND_BY_NAME_RESPONSE__INIT;
    Holdfast__V1__GetProfileResponse profile = HOLDFAST__V1__GET_PROFILE_RESPONSE__INIT;
    Holdfast__V1__Profile of_name = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__Section section = HOLDFAST__V1__SECTION__INIT, *list[] = { &section };
    const struct bound *bound = &w->names[texts[text].of];
    const ProtobufCMessage *message = NULL;

    request.name = text_lend(texts[text].name);
    request.tag = text_lend(texts[text].tag);
    PROMISE(w->sim,
            name_form_make(method_find(METHOD_FIND_BY_NAME), &request.base, &w->sim->arena,
                           &message, &w->sim->detail) == ERR_OK,
            "a search is refused");
    const Holdfast__V1__GetProfileRequest *get = (const Holdfast__V1__GetProfileRequest *)message;
    PROMISE(w->sim, get->settled && get->n_include == 1, "a search does not wait for claims");
    const struct section *holder =
        section_of(w, get->player_id, get->include[0] + strlen("sections."));
    profile.as_of = text_lend("c1.x");
    profile.profile = rsim_chance(w->sim, 90) || holder->stands ? &of_name : NULL;
    of_name.sections = list;
    of_name.n_sections = holder->stands;
    section.json = text_lend(holder->json);
    section.version = holder->version;
    section.last_write_at_ms = (int64_t)bound->at_ms;
    PROMISE(w->sim, name_form_found(&profile, &w->sim->arena, &found) == ERR_OK,
            "what a claim wrote is damaged");
    PROMISE(w->sim, strcmp(found.player_id, bound->player != NULL ? bound->player : "") == 0,
            "%s#%s is of '%s'", request.name, request.tag, found.player_id);
    PROMISE(w->sim, strcmp(found.as_of, "c1.x") == 0, "as of another moment");
    PROMISE(w->sim,
            bound->player == NULL ||
                (strcmp(found.name, bound->name) == 0 && strcmp(found.tag, bound->tag) == 0 &&
                 found.number == bound->number && found.claimed_at_ms == (int64_t)bound->at_ms),
            "another binding: %s#%s", found.name, found.tag);
    if (holder->stands && rsim_chance(w->sim, 20)) { /* Rows may be spoilt. */
        section.json = text_lend(RSIM_PICK(
            w->sim, ((const char *const[]){ "{", "[]", "{\"name\":\"a\",\"tag\":\"b\"}",
                                            "{\"playerId\":\"a\",\"name\":\"a\"}",
                                            "{\"playerId\":\"a\",\"tag\":\"a\"}",
                                            "{\"playerId\":1,\"name\":\"a\",\"tag\":\"b\"}" })));
        PROMISE(w->sim, name_form_found(&profile, &w->sim->arena, &found) == ERR_CORRUPT,
                "a name of %s is told", section.json);
    }
}

/* The sections of players and names say the same as those bindings. */
static void compare(struct world *w)
{
    uint32_t bound = 0, standing = 0;

    for (uint32_t i = 0; i < NAMES; i++)
        bound += w->names[i].player != NULL;
    for (uint32_t i = 0; i < w->section_count; i++)
        standing += w->sections[i].stands;
    PROMISE(w->sim, standing == 3 * bound, "%u sections of %u names", standing, bound);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const struct bound *own = bound_of(w, player_ids[i]);
        const struct section *section = section_of(w, player_ids[i], "hf_name");
        PROMISE(w->sim, section->stands == (own != NULL), "%s has a name, or none", player_ids[i]);
        PROMISE(w->sim,
                own == NULL || (strstr(section->json, own->name) != NULL &&
                                strstr(section->json, own->tag) != NULL),
                "%s has %s", player_ids[i], section->json);
    }
}

/* ---- what is no name ---- */

static void turn_down(struct rsim *sim)
{
    static const struct {
        const char *text;
        bool is_name, is_tag;
    } given[] = { { "", false, false },
                  { " a", false, false },
                  { "a ", false, false },
                  { "a#", false, false },
                  { "\x1f"
                    "a",
                    false, false },
                  { "a\x7f", false, false },
                  { "a\xc2\x80", false, false },
                  { "\xc2\x9f", false, false },
                  { "\xc2\xa0", true, false },
                  { "\xc3\x9f", true, false },
                  { "a!~b", true, false },
                  { "0", true, true },
                  { "9azAZ", true, true },
                  { "/", true, false },
                  { ":", true, false },
                  { "@", true, false },
                  { "[", true, false },
                  { "`", true, false },
                  { "{", true, false },
                  { "12345678", true, true },
                  { "123456789", true, false },
                  { "12345678901234567890123456789012", true, false },
                  { "123456789012345678901234567890123", false, false } };
    uint32_t name = (uint32_t)rsim_between(sim, 0, ARRAY_SIZE(given) - 1);
    uint32_t tag = (uint32_t)rsim_between(sim, 0, ARRAY_SIZE(given) - 1);
    uint64_t number = rsim_between(sim, 0, 1);
    uint32_t kind = (uint32_t)rsim_between(sim, 0, 3); /* A claim, a rename, a release, a search. */
    Holdfast__V1__ClaimNameRequest claimed = HOLDFAST__V1__CLAIM_NAME_REQUEST__INIT;
    Holdfast__V1__ReleaseNameRequest released = HOLDFAST__V1__RELEASE_NAME_REQUEST__INIT;
    Holdfast__V1__FindByNameRequest found = HOLDFAST__V1__FIND_BY_NAME_REQUEST__INIT;
    Holdfast__V1__NameBinding old = HOLDFAST__V1__NAME_BINDING__INIT;
    const ProtobufCMessage *const requests[] = { &claimed.base, &claimed.base, &released.base,
                                                 &found.base };
    const enum method_id ids[] = { METHOD_CLAIM_NAME, METHOD_CLAIM_NAME, METHOD_RELEASE_NAME,
                                   METHOD_FIND_BY_NAME };
    const ProtobufCMessage *message = NULL;
    const char *before = kind == 1 ? "replaces." : "";

    claimed.player_id = released.player_id = text_lend("ada");
    claimed.name = released.name = found.name = old.name = text_lend(given[name].text);
    claimed.tag = released.tag = found.tag = old.tag = text_lend(given[tag].text);
    released.number = old.number = number;
    if (kind == 1) {
        claimed.replaces = &old;
        claimed.name = claimed.tag = text_lend("a");
    }
    bool numbered = number > 0 || kind == 0 || kind == 3;
    bool good = given[name].is_name && given[tag].is_tag && numbered;
    err e =
        name_form_make(method_find(ids[kind]), requests[kind], &sim->arena, &message, &sim->detail);
    PROMISE(sim, e == (good ? ERR_OK : ERR_INVALID), "'%s#%s' of number %llu: %d", given[name].text,
            given[tag].text, (unsigned long long)number, (int)e);
    if (good)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
    const char *field = sim->detail.field;
    bool fits =
        (!given[name].is_name && strcmp(field, arena_printf(&sim->arena, "%sname", before)) == 0) ||
        (!given[tag].is_tag && strcmp(field, arena_printf(&sim->arena, "%stag", before)) == 0) ||
        (!numbered && strcmp(field, arena_printf(&sim->arena, "%snumber", before)) == 0);
    PROMISE(sim, fits, "'%s#%s' is refused for its %s", given[name].text, given[tag].text, field);
    sim->counts.names_turned_down++;
}

/* ---- what callers may not write ---- */

static void guard(struct rsim *sim)
{
    execute_request execute = HOLDFAST__V1__EXECUTE_TRANSACTION_REQUEST__INIT;
    Holdfast__V1__TransactionPlayer others[2], *other_list[2];
    Holdfast__V1__TransactionChange changes[2], *change_list[2];
    Holdfast__V1__TransactionPatch patches[2];
    section_edit edits[2];
    uint32_t at = (uint32_t)rsim_between(sim, 0, 1), spoilt = (uint32_t)rsim_between(sim, 0, 4);
    const char *wanted = NULL;

    for (uint32_t i = 0; i < 2; i++) {
        holdfast__v1__transaction_player__init(other_list[i] = &others[i]);
        holdfast__v1__transaction_change__init(change_list[i] = &changes[i]);
        holdfast__v1__transaction_patch__init(changes[i].patch = &patches[i]);
        holdfast__v1__section_edit__init(patches[i].edit = &edits[i]);
        changes[i].change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_PATCH;
        others[i].player_id = patches[i].player_id = text_lend(RSIM_PICK(sim, player_ids));
        edits[i].name = text_lend(RSIM_PICK(sim, ((const char *const[]){ "hf", "h_f", "name" })));
    }
    execute.player_id = text_lend("ada");
    execute.n_others = execute.n_changes = 2;
    execute.others = other_list;
    execute.changes = change_list;
    if (spoilt == 0) {
        others[at].player_id = text_lend("user-name:");
        wanted = arena_printf(&sim->arena, "others[%u].player_id", at);
    } else if (spoilt == 1) {
        patches[at].player_id = text_lend("user-name:ada#1");
        wanted = arena_printf(&sim->arena, "changes[%u].patch.player_id", at);
    } else if (spoilt == 2) {
        edits[at].name = text_lend("hf_");
        wanted = arena_printf(&sim->arena, "changes[%u].patch.edit.name", at);
    }
    err e = name_form_check_writes(method_find(METHOD_EXECUTE_TRANSACTION), &execute.base,
                                   &sim->arena, &sim->detail);
    PROMISE(sim, e == (wanted == NULL ? ERR_OK : ERR_INVALID), "a write at %s: %d",
            wanted == NULL ? "no name" : wanted, (int)e);
    if (wanted != NULL)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), wanted);
    PROMISE(sim,
            name_form_check_writes(method_find(METHOD_GET_PROFILE), &execute.base, &sim->arena,
                                   &sim->detail) == ERR_OK,
            "a read is refused");
}

static void guard_mail(struct rsim *sim)
{
    Holdfast__V1__DeliverMailRequest deliver = HOLDFAST__V1__DELIVER_MAIL_REQUEST__INIT;
    char *ids[3];
    uint32_t at = (uint32_t)rsim_between(sim, 0, ARRAY_SIZE(ids));

    for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++)
        ids[i] = text_lend(i == at ? "user-name:a#1" : RSIM_PICK(sim, player_ids));
    deliver.n_to_player_ids = ARRAY_SIZE(ids);
    deliver.to_player_ids = ids;
    err e = name_form_check_writes(method_find(METHOD_DELIVER_MAIL), &deliver.base, &sim->arena,
                                   &sim->detail);
    PROMISE(sim, e == (at < ARRAY_SIZE(ids) ? ERR_INVALID : ERR_OK), "mail to names: %d", (int)e);
    if (at < ARRAY_SIZE(ids))
        rsim_refused(sim, CODE(INVALID_ARGUMENT),
                     arena_printf(&sim->arena, "to_player_ids[%u]", at));
}

void room_names(struct rsim *sim)
{
    struct world *w = arena_zalloc(&sim->arena, sizeof *w);

    w->sim = sim;
    for (uint32_t i = 0; i < STEPS; i++) {
        const char *player = RSIM_PICK(sim, player_ids);
        uint32_t text = (uint32_t)rsim_between(sim, 0, ARRAY_SIZE(texts) - 1);
        uint32_t deed = (uint32_t)rsim_between(sim, 0, 9);

        w->now_ms++;
        if (deed < 5)
            claim(w, player, text);
        else if (deed < 8)
            release(w, player, text);
        else
            find(w, text);
        compare(w);
        turn_down(sim);
    }
    for (uint32_t i = 0; i < 4; i++) {
        guard(sim);
        guard_mail(sim);
    }
}
