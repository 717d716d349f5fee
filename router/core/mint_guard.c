#include "router/core/mint_guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/currency.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/api_key.h"
#include "runtime/cluster/mint_limits.h"
#include "runtime/crypto/sha256.h"

#define DAY_MS      86400000u
#define SHARE_PART  64u /* Of a day's sum is reserved at once, */
#define SHARES_REST 8u  /* while more than this part of it is left. */

/* What is known of one key's day. */
struct mint_day {
    char key_id[SERVER_KEY_SIZE];
    uint64_t day;
    struct mint_limits left; /* Of this router's share. */
    struct mint_limits made; /* By all routers, with what is left of their shares; or less. */
    uint8_t counted[MINT_COUNTED_MAX][SHA256_BYTES]; /* The latest calls; a ring. */
    uint32_t counted_next;
};

struct mint_guard {
    struct mint_day *days[MINT_KEYS_MAX];
    uint32_t count;
};

struct mint_guard *mint_guard_new(void)
{
    return mem_zalloc(sizeof(struct mint_guard));
}

void mint_guard_free(struct mint_guard *guard)
{
    if (guard == NULL)
        return;
    for (uint32_t i = 0; i < guard->count; i++)
        free(guard->days[i]);
    free(guard);
}

/* The key's day, which begins at nothing when another one came. A place of yesterday serves another
 * key. NULL: so many keys have limits that there is no place. */
static struct mint_day *find_day(struct mint_guard *guard, const char *key_id, uint64_t day)
{
    struct mint_day *free_day = NULL;

    for (uint32_t i = 0; i < guard->count; i++) {
        if (strcmp(guard->days[i]->key_id, key_id) == 0) {
            free_day = guard->days[i];
            break;
        }
        if (guard->days[i]->day != day)
            free_day = guard->days[i];
    }
    if (free_day == NULL && guard->count < MINT_KEYS_MAX) {
        free_day = mem_zalloc(sizeof *free_day);
        guard->days[guard->count++] = free_day;
    }
    if (free_day == NULL || (strcmp(free_day->key_id, key_id) == 0 && free_day->day == day))
        return free_day;
    *free_day = (struct mint_day){ .day = day };
    (void)snprintf(free_day->key_id, sizeof free_day->key_id, "%s", key_id);
    return free_day;
}

/* ---- what a call makes ---- */

struct counting {
    const struct mint_call *call;
    const struct mint_limits *allowed; /* No others are. NULL: any, of which `made` counts some. */
    struct mint_limits made;
    Holdfast__V1__ErrorDetail *detail;
};

/* The request has not been looked at: what it calls an item may have any length. */
static err deny(const struct counting *counting, const char *goods, const char *limit,
                const char *value)
{
    struct arena *arena = counting->call->arena;
    const char *name = refusal_show(arena, slice_from_text(goods), MINT_NAME_BYTES);

    refusal_make(arena, counting->detail, CODE(PERMISSION_DENIED),
                 "the API key %s may make %s: %s; this call: %s", counting->call->key_id, name,
                 limit, value);
    counting->detail->field = text_lend(name);
    counting->detail->limit = arena_printf(arena, "%s", limit);
    counting->detail->value = arena_printf(arena, "%s", value);
    return ERR_PERMISSION;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static err count_one(struct counting *counting, const char *name, uint64_t amount)
{
    uint32_t place = mint_limits_find(&counting->made, name);

    if (place == UINT32_MAX)
        return counting->allowed == NULL
                   ? ERR_OK
                   : deny(counting, name, "none",
                          arena_printf(counting->call->arena, "%" PRIu64, amount));
    counting->made.goods[place].amount = sum_of(counting->made.goods[place].amount, amount);
    return ERR_OK;
}

static const void *list_of(const ProtobufCMessage *message, const char *name,
                           const ProtobufCMessageDescriptor *type, size_t *ret_count)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    const char *base = (const char *)message;
    const void *list;

    if (field == NULL || field->label != PROTOBUF_C_LABEL_REPEATED || field->descriptor != type)
        return NULL;
    memcpy(ret_count, base + field->quantifier_offset, sizeof *ret_count);
    memcpy(&list, base + field->offset, sizeof list);
    return list != NULL ? list : ""; /* Of none. */
}

static err visit(void *user, const struct message_place *place)
{
    const ProtobufCMessage *message = place->message;
    struct counting *counting = user;
    size_t item_count = 0, currency_count = 0;
    Holdfast__V1__ItemSpec *const *items =
        list_of(message, "items", &holdfast__v1__item_spec__descriptor, &item_count);
    Holdfast__V1__CurrencyAmount *const *currencies =
        list_of(message, "currencies", &holdfast__v1__currency_amount__descriptor, &currency_count);
    err e = ERR_OK;

    if (items == NULL) /* Nothing new: of an ItemSpec alone goods are made. */
        return ERR_OK;
    for (size_t i = 0; e == ERR_OK && currencies != NULL && i < currency_count; i++) {
        if (currencies[i]->amount > 0)
            e = count_one(counting, currencies[i]->currency, (uint64_t)currencies[i]->amount);
    }
    for (size_t i = 0; e == ERR_OK && i < item_count; i++)
        e = count_one(counting, arena_printf(counting->call->arena, "item/%s", items[i]->kind), 1);
    return e;
}

static err count_made(struct counting *counting, const struct mint_limits *goods)
{
    const struct mint_call *call = counting->call;

    counting->made = *goods;
    for (uint32_t i = 0; i < goods->count; i++)
        counting->made.goods[i].amount = 0;
    return message_walk(&(struct message_visitor){ visit, counting, call->arena, counting->detail },
                        call->message);
}

static bool makes_any(const struct mint_limits *made)
{
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->goods[i].amount > 0)
            return true;
    }
    return false;
}

/* ---- the limits ---- */

static err check_call(const struct mint_call *call, Holdfast__V1__ErrorDetail *detail)
{
    struct mint_limits limits;
    struct counting counting = { .call = call, .allowed = &limits, .detail = detail };

    if (call->grants[0] == 0)
        return ERR_OK;
    /* A record with another text was refused when it was read. */
    CHECK(mint_limits_parse(slice_from_text(call->grants), &limits) == ERR_OK);
    err e = count_made(&counting, &limits);
    for (uint32_t i = 0; e == ERR_OK && i < limits.count; i++) {
        if (counting.made.goods[i].amount > limits.goods[i].amount)
            e = deny(
                &counting, limits.goods[i].name,
                arena_printf(call->arena, "at most %" PRIu64 " a call", limits.goods[i].amount),
                arena_printf(call->arena, "%" PRIu64, counting.made.goods[i].amount));
    }
    return e;
}

static err refuse_day(const struct mint_call *call, const char *name, uint64_t limit,
                      uint64_t amount, Holdfast__V1__ErrorDetail *detail)
{
    refusal_make(call->arena, detail, CODE(THROTTLED),
                 "the API key %s may make %" PRIu64
                 " of %s a day (UTC); with this call it would be "
                 "%" PRIu64 "; nothing was done",
                 call->key_id, limit, name, amount);
    detail->field = arena_printf(call->arena, "%s", name);
    detail->limit = arena_printf(call->arena, "%" PRIu64 " a day", limit);
    detail->value = arena_printf(call->arena, "%" PRIu64, amount);
    detail->retry_after_ms = (uint32_t)(DAY_MS - call->wall_ms % DAY_MS);
    return ERR_FULL;
}

static uint64_t amount_of(const struct mint_limits *goods, const char *name)
{
    uint32_t place = mint_limits_find(goods, name);

    return place != UINT32_MAX ? goods->goods[place].amount : 0;
}

/* Where there is no room for it, the amount is forgotten. */
static void set_amount(struct mint_limits *goods, const char *name, uint64_t amount)
{
    uint32_t place = mint_limits_find(goods, name);

    if (place == UINT32_MAX && goods->count < MINT_GOODS_MAX) {
        place = goods->count++;
        (void)snprintf(goods->goods[place].name, sizeof goods->goods[place].name, "%s", name);
    }
    if (place != UINT32_MAX)
        goods->goods[place].amount = amount;
}

/* ---- repetitions ---- */

static bool has_op_id(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "op_id");
    const char *text = NULL;

    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING &&
        field->label != PROTOBUF_C_LABEL_REPEATED)
        memcpy(&text, (const char *)message + field->offset, sizeof text);
    return text != NULL && text[0] != 0;
}

/* Of all that the call says: another amount under the same op_id is another call. False: it has no
 * op_id, so the shards would carry it out once more. */
static bool digest_of(const struct mint_call *call, uint8_t ret_digest[SHA256_BYTES])
{
    size_t size = protobuf_c_message_get_packed_size(call->message);

    if (!has_op_id(call->message))
        return false;
    uint8_t *data = arena_alloc(call->arena, size + 1);
    protobuf_c_message_pack(call->message, data);
    sha256_pair(slice_from_text(call->method->name), (struct slice){ data, size }, ret_digest);
    return true;
}

static bool was_counted(const struct mint_day *day, const uint8_t digest[SHA256_BYTES])
{
    for (uint32_t i = 0; i < MINT_COUNTED_MAX; i++) {
        if (memcmp(day->counted[i], digest, SHA256_BYTES) == 0)
            return true;
    }
    return false;
}

static void read_limits(const struct mint_call *call, struct mint_limits *ret_limits)
{
    /* A record with another text was refused when it was read. */
    CHECK(mint_limits_parse(slice_from_text(call->per_day), ret_limits) == ERR_OK);
}

uint64_t mint_day_of(const struct mint_call *call)
{
    return call->wall_ms / DAY_MS;
}

err mint_guard_take(struct mint_guard *guard, const struct mint_call *call,
                    struct mint_limits *ret_lack, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct mint_limits limits, left = { 0 };
    struct counting counting = { .call = call, .detail = ret_detail };
    bool lacks = false;

    if (call->per_day[0] == 0)
        return ERR_OK;
    read_limits(call, &limits);
    err e = count_made(&counting, &limits);
    if (e != ERR_OK || !makes_any(&counting.made))
        return e;
    struct mint_day *day = find_day(guard, call->key_id, mint_day_of(call));
    if (day == NULL)
        return refuse_day(call, "anything, since too many keys have limits", 0, 0, ret_detail);
    uint8_t digest[SHA256_BYTES];
    bool once = digest_of(call, digest);
    if (once && was_counted(day, digest))
        return ERR_OK;
    *ret_lack = limits;
    for (uint32_t i = 0; i < limits.count; i++) {
        const char *name = limits.goods[i].name;
        uint64_t share = amount_of(&day->left, name), need = counting.made.goods[i].amount;
        uint64_t lack = need > share ? need - share : 0;
        uint64_t made = sum_of(amount_of(&day->made, name), lack);

        if (need > 0 && lack > 0 && made > limits.goods[i].amount)
            return refuse_day(call, name, limits.goods[i].amount, made, ret_detail);
        ret_lack->goods[i].amount = lack;
        set_amount(&left, name, share - (need - lack));
        lacks |= lack > 0;
    }
    if (lacks)
        return ERR_NEED;
    day->left = left;
    if (once)
        memcpy(day->counted[day->counted_next++ % MINT_COUNTED_MAX], digest, sizeof digest);
    return ERR_OK;
}

void mint_guard_give(struct mint_guard *guard, const struct mint_call *call,
                     const struct mint_limits *made, const struct mint_limits *share)
{
    struct mint_day *day = find_day(guard, call->key_id, mint_day_of(call));

    if (day == NULL)
        return;
    day->made = *made;
    for (uint32_t i = 0; share != NULL && i < share->count; i++) {
        const char *name = share->goods[i].name;
        set_amount(&day->left, name, sum_of(amount_of(&day->left, name), share->goods[i].amount));
    }
}

/* The goods of the limits first: what else there is may be dropped. */
static struct mint_limits in_order(const struct mint_limits *limits, const struct mint_limits *made)
{
    struct mint_limits ordered = *limits;

    for (uint32_t i = 0; i < limits->count; i++)
        ordered.goods[i].amount = amount_of(made, limits->goods[i].name);
    for (uint32_t i = 0; i < made->count; i++)
        set_amount(&ordered, made->goods[i].name, made->goods[i].amount);
    return ordered;
}

void mint_reserve(const struct mint_call *call, const struct mint_limits *lack,
                  struct mint_limits *made, struct mint_limits *ret_share)
{
    struct mint_limits limits;

    read_limits(call, &limits);
    *made = in_order(&limits, made);
    *ret_share = (struct mint_limits){ 0 };
    for (uint32_t i = 0; i < limits.count; i++) {
        const char *name = limits.goods[i].name;
        uint64_t limit = limits.goods[i].amount, before = amount_of(made, name);
        uint64_t room = limit > before ? limit - before : 0, amount = amount_of(lack, name);

        CHECK(amount <= room);
        if (amount == 0)
            continue;
        if (room > limit / SHARES_REST && amount < limit / SHARE_PART)
            amount = limit / SHARE_PART < room ? limit / SHARE_PART : room;
        set_amount(ret_share, name, amount);
        set_amount(made, name, before + amount);
    }
}

err mint_check(const struct mint_call *call, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct counting counting = { .call = call, .detail = ret_detail };

    if (call->grants[0] == 0 && call->per_day[0] == 0)
        return ERR_OK;
    if (call->method->id == METHOD_REVERSE_ENTRY || call->method->id == METHOD_RELEASE_QUARANTINE)
        return deny(&counting, "goods", "only by calls that tell how many", call->method->name);
    return check_call(call, ret_detail);
}

void mint_guard_check(const struct mint_guard *guard)
{
    CHECK(guard->count <= MINT_KEYS_MAX);
    for (uint32_t i = 0; i < guard->count; i++) {
        CHECK(guard->days[i]->left.count <= MINT_GOODS_MAX);
        CHECK(guard->days[i]->made.count <= MINT_GOODS_MAX);
        for (uint32_t j = 0; j < i; j++)
            CHECK(strcmp(guard->days[i]->key_id, guard->days[j]->key_id) != 0);
    }
}
