/* Damage on purpose, when a run is over and everything was found right: an item is doubled by a
 * logged entry, and the audit must contain both who hold it. The models are no measure after it;
 * that replicas are alike is. */
#include <string.h>

#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/faults/backup.h"
#include "tests/sim/oracle/oracle.h"

#ifdef HOLDFAST_DEBUG_INJECT
#include "holdfast/debug/v1/debug.pb-c.h"

#define DAMAGES    150u /* Of a thousand runs. */
#define CONTAIN_MS 5000u
#define INJECT_MS  2000u
#define LOOKS_MAX  500u /* Until what is on its way is done: replicas are compared then. */
#define LOOK_MS    10u

/* An item that a player holds; NULL: there is none. */
static const struct item_model *item_choose(struct sim *sim)
{
    const struct goods_book *book = &sim->oracle->book;
    uint32_t from = book->item_count > 0 ? (uint32_t)sim_between(sim, 0, book->item_count - 1) : 0;

    for (uint32_t i = 0; i < book->item_count; i++) {
        const struct item_model *item = &book->items[(from + i) % book->item_count];
        if (item->place == ITEM_HELD)
            return item;
    }
    return NULL;
}

static void inject(struct sim *sim, struct sim_node *owner, uint32_t player, const char *uid)
{
    Holdfast__Debug__V1__InjectRequest request = HOLDFAST__DEBUG__V1__INJECT_REQUEST__INIT;
    struct sim_event event = { .kind = EV_CALL, .node = owner->id };
    const uint8_t random[10] = { 1 };
    char entity[32], op_id[48];

    player_entity(player, entity);
    struct uuid uuid = uuid_v7_make(SIM_UNIX_MS + sim->now_ms + sim->clock_ms, random);
    uuid_print(&uuid, op_id);
    request.player_id = entity + strlen("player:");
    request.op_id = op_id;
    request.attempt = 1;
    request.authority = text_lend("system:admin");
    request.item_uid = text_lend(uid);
    buf_put_u8(&event.bytes, SIM_NO_CALLER);
    buf_put_u8(&event.bytes, 1);
    buf_put_u64(&event.bytes, 0);
    buf_put_u32(&event.bytes, METHOD_DEBUG_INJECT);
    buf_put_u32(&event.bytes, INJECT_MS);
    size_t size = protobuf_c_message_get_packed_size(&request.base);
    protobuf_c_message_pack(&request.base, buf_reserve(&event.bytes, size + 1));
    event.bytes.size += size;
    sim_later(sim, 1, &event);
}

static bool holds(struct sim *sim, const char *entity, uint32_t shard,
                  const uint8_t uid[ITEM_UID_BYTES])
{
    struct row_key key;
    struct slice value;

    row_key_item(&key, slice_from_text(entity), uid);
    return state_find(applier_state(sim->oracle->shards[shard].applier), row_key_slice(&key),
                      &value) == STATE_PRESENT;
}

/* The holders by now: late packets may have handed it on, or sent it into a mailbox, or to the
 * holder of the other one: then it is double no more. */
static void check_holders(struct sim *sim)
{
    if (sim->twins_met)
        return;
    for (uint32_t i = 0; i < sim->player_count; i++) {
        uint32_t shard = sim->player_shard[i];
        const struct meta *meta = applier_meta(sim->oracle->shards[shard].applier);
        char entity[32];

        player_entity(i, entity);
        if (holds(sim, entity, shard, sim->doubled_uid) &&
            meta_find_quarantined(meta, slice_from_text(entity + strlen("player:"))) == NULL)
            sim_fail(sim, shard, "%s holds a doubled item and is not contained within %u ms",
                     entity, CONTAIN_MS);
    }
}

void damage_look(struct sim *sim, const struct entry *entry, const struct outcome *outcome)
{
    struct op op;

    if (!sim->damaged || entry->kind != ENTRY_OP)
        return;
    CHECK(op_decode(entry->body, &op) == ERR_OK);
    sim->doubled |= op.method == METHOD_DEBUG_INJECT && outcome->kind == OUTCOME_COMMITTED;
    /* A release that comes late frees who holds it, and rightly: nothing more can be said. */
    sim->twins_met |= sim->doubled && op.method == METHOD_RELEASE_QUARANTINE &&
                      outcome->kind == OUTCOME_COMMITTED;
}

void damage_applied(struct sim *sim)
{
    if (sim->doubled && !sim->twins_met)
        sim->twins_met = conservation_places(sim, sim->doubled_uid) < 2;
}

/* The time to contain them runs from the entry. False: there is none, the call was refused. */
static bool wait_doubled(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    for (uint32_t i = 0; i < INJECT_MS / LOOK_MS && !sim->doubled; i++) {
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return false;
    }
    return sim->doubled;
}

void damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    const struct item_model *item;

    if (!sim_chance(sim, DAMAGES) || sim_without(sim, WITHOUT_damages) || sim->player_count < 2 ||
        (item = item_choose(sim)) == NULL)
        return;
    uint32_t holder = item->player;
    uint32_t other =
        (holder + 1 + (uint32_t)sim_between(sim, 0, sim->player_count - 2)) % sim->player_count;
    struct sim_node *owner = owner_find(sim, sim->player_shard[other]);
    if (owner == NULL)
        return;
    sim->damaged = true;
    sim_say(sim, "the item %s of player %u is doubled for player %u", item->uid, holder, other);
    CHECK(item_uid_parse(slice_from_text(item->uid), sim->doubled_uid) == ERR_OK);
    inject(sim, owner, other, item->uid);
    if (wait_doubled(sim, run_until)) {
        sim->counts.damages++;
        if (run_until(sim, sim->now_ms + CONTAIN_MS))
            check_holders(sim);
    }
    for (uint32_t i = 0; i < LOOKS_MAX && sim->failure[0] == '\0' && !oracle_converged(sim); i++)
        (void)run_until(sim, sim->now_ms + LOOK_MS);
}
#else
void damage_look(struct sim *sim, const struct entry *entry, const struct outcome *outcome)
{
    (void)sim;
    (void)entry;
    (void)outcome;
}

void damage_applied(struct sim *sim)
{
    (void)sim;
}

void damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    (void)sim;
    (void)run_until;
}
#endif
