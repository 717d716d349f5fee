/*
 * presence_fuzz: presence at one member: what callers ask, and parts as other members or a disk may
 * have them. The input is steps: u8 what, u8 size, bytes. SET, CLEAR and GET are requests; PART is
 * a part's value, under the connection "x"; END ends the server whose number is the first byte.
 */
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/methods.h"
#include "node/core/document/presence.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

enum step { STEP_SET, STEP_CLEAR, STEP_GET, STEP_PART, STEP_END, STEP_COUNT };

#define NOW_MS 1700000000000u
#define OP     "018bcfe5-6800-7000-8000-000000000001"

struct world {
    struct arena arena;
    struct document_rules rules;
    struct living living;
    struct merge_replica *replica;
    struct refusal refusal;
};

static struct document_context context_of(struct world *w)
{
    return (struct document_context){ .arena = &w->arena,
                                      .rules = &w->rules,
                                      .replica = w->replica,
                                      .living = &w->living,
                                      .now_ms = NOW_MS,
                                      .refusal = &w->refusal };
}

/* Answered, or refused with a code and a sentence. */
static struct slice call(struct world *w, uint32_t method, struct slice request)
{
    struct document_context context = context_of(w);
    struct document_begun begun = { 0 };

    w->refusal = (struct refusal){ 0 };
    merge_durable(w->replica, w->replica->log_end);
    err e = document_method_find(method)->begin(&context, request, &begun);

    CHECK(e == ERR_OK ? method == METHOD_GET_PRESENCE || begun.ticket != 0
                      : w->refusal.code != 0 && w->refusal.message != NULL);
    merge_out_clear(&w->replica->out);
    return begun.answer;
}

static void write_part(struct world *w, struct slice value)
{
    struct document_context context = context_of(w);
    const struct merge_edit edit = { .path = SLICE_LITERAL("x"), .value = value };
    struct document_place place;
    struct merge_refusal refusal;
    struct merge_written written;

    CHECK(presence_find(&context, "ada", "", &place) == ERR_OK);
    const struct merge_write write = { .key = place.key,
                                       .policy = MERGE_POLICY_MERGE,
                                       .durability = MERGE_MEMORY,
                                       .edit_count = 1,
                                       .edits = &edit };

    err e = merge_write(w->replica, NOW_MS, &write, &written, &refusal);

    CHECK(e == ERR_OK || e == ERR_FULL);
    merge_out_clear(&w->replica->out);
    merge_key_unref(place.key);
}

/* What is shown can be read, and nothing of it is of a server that ended. */
static void check_shown(struct world *w)
{
    Holdfast__V1__GetPresenceRequest request = HOLDFAST__V1__GET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend("ada");
    const Holdfast__V1__GetPresenceResponse *response =
        (void *)arena_unpack(&w->arena, &holdfast__v1__get_presence_response__descriptor,
                             call(w, METHOD_GET_PRESENCE, arena_pack(&w->arena, &request.base)));

    CHECK(response != NULL && w->refusal.code == 0);
    for (size_t i = 0; response->presence != NULL && i < response->presence->n_connections; i++) {
        const Holdfast__V1__PresenceConnection *shown = response->presence->connections[i];
        struct incarnation incarnation;

        CHECK(shown->connection[0] != 0);
        CHECK(shown->incarnation[0] == 0 ||
              (incarnation_parse(slice_from_text(shown->incarnation), &incarnation) == ERR_OK &&
               living_state_of(&w->living, incarnation, NOW_MS) != LIVING_DEAD));
    }
}

static void check_sweep(struct world *w)
{
    struct document_context context = context_of(w);
    struct merge_key *key = NULL;
    uint32_t swept = 0;

    while (presence_sweep(&context, NULL, &key) == ERR_OK) {
        merge_out_clear(&w->replica->out);
        merge_key_unref(key);
        CHECK(++swept <= 64);
    }
    check_shown(w);
}

static void take(struct world *w, enum step step, struct slice bytes)
{
    static const uint32_t methods[] = { METHOD_SET_PRESENCE, METHOD_CLEAR_PRESENCE,
                                        METHOD_GET_PRESENCE };

    if (step <= STEP_GET)
        (void)call(w, methods[step], bytes);
    else if (step == STEP_PART)
        write_part(w, bytes);
    else if (bytes.size > 0)
        living_put(&w->living, (struct incarnation){ 1, bytes.data[0] }, true);
    living_check(&w->living);
}

void fuzz_one(struct slice input)
{
    struct world w = { .replica = fixture_member(1) };
    struct reader reader = reader_from(input);

    living_hear(&w.living, 200, 1);
    for (uint64_t i = 1; i < 10; i++)
        living_put(&w.living, (struct incarnation){ 1, i }, false);
    living_complete(&w.living);
    for (uint32_t i = 0; i < 32 && reader_left(&reader) >= 2; i++) {
        enum step step = read_u8(&reader) % STEP_COUNT;
        uint32_t size = read_u8(&reader);
        uint32_t left = (uint32_t)reader_left(&reader);

        take(&w, step, read_bytes(&reader, size < left ? size : left));
        check_shown(&w);
    }
    check_sweep(&w);
    merge_free(w.replica);
    living_deinit(&w.living);
    arena_deinit(&w.arena);
}

/* ---- seeds ---- */

static void put_step(struct buf *out, enum step step, struct slice bytes)
{
    buf_put_u8(out, (uint8_t)step);
    buf_put_u8(out, (uint8_t)bytes.size);
    buf_append(out, bytes.data, bytes.size);
}

static void put_set(struct buf *out, const char *connection, const char *incarnation)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;
    struct arena arena = { 0 };

    request.player_id = text_lend("ada");
    request.op_id = text_lend(OP);
    request.connection = text_lend(connection);
    request.incarnation = text_lend(incarnation);
    request.status = text_lend("{\"in\":\"lobby\"}");
    request.ttl_ms = incarnation[0] == 0 ? 5000 : 0;
    put_step(out, STEP_SET, arena_pack(&arena, &request.base));
    arena_deinit(&arena);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    Holdfast__V1__ClearPresenceRequest clear = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;
    Holdfast__V1__PresenceConnection part = HOLDFAST__V1__PRESENCE_CONNECTION__INIT;
    struct arena arena = { 0 };
    struct buf bytes = { 0 };

    put_set(&bytes, "game", "1-5");
    put_set(&bytes, "phone", "");
    put_step(&bytes, STEP_END, SLICE_LITERAL("\5"));
    put_set(&bytes, "game", "1-6");
    fuzz_seed_add(seeds, "set", buf_slice(&bytes));
    clear.player_id = text_lend("ada");
    clear.op_id = text_lend(OP);
    put_step(&bytes, STEP_CLEAR, arena_pack(&arena, &clear.base));
    fuzz_seed_add(seeds, "clear", buf_slice(&bytes));
    part.incarnation = text_lend("1-7");
    put_step(&bytes, STEP_PART, arena_pack(&arena, &part.base));
    put_step(&bytes, STEP_END, SLICE_LITERAL("\7"));
    fuzz_seed_add(seeds, "part", buf_slice(&bytes));
    put_step(&bytes, STEP_PART, SLICE_LITERAL("\377"));
    fuzz_seed_add(seeds, "bad-part", buf_slice(&bytes));
    buf_deinit(&bytes);
    arena_deinit(&arena);
}
