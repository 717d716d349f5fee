/*
 * balance_list: the balances of an answer, and what of them is reserved: two lists, which every
 * answer about balances has under the same names. One place fills both.
 */
#ifndef NODE_CORE_GOODS_BALANCE_LIST_H
#define NODE_CORE_GOODS_BALANCE_LIST_H

#include "holdfast/v1/currency.pb-c.h"
#include "node/core/goods/ledger.h"

/* For reads: they are no part of the outcome that all versions compute alike. */
#define BALANCE_LIST_READ UINT32_MAX

struct balance_list {
    struct arena *arena;
    bool apart; /* Else what is reserved stands within each balance, as version 3 has it. */
    size_t balance_count, reserved_count, room;
    Holdfast__V1__CurrencyAmount **balances, **reserved;
};

/* `count_max` currencies at most. `version`: the apply version in force, or BALANCE_LIST_READ. */
void balance_list_init(struct balance_list *list, struct arena *arena, size_t count_max,
                       uint32_t version);
/* A currency that is not in it. `currency` is borrowed. */
void balance_list_add(struct balance_list *list, char *currency, int64_t amount, int64_t reserved);
bool balance_list_has(const struct balance_list *list, const char *currency);
/* As `changes` left them; a currency that is in it has its new balance. The names end with a NUL,
 * since they are a request's texts. */
void balance_list_note(struct balance_list *list, size_t count,
                       const struct ledger_change *changes);

/* Sets both lists of any answer that has them. */
#define BALANCE_LIST_TELL(list, answer)                                                            \
    do {                                                                                           \
        (answer)->n_balances = (list)->balance_count;                                              \
        (answer)->balances = (list)->balances;                                                     \
        (answer)->n_reserved = (list)->reserved_count;                                             \
        (answer)->reserved = (list)->reserved;                                                     \
    } while (false)

#endif
