/* Where a request belongs and what is wrong with its envelope (router/core/route.h), and what a
 * refusal repeats of it (refusal.h). */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/core/route.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define TEXT_MAX 170u

/* A text of an envelope, and what is wrong with it: "empty", "long", "control"; NULL: nothing. */
static char *text_make(struct rsim *sim, size_t bytes_max, bool *ret_sound)
{
    size_t size = 6;

    switch (rsim_between(sim, 0, 5)) {
    case 0:
        size = 0;
        break;
    case 1:
    case 2:
        size = rsim_about(sim, bytes_max);
        break;
    default:
        break;
    }
    char *text = arena_zalloc(&sim->arena, size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)rsim_between(sim, 'a', 'z');
    *ret_sound = size > 0 && size <= bytes_max;
    if (size > 0 && rsim_chance(sim, 20)) {
        size_t at = rsim_chance(sim, 50) ? size - 1 : rsim_between(sim, 0, size - 1);
        static const char odd[] = { 0x1f, 0x7f, 0x01, 0x20, 0x7e };
        uint64_t which = rsim_between(sim, 0, 4);
        text[at] = odd[which];
        *ret_sound &= which > 2;
    }
    return text;
}

static void named_check(struct rsim *sim, const ProtobufCMessage *message, const char *entity,
                        const char *op_id)
{
    Holdfast__V1__ErrorDetail detail;
    bool told = rsim_chance(sim, 20);

    holdfast__v1__error_detail__init(&detail);
    if (told) {
        detail.entity = text_lend("player:told");
        detail.op_id = text_lend("told");
        entity = "player:told";
        op_id = "told";
    }
    route_name(message, &sim->arena, &detail);
    PROMISE(sim, strcmp(detail.entity, entity) == 0, "an error is about \"%s\", not \"%s\"",
            detail.entity, entity);
    PROMISE(sim, strcmp(detail.op_id, op_id) == 0, "an error is of the operation \"%s\"",
            detail.op_id);
}

static void mutation_run(struct rsim *sim)
{
    Holdfast__V1__GrantRequest request;
    struct route_entity entity;
    bool player_sound, op_sound;

    holdfast__v1__grant_request__init(&request);
    request.player_id = text_make(sim, 100, &player_sound);
    request.op_id = text_make(sim, 160, &op_sound);
    char *home = arena_printf(&sim->arena, "player:%s", request.player_id);
    err e = route_find_entity(method_find(METHOD_GRANT), &request.base, &sim->arena, &entity,
                              &sim->detail);
    PROMISE(sim, e == (player_sound && op_sound ? ERR_OK : ERR_INVALID),
            "a player's id of %zu bytes and an op_id of %zu: %d", strlen(request.player_id),
            strlen(request.op_id), (int)e);
    named_check(sim, &request.base, player_sound ? home : "", op_sound ? request.op_id : "");
    if (e != ERR_OK) {
        rsim_refused(sim, CODE(INVALID_ARGUMENT), player_sound ? "op_id" : "player_id");
        sim->counts.envelopes_refused++;
        return;
    }
    PROMISE(sim, entity.size == strlen(home) && strcmp(entity.text, home) == 0,
            "the home of %s is %s", home, entity.text);
    sim->counts.entities_found++;
}

static void read_run(struct rsim *sim)
{
    Holdfast__V1__GetOperationRequest request;
    struct route_entity entity;
    bool sound, op_sound;

    holdfast__v1__get_operation_request__init(&request);
    request.entity = text_make(sim, 128, &sound);
    request.op_id = text_make(sim, 160, &op_sound);
    err e = route_find_entity(method_find(METHOD_GET_OPERATION), &request.base, &sim->arena,
                              &entity, &sim->detail);
    PROMISE(sim, e == (sound && op_sound ? ERR_OK : ERR_INVALID), "an entity of %zu bytes: %d",
            strlen(request.entity), (int)e);
    named_check(sim, &request.base, sound ? request.entity : "", op_sound ? request.op_id : "");
    if (e != ERR_OK)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), sound ? "op_id" : "entity");
    else
        PROMISE(sim,
                entity.size == strlen(request.entity) && strcmp(entity.text, request.entity) == 0,
                "another entity");
}

/* A request without a home is no routed one: a bug, told as that. */
static void homeless_run(struct rsim *sim)
{
    Holdfast__V1__SetPolicyRequest request;
    struct route_entity entity;

    holdfast__v1__set_policy_request__init(&request);
    PROMISE(sim,
            route_find_entity(method_find(METHOD_GRANT), &request.base, &sim->arena, &entity,
                              &sim->detail) == ERR_INVALID,
            "a request without a home has one");
    rsim_refused(sim, CODE(INTERNAL), NULL);
    named_check(sim, &request.base, "", "");
}

/* At most 64 bytes of a value, and whole characters. */
static void refusal_run(struct rsim *sim)
{
    static const char *const characters[] = { "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8e\xb2" };
    char value[96];
    size_t size = 0, whole = 0, wanted = rsim_between(sim, 0, 70);

    while (size < wanted) {
        const char *one = RSIM_PICK(sim, characters);
        memcpy(value + size, one, strlen(one));
        size += strlen(one);
        if (size <= 64)
            whole = size;
    }
    value[size] = 0;
    const struct refusal_field field = { "field", "limit", slice_from_text(value) };
    refusal_make_field(&sim->arena, &sim->detail, &field, "wrong");
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "field");
    PROMISE(sim, strlen(sim->detail.value) == whole && memcmp(sim->detail.value, value, whole) == 0,
            "of %zu bytes %zu are repeated, not %zu", size, strlen(sim->detail.value), whole);
    PROMISE(sim, (strstr(sim->detail.message, "got") != NULL) == (whole > 0), "told as \"%s\"",
            sim->detail.message);
    PROMISE(sim, strcmp(sim->detail.limit, "limit") == 0, "another limit");
    struct slice bytes = refusal_bytes(&sim->arena, &sim->detail);
    Holdfast__V1__ErrorDetail *read =
        holdfast__v1__error_detail__unpack(NULL, bytes.size, bytes.data);
    PROMISE(sim,
            read != NULL && read->code == CODE(INVALID_ARGUMENT) &&
                strcmp(read->value, sim->detail.value) == 0 && read->action != 0,
            "an error that cannot be read, or says nothing to do");
    holdfast__v1__error_detail__free_unpacked(read, NULL);
    uint32_t shards = 1u << rsim_between(sim, 0, 6);
    refusal_make_shard(&sim->arena, &sim->detail, "shard", shards + 3, shards);
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "shard");
    PROMISE(sim,
            strcmp(sim->detail.limit, arena_printf(&sim->arena, "0 to %u", shards - 1)) == 0 &&
                strcmp(sim->detail.value, arena_printf(&sim->arena, "%u", shards + 3)) == 0,
            "shards are %s", sim->detail.limit);
}

static void target_run(struct rsim *sim)
{
    struct shard_map *map = shard_map_new("sim");
    struct shard_record record = { .generation = 1,
                                   .epoch = rsim_between(sim, 1, 9),
                                   .config = 1,
                                   .owner = rsim_between(sim, 1, 3),
                                   .member_count = 3,
                                   .members = { 1, 2, 3 } };
    struct cluster_key key = cluster_key_shard("sim", 2);
    struct buf value = { 0 };

    shard_record_encode(&record, &value);
    CHECK(shard_map_apply(map,
                          &(struct shard_map_event){ .key = cluster_key_slice(&key),
                                                     .value = buf_slice(&value),
                                                     .create_revision = 1,
                                                     .mod_revision = 1 },
                          NULL, NULL) == ERR_OK);
    struct route_target there = route_find_target(map, 2), none = route_find_target(map, 1);
    PROMISE(sim, there.owner == record.owner && there.epoch == record.epoch, "another owner");
    PROMISE(sim, none.owner == 0 && none.epoch == 0, "a shard without a record has an owner");
    buf_deinit(&value);
    shard_map_free(map);
}

void room_route(struct rsim *sim)
{
    for (uint32_t i = 0; i < 12; i++) {
        mutation_run(sim);
        read_run(sim);
        refusal_run(sim);
    }
    homeless_run(sim);
    if (sim->seed % 4 == 0)
        target_run(sim);
}
