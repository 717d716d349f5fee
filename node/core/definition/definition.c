#include "node/core/definition/definition.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/definition/collection.h"
#include "node/core/definition/counter_rule.h"
#include "node/core/definition/rate_rule.h"
#include "node/core/definition/retention.h"
#include "node/core/handler/event.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__DefinedCurrency defined_currency;

int definition_order(uint64_t generation, uint64_t revision, uint64_t other_generation,
                     uint64_t other_revision)
{
    if (generation != other_generation)
        return generation < other_generation ? -1 : 1;
    if (revision != other_revision)
        return revision < other_revision ? -1 : 1;
    return 0;
}

/* ---- rows ---- */
err definition_head_get(struct state *state, struct arena *arena, struct need *need,
                        defined_head **ret_head)
{
    struct row_key key;
    struct slice value;

    row_key_definition(&key, DEFINITION_HEAD_NUMBER);
    enum state_found found = row_find(state, &key, need, &value);

    if (found == STATE_MISSING)
        return ERR_NEED;
    *ret_head =
        found == STATE_PRESENT ? definition_head_decode(arena, arena_copy(arena, value)) : NULL;
    if (*ret_head == NULL)
        *ret_head = (void *)arena_message(arena, &holdfast__internal__v1__defined_head__descriptor);
    return ERR_OK;
}

static void head_put(struct apply_context *context, const defined_head *head)
{
    struct row_key key;

    row_key_definition(&key, DEFINITION_HEAD_NUMBER);
    state_put(context->state, row_key_slice(&key), arena_pack(context->arena, &head->base));
}

/* ---- currencies ---- */
static struct currency *currency_find(struct policy *policy, const char *name)
{
    return (struct currency *)(uintptr_t)policy_find_currency(policy, slice_from_text(name));
}

/* False: there is no room. Debts that were allowed once stand. */
static bool currency_put(struct policy *policy, const defined_currency *given)
{
    struct currency *currency = currency_find(policy, given->name);

    if (currency == NULL) {
        if (policy->currency_count == CURRENCIES_MAX)
            return false;
        currency = &policy->currencies[policy->currency_count++];
        memset(currency, 0, sizeof *currency);
        memcpy(currency->name, given->name, strlen(given->name));
        currency->lowest_min = given->min_balance;
    }
    currency->min_balance = given->min_balance;
    currency->max_balance = given->max_balance;
    if (currency->lowest_min > currency->min_balance)
        currency->lowest_min = currency->min_balance;
    qsort(policy->currencies, policy->currency_count, sizeof *policy->currencies, currency_compare);
    return true;
}

static void currency_remove(struct policy *policy, const char *name)
{
    struct currency *currency = currency_find(policy, name);

    if (currency == NULL)
        return;
    size_t place = (size_t)(currency - policy->currencies);

    policy->currency_count--;
    memmove(currency, currency + 1, (policy->currency_count - place) * sizeof *policy->currencies);
    memset(&policy->currencies[policy->currency_count], 0, sizeof *policy->currencies);
}

static defined_currency *named(defined_currency *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i]->name, name) == 0)
            return list[i];
    }
    return NULL;
}

static defined_currency *defined_find(const defined_head *head, const char *name)
{
    return named(head->currencies, head->n_currencies, name);
}

/* Notes the policy's own row of a currency that a definition is about to cover. */
static void cover(struct arena *arena, defined_head *head, const struct currency *own)
{
    defined_currency *row =
        (void *)arena_message(arena, &holdfast__internal__v1__defined_currency__descriptor);
    void **list = arena_alloc(arena, (head->n_covered + 1) * sizeof *list);

    if (head->n_covered == CURRENCIES_MAX) /* A row that rotted: the policy has no more. */
        return;
    row->name = arena_text(arena, slice_from_text(own->name));
    row->min_balance = own->min_balance;
    row->max_balance = own->max_balance;
    if (head->n_covered > 0)
        memcpy(list, head->covered, head->n_covered * sizeof *list);
    head->covered = (void *)list;
    head->covered[head->n_covered++] = row;
}

/* NULL: the policy has none of that name. */
static defined_currency *uncover(defined_head *head, const char *name)
{
    defined_currency *row = named(head->covered, head->n_covered, name);

    for (size_t i = 0; row != NULL && i < head->n_covered; i++) {
        if (head->covered[i] == row)
            head->covered[i] = head->covered[--head->n_covered];
    }
    return row;
}

static void cover_again(struct apply_context *context, defined_head *head,
                        const struct policy *policy)
{
    struct slice before;

    if (context->version < DEFINITION_COVERS_APPLY_VERSION || head->n_currencies == 0)
        return;
    before = arena_pack(context->arena, &head->base);
    head->n_covered = 0;
    for (size_t i = 0; i < head->n_currencies; i++) {
        const char *name = head->currencies[i]->name;
        const struct currency *own = policy_find_currency(policy, slice_from_text(name));

        if (own != NULL && named(head->covered, head->n_covered, name) == NULL)
            cover(context->arena, head, own);
    }
    if (!slice_equal(before, arena_pack(context->arena, &head->base)))
        head_put(context, head);
}

static err refuse_currencies(struct apply_context *context)
{
    err e =
        refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "currencies",
               "the policy and the definitions together may declare %u currencies", CURRENCIES_MAX);

    context->refusal->limit = arena_printf(context->arena, "%u", CURRENCIES_MAX);
    return e;
}

err definition_keep_currencies(struct apply_context *context, struct policy *policy)
{
    struct policy kept = *policy;
    defined_head *head;

    if (context->version < DEFINITION_APPLY_VERSION)
        return ERR_OK;
    err e = definition_head_get(context->state, context->arena, context->need, &head);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < head->n_currencies; i++) {
        const char *name = head->currencies[i]->name;
        const struct currency *stood =
            policy_find_currency(&context->meta->policy, slice_from_text(name));

        if (!currency_put(&kept, head->currencies[i]))
            return refuse_currencies(context);
        struct currency *stands = currency_find(&kept, name);
        if (stood != NULL && stood->lowest_min < stands->lowest_min)
            stands->lowest_min = stood->lowest_min;
    }
    cover_again(context, head, policy);
    *policy = kept;
    return ERR_OK;
}

/* ---- taking a span in ---- */

/* One span while it is taken in. */
struct take {
    struct apply_context *context;
    const Holdfast__Internal__V1__DefineRequest *request;
    defined_head *head;
    struct policy policy; /* As it will be. */
    struct slice *swept;  /* Keys of rows of earlier generations. */
    uint32_t swept_count;
};

/* A definition of another number may have the name by now: that one came with an etcd that was
 * restored, and holds. Otherwise the policy's own row holds again, if it has one. */
static void currency_stands(struct take *take, const char *name)
{
    const defined_currency *other = defined_find(take->head, name);
    bool covers = take->context->version >= DEFINITION_COVERS_APPLY_VERSION;

    if (covers && other == NULL)
        other = uncover(take->head, name);
    if (other == NULL)
        currency_remove(&take->policy, name);
    else if (covers) /* There is room: it has a row of that name, unless the head rotted. */
        (void)currency_put(&take->policy, other);
}

static void forget_currency(struct take *take, uint64_t number)
{
    bool names = take->context->version >= DEFINITION_NAMES_APPLY_VERSION;
    defined_head *head = take->head;

    for (size_t i = 0; i < head->n_currencies; i++) {
        if (head->currencies[i]->number != number)
            continue;
        const char *name = head->currencies[i]->name;
        head->currencies[i] = head->currencies[--head->n_currencies];
        if (names)
            currency_stands(take, name);
        else
            currency_remove(&take->policy, name);
        return;
    }
}

static err note_currency(struct take *take, const defined *given)
{
    struct arena *arena = take->context->arena;
    defined_head *head = take->head;
    defined_currency *currency = NULL;

    for (size_t i = 0; i < head->n_currencies && currency == NULL; i++) {
        if (head->currencies[i]->number == given->number)
            currency = head->currencies[i];
    }
    if (currency == NULL) {
        if (head->n_currencies == CURRENCIES_MAX)
            return refuse_currencies(take->context);
        const struct currency *own = currency_find(&take->policy, given->name);
        if (own != NULL && take->context->version >= DEFINITION_COVERS_APPLY_VERSION &&
            defined_find(head, given->name) == NULL)
            cover(arena, head, own);
        void **list = arena_alloc(arena, (head->n_currencies + 1) * sizeof *list);
        if (head->n_currencies > 0)
            memcpy(list, head->currencies, head->n_currencies * sizeof *list);
        head->currencies = (void *)list;
        currency =
            (void *)arena_message(arena, &holdfast__internal__v1__defined_currency__descriptor);
        head->currencies[head->n_currencies++] = currency;
    }
    currency->number = given->number;
    currency->name = given->name;
    currency->min_balance = given->body->currency->min_balance;
    currency->max_balance = given->body->currency->max_balance;
    if (currency->max_balance == 0)
        currency->max_balance = AMOUNT_MAX;
    return currency_put(&take->policy, currency) ? ERR_OK : refuse_currencies(take->context);
}

static bool is_currency(const defined *given)
{
    return given->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY;
}

/* The row that stands; *ret_row NULL: none that can be read. */
static err row_get(struct take *take, const struct row_key *key, defined **ret_row,
                   size_t *ret_bytes)
{
    struct arena *arena = take->context->arena;
    struct slice value;
    enum state_found found = row_find(take->context->state, key, take->context->need, &value);

    *ret_row = NULL;
    *ret_bytes = 0;
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        return ERR_OK;
    *ret_bytes = key->size + value.size;
    *ret_row = definition_row_decode(arena, row_key_slice(key), arena_copy(arena, value));
    return ERR_OK;
}

static void count_row(defined_head *head, size_t before, size_t after)
{
    head->bytes = (head->bytes > before ? head->bytes - before : 0) + after;
    head->count -= before > 0 && head->count > 0;
    head->count += after > 0;
}

/* What comes again after etcd was restored is no news, unless it is another version of that number.
 */
static bool is_known(struct arena *arena, const defined *given, const defined *stands)
{
    if (stands == NULL || given->deleted || stands->version != given->version)
        return false;
    return slice_equal(arena_pack(arena, &given->body->base),
                       arena_pack(arena, &stands->body->base));
}

/* Members of an earlier version know neither kind, and tell no event of them: nor does this one. */
static bool is_told(const defined *given)
{
    return given->body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS &&
           given->body->kind_case != HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
}

/* Every shard takes every version; one of them tells it. */
static void event_append(struct take *take, const defined *given, const defined *stands)
{
    struct apply_context *context = take->context;
    struct arena *arena = context->arena;
    Holdfast__V1__DefinitionEvent event = HOLDFAST__V1__DEFINITION_EVENT__INIT;
    const ProtobufCFieldDescriptor *kind = protobuf_c_message_descriptor_get_field(
        &holdfast__v1__definition_body__descriptor, (unsigned)given->body->kind_case);
    uint32_t shards = context->op->shard_count;

    if (shards == 0 || given->number % shards != context->shard || kind == NULL ||
        is_known(arena, given, stands))
        return;
    event.kind = arena_text(arena, slice_from_text(kind->name));
    event.name = given->name;
    event.number = given->number;
    event.version = given->version;
    event.deleted = given->deleted;
    if (!is_told(given))
        return;
    event_add(context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_DEFINITION,
              slice_from_text(arena_printf(arena, "definition:%s/%s", kind->name, given->name)),
              &event.base);
}

static err take_one(struct take *take, const defined *given)
{
    struct apply_context *context = take->context;
    struct row_key key;
    defined *stands;
    size_t before;

    row_key_definition(&key, given->number);
    err e = row_get(take, &key, &stands, &before);
    if (e != ERR_OK)
        return e;
    if (stands != NULL && definition_order(given->generation, given->revision, stands->generation,
                                           stands->revision) <= 0)
        return ERR_OK;
    if (!given->deleted || before > 0)
        event_append(take, given, stands);
    if (given->deleted) {
        forget_currency(take, given->number);
        state_delete(context->state, row_key_slice(&key));
        count_row(take->head, before, 0);
        return ERR_OK;
    }
    struct slice row = arena_pack(context->arena, &given->base);

    state_put(context->state, row_key_slice(&key), row);
    count_row(take->head, before, key.size + row.size);
    return is_currency(given) ? note_currency(take, given) : ERR_OK;
}

/* Those that the etcd of this generation does not have. */
static bool look_for_earlier(void *user, struct slice key, struct slice value)
{
    struct take *take = user;
    struct arena *arena = take->context->arena;

    if (definition_number_of(key) == DEFINITION_HEAD_NUMBER)
        return true;
    const defined *row = definition_row_decode(arena, key, arena_copy(arena, value));

    if (row == NULL || row->generation < take->request->generation) {
        take->swept[take->swept_count++] = arena_copy(arena, key);
        count_row(take->head, key.size + value.size, 0);
    }
    return true;
}

static err sweep(struct take *take)
{
    const uint8_t letter = TABLE_DEFINITION;
    const struct state_range all = { .prefix = { &letter, 1 }, .limit = DEFINITIONS_MAX + 1 };
    struct apply_context *context = take->context;

    take->swept = arena_alloc(context->arena, all.limit * sizeof *take->swept);
    err e = state_range_visit(context->state, &all, context->need, look_for_earlier, take);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < take->swept_count; i++) {
        forget_currency(take, definition_number_of(take->swept[i]));
        state_delete(context->state, take->swept[i]);
    }
    take->head->swept_generation = take->request->generation;
    return ERR_OK;
}

/* Nothing that the shard has already, and nothing behind a gap. */
static bool is_due(const Holdfast__Internal__V1__DefineRequest *request, const defined_head *head)
{
    if (request->generation == head->generation)
        return request->from_revision <= head->revision &&
               (request->to_revision > head->revision ||
                (request->to_revision == head->revision && request->last &&
                 head->swept_generation < request->generation));
    return request->generation > head->generation && request->from_revision == 0;
}

static err take_all(struct take *take)
{
    const Holdfast__Internal__V1__DefineRequest *request = take->request;
    defined_head *head = take->head;
    err e = ERR_OK;

    for (size_t i = 0; i < request->n_definitions && e == ERR_OK; i++) {
        const defined *given = request->definitions[i];
        if (definition_order(request->generation, given->revision, head->generation,
                             head->revision) > 0)
            e = take_one(take, given);
    }
    if (e != ERR_OK)
        return e;
    head->generation = request->generation;
    if (request->from_revision == 0 || request->to_revision > head->revision)
        head->revision = request->to_revision;
    if (request->last && head->swept_generation < request->generation)
        e = sweep(take);
    return e;
}

static err refuse_bytes(struct apply_context *context, const defined_head *head)
{
    struct arena *arena = context->arena;
    err e = refuse(arena, context->refusal, CODE(CAPACITY_FULL), "definitions",
                   "the definitions of a shard would pass %u bytes or %u in number",
                   DEFINITIONS_BYTES_MAX, DEFINITIONS_MAX);

    context->refusal->limit = arena_printf(arena, "%u", DEFINITIONS_BYTES_MAX);
    context->refusal->value = arena_printf(arena, "%llu", (unsigned long long)head->bytes);
    return e;
}

err definition_take(struct apply_context *context,
                    const Holdfast__Internal__V1__DefineRequest *request, defined_head **ret_head)
{
    struct take take = { .context = context, .request = request, .policy = context->meta->policy };
    struct retention retention;

    err e = definition_head_get(context->state, context->arena, context->need, &take.head);
    if (e != ERR_OK)
        return e;
    *ret_head = take.head;
    if (!is_due(request, take.head))
        return ERR_OK;
    e = take_all(&take);
    if (e != ERR_OK)
        return e;
    if (take.head->bytes > DEFINITIONS_BYTES_MAX || take.head->count > DEFINITIONS_MAX)
        return refuse_bytes(context, take.head);
    head_put(context, take.head);
    if (context->version >= FAVORITE_APPLY_VERSION)
        e = collection_index(context);
    if (e == ERR_OK && context->version >= RATE_APPLY_VERSION)
        e = rate_rules_index(context);
    if (e == ERR_OK && context->version >= COUNTER_APPLY_VERSION)
        e = counter_rule_index(context);
    if (e == ERR_OK && context->version >= EVENT_APPLY_VERSION)
        e = retention_find(context, &retention);
    if (e != ERR_OK)
        return e;
    if (context->version >= EVENT_APPLY_VERSION)
        retention_keep(context->meta, &retention);
    if (context->version >= DROPPED_MIN_APPLY_VERSION)
        policy_keep_lowest(&context->meta->policy, &take.policy);
    context->meta->policy = take.policy;
    return ERR_OK;
}

void definition_footprint(const Holdfast__Internal__V1__DefineRequest *request, struct need *keys)
{
    struct row_key key;

    row_key_definition(&key, DEFINITION_HEAD_NUMBER);
    need_add_key(keys, row_key_slice(&key));
    for (size_t i = 0; i < request->n_definitions; i++) {
        row_key_definition(&key, request->definitions[i]->number);
        need_add_key(keys, row_key_slice(&key));
    }
}
