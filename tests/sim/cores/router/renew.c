/*
 * The heartbeat of a game server (router/core/renew.h), and the tokens that it shows
 * (session_guard.h): each of its sessions is told as one thing, and never as current where no shard
 * said so.
 */
#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/renew.h"
#include "router/core/route.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/cores/rsim.h"

#define SESSIONS 24u
#define SHARDS   8u

enum truth { TRUTH_LOST, TRUTH_ASKED };

struct beat {
    struct rsim *sim;
    struct session_secrets secrets;
    Holdfast__V1__RenewSessionsRequest request;
    Holdfast__V1__SessionRef refs[SESSIONS], *list[SESSIONS];
    enum truth truth[SESSIONS];
    uint64_t fences[SESSIONS];
    uint32_t shards[SESSIONS];
    enum renew_verdict wanted[SESSIONS];
    uint32_t remaining_ms[SESSIONS];
    struct renew_plan plan;
};

static uint32_t shard_of(const char *player)
{
    char entity[160];
    int size = snprintf(entity, sizeof entity, "player:%s", player);

    return shard_of_entity((struct slice){ (const uint8_t *)entity, (size_t)size }, SHARDS);
}

static void session_make(struct beat *b, uint32_t place)
{
    struct rsim *sim = b->sim;
    Holdfast__V1__SessionRef *ref = b->list[place] = &b->refs[place];
    uint64_t what = rsim_between(sim, 0, 11);
    char text[SESSION_TOKEN_TEXT_SIZE];
    struct session_token token = { .incarnation = { 1, what == 1 ? 78 : 77 },
                                   .fence = rsim_between(sim, 1, 50) };
    size_t size = what == 5 ? rsim_about(sim, 100) : what == 4 ? 0 : 3;
    char *player = arena_zalloc(&sim->arena, size + 1);

    memset(player, 'p', size);
    for (size_t i = 0; i < size && i < 3; i++)
        player[i] = (char)('a' + rsim_between(sim, 0, 20));
    holdfast__v1__session_ref__init(ref);
    ref->player_id = player;
    session_token_print(&b->secrets, slice_from_text(what == 2 ? "mallory" : player), &token, text);
    if (what == 3)
        text[strlen(text) - SESSION_TOKEN_MAC_CHARS - 1] = 0; /* Without its MAC. */
    ref->token = arena_printf(&sim->arena, "%s", what == 6 ? "no token" : text);
    bool lost = (what >= 1 && what <= 4) || what == 6 || size > 100;
    b->truth[place] = lost ? TRUTH_LOST : TRUTH_ASKED;
    b->fences[place] = token.fence;
    b->shards[place] = size <= 100 ? shard_of(player) : SHARDS;
}

static void groups_check(struct beat *b)
{
    uint32_t asked = 0, grouped = 0;

    for (uint32_t i = 0; i < b->request.n_sessions; i++)
        asked += b->truth[i] == TRUTH_ASKED;
    for (uint32_t g = 0; g < b->plan.group_count; g++) {
        const struct renew_group *group = &b->plan.groups[g];

        PROMISE(b->sim, g == 0 || group->shard > b->plan.groups[g - 1].shard,
                "a shard is asked twice, or shards do not rise");
        PROMISE(b->sim, group->request.shard == group->shard, "the shard of another");
        PROMISE(b->sim, strcmp(group->request.incarnation, "1-77") == 0, "another incarnation");
        PROMISE(b->sim, group->request.n_tokens > 0, "a shard is asked for nothing");
        for (size_t i = 0; i < group->request.n_tokens; i++) {
            const Holdfast__Internal__V1__RenewToken *token = group->request.tokens[i];

            PROMISE(b->sim, token->position < b->request.n_sessions, "no such position");
            PROMISE(b->sim, b->truth[token->position] == TRUTH_ASKED, "a lost token is asked for");
            PROMISE(b->sim, b->shards[token->position] == group->shard, "another shard is asked");
            PROMISE(b->sim, b->fences[token->position] == token->fence, "the fence of another");
            PROMISE(b->sim, strcmp(token->player_id, b->refs[token->position].player_id) == 0,
                    "the player of another");
            grouped++;
        }
    }
    PROMISE(b->sim, grouped == asked, "%u tokens are asked for, not %u", grouped, asked);
}

/* A shard's answer: all but those that it names are current. A position of no session says nothing.
 */
static void answer_one(struct beat *b, uint32_t g)
{
    struct rsim *sim = b->sim;
    const struct renew_group *group = &b->plan.groups[g];
    Holdfast__Internal__V1__RenewTokensResponse answer;
    uint32_t lost[SESSIONS + 1];
    Holdfast__Internal__V1__RenewRelease releases[SESSIONS + 1], *list[SESSIONS + 1];

    if (rsim_chance(sim, 20)) {
        renew_take(&b->plan, g, NULL);
        for (size_t i = 0; i < group->request.n_tokens; i++)
            b->wanted[group->request.tokens[i]->position] = RENEW_UNKNOWN;
        return;
    }
    holdfast__internal__v1__renew_tokens_response__init(&answer);
    answer.lost = lost;
    answer.release_requested = list;
    for (size_t i = 0; i < group->request.n_tokens; i++) {
        uint32_t position = group->request.tokens[i]->position;
        uint64_t what = rsim_between(sim, 0, 3);

        b->wanted[position] = RENEW_CURRENT;
        if (what == 0) {
            lost[answer.n_lost++] = position;
            b->wanted[position] = RENEW_LOST;
        } else if (what == 1) {
            Holdfast__Internal__V1__RenewRelease *one = &releases[answer.n_release_requested];
            holdfast__internal__v1__renew_release__init(one);
            one->position = position;
            one->remaining_ms = (uint32_t)rsim_between(sim, 1, 900);
            list[answer.n_release_requested++] = one;
            b->wanted[position] = RENEW_RELEASE;
            b->remaining_ms[position] = one->remaining_ms;
        }
    }
    if (rsim_chance(sim, 20))
        lost[answer.n_lost++] = (uint32_t)b->request.n_sessions;
    if (rsim_chance(sim, 20)) {
        Holdfast__Internal__V1__RenewRelease *one = &releases[answer.n_release_requested];
        holdfast__internal__v1__renew_release__init(one);
        one->position = (uint32_t)b->request.n_sessions + (uint32_t)rsim_between(sim, 0, 100);
        list[answer.n_release_requested++] = one;
    }
    renew_take(&b->plan, g, &answer);
}

static void joined_check(struct beat *b)
{
    struct rsim *sim = b->sim;
    const Holdfast__V1__RenewSessionsResponse *told = renew_join(&b->plan, &sim->arena);
    size_t lost = 0, unknown = 0, released = 0;

    for (uint32_t i = 0; i < b->request.n_sessions; i++) {
        const Holdfast__V1__SessionRef *ref = &b->refs[i];

        if (b->wanted[i] == RENEW_LOST)
            PROMISE(sim, lost < told->n_lost && told->lost[lost++] == ref, "lost, and not told");
        if (b->wanted[i] == RENEW_UNKNOWN)
            PROMISE(sim, unknown < told->n_unknown && told->unknown[unknown++] == ref,
                    "unknown, and not told");
        if (b->wanted[i] != RENEW_RELEASE)
            continue;
        PROMISE(sim, released < told->n_release_requested, "to be released, and not told");
        const Holdfast__V1__ReleaseRequest *one = told->release_requested[released++];
        PROMISE(sim,
                strcmp(one->player_id, ref->player_id) == 0 &&
                    strcmp(one->token, ref->token) == 0 && one->remaining_ms == b->remaining_ms[i],
                "another session is to be released");
    }
    PROMISE(sim,
            lost == told->n_lost && unknown == told->n_unknown &&
                released == told->n_release_requested,
            "a session that is current is told as another");
    sim->counts.renewals++;
    sim->counts.renewals_lost += lost > 0;
    sim->counts.renewals_unknown += unknown > 0;
}

static void refused_run(struct beat *b, const struct renew_call *call)
{
    static const char *const bad[] = { "", "1", "1-", "0-7", "x" };
    struct rsim *sim = b->sim;

    b->request.incarnation = text_lend(RSIM_PICK(sim, bad));
    PROMISE(sim, renew_split(call, &sim->arena, &b->plan, &sim->detail) == ERR_INVALID,
            "no incarnation, and renewed");
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "incarnation");
    b->request.incarnation = text_lend("1-77");
    size_t count = rsim_about(sim, 1000);
    Holdfast__V1__SessionRef **many = arena_alloc(&sim->arena, count * sizeof *many);
    for (size_t i = 0; i < count; i++)
        many[i] = &b->refs[0];
    session_make(b, 0);
    b->request.sessions = many;
    b->request.n_sessions = count;
    err e = renew_split(call, &sim->arena, &b->plan, &sim->detail);
    PROMISE(sim, e == (count > 1000 ? ERR_INVALID : ERR_OK), "%zu sessions: %d", count, (int)e);
    if (e != ERR_OK)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), "sessions");
}

/* ---- the answer of StartSession ---- */

static void sign_run(struct beat *b)
{
    struct rsim *sim = b->sim;
    struct session_guard guard = { .secrets = &b->secrets };
    Holdfast__V1__StartSessionResponse response, *read;
    Holdfast__V1__WriteInfo write;
    struct session_token token;
    uint8_t bytes[256];
    struct slice told = { 0 };
    char plain[64];
    uint64_t what = rsim_between(sim, 0, 7);

    (void)snprintf(plain, sizeof plain, "1-77-%u", (unsigned)rsim_between(sim, 1, 99));
    holdfast__v1__start_session_response__init(&response);
    holdfast__v1__write_info__init(&write);
    response.write = rsim_chance(sim, 70) ? &write : NULL;
    response.token = what == 0 ? text_lend("none") : plain;
    response.fence = rsim_between(sim, 0, 300);
    response.stolen = rsim_chance(sim, 50);
    size_t size = holdfast__v1__start_session_response__pack(&response, bytes);
    if (what == 1)
        size -= size > 1 && response.stolen ? 2 : 1;
    if (what == 2) { /* Fields of other types, of a later version. */
        memcpy(bytes + size,
               "\xf9\x06"
               "12345678"
               "\xfd\x06"
               "1234",
               16);
        size += 16;
    }
    err e = session_guard_sign(&guard, SLICE_LITERAL("ada"), (struct slice){ bytes, size },
                               &sim->arena, &told);
    if (what <= 1) {
        PROMISE(sim, what == 1 || e == ERR_CORRUPT, "an answer without a token is signed");
        return;
    }
    PROMISE(sim, e == ERR_OK, "an answer is not signed: %d", (int)e);
    read = holdfast__v1__start_session_response__unpack(NULL, told.size, told.data);
    PROMISE(sim, read != NULL, "an answer that cannot be read");
    PROMISE(sim,
            read->fence == response.fence && read->stolen == response.stolen &&
                (read->write != NULL) == (response.write != NULL),
            "the rest of an answer is changed");
    PROMISE(sim,
            session_guard_token(&guard, SLICE_LITERAL("ada"), slice_from_text(read->token),
                                &token) == ERR_OK &&
                slice_equal(token.plain, slice_from_text(plain)),
            "the token is not good: %s", read->token);
    PROMISE(sim,
            session_guard_token(&guard, SLICE_LITERAL("bob"), slice_from_text(read->token),
                                &token) == ERR_INVALID &&
                session_guard_token(&guard, SLICE_LITERAL("ada"), slice_from_text(plain), &token) ==
                    ERR_INVALID &&
                session_guard_token(&guard, SLICE_LITERAL("ada"), SLICE_LITERAL("x"), &token) ==
                    ERR_INVALID,
            "a token is good for another player, or without its MAC");
    PROMISE(sim,
            guard.refused[SESSION_GUARD_NO_MAC] == 1 && guard.refused[SESSION_GUARD_WRONG_MAC] == 1,
            "tokens that were not believed are miscounted");
    holdfast__v1__start_session_response__free_unpacked(read, NULL);
    sim->counts.answers_signed++;
}

void room_renew(struct rsim *sim)
{
    struct beat *b = arena_zalloc(&sim->arena, sizeof *b);
    struct token_secret_record record = { .rotated_at_ms = 0 };
    struct session_guard guard = { .secrets = &b->secrets };
    const struct renew_call call = { &b->request, SHARDS, &guard };

    b->sim = sim;
    for (size_t i = 0; i < sizeof record.current; i++)
        record.current[i] = (uint8_t)(1 + rsim_between(sim, 0, 254));
    session_secrets_init(&b->secrets, "sim", &record);
    holdfast__v1__renew_sessions_request__init(&b->request);
    b->request.incarnation = text_lend("1-77");
    b->request.sessions = b->list;
    b->request.n_sessions = rsim_between(sim, 0, SESSIONS);
    for (uint32_t i = 0; i < b->request.n_sessions; i++)
        session_make(b, i);
    PROMISE(sim, renew_split(&call, &sim->arena, &b->plan, &sim->detail) == ERR_OK,
            "a heartbeat is refused");
    groups_check(b);
    for (uint32_t i = 0; i < b->request.n_sessions; i++)
        b->wanted[i] = b->truth[i] == TRUTH_LOST ? RENEW_LOST : RENEW_UNKNOWN;
    for (uint32_t g = 0; g < b->plan.group_count; g++)
        answer_one(b, g);
    joined_check(b);
    if (sim->seed % 4 == 1)
        refused_run(b, &call);
    for (uint32_t i = 0; i < 4; i++)
        sign_run(b);
}
