/* The policy in force in a shard, and what it bounds: balances, items, mail. A limit holds for what
 * comes by an operation; what comes back always fits. Part of the model. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

#define AMOUNT_MOST       9007199254740991
#define ITEMS_STANDARD    10000u
#define MAILS_STANDARD    1000u
#define RESERVATIONS_MOST 64u
#define GENERATION_SINCE  10u

void policy_begin(struct policy_model *policy)
{
    *policy = (struct policy_model){ .generation = 1,
                                     .items_max = ITEMS_STANDARD,
                                     .mailbox_max = MAILS_STANDARD };
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        policy->most[i] = AMOUNT_MOST;
}

static uint32_t items_of_policy(const Holdfast__V1__Policy *given)
{
    return given->items_max > 0 ? given->items_max : ITEMS_STANDARD;
}

static uint32_t mails_of_policy(const Holdfast__V1__Policy *given)
{
    return given->mailbox_max > 0 ? given->mailbox_max : MAILS_STANDARD;
}

static int64_t most_of_currency(const Holdfast__V1__CurrencyPolicy *given)
{
    return given->max_balance > 0 ? given->max_balance : AMOUNT_MOST;
}

void policy_logged(struct change *c)
{
    const Holdfast__Internal__V1__ApplyPolicyRequest *request = (const void *)c->request;
    const Holdfast__V1__Policy *given = request->policy;
    struct policy_model *policy = &c->shard->policy;
    bool by_generation = applier_meta(c->shard->applier)->apply_version >= GENERATION_SINCE;
    uint64_t generation =
        by_generation && request->generation > 0 ? request->generation : policy->generation;
    bool late = generation < policy->generation ||
                (generation == policy->generation && given->version <= policy->version);

    c->sim->counts.policies_late += late;
    c->sim->counts.policies_again += !late && given->version <= policy->version;
    if (c->outcome->kind != OUTCOME_COMMITTED || late)
        return;
    policy_begin(policy);
    policy->generation = generation;
    policy->version = given->version;
    policy->items_max = items_of_policy(given);
    policy->mailbox_max = mails_of_policy(given);
    for (size_t i = 0; i < given->n_currencies; i++) {
        uint32_t currency = model_currency(given->currencies[i]->name);
        policy->least[currency] = given->currencies[i]->min_balance;
        policy->most[currency] = most_of_currency(given->currencies[i]);
    }
}

void policy_check_stored(const struct change *c)
{
    const struct policy *stored = &applier_meta(c->shard->applier)->policy;
    const struct policy_model *policy = &c->shard->policy;

    if (stored->generation != policy->generation)
        model_fail(c, "a policy of another generation is in force", stored->generation);
    else if (stored->version != policy->version)
        model_fail(c, "another version of the policy is in force", stored->version);
    else if (policy->version > 0 &&
             (stored->items_max != policy->items_max || stored->mailbox_max != policy->mailbox_max))
        model_fail(c, "the policy in force has other limits", policy->version);
    for (uint32_t i = 0; i < SIM_CURRENCIES && policy->version > 0; i++) {
        const struct currency *currency =
            policy_find_currency(stored, slice_from_text(request_currency(i)));
        if (currency == NULL || currency->min_balance != policy->least[i] ||
            currency->max_balance != policy->most[i])
            model_fail(c, "the policy in force bounds a currency otherwise", i);
    }
}

/* What etcd has and the shard's log does not have in force. */
static bool differs(const struct policy_model *policy, const Holdfast__V1__Policy *wanted)
{
    bool other = policy->version != wanted->version ||
                 policy->items_max != items_of_policy(wanted) ||
                 policy->mailbox_max != mails_of_policy(wanted);

    for (size_t i = 0; i < wanted->n_currencies; i++) {
        const Holdfast__V1__CurrencyPolicy *each = wanted->currencies[i];
        uint32_t currency = model_currency(each->name);

        other |= policy->least[currency] != each->min_balance ||
                 policy->most[currency] != most_of_currency(each);
    }
    return other;
}

uint32_t policy_pending(struct sim *sim)
{
    struct cluster_key key = cluster_key_policy(SIM_CLUSTER);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
    uint32_t pending = 0;

    if (kv == NULL)
        return 0;
    Holdfast__V1__Policy *wanted =
        holdfast__v1__policy__unpack(NULL, kv->value.size, kv->value.data);
    CHECK(wanted != NULL);
    for (uint32_t i = 0; i < sim->shard_count; i++)
        pending += differs(&sim->oracle->shards[i].policy, wanted);
    holdfast__v1__policy__free_unpacked(wanted, NULL);
    return pending;
}

static const struct policy_model *policy_of(const struct change *c)
{
    return &c->shard->policy;
}

int64_t policy_least(const struct change *c, uint32_t currency)
{
    CHECK(currency < SIM_CURRENCIES);
    return policy_of(c)->least[currency];
}

bool policy_has_room(const struct change *c, const struct moment *now, const struct goods *more)
{
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (more->amounts[i] > 0 && now->balances[i] + more->amounts[i] > policy_of(c)->most[i])
            return false;
    }
    return more->item_count == 0 || now->items + more->item_count <= policy_of(c)->items_max;
}

/* ---- whether a refusal has its reason ---- */
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessage *request, const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);
}

/* Of the request's `currencies`. */
static void amounts_of(const struct change *c, struct goods *ret_goods)
{
    const ProtobufCFieldDescriptor *field = field_of(c->request, "currencies");
    const uint8_t *at = (const uint8_t *)c->request;

    *ret_goods = (struct goods){ 0 };
    if (field == NULL)
        return;
    size_t count = *(const size_t *)(const void *)(at + field->quantifier_offset);
    Holdfast__V1__CurrencyAmount *const *list =
        *(Holdfast__V1__CurrencyAmount *const *const *)(const void *)(at + field->offset);
    for (size_t i = 0; i < count; i++)
        ret_goods->amounts[model_currency(list[i]->currency)] += list[i]->amount;
}

static bool lacks(const struct change *c, const struct goods *taken)
{
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (taken->amounts[i] > 0 &&
            c->player->now.balances[i] - taken->amounts[i] < policy_of(c)->least[i])
            return true;
    }
    return false;
}

void policy_check_funds(const struct change *c, const struct op_model *op)
{
    struct goods taken;

    if (c->rule->wants != WANTS_FUNDS && c->rule->wants != WANTS_FUNDS_AND_MAIL)
        return;
    amounts_of(c, &taken);
    if (!lacks(c, &taken))
        model_fail_op(c, op, "is refused for funds that are there");
}

/* The mailbox of the request's to_player_id, or of its own player. */
static bool mailbox_is_full(const struct change *c)
{
    const ProtobufCFieldDescriptor *field = field_of(c->request, "to_player_id");
    uint32_t to = model_player_number(c);

    if (field != NULL) {
        const char *name =
            *(char *const *)(const void *)((const uint8_t *)c->request + field->offset);
        if (name[0] == '\0')
            return false;
        to = model_player_of_id(name);
    }
    return c->sim->player_shard[to] == c->number && goods_mailbox_is_full(c, to);
}

static size_t items_of(const struct change *c)
{
    const ProtobufCFieldDescriptor *field = field_of(c->request, "items");

    if (field == NULL)
        return 0;
    return *(const size_t *)(const void *)((const uint8_t *)c->request + field->quantifier_offset);
}

void policy_check_full(const struct change *c, const struct op_model *op)
{
    struct goods more;
    bool full = true;

    amounts_of(c, &more);
    more.item_count = (uint32_t)items_of(c);
    if (c->rule->wants == WANTS_ROOM)
        full = !policy_has_room(c, &c->player->now, &more);
    else if (c->rule->wants == WANTS_MAIL || c->rule->wants == WANTS_FUNDS_AND_MAIL)
        full = mailbox_is_full(c);
    else if (c->op.method == METHOD_RESERVE_CURRENCIES)
        full = c->player->now.reservations >= RESERVATIONS_MOST;
    c->sim->counts.policies_bind += full;
    if (!full)
        model_fail_op(c, op, "is refused for a limit that is not reached");
}
