/*
 * budget: bytes that many may hold together, counted before they are taken and given back when they
 * are gone (DESIGN section 11). Pure: knows neither what is held nor who holds it. All functions
 * may be called from any thread.
 *
 * Two kinds draw on one budget:
 *   BUDGET_READ     what can be refused: nothing was done, and the caller asks again. Has three
 *                   quarters of the budget.
 *   BUDGET_OUTCOME  what became of a write that is committed. Has the whole of it, so that reads
 *                   never fill the last quarter; what cannot wait for room goes beyond it by
 *                   budget_take.
 * Up to BUDGET_SMALL_BYTES are never refused: what an answer of that size is for (a balance, an
 * error) is worth more than its bytes, and the calls that a process takes at once bound them.
 *
 * Each byte that was reserved or taken is given back once: budget_deinit CHECKs that none is held.
 */
#ifndef RUNTIME_BASE_BUDGET_H
#define RUNTIME_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_SMALL_BYTES 4096u

enum budget_kind { BUDGET_READ, BUDGET_OUTCOME };

struct budget {
    uint64_t bytes_max; /* 0: no limit; held bytes are counted all the same. */
    atomic_uint_fast64_t held_bytes;
    atomic_uint_fast64_t refused; /* Times that budget_reserve refused. */
};

void budget_init(struct budget *budget, uint64_t bytes_max);
/* CHECKs that everything was given back. */
void budget_deinit(struct budget *budget);

/* Takes `bytes` if that kind has room for them, or if nothing is held at all: what is larger than
 * the budget could never pass else. False: nothing was taken, and the refusal is counted. */
bool budget_reserve(struct budget *budget, enum budget_kind kind, uint64_t bytes);
/* What was reserved turned out to have another size, at most or at least: holds that instead. */
void budget_commit(struct budget *budget, uint64_t reserved_bytes, uint64_t bytes);
/* Takes `bytes` whatever is held: they are there already, and somebody has to count them. */
void budget_take(struct budget *budget, uint64_t bytes);
/* Counts a refusal that was foreseen by budget_has_room. */
void budget_refuse(struct budget *budget);
/* CHECKs that so much is held. */
void budget_give(struct budget *budget, uint64_t bytes);

/* Whether budget_reserve would take them; counts nothing. */
bool budget_has_room(const struct budget *budget, enum budget_kind kind, uint64_t bytes);
/* What that kind may fill of the budget. */
uint64_t budget_share(const struct budget *budget, enum budget_kind kind);
uint64_t budget_held(const struct budget *budget);
uint64_t budget_refused(const struct budget *budget);

#endif
