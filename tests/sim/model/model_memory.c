/* What the model remembers: players after each entry, operations by their ids. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

const struct model_rule *model_rule(const struct oracle *oracle, uint32_t method)
{
    static const struct model_rule nothing;

    CHECK(method < METHOD_ID_MAX);
    return oracle->rules[method] != NULL ? oracle->rules[method] : &nothing;
}

uint32_t model_player_number(const struct change *c)
{
    CHECK(c->player != NULL);
    return (uint32_t)(c->player - c->sim->oracle->players);
}

uint32_t model_player_of_id(const char *player_id)
{
    CHECK(player_id[0] == 'p' && player_id[1] >= '0' && player_id[1] <= '9');
    return (uint32_t)(player_id[1] - '0');
}

uint32_t model_currency(const char *name)
{
    uint32_t currency = 0;

    while (currency < SIM_CURRENCIES && strcmp(request_currency(currency), name) != 0)
        currency++;
    CHECK(currency < SIM_CURRENCIES); /* A response may be wrong, but not invent names. */
    return currency;
}

struct player_model *model_player(struct sim *sim, struct slice entity)
{
    uint32_t number = 0;
    char text[32] = { 0 };

    if (entity.size < 9 || entity.size >= sizeof text)
        return NULL;
    memcpy(text, entity.data, entity.size);
    if (sscanf(text, "player:p%u", &number) != 1 || number >= sim->player_count)
        return NULL;
    return &sim->oracle->players[number];
}

const struct moment *model_at(const struct player_model *player, uint64_t index)
{
    const struct moment *found = NULL;

    for (uint32_t i = player->history_count; i > 0 && found == NULL; i--) {
        if (player->history[i - 1].index <= index)
            found = &player->history[i - 1];
    }
    return found;
}

void model_remember(struct player_model *player, uint64_t index)
{
    CHECK(player->history_count == 0 || player->history[player->history_count - 1].index <= index);
    if (player->history_count == player->history_capacity) {
        player->history_capacity = player->history_capacity > 0 ? player->history_capacity * 2 : 64;
        player->history =
            mem_realloc(player->history, sizeof *player->history * player->history_capacity);
    }
    player->now.index = index;
    player->history[player->history_count++] = player->now;
}

bool model_expired(const struct shard_oracle *shard, struct incarnation incarnation)
{
    if (incarnation_compare(incarnation, shard->lowest_live) < 0)
        return true;
    for (uint32_t i = 0; i < shard->expired_count; i++) {
        if (incarnation_compare(shard->expired[i], incarnation) >= 0 &&
            incarnation_compare(shard->expired_from[i], incarnation) <= 0)
            return true;
    }
    return false;
}

struct op_model *model_op(struct oracle *oracle, struct slice entity, struct slice id)
{
    char key[MODEL_KEY_BYTES];
    size_t size = entity.size + 1 + id.size;
    CHECK(entity.size > 0 && id.size > 0 && size < sizeof key);
    memcpy(key, entity.data, entity.size);
    key[entity.size] = ' ';
    memcpy(key + entity.size + 1, id.data, id.size);
    key[size] = '\0';
    uint64_t slot = hash_u64((struct slice){ (const uint8_t *)key, size }) % MODEL_SLOTS;
    struct op_id parsed;
    const char *why;

    while (oracle->slots[slot] != 0) {
        struct op_model *op = &oracle->ops[oracle->slots[slot] - 1];
        if (strcmp(op->key, key) == 0)
            return op;
        slot = (slot + 1) % MODEL_SLOTS;
    }
    CHECK(oracle->op_count < MODEL_SLOTS / 2);
    struct op_model *op = &oracle->ops[oracle->op_count++];
    oracle->slots[slot] = oracle->op_count;
    *op = (struct op_model){ 0 };
    memcpy(op->key, key, size + 1);
    CHECK(op_id_parse(id, &parsed, &why) == ERR_OK);
    op->ms = parsed.typed ? UINT64_MAX : uuid_v7_ms(&parsed.uuid);
    op->is_key = parsed.is_key;
    return op;
}

struct op_model *model_op_again(struct oracle *oracle, struct op_model *op)
{
    uint32_t place = (uint32_t)(op - oracle->ops) + 1;
    uint64_t slot =
        hash_u64((struct slice){ (const uint8_t *)op->key, strlen(op->key) }) % MODEL_SLOTS;

    while (oracle->slots[slot] != place)
        slot = (slot + 1) % MODEL_SLOTS;
    CHECK(oracle->op_count < MODEL_SLOTS / 2 && op->is_key);
    struct op_model *again = &oracle->ops[oracle->op_count++];
    *again = (struct op_model){ .ms = op->ms, .is_key = true, .shard = op->shard, .before = place };
    memcpy(again->key, op->key, sizeof again->key);
    oracle->slots[slot] = oracle->op_count;
    op->again = true;
    return again;
}

void model_fail(const struct change *c, const char *what, uint64_t number)
{
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": %s (%" PRIu64 ")", c->entry->index, what,
             number);
}

void model_fail_op(const struct change *c, const struct op_model *op, const char *what)
{
    CHECK(op != NULL);
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": op %s %s", c->entry->index, op->key, what);
}

void model_change_balance(struct change *c, const Holdfast__V1__CurrencyAmount *amount, int sign)
{
    uint32_t currency = model_currency(amount->currency);
    int64_t *balance = &c->player->now.balances[currency];

    CHECK(sign == 1 || sign == -1);
    *balance += sign * amount->amount;
    c->sim->oracle->book.made[currency] += sign * amount->amount;
    if (sign > 0 && *balance > c->shard->policy.most[currency])
        sim_fail(c->sim, c->number, "entry %" PRIu64 " passes the highest balance",
                 c->entry->index);
    if (sign < 0 && *balance < policy_least(c, currency))
        sim_fail(c->sim, c->number, "entry %" PRIu64 " spends what is not there", c->entry->index);
}

void model_change_balances(struct change *c, size_t count,
                           Holdfast__V1__CurrencyAmount *const *amounts, int sign)
{
    for (size_t i = 0; i < count; i++)
        model_change_balance(c, amounts[i], sign);
}

void model_check_balances(const struct change *c, size_t count,
                          Holdfast__V1__CurrencyAmount *const *asked, size_t told_count,
                          Holdfast__V1__CurrencyAmount *const *told)
{
    if (told_count != count) {
        model_fail(c, "other balances are told than those that changed", told_count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(asked[i]->currency, told[i]->currency) != 0)
            model_fail(c, "a balance is told in another's place", i);
        model_check_balance(c, told[i]);
    }
}

void model_check_balance(const struct change *c, const Holdfast__V1__CurrencyAmount *told)
{
    uint32_t currency = model_currency(told->currency);
    int64_t balance = c->player->now.balances[currency];

    if (told->amount != balance)
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 ": the balance is %" PRId64 ", the sum of what was done %" PRId64,
                 c->entry->index, told->amount, balance);
}

static void check_section_told(const struct change *c, const struct edit_model *edit,
                               const Holdfast__V1__SectionVersion *told)
{
    const struct section_model *section = &c->player->now.sections.each[edit->section];

    if (edit_section_number(told->name) != edit->section)
        model_fail(c, "another section is told than was edited", edit->section);
    if (told->version != (section->exists ? section->version : 0))
        model_fail(c, "a section has another version than is told", told->version);
    if ((uint64_t)told->last_write_at_ms != c->entry->owner_ms)
        model_fail(c, "a section was written at another time than is told", edit->section);
}

void model_edit(struct change *c, size_t count, Holdfast__V1__SectionEdit *const *edits,
                size_t told_count, Holdfast__V1__SectionVersion *const *told)
{
    if (told_count != count) {
        model_fail(c, "other sections are told than were edited", told_count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct edit_model edit;
        edit_read(edits[i], &edit);
        const char *why = edit_obstacle(&c->player->now.sections, &edit);
        if (why != NULL)
            model_fail(c, why, edit.section);
        edit_apply(&c->player->now.sections, &edit, c->entry->owner_ms);
        check_section_told(c, &edit, told[i]);
    }
}

bool model_edit_refused(const struct change *c, size_t count,
                        Holdfast__V1__SectionEdit *const *edits)
{
    struct sections_model sections = c->player->now.sections;

    for (size_t i = 0; i < count; i++) {
        struct edit_model edit;
        edit_read(edits[i], &edit);
        if (edit_obstacle(&sections, &edit) != NULL) {
            c->sim->counts.edits_refused++;
            return true;
        }
        edit_apply(&sections, &edit, c->entry->owner_ms);
    }
    return false;
}
