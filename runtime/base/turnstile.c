#include "runtime/base/turnstile.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define SECOND_US 1000000u

enum list { ALL, OWN, WAITING };

struct place_list {
    struct turnstile_place *first; /* Oldest. */
    struct turnstile_place *last;
};

/* In the table while it has places; afterwards remembered until its memory is wanted. */
struct turnstile_address {
    struct address network;
    struct turnstile_address *next_hashed;
    struct turnstile_address *next; /* Remembered or free ones; the oldest first. */
    struct turnstile_address *previous;
    struct place_list unproven[2]; /* That did nothing whole, and that did. */
    uint64_t proved_ms;            /* 0: never. */
    uint64_t tokens_full_us;
    uint64_t begun; /* Its last handshake, counted from 1; 0: none. */
    uint32_t places;
    uint32_t unproven_count;
    uint32_t waiting_count;
    bool remembered;
    bool proxy;
};

struct turnstile {
    struct turnstile_limits limits;
    struct turnstile_stats stats;
    struct place_list unproven[2];
    struct place_list waiting;
    uint64_t begun; /* Handshakes. */
    uint64_t tokens_full_us;
    int64_t share_us; /* Of the loop's time, left for handshakes. */
    uint64_t share_at_us;
    struct turnstile_address *addresses;
    uint32_t address_count;
    struct turnstile_address **heads;
    uint32_t head_mask;
    uint32_t fresh;                          /* Addresses before it were used. */
    struct turnstile_address *remembered[2]; /* Never proved, proved: oldest and newest. */
    struct turnstile_address *newest[2];
};

const char *turnstile_cause_text(enum turnstile_cause cause)
{
    static const char *const texts[] = {
#define TURNSTILE_TEXT(enumerator, text, meaning) [TURNSTILE_##enumerator] = (text),
        TURNSTILE_CAUSES(TURNSTILE_TEXT)
#undef TURNSTILE_TEXT
    };

    CHECK(cause < TURNSTILE_CAUSE_COUNT);
    return texts[cause];
}

/* ---- lists of places ---- */

static void list_append(struct place_list *list, struct turnstile_place *place, enum list which)
{
    place->previous[which] = list->last;
    place->next[which] = NULL;
    if (list->last != NULL)
        list->last->next[which] = place;
    else
        list->first = place;
    list->last = place;
}

static void list_remove(struct place_list *list, struct turnstile_place *place, enum list which)
{
    if (place->previous[which] != NULL)
        place->previous[which]->next[which] = place->next[which];
    else
        list->first = place->next[which];
    if (place->next[which] != NULL)
        place->next[which]->previous[which] = place->previous[which];
    else
        list->last = place->previous[which];
    place->next[which] = NULL;
    place->previous[which] = NULL;
}

/* ---- addresses ---- */

static struct turnstile_address **head_of(struct turnstile *t, const struct address *network)
{
    uint64_t words[3] = { 0, 0, t->limits.seed };

    memcpy(words, network->bytes, sizeof network->bytes);
    return &t->heads[hash_u64((struct slice){ (const uint8_t *)words, sizeof words }) &
                     t->head_mask];
}

static void forget_remembered(struct turnstile *t, struct turnstile_address *address)
{
    uint32_t kind = address->proved_ms != 0;

    if (address->previous != NULL)
        address->previous->next = address->next;
    else
        t->remembered[kind] = address->next;
    if (address->next != NULL)
        address->next->previous = address->previous;
    else
        t->newest[kind] = address->previous;
    address->next = NULL;
    address->previous = NULL;
    address->remembered = false;
}

static void remember(struct turnstile *t, struct turnstile_address *address)
{
    uint32_t kind = address->proved_ms != 0;

    address->remembered = true;
    address->next = NULL;
    address->previous = t->newest[kind];
    if (t->newest[kind] != NULL)
        t->newest[kind]->next = address;
    else
        t->remembered[kind] = address;
    t->newest[kind] = address;
}

/* One that is in use by no connection always exists: there are more addresses than places. Those
 * that never proved themselves are forgotten first. */
static struct turnstile_address *take_memory(struct turnstile *t)
{
    if (t->fresh < t->address_count)
        return &t->addresses[t->fresh++];
    struct turnstile_address *oldest =
        t->remembered[0] != NULL ? t->remembered[0] : t->remembered[1];
    CHECK(oldest != NULL);
    forget_remembered(t, oldest);
    struct turnstile_address **at = head_of(t, &oldest->network);
    while (*at != oldest)
        at = &(*at)->next_hashed;
    *at = oldest->next_hashed;
    return oldest;
}

static struct turnstile_address *find_or_add(struct turnstile *t, const struct address *address)
{
    struct address network = address_network(address);
    bool proxy = address_ranges_have(&t->limits.proxies, address);

    for (struct turnstile_address *one = *head_of(t, &network); one != NULL;
         one = one->next_hashed) {
        if (memcmp(&one->network, &network, sizeof network) == 0 && one->proxy == proxy)
            return one;
    }
    struct turnstile_address *made = take_memory(t);
    struct turnstile_address **head = head_of(t, &network);
    *made = (struct turnstile_address){ .network = network, .next_hashed = *head, .proxy = proxy };
    *head = made;
    remember(t, made);
    return made;
}

bool turnstile_is_known(const struct turnstile_address *address, uint64_t now_ms)
{
    return address->proved_ms != 0 && now_ms < address->proved_ms + TURNSTILE_KNOWN_MS;
}

/* ---- places ---- */

static uint32_t power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

struct turnstile *turnstile_new(const struct turnstile_limits *limits)
{
    struct turnstile *t = mem_zalloc(sizeof *t);

    CHECK(limits->places_max > 0 && limits->reserved < limits->places_max);
    t->limits = *limits;
    /* One more than places: the newcomer's own, before another leaves. */
    t->address_count = limits->places_max + 1 + TURNSTILE_REMEMBERED;
    t->addresses = mem_zalloc(t->address_count * sizeof *t->addresses);
    t->head_mask = power_of_two(t->address_count) - 1;
    t->heads = mem_zalloc((t->head_mask + 1) * sizeof *t->heads);
    return t;
}

void turnstile_free(struct turnstile *t)
{
    if (t == NULL)
        return;
    CHECK(t->stats.places == 0);
    free(t->addresses);
    free(t->heads);
    free(t);
}

const struct turnstile_stats *turnstile_stats(const struct turnstile *t)
{
    return &t->stats;
}

void turnstile_count(struct turnstile *t, enum turnstile_cause cause)
{
    CHECK(cause < TURNSTILE_CAUSE_COUNT);
    t->stats.refused[cause]++;
}

static void not_unproven(struct turnstile *t, struct turnstile_place *place)
{
    list_remove(&t->unproven[place->tried], place, ALL);
    list_remove(&place->address->unproven[place->tried], place, OWN);
    place->address->unproven_count--;
    t->stats.unproven--;
}

static void not_waiting(struct turnstile *t, struct turnstile_place *place)
{
    if (!place->waiting)
        return;
    place->waiting = false;
    list_remove(&t->waiting, place, WAITING);
    place->address->waiting_count--;
    t->stats.waiting--;
}

void turnstile_leave(struct turnstile *t, struct turnstile_place *place)
{
    struct turnstile_address *address = place->address;

    if (place->state == TURNSTILE_OUT)
        return;
    not_waiting(t, place);
    if (place->state == TURNSTILE_UNPROVEN)
        not_unproven(t, place);
    place->state = TURNSTILE_OUT;
    place->address = NULL;
    t->stats.places--;
    if (--address->places == 0)
        remember(t, address);
}

static void take_place(struct turnstile *t, struct turnstile_place *place,
                       struct turnstile_address *address)
{
    if (address->remembered)
        forget_remembered(t, address);
    place->address = address;
    place->state = TURNSTILE_UNPROVEN;
    place->tried = false;
    list_append(&t->unproven[0], place, ALL);
    list_append(&address->unproven[0], place, OWN);
    address->places++;
    address->unproven_count++;
    t->stats.places++;
    t->stats.unproven++;
}

static bool is_over(uint64_t count, uint32_t limit)
{
    return limit > 0 && count >= limit;
}

static struct turnstile_place *first_to_go(const struct place_list unproven[2])
{
    return unproven[0].first != NULL ? unproven[0].first : unproven[1].first;
}

struct wish {
    bool needed; /* A place has to be given up. */
    enum turnstile_cause cause;
    struct turnstile_place *victim;
};

/* Which limit the newcomer meets, the narrowest first, and who would go for it. */
static struct wish find_victim(const struct turnstile *t, const struct turnstile_address *address,
                               const struct turnstile_visit *visit)
{
    const struct turnstile_limits *limits = &t->limits;
    bool known = turnstile_is_known(address, visit->now_ms);
    uint32_t open = limits->places_max - (known || address->proxy ? 0 : limits->reserved);
    const struct turnstile_address *whose = NULL;
    struct wish wish = { .needed = true };

    if (!address->proxy && is_over(address->unproven_count, limits->unproven_address_max)) {
        wish.cause = TURNSTILE_ADDRESS_CAP;
        wish.victim = first_to_go(address->unproven);
        return wish;
    }
    if (!address->proxy && is_over(address->places, limits->address_max)) {
        wish.cause = TURNSTILE_ADDRESS_CAP;
        wish.victim = first_to_go(address->unproven);
        whose = address;
    } else if (is_over(t->stats.unproven, limits->unproven_max)) {
        wish.cause = TURNSTILE_UNPROVEN_CAP;
        wish.victim = first_to_go(t->unproven);
    } else if (t->stats.places >= open) {
        wish.cause = TURNSTILE_FULL;
        wish.victim = first_to_go(t->unproven);
    } else {
        wish.needed = false;
    }
    if (wish.needed && wish.victim == NULL && known && visit->idle != NULL)
        wish.victim = visit->idle(visit->user, whose);
    return wish;
}

bool turnstile_enter(struct turnstile *t, struct turnstile_place *place,
                     const struct turnstile_visit *visit, struct turnstile_place **ret_victim,
                     enum turnstile_cause *ret_cause)
{
    struct turnstile_address *address = find_or_add(t, &visit->address);
    struct wish wish = find_victim(t, address, visit);

    CHECK(place->state == TURNSTILE_OUT);
    *ret_victim = NULL;
    if (wish.needed) {
        *ret_cause = wish.cause;
        turnstile_count(t, wish.cause);
        if (wish.victim == NULL)
            return false;
        CHECK(wish.victim->state != TURNSTILE_OUT);
        turnstile_leave(t, wish.victim);
        *ret_victim = wish.victim;
    }
    take_place(t, place, address);
    CHECK(t->stats.places <= t->limits.places_max);
    return true;
}

void turnstile_prove(struct turnstile *t, struct turnstile_place *place, uint64_t now_ms)
{
    if (place->state == TURNSTILE_OUT)
        return;
    place->address->proved_ms = now_ms > 0 ? now_ms : 1;
    if (place->state == TURNSTILE_PROVEN)
        return;
    not_unproven(t, place);
    place->state = TURNSTILE_PROVEN;
}

void turnstile_touch(struct turnstile *t, struct turnstile_place *place)
{
    if (place->state != TURNSTILE_UNPROVEN)
        return;
    list_remove(&t->unproven[place->tried], place, ALL);
    list_remove(&place->address->unproven[place->tried], place, OWN);
    place->tried = true;
    list_append(&t->unproven[1], place, ALL);
    list_append(&place->address->unproven[1], place, OWN);
}

/* ---- handshakes ---- */

static struct turnstile_place *oldest_of_most(const struct turnstile *t)
{
    struct turnstile_place *found = t->waiting.first;

    for (struct turnstile_place *one = found; one != NULL; one = one->next[WAITING]) {
        if (one->address->waiting_count > found->address->waiting_count)
            found = one;
    }
    return found;
}

void turnstile_wait(struct turnstile *t, struct turnstile_place *place,
                    struct turnstile_place **ret_dropped)
{
    CHECK(place->state == TURNSTILE_UNPROVEN && !place->waiting);
    *ret_dropped = NULL;
    place->waiting = true;
    list_append(&t->waiting, place, WAITING);
    place->address->waiting_count++;
    t->stats.waiting++;
    if (t->stats.waiting <= TURNSTILE_WAITING_MAX)
        return;
    struct turnstile_place *dropped = oldest_of_most(t);
    turnstile_count(t, TURNSTILE_HANDSHAKES);
    turnstile_leave(t, dropped);
    *ret_dropped = dropped;
}

/* The bucket as time until it is full; a whole second is empty (generic cell rate algorithm). */
static bool has_token(uint64_t full_at_us, uint32_t rate_per_s, uint64_t now_us)
{
    uint64_t missing_us = full_at_us > now_us ? full_at_us - now_us : 0;

    return rate_per_s == 0 || missing_us + SECOND_US / rate_per_s <= SECOND_US;
}

static void take_token(uint64_t *full_at_us, uint32_t rate_per_s, uint64_t now_us)
{
    if (rate_per_s == 0)
        return;
    *full_at_us = (*full_at_us > now_us ? *full_at_us : now_us) + SECOND_US / rate_per_s;
}

static void refill_share(struct turnstile *t, uint64_t now_us)
{
    int64_t most_us = (int64_t)TURNSTILE_SHARE_MS_MAX * 1000;
    uint64_t passed_us = now_us > t->share_at_us ? now_us - t->share_at_us : 0;

    if (passed_us > SECOND_US)
        passed_us = SECOND_US;
    t->share_us += (int64_t)(passed_us * t->limits.handshake_percent / 100);
    if (t->share_us > most_us)
        t->share_us = most_us;
    t->share_at_us = now_us;
}

/* Addresses take turns: the one whose last handshake began longest ago. Of one address the newest,
 * since under a flood its client is the likeliest that still waits. */
static struct turnstile_place *find_next(const struct turnstile *t, bool known, uint64_t now_us)
{
    uint32_t rate = t->limits.handshakes_address_per_s;
    struct turnstile_place *found = NULL;

    for (struct turnstile_place *one = t->waiting.last; one != NULL; one = one->previous[WAITING]) {
        const struct turnstile_address *address = one->address;
        if ((!known || turnstile_is_known(address, now_us / 1000)) &&
            (address->proxy || has_token(address->tokens_full_us, rate, now_us)) &&
            (found == NULL || address->begun < found->address->begun))
            found = one;
    }
    return found;
}

struct turnstile_place *turnstile_next(struct turnstile *t, uint64_t now_us)
{
    const struct turnstile_limits *limits = &t->limits;

    if (t->waiting.first == NULL)
        return NULL;
    refill_share(t, now_us);
    if ((limits->handshake_percent > 0 && t->share_us <= 0) ||
        !has_token(t->tokens_full_us, limits->handshakes_per_s, now_us))
        return NULL;
    bool known_first = t->begun % 2 == 0; /* Each other one: a known address may be hostile, too. */
    struct turnstile_place *place = find_next(t, known_first, now_us);
    if (place == NULL && known_first)
        place = find_next(t, false, now_us);
    if (place == NULL)
        return NULL;
    take_token(&t->tokens_full_us, limits->handshakes_per_s, now_us);
    take_token(&place->address->tokens_full_us, limits->handshakes_address_per_s, now_us);
    place->address->begun = ++t->begun;
    not_waiting(t, place);
    return place;
}

void turnstile_spend(struct turnstile *t, uint64_t took_us, uint64_t now_us)
{
    refill_share(t, now_us);
    t->stats.handshake_us += took_us;
    if (t->limits.handshake_percent > 0)
        t->share_us -= (int64_t)(took_us < SECOND_US ? took_us : SECOND_US);
}

void turnstile_completed(struct turnstile *t, bool resumed)
{
    t->stats.handshakes++;
    t->stats.handshakes_resumed += resumed;
}
