/*
 * Sections of a profile (docs/profiles.md, profile.proto): every kind of edit, alone and several at
 * once, under schemas and versions that are behind, right or ahead; all or nothing; versions of
 * sections that are deleted and made again; and what GetProfile tells, by what it is asked for.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYER      "dora"
#define TURNS       40u
#define PLACES      (LIMIT_SECTIONS + 4u)
#define EDITS_MAX   (LIMIT_SECTION_EDITS + 1u)
#define EDIT(kind)  HOLDFAST__V1__SECTION_EDIT__EDIT_##kind
#define PATCH(kind) HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##kind

typedef Holdfast__V1__SectionEdit edit_message;

struct section {
    uint64_t version; /* 0: there is none. */
    uint32_t schema;
    uint64_t written_ms;
    json_t *document;
};

struct writer {
    struct rsim *sim;
    struct fixture f;
    struct section sections[PLACES]; /* Sorted by name. */
    uint32_t count;
    uint64_t version, top; /* Of the player; the highest of a section that was deleted. */
    uint64_t created_ms;
    /* Of the request being made. */
    bool fault;
    Holdfast__V1__ErrorCode causes[8];
    uint32_t cause_count;
    uint32_t places[EDITS_MAX];
    edit_message *edits[EDITS_MAX];
    uint32_t edit_count;
    bool many; /* This player has as many sections as there may be. */
};

static bool chance(struct writer *w, uint32_t per_hundred)
{
    return rsim_chance(w->sim, per_hundred);
}

static char *name_of(struct writer *w, uint32_t place)
{
    if (place < 2) /* The shortest. */
        return text_lend(place == 0 ? "a" : "b");
    return arena_printf(&w->sim->arena, "s%02u", place);
}

static bool fault(struct writer *w)
{
    if (w->fault || !chance(w, 3))
        return false;
    w->fault = true;
    return true;
}

static bool is_cause(const struct writer *w, Holdfast__V1__ErrorCode code)
{
    for (uint32_t i = 0; i < w->cause_count; i++) {
        if (w->causes[i] == code)
            return true;
    }
    return false;
}

static void cause(struct writer *w, Holdfast__V1__ErrorCode code)
{
    if (is_cause(w, code))
        return;
    CHECK(w->cause_count < ARRAY_SIZE(w->causes));
    w->causes[w->cause_count++] = code;
}

/* ---- edits: each says what it asks for, and does it to a document of its own ---- */

struct piece {
    struct writer *w;
    edit_message *edit;
    json_t *document; /* As it stands, then as it is to stand; NULL: none. */
};

static char *text_of(struct writer *w, const json_t *document)
{
    char *dumped = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
    char *text = arena_text(&w->sim->arena, slice_from_text(dumped));

    free(dumped);
    return text;
}

static json_t *any_document(struct writer *w)
{
    json_t *made = json_object();

    json_object_set_new(made, "xp", json_integer((json_int_t)rsim_between(w->sim, 0, 9)));
    if (chance(w, 50))
        json_object_set_new(made, "tags", json_pack("[i,i]", 1, 2));
    return made;
}

static void replace(struct piece *p)
{
    json_decref(p->document);
    p->document = any_document(p->w);
    p->edit->edit_case = EDIT(REPLACE);
    p->edit->replace = text_of(p->w, p->document);
    if (fault(p->w))
        p->edit->replace = text_lend("{\"a\":1,\"a\":2}");
}

static void merge_members(json_t *into, const json_t *patch)
{
    const char *name;
    json_t *member;

    json_object_foreach((json_t *)(uintptr_t)patch, name, member)
    {
        json_t *old = json_object_get(into, name);
        if (json_is_null(member))
            (void)json_object_del(into, name);
        else if (json_is_object(member) && json_is_object(old))
            (void)json_object_update(old, member);
        else
            json_object_set_new(into, name, json_deep_copy(member));
    }
}

static void merge(struct piece *p)
{
    static const char *const patches[] = { "{\"xp\":5}",
                                           "{\"xp\":null}",
                                           "{\"tags\":{\"a\":1}}",
                                           "{\"name\":\"x\",\"xp\":7}",
                                           "{}",
                                           "{\"tags\":[3],\"none\":null}" };
    static char *const paths[] = { (char *)(uintptr_t) "/xp", (char *)(uintptr_t) "/none",
                                   (char *)(uintptr_t) "/tags" };
    struct writer *w = p->w;
    const char *text = RSIM_PICK(w->sim, patches);
    json_t *patch = json_loads(text, 0, NULL);

    p->edit->edit_case = EDIT(MERGE);
    p->edit->merge = text_lend(text);
    if (p->document == NULL)
        p->document = json_object();
    merge_members(p->document, patch);
    json_decref(patch);
    p->edit->remove = arena_zalloc(&w->sim->arena, sizeof(char *) * (LIMIT_PATCH_STEPS + 1));
    if (chance(w, 35)) {
        size_t count = chance(w, 5) ? LIMIT_PATCH_STEPS : rsim_between(w->sim, 1, 2);
        for (size_t i = 0; i < count; i++) {
            uint64_t at = rsim_between(w->sim, 0, 2);
            p->edit->remove[i] = paths[at];
            (void)json_object_del(p->document, paths[at] + 1);
        }
        p->edit->n_remove = count;
    }
    if (fault(w)) {
        for (size_t i = 0; i <= LIMIT_PATCH_STEPS; i++)
            p->edit->remove[i] = paths[0];
        p->edit->n_remove = LIMIT_PATCH_STEPS + 1;
    } else if (p->edit->n_remove > 0 && fault(w)) {
        p->edit->remove[0] = text_lend("xp");
    }
}

/* False: it cannot be done to what stands. */
static bool step_number(json_t *document, int kind, json_int_t value)
{
    json_t *old = json_object_get(document, "xp");
    json_int_t stands = json_integer_value(old);

    if (old != NULL && !json_is_integer(old))
        return false;
    if (kind == (int)PATCH(INCREMENT))
        value += stands;
    else if (old != NULL && stands > value)
        value = stands;
    return json_object_set_new(document, "xp", json_integer(value)) == 0;
}

static bool step_list(json_t *document, int kind, json_int_t value)
{
    json_t *old = json_object_get(document, "tags"), *made;
    bool has = false;

    if (old != NULL && !json_is_array(old))
        return false;
    if (old == NULL && kind == (int)PATCH(DISCARD))
        return true;
    made = json_array();
    for (size_t i = 0; i < json_array_size(old); i++) {
        bool same = json_integer_value(json_array_get(old, i)) == value;
        has |= same;
        if (!same || kind != (int)PATCH(DISCARD))
            json_array_append(made, json_array_get(old, i));
    }
    if (kind == (int)PATCH(APPEND) || (kind == (int)PATCH(ADD) && !has))
        json_array_append_new(made, json_integer(value));
    return json_object_set_new(document, "tags", made) == 0;
}

static void patch_step(struct piece *p, Holdfast__V1__PatchStep *step)
{
    static const int kinds[] = { PATCH(SET),     PATCH(REMOVE),    PATCH(INCREMENT),
                                 PATCH(APPEND),  PATCH(MAX),       PATCH(ADD),
                                 PATCH(DISCARD), PATCH(INCREMENT), PATCH(APPEND) };
    struct writer *w = p->w;
    int kind = RSIM_PICK(w->sim, kinds);
    json_int_t value = (json_int_t)rsim_between(w->sim, 0, 4);
    bool list =
        kind == (int)PATCH(APPEND) || kind == (int)PATCH(ADD) || kind == (int)PATCH(DISCARD);
    bool done = true;

    step->kind = (Holdfast__V1__PatchKind)kind;
    step->path = text_lend(list ? "/tags" : "/xp");
    step->json =
        kind == (int)PATCH(REMOVE) ? text_lend("") : arena_printf(&w->sim->arena, "%d", (int)value);
    if (list)
        done = step_list(p->document, kind, value);
    else if (kind == (int)PATCH(REMOVE))
        (void)json_object_del(p->document, "xp");
    else if (kind == (int)PATCH(SET))
        json_object_set_new(p->document, "xp", json_integer(value));
    else
        done = step_number(p->document, kind, value);
    if (!done)
        cause(w, CODE(INVALID_ARGUMENT));
    if (!fault(w))
        return;
    switch (rsim_between(w->sim, 0, 3)) {
    case 0:
        step->kind = chance(w, 50) ? (Holdfast__V1__PatchKind)0
                                   : (Holdfast__V1__PatchKind)((int)PATCH(DISCARD) + 1);
        break;
    case 1:
        step->path = text_lend("xp");
        break;
    case 2:
        step->kind = PATCH(REMOVE);
        step->json = text_lend("1");
        break;
    default:
        step->kind = chance(w, 50) ? PATCH(INCREMENT) : PATCH(MAX);
        step->json = text_lend(chance(w, 50) ? "1.5" : "\"1\"");
    }
}

static void patch(struct piece *p)
{
    struct writer *w = p->w;
    Holdfast__V1__PatchList *list = (Holdfast__V1__PatchList *)arena_message(
        &w->sim->arena, &holdfast__v1__patch_list__descriptor);

    list->n_steps = chance(w, 4) ? LIMIT_PATCH_STEPS : rsim_between(w->sim, 1, 4);
    if (fault(w))
        list->n_steps = chance(w, 50) ? 0 : LIMIT_PATCH_STEPS + 1;
    list->steps = arena_messages(&w->sim->arena, &holdfast__v1__patch_step__descriptor,
                                 LIMIT_PATCH_STEPS + 1);
    if (p->document == NULL)
        p->document = json_object();
    for (size_t i = 0; i < list->n_steps; i++)
        patch_step(p, list->steps[i]);
    p->edit->edit_case = EDIT(PATCH);
    p->edit->patch = list;
}

static void delete (struct piece *p)
{
    json_decref(p->document);
    p->document = NULL;
    p->edit->edit_case = EDIT(DELETE);
    p->edit->delete_ = (Holdfast__V1__DeleteSection *)arena_message(
        &p->w->sim->arena, &holdfast__v1__delete_section__descriptor);
}

/* ---- versions and names ---- */

static void choose_versions(struct writer *w, edit_message *edit, const struct section *stands)
{
    edit->schema_version = stands->schema + (uint32_t)rsim_between(w->sim, 0, 1);
    if (stands->schema > 0 && chance(w, 8))
        edit->schema_version = stands->schema - 1;
    if (stands->version > 0 && edit->schema_version < stands->schema)
        cause(w, CODE(SCHEMA_TOO_NEW));
    if (!chance(w, 30))
        return;
    edit->_if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
    edit->if_version = stands->version;
    if (chance(w, 35))
        edit->if_version =
            stands->version > 0 && chance(w, 50) ? stands->version - 1 : stands->version + 1;
    if (edit->if_version != stands->version)
        cause(w, CODE(VERSION_CONFLICT));
}

static void spoil_name(struct writer *w, edit_message *edit)
{
    static const char *const wrong[] = { "wallet", "inventory", "ledger", "", "Quests", "a-b" };
    char *longest = arena_zalloc(&w->sim->arena, LIMIT_SECTION_NAME_BYTES + 2);

    memset(longest, 'n', LIMIT_SECTION_NAME_BYTES + 1);
    edit->name = chance(w, 25) ? longest : text_lend(RSIM_PICK(w->sim, wrong));
}

/* The document that the edit leaves; NULL: none. */
static json_t *make_edit(struct writer *w, uint32_t place, edit_message *edit)
{
    static void (*const kinds[])(struct piece *) = { replace, replace, merge, merge,
                                                     patch,   patch,   patch, delete };
    const struct section *stands = &w->sections[place];
    struct piece piece = { .w = w, .edit = edit };

    edit->name = name_of(w, place);
    piece.document = stands->document != NULL ? json_deep_copy(stands->document) : NULL;
    choose_versions(w, edit, stands);
    RSIM_PICK(w->sim, kinds)(&piece);
    if (edit->edit_case != EDIT(MERGE) && fault(w)) {
        static char *at = (char *)(uintptr_t) "/xp";
        edit->remove = &at;
        edit->n_remove = 1;
    } else if (fault(w)) {
        spoil_name(w, edit);
    } else if (fault(w)) {
        edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT__NOT_SET;
    }
    return piece.document;
}

/* ---- one request ---- */

static void settle(struct writer *w, const edit_message *edit, uint32_t place, json_t *document)
{
    struct section *section = &w->sections[place];

    json_decref(section->document);
    if (edit->edit_case == EDIT(DELETE)) {
        w->count -= section->version > 0;
        if (section->version > w->top)
            w->top = section->version;
        *section = (struct section){ 0 };
        return;
    }
    w->count += section->version == 0;
    section->version = section->version > 0 ? section->version + 1 : w->top + 1;
    section->schema = edit->schema_version;
    section->written_ms = w->f.now_ms;
    section->document = document;
}

static void check_response(struct writer *w, const Holdfast__V1__UpdateProfileResponse *response)
{
    PROMISE(w->sim, response->n_sections == w->edit_count, "%zu sections are told, not %u",
            response->n_sections, w->edit_count);
    for (size_t i = 0; i < response->n_sections; i++) {
        const Holdfast__V1__SectionVersion *told = response->sections[i];
        const struct section *section = &w->sections[w->places[i]];
        PROMISE(w->sim,
                strcmp(told->name, name_of(w, w->places[i])) == 0 &&
                    told->version == section->version &&
                    (uint64_t)told->last_write_at_ms == w->f.now_ms,
                "section %s is told with version %" PRIu64 ", not %" PRIu64, told->name,
                told->version, section->version);
    }
}

/* Different places, in their order. */
static void choose_places(struct writer *w)
{
    uint32_t last = w->many ? PLACES - 1 : 5;
    bool chosen[PLACES] = { 0 };
    uint32_t wanted = chance(w, 60) ? 1 : (uint32_t)rsim_between(w->sim, 2, 4);

    w->edit_count = 0;
    if (w->many && chance(w, 30))
        wanted = LIMIT_SECTION_EDITS;
    for (uint32_t i = 0; i < wanted; i++)
        chosen[rsim_between(w->sim, 0, last)] = true;
    for (uint32_t i = 0; i < PLACES; i++) {
        if (chosen[i])
            w->places[w->edit_count++] = i;
    }
}

static void send(struct writer *w, Holdfast__V1__UpdateProfileRequest *request, json_t **documents)
{
    const Holdfast__V1__UpdateProfileResponse *response =
        fixture_mutate(&w->f, METHOD_UPDATE_PROFILE, &request->base);
    bool refused = w->fault || w->cause_count > 0;

    PROMISE(w->sim, (response == NULL) == refused, "edits are %s: %s",
            refused ? "done that have to be refused" : "refused",
            w->f.error != NULL ? w->f.error->message : "");
    if (refused) {
        PROMISE(w->sim, !w->fault || !w->f.recorded, "edits are wrong and logged");
        PROMISE(w->sim,
                w->fault ? w->f.error->code == CODE(INVALID_ARGUMENT)
                         : is_cause(w, w->f.error->code),
                "refused with %d: %s", (int)w->f.error->code, w->f.error->message);
        for (uint32_t i = 0; i < w->edit_count; i++)
            json_decref(documents[i]);
        w->sim->counts.edits_refused++;
        return;
    }
    w->version++;
    if (w->created_ms == 0)
        w->created_ms = w->f.now_ms;
    for (uint32_t i = 0; i < w->edit_count; i++)
        settle(w, w->edits[i], w->places[i], documents[i]);
    PROMISE(w->sim, response->write->version == w->version, "another version of the player");
    check_response(w, response);
    w->sim->counts.edits_done++;
}

static void ask(struct writer *w)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    json_t *documents[EDITS_MAX] = { 0 };
    uint32_t more = 0;

    w->fault = false;
    w->cause_count = 0;
    choose_places(w);
    edit_message **given =
        arena_messages(&w->sim->arena, &holdfast__v1__section_edit__descriptor, EDITS_MAX + 1);
    uint32_t turned = (uint32_t)rsim_between(w->sim, 0, w->edit_count - 1);
    for (uint32_t i = 0; i < w->edit_count; i++) {
        edit_message *edit = given[(i + turned) % w->edit_count]; /* Sent in another order. */
        w->edits[i] = edit;
        documents[i] = make_edit(w, w->places[i], edit);
        more += edit->edit_case != EDIT(DELETE) && w->sections[w->places[i]].version == 0;
        if (edit->edit_case != EDIT(DELETE) && w->count + more > LIMIT_SECTIONS)
            cause(w, CODE(CAPACITY_FULL));
    }
    request.player_id = text_lend(PLAYER);
    request.op_id = fixture_op_id(&w->f);
    request.authority = text_lend("unheld");
    request.edits = given;
    request.n_edits = w->edit_count;
    if (w->edit_count > 1 && w->edit_count < LIMIT_SECTION_EDITS && fault(w))
        given[0]->name = given[1]->name;
    else if (fault(w))
        request.n_edits = 0;
    bool stale = chance(w, 10);
    if (stale || chance(w, 20))
        request._if_version_case = HOLDFAST__V1__UPDATE_PROFILE_REQUEST___IF_VERSION_IF_VERSION;
    request.if_version = w->version + stale;
    if (stale)
        cause(w, CODE(VERSION_CONFLICT));
    send(w, &request, documents);
}

/* ---- what is told ---- */

static void check_section(struct writer *w, uint32_t place, const Holdfast__V1__Section *told)
{
    const struct section *section = &w->sections[place];

    PROMISE(w->sim,
            strcmp(told->name, name_of(w, place)) == 0 && told->version == section->version &&
                told->schema_version == section->schema &&
                (uint64_t)told->last_write_at_ms == section->written_ms,
            "section %s is told with version %" PRIu64 " and schema %u, not %" PRIu64 " and %u",
            told->name, told->version, told->schema_version, section->version, section->schema);
    PROMISE(w->sim, strcmp(told->json, text_of(w, section->document)) == 0, "%s is told as %s",
            text_of(w, section->document), told->json);
}

static void read_profile(struct writer *w)
{
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    char *words[70];
    bool wanted[PLACES] = { 0 };
    bool all = chance(w, 40);

    request.player_id = text_lend(PLAYER);
    request.include = words;
    if (all && chance(w, 50))
        words[request.n_include++] = text_lend("sections");
    for (uint32_t i = 0; !all && i < 3; i++) {
        uint32_t place = (uint32_t)rsim_between(w->sim, 0, 7);
        wanted[place] = true;
        words[request.n_include++] = arena_printf(&w->sim->arena, "sections.%s", name_of(w, place));
    }
    bool items = request.n_include > 0 && chance(w, 30);
    bool mail = request.n_include > 0 && chance(w, 30);
    if (items)
        words[request.n_include++] = text_lend("items");
    if (mail)
        words[request.n_include++] = text_lend("mail");
    const Holdfast__V1__GetProfileResponse *response =
        fixture_read(&w->f, METHOD_GET_PROFILE, &request.base);
    PROMISE(w->sim, response != NULL, "a profile is refused: %s", w->f.error->message);
    const Holdfast__V1__Profile *profile = response->profile;
    PROMISE(w->sim,
            profile->version == w->version && strcmp(profile->player_id, PLAYER) == 0 &&
                (uint64_t)profile->created_at_ms == w->created_ms,
            "the player is told with version %" PRIu64 ", not %" PRIu64, profile->version,
            w->version);
    PROMISE(w->sim, (profile->items != NULL) == items && (profile->mail != NULL) == mail,
            "items or mail are told that were not asked for, or left out");
    size_t at = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        if (w->sections[i].version == 0 || !(all || wanted[i]))
            continue;
        PROMISE(w->sim, at < profile->n_sections, "section %s is not told", name_of(w, i));
        check_section(w, i, profile->sections[at++]);
    }
    PROMISE(w->sim, at == profile->n_sections, "%zu sections are told, not %zu",
            profile->n_sections, at);
}

static void read_refused(struct writer *w)
{
    static const char *const wrong[] = { "section", "sections.", "sections.A", "", "ledger" };
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    char *words[69];

    request.player_id = text_lend(PLAYER);
    request.include = words;
    for (uint32_t i = 0; i < ARRAY_SIZE(words); i++)
        words[i] = text_lend("sections.s01");
    request.n_include = ARRAY_SIZE(words) - 1;
    PROMISE(w->sim, fixture_read(&w->f, METHOD_GET_PROFILE, &request.base) != NULL,
            "68 words are refused");
    if (chance(w, 50)) {
        request.n_include++;
    } else {
        request.n_include = 2;
        words[1] = text_lend(RSIM_PICK(w->sim, wrong));
    }
    PROMISE(w->sim,
            fixture_read(&w->f, METHOD_GET_PROFILE, &request.base) == NULL &&
                w->f.error->code == CODE(INVALID_ARGUMENT),
            "words are taken that there are not");
}

/* ---- sizes ---- */

/* `size` bytes of canonical JSON in one section. */
static bool write_large(struct writer *w, uint32_t place, size_t size)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    edit_message one = HOLDFAST__V1__SECTION_EDIT__INIT, *edits[] = { &one };
    char *text = mem_alloc(size + 1);

    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    text[size] = 0;
    one.name = name_of(w, place);
    one.schema_version = 1;
    one.edit_case = EDIT(REPLACE);
    one.replace = text;
    request.player_id = text_lend("large");
    request.op_id = fixture_op_id(&w->f);
    request.authority = text_lend("unheld");
    request.edits = edits;
    request.n_edits = 1;
    bool done = fixture_mutate(&w->f, METHOD_UPDATE_PROFILE, &request.base) != NULL;
    free(text);
    return done;
}

static void large(struct writer *w)
{
    PROMISE(w->sim, !write_large(w, 0, LIMIT_SECTION_BYTES + 1), "a section is too large");
    uint32_t count = LIMIT_PROFILE_BYTES / LIMIT_SECTION_BYTES;
    for (uint32_t i = 0; i < count; i++)
        PROMISE(w->sim, write_large(w, i, LIMIT_SECTION_BYTES), "section %u of %u bytes is refused",
                i, LIMIT_SECTION_BYTES);
    PROMISE(w->sim, !write_large(w, count, 2), "a profile is too large");
    PROMISE(w->sim, w->f.error->code == CODE(CAPACITY_FULL), "told otherwise");
    PROMISE(w->sim, write_large(w, 0, LIMIT_SECTION_BYTES - 2), "a smaller section is refused");
    PROMISE(w->sim, write_large(w, count, 2), "there is room for 2 bytes");
    PROMISE(w->sim, !write_large(w, count, 3), "a profile is too large by one byte");
    w->sim->counts.profiles_filled++;
}

void room_sections(struct rsim *sim)
{
    struct writer *w = mem_zalloc(sizeof *w);

    w->sim = sim;
    fixture_init(&w->f);
    w->many = rsim_chance(sim, 25);
    for (uint32_t i = 0; i < TURNS; i++) {
        w->f.now_ms += rsim_between(sim, 0, 40);
        ask(w);
        if (rsim_chance(sim, 20))
            read_profile(w);
        if (rsim_chance(sim, 5))
            read_refused(w);
        if (rsim_chance(sim, 5))
            fixture_checkpoint(&w->f);
        if (rsim_chance(sim, 10))
            fixture_evict(&w->f, 0);
        if (rsim_chance(sim, 5))
            fixture_restart(&w->f);
    }
    read_profile(w);
    if (rsim_chance(sim, 8))
        large(w);
    for (uint32_t i = 0; i < PLACES; i++)
        json_decref(w->sections[i].document);
    fixture_deinit(&w->f);
    free(w);
}
