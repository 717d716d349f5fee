#include "runtime/base/budget.h"

#include "runtime/base/check.h"

void budget_init(struct budget *budget, uint64_t bytes_max)
{
    budget->bytes_max = bytes_max;
    atomic_init(&budget->held_bytes, 0);
    atomic_init(&budget->refused, 0);
}

void budget_deinit(struct budget *budget)
{
    CHECK(budget_held(budget) == 0);
}

uint64_t budget_share(const struct budget *budget, enum budget_kind kind)
{
    uint64_t max = budget->bytes_max;

    return kind == BUDGET_READ ? max - max / 4 : max;
}

static bool fits(const struct budget *budget, enum budget_kind kind, uint64_t held, uint64_t bytes)
{
    uint64_t share = budget_share(budget, kind);

    return budget->bytes_max == 0 || bytes <= BUDGET_SMALL_BYTES || held == 0 ||
           (held <= share && bytes <= share - held);
}

bool budget_has_room(const struct budget *budget, enum budget_kind kind, uint64_t bytes)
{
    return fits(budget, kind, budget_held(budget), bytes);
}

bool budget_reserve(struct budget *budget, enum budget_kind kind, uint64_t bytes)
{
    uint_fast64_t held = atomic_load_explicit(&budget->held_bytes, memory_order_relaxed);

    do {
        if (!fits(budget, kind, held, bytes)) {
            atomic_fetch_add_explicit(&budget->refused, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->held_bytes, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void budget_commit(struct budget *budget, uint64_t reserved_bytes, uint64_t bytes)
{
    if (bytes > reserved_bytes)
        budget_take(budget, bytes - reserved_bytes);
    else
        budget_give(budget, reserved_bytes - bytes);
}

void budget_take(struct budget *budget, uint64_t bytes)
{
    atomic_fetch_add_explicit(&budget->held_bytes, bytes, memory_order_relaxed);
}

void budget_refuse(struct budget *budget)
{
    atomic_fetch_add_explicit(&budget->refused, 1, memory_order_relaxed);
}

void budget_give(struct budget *budget, uint64_t bytes)
{
    uint_fast64_t before =
        atomic_fetch_sub_explicit(&budget->held_bytes, bytes, memory_order_relaxed);

    CHECK(before >= bytes);
}

uint64_t budget_held(const struct budget *budget)
{
    return atomic_load_explicit(&budget->held_bytes, memory_order_relaxed);
}

uint64_t budget_refused(const struct budget *budget)
{
    return atomic_load_explicit(&budget->refused, memory_order_relaxed);
}
