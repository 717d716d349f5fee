/* Where each item has been, by the rules said again: every entry that brings an item to a player or
 * takes it is one step, numbered over all shards. Part of the model. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/model/model.h"

void trace_step(const struct change *c, uint32_t item, uint32_t player, bool held,
                struct slice op_id)
{
    struct goods_book *book = &c->sim->oracle->book;

    CHECK(player < c->sim->player_count && c->number < c->sim->shard_count);
    CHECK(item > 0 && item <= book->item_count);
    if (book->step_count == book->step_capacity) {
        book->step_capacity = book->step_capacity * 2 + 64;
        book->steps = mem_realloc(book->steps, sizeof *book->steps * book->step_capacity);
    }
    book->steps[book->step_count++] = (struct step_model){
        .item = item,
        .number = ++book->items[item - 1].steps,
        .player = player,
        .shard = c->number,
        .index = c->entry->index,
        .op_hash = hash_u64(op_id),
        .held = held,
    };
}

static const struct step_model *step_find(const struct goods_book *book, uint32_t item,
                                          uint32_t number)
{
    for (uint32_t i = book->step_count; i > 0; i--) {
        if (book->steps[i - 1].item == item && book->steps[i - 1].number == number)
            return &book->steps[i - 1];
    }
    return NULL;
}

void trace_to(const struct change *c, uint32_t item, uint32_t player)
{
    struct goods_book *book = &c->sim->oracle->book;

    CHECK(item > 0 && item <= book->item_count && player < c->sim->player_count);
    for (uint32_t i = book->step_count; i > 0; i--) {
        if (book->steps[i - 1].item != item)
            continue;
        book->steps[i - 1].to = player + 1;
        return;
    }
}

static uint32_t item_of(const struct goods_book *book, const char *uid)
{
    for (uint32_t i = 0; i < book->item_count; i++) {
        if (strcmp(book->items[i].uid, uid) == 0)
            return i + 1;
    }
    return 0;
}

/* Whether this shard had taken that step when it had applied `index`. */
static const struct step_model *step_at(const struct sim *sim, uint32_t shard, uint64_t index,
                                        uint32_t item, uint32_t number)
{
    const struct step_model *step = step_find(&sim->oracle->book, item, number);

    return step != NULL && step->shard == shard && step->index <= index ? step : NULL;
}

static bool same_step(const struct step_model *step, const Holdfast__V1__TraceStep *told)
{
    return told->step == step->number && (told->held != 0) == step->held &&
           told->player_id[0] == 'p' && (uint32_t)(told->player_id[1] - '0') == step->player &&
           hash_u64(slice_from_text(told->op_id)) == step->op_hash &&
           (step->to > 0 ? told->to_player_id[0] == 'p' &&
                               (uint32_t)(told->to_player_id[1] - '0') == step->to - 1
                         : told->to_player_id[0] == '\0');
}

void trace_check_told(struct sim *sim, uint32_t shard, uint64_t index,
                      const ProtobufCMessage *asked, const ProtobufCMessage *told)
{
    const Holdfast__Internal__V1__ItemHistoryRequest *request = (const void *)asked;
    const Holdfast__Internal__V1__ItemHistoryResponse *response = (const void *)told;
    uint32_t item = item_of(&sim->oracle->book, request->item_uid);
    size_t count = 0;

    sim->counts.traces += response->n_steps > 0;
    for (;; count++) {
        const struct step_model *step =
            step_at(sim, shard, index, item, request->after_step + (uint32_t)count + 1);
        if (step == NULL || count == request->limit)
            break;
        if (count == response->n_steps || !same_step(step, response->steps[count])) {
            sim_fail(sim, shard, "step %u of item %s is told otherwise, or not at all",
                     step->number, request->item_uid);
            return;
        }
    }
    if (response->n_steps != count)
        sim_fail(sim, shard, "item %s: %zu steps are told, %zu were taken here", request->item_uid,
                 response->n_steps, count);
}

const char *trace_pick_item(struct sim *sim)
{
    const struct goods_book *book = &sim->oracle->book;

    if (book->item_count == 0)
        return NULL;
    return book->items[sim_between(sim, 0, book->item_count - 1)].uid;
}
