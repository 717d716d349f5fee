/*
 * Roles and flags of players (user.proto; docs/users.md): a change is made whole, once under its
 * op_id, by who may make it and at the version that it wants; what is told is what was added and
 * set, by whom and when, without what was removed, was cleared or is over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/user.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define NAMES   40u /* Of roles, and of flags. */
#define MOST    32u
#define PLAYERS 2u
#define LISTED  8u
#define TURNS   60u

typedef Holdfast__V1__SetUserFlagsRequest set_request;
typedef Holdfast__V1__SetUserFlagsResponse set_response;

struct given {
    bool stands;
    char by[48];
    uint64_t at_ms, until_ms; /* 0: it has no end. */
};

struct person {
    const char *id;
    uint64_t version;
    struct given roles[NAMES], flags[NAMES];
    set_request *done; /* The last change that was made; NULL: none. */
    const set_response *answer;
};

struct hall {
    struct rsim *sim;
    struct fixture f;
    uint32_t few; /* Names in use. */
    char callers[3][8];
    struct person persons[PLAYERS];
};

/* In the order of their bytes. */
static char *name_at(struct hall *h, const char *stem, uint32_t place)
{
    return arena_printf(&h->sim->arena, "%s%02u", stem, place);
}

static uint32_t place_of(struct hall *h, const char *name, const char *stem)
{
    uint32_t place = NAMES;

    PROMISE(h->sim, strncmp(name, stem, 1) == 0 && sscanf(name + 1, "%u", &place) == 1,
            "%s was never given", name);
    PROMISE(h->sim, place < NAMES, "%s was never given", name);
    return place;
}

static bool is_over(const struct given *entry, uint64_t now_ms)
{
    return entry->until_ms > 0 && entry->until_ms <= now_ms;
}

/* ---- what is told ---- */

static uint32_t count_of(const struct given *entries, uint64_t now_ms)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NAMES; i++)
        count += entries[i].stands && !is_over(&entries[i], now_ms);
    return count;
}

/* What an answer tells. */
struct shown {
    size_t role_count, flag_count;
    Holdfast__V1__UserRole *const *roles;
    Holdfast__V1__UserFlag *const *flags;
};

static void given_check(struct hall *h, const struct given *given,
                        const Holdfast__V1__UserFlag *told)
{
    PROMISE(h->sim, given->stands && !is_over(given, h->f.now_ms), "%s is told, and is gone",
            told->name);
    PROMISE(h->sim, strcmp(given->by, told->by) == 0, "%s is told as given by %s, not %s",
            told->name, told->by, given->by);
    PROMISE(h->sim,
            given->at_ms == (uint64_t)told->at_ms && given->until_ms == (uint64_t)told->until_ms,
            "%s is told with another time", told->name);
}

static void told_check(struct hall *h, const struct person *person, const struct shown *shown)
{
    uint64_t now_ms = h->f.now_ms;

    PROMISE(h->sim, shown->role_count == count_of(person->roles, now_ms),
            "%zu roles are told of %u", shown->role_count, count_of(person->roles, now_ms));
    for (size_t i = 0; i < shown->role_count; i++) {
        const Holdfast__V1__UserRole *role = shown->roles[i];
        Holdfast__V1__UserFlag told = HOLDFAST__V1__USER_FLAG__INIT;

        told.name = role->name;
        told.by = role->by;
        told.at_ms = role->at_ms;
        given_check(h, &person->roles[place_of(h, role->name, "r")], &told);
        PROMISE(h->sim, i == 0 || strcmp(shown->roles[i - 1]->name, role->name) < 0, "no order");
    }
    PROMISE(h->sim, shown->flag_count == count_of(person->flags, now_ms),
            "%zu flags are told of %u", shown->flag_count, count_of(person->flags, now_ms));
    for (size_t i = 0; i < shown->flag_count; i++) {
        const Holdfast__V1__UserFlag *flag = shown->flags[i];

        given_check(h, &person->flags[place_of(h, flag->name, "f")], flag);
        PROMISE(h->sim, i == 0 || strcmp(shown->flags[i - 1]->name, flag->name) < 0, "no order");
    }
}

static void get_turn(struct hall *h, const struct person *person)
{
    Holdfast__V1__GetUserFlagsRequest request = HOLDFAST__V1__GET_USER_FLAGS_REQUEST__INIT;

    request.player_id = text_lend(person->id);
    const Holdfast__V1__GetUserFlagsResponse *told =
        fixture_read(&h->f, METHOD_GET_USER_FLAGS, &request.base);

    PROMISE(h->sim, told != NULL, "a read is refused");
    told_check(h, person,
               &(struct shown){ told->n_roles, told->n_flags, told->roles, told->flags });
}

/* ---- what is asked for ---- */

struct names {
    char **texts;
    size_t *count;
};

/* Each at most once in both together. */
static void names_draw(struct hall *h, const char *stem, struct names adds, struct names removes)
{
    uint32_t adding = h->few > 5 ? 85 : 45; /* Many come near what a player may have. */

    for (uint32_t i = 0; i < h->few; i++) {
        struct names *names = rsim_chance(h->sim, adding) ? &adds : &removes;

        if (*adds.count + *removes.count < LISTED && rsim_chance(h->sim, 30))
            names->texts[(*names->count)++] = name_at(h, stem, i);
    }
}

static set_request *request_make(struct hall *h, const struct person *person)
{
    struct arena *arena = &h->sim->arena;
    set_request *request = arena_alloc(arena, sizeof *request);
    char **flags = arena_zalloc(arena, LISTED * sizeof *flags);
    size_t flag_count = 0;

    holdfast__v1__set_user_flags_request__init(request);
    request->player_id = text_lend(person->id);
    request->op_id = arena_text(arena, slice_from_text(fixture_op_id(&h->f)));
    request->add_roles = arena_zalloc(arena, LISTED * sizeof *request->add_roles);
    request->remove_roles = arena_zalloc(arena, LISTED * sizeof *request->remove_roles);
    request->clear_flags = arena_zalloc(arena, LISTED * sizeof *request->clear_flags);
    if (rsim_chance(h->sim, 70))
        names_draw(h, "r", (struct names){ request->add_roles, &request->n_add_roles },
                   (struct names){ request->remove_roles, &request->n_remove_roles });
    names_draw(h, "f", (struct names){ flags, &flag_count },
               (struct names){ request->clear_flags, &request->n_clear_flags });
    request->n_set_flags = flag_count;
    request->set_flags =
        arena_messages(arena, &holdfast__v1__user_flag_wish__descriptor, flag_count);
    for (size_t i = 0; i < flag_count; i++) {
        request->set_flags[i]->name = flags[i];
        if (rsim_chance(h->sim, 60)) /* Sometimes it is over before it is set. */
            request->set_flags[i]->until_ms =
                (int64_t)(h->f.now_ms - 500 + rsim_between(h->sim, 0, 4000));
    }
    return request;
}

/* ---- what comes of it ---- */

static void entry_put(struct hall *h, struct given *entry, const set_request *request,
                      int64_t until_ms)
{
    *entry = (struct given){ true, "", h->f.now_ms, (uint64_t)until_ms };
    (void)snprintf(entry->by, sizeof entry->by, "%s%s%s", request->authority,
                   h->f.caller != NULL ? "/" : "", h->f.caller != NULL ? h->f.caller : "");
}

static struct person person_after(struct hall *h, const struct person *person,
                                  const set_request *request)
{
    struct person after = *person;

    for (size_t i = 0; i < request->n_remove_roles; i++)
        after.roles[place_of(h, request->remove_roles[i], "r")].stands = false;
    for (size_t i = 0; i < request->n_add_roles; i++)
        entry_put(h, &after.roles[place_of(h, request->add_roles[i], "r")], request, 0);
    for (size_t i = 0; i < request->n_clear_flags; i++)
        after.flags[place_of(h, request->clear_flags[i], "f")].stands = false;
    for (size_t i = 0; i < request->n_set_flags; i++)
        entry_put(h, &after.flags[place_of(h, request->set_flags[i]->name, "f")], request,
                  request->set_flags[i]->until_ms);
    after.version++;
    return after;
}

static bool names_roles(const set_request *request)
{
    return request->n_add_roles + request->n_remove_roles > 0;
}

static bool may(const set_request *request)
{
    return strcmp(request->authority, "system:admin") == 0 ||
           (!names_roles(request) && strcmp(request->authority, "system:payments") == 0);
}

static void ask(struct hall *h, struct person *person, set_request *request,
                Holdfast__V1__ErrorCode code)
{
    const struct person after = person_after(h, person, request);

    if (code == 0 &&
        (count_of(after.roles, h->f.now_ms) > MOST || count_of(after.flags, h->f.now_ms) > MOST))
        code = CODE(CAPACITY_FULL);
    const set_response *told = fixture_mutate(&h->f, METHOD_SET_USER_FLAGS, &request->base);

    PROMISE(h->sim, (told != NULL) == (code == 0), "%s asks: %s", request->authority,
            told != NULL ? "done" : h->f.error->message);
    if (told == NULL) {
        PROMISE(h->sim, h->f.error->code == code, "refused with %d, not %d: %s",
                (int)h->f.error->code, (int)code, h->f.error->message);
        h->sim->counts.roles_refused++;
        return;
    }
    *person = after;
    PROMISE(h->sim, !told->write->duplicate && told->write->version == person->version,
            "version %" PRIu64 " is told, not %" PRIu64, told->write->version, person->version);
    told_check(h, person,
               &(struct shown){ told->n_roles, told->n_flags, told->roles, told->flags });
    person->done = request;
    person->answer = (const void *)arena_unpack(&h->sim->arena, told->base.descriptor,
                                                arena_pack(&h->sim->arena, &told->base));
    h->sim->counts.roles_changed++;
}

static void change_turn(struct hall *h, struct person *person)
{
    static const char *const authorities[] = { "system:admin", "system:admin", "system:payments",
                                               "system:match" };
    set_request *request = request_make(h, person);
    Holdfast__V1__ErrorCode code = 0;

    if (request->n_set_flags + request->n_clear_flags == 0 && !names_roles(request))
        return;
    request->authority = text_lend(RSIM_PICK(h->sim, authorities));
    h->f.caller = rsim_chance(h->sim, 30) ? NULL : RSIM_PICK(h->sim, h->callers);
    if (!may(request)) {
        code = CODE(PERMISSION_DENIED);
    } else if (rsim_chance(h->sim, 40)) {
        request->_if_version_case = HOLDFAST__V1__SET_USER_FLAGS_REQUEST___IF_VERSION_IF_VERSION;
        request->if_version = rsim_about(h->sim, person->version + 1);
        code = request->if_version == person->version ? 0 : CODE(VERSION_CONFLICT);
    }
    ask(h, person, request, code);
}

/* The same again, or another change under its op_id. */
static void repeat_turn(struct hall *h, struct person *person)
{
    if (person->done == NULL)
        return;
    set_request request = *person->done;
    char *other[] = { name_at(h, "r", NAMES - 1) };
    bool differs = rsim_chance(h->sim, 30);

    if (differs) {
        request.add_roles = other;
        request.n_add_roles = 1;
    }
    h->f.caller = RSIM_PICK(h->sim, h->callers);
    const set_response *told = fixture_mutate(&h->f, METHOD_SET_USER_FLAGS, &request.base);

    PROMISE(h->sim, (told != NULL) != differs, "a repetition is %s",
            told != NULL ? "another change" : "refused");
    if (told == NULL) {
        PROMISE(h->sim, h->f.error->code == CODE(OPERATION_ID_MISMATCH), "%s", h->f.error->message);
        return;
    }
    PROMISE(h->sim,
            told->write->duplicate && told->n_roles == person->answer->n_roles &&
                told->n_flags == person->answer->n_flags,
            "a repetition has another answer");
    h->sim->counts.roles_repeated++;
}

static void turn(struct hall *h)
{
    struct person *person = &h->persons[rsim_between(h->sim, 0, PLAYERS - 1)];
    uint64_t what = rsim_between(h->sim, 0, 99);

    if (what < 55)
        change_turn(h, person);
    else if (what < 72)
        repeat_turn(h, person);
    else if (what < 92)
        get_turn(h, person);
    else if (what < 96)
        fixture_restart(&h->f);
    else
        fixture_evict(&h->f, 0);
}

void room_roles(struct rsim *sim)
{
    static const char *const ids[PLAYERS] = { "ann", "bob" };
    struct hall *h = arena_zalloc(&sim->arena, sizeof *h);

    h->sim = sim;
    h->few = rsim_chance(sim, 30) ? NAMES - 1 : 5;
    fixture_init(&h->f);
    for (uint32_t i = 0; i < 3; i++)
        (void)snprintf(h->callers[i], sizeof h->callers[i], "key-%u", i);
    for (uint32_t i = 0; i < PLAYERS; i++)
        h->persons[i].id = ids[i];
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(h);
        h->f.now_ms += rsim_between(sim, 1, 600);
    }
    for (uint32_t i = 0; i < PLAYERS; i++)
        get_turn(h, &h->persons[i]);
    fixture_deinit(&h->f);
}
