#include "runtime/base/caller_share.h"

#include <stdlib.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define SLOTS 1024u

struct share {
    uint64_t name;
    uint64_t held; /* Never 0. */
    struct share *next;
};

struct caller_shares {
    struct share *slots[SLOTS];
    uint32_t count;
};

struct caller_shares *caller_shares_new(void)
{
    return mem_zalloc(sizeof(struct caller_shares));
}

void caller_shares_free(struct caller_shares *shares)
{
    CHECK(shares == NULL || shares->count == 0);
    free(shares);
}

static uint32_t slot_of(uint64_t name)
{
    return (uint32_t)((name ^ name >> 32) % SLOTS);
}

static struct share *const *place_of(const struct caller_shares *shares, uint64_t name)
{
    struct share *const *at = &shares->slots[slot_of(name)];

    while (*at != NULL && (*at)->name != name)
        at = &(*at)->next;
    return at;
}

bool caller_share_take(struct caller_shares *shares, uint64_t name, uint64_t amount, uint64_t limit)
{
    struct share **at = (struct share **)(uintptr_t)place_of(shares, name);

    if (amount == 0)
        return true;
    if (*at == NULL) {
        *at = mem_zalloc(sizeof **at);
        (*at)->name = name;
        shares->count++;
    } else if ((*at)->held > limit || amount > limit - (*at)->held) {
        return false;
    }
    (*at)->held += amount;
    return true;
}

void caller_share_give(struct caller_shares *shares, uint64_t name, uint64_t amount)
{
    struct share **at = (struct share **)(uintptr_t)place_of(shares, name);

    if (amount == 0)
        return;
    CHECK(*at != NULL && (*at)->held >= amount);
    (*at)->held -= amount;
    if ((*at)->held > 0)
        return;
    struct share *gone = *at;
    *at = gone->next;
    shares->count--;
    free(gone);
}

uint64_t caller_share_held(const struct caller_shares *shares, uint64_t name)
{
    const struct share *share = *place_of(shares, name);

    return share != NULL ? share->held : 0;
}

void caller_shares_check(const struct caller_shares *shares)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        for (const struct share *at = shares->slots[slot]; at != NULL; at = at->next) {
            CHECK(slot_of(at->name) == slot);
            CHECK(at->held > 0);
            CHECK(++count <= shares->count);
            CHECK(*place_of(shares, at->name) == at); /* Known once. */
        }
    }
    CHECK(count == shares->count);
}
