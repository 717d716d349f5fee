/* list: what lists of a player may tell, for the rows of their methods (workload/). */
#ifndef TESTS_SIM_ORACLE_LIST_H
#define TESTS_SIM_ORACLE_LIST_H

#include "tests/sim/oracle/answer.h"

#define LIST_UNKNOWN      UINT64_MAX
#define LIST_RESERVATIONS 64u
#define LIST_MAILS        64u

struct listed_item {
    const struct item_model *item;
    uint32_t step;
};

/* The place that a cursor stands for, as the page before told it; 0: none; LIST_UNKNOWN: that page
 * is forgotten. */
uint64_t list_from(const struct told *t, const char *cursor);
/* There is another page, or not; it begins behind `place`. */
void list_goes_on(const struct told *t, const char *next_cursor, bool more, uint64_t place);
/* The request's player's items, by UID; to be freed. */
uint32_t list_items(const struct told *t, uint64_t index, struct listed_item **ret_items);
bool list_is_item(const struct listed_item *item, const Holdfast__V1__Item *told);
/* Open ones, oldest first; room for LIST_RESERVATIONS. */
uint32_t list_reservations(const struct told *t, uint64_t index, const struct op_model **ret_ops);
/* By arrival; room for LIST_MAILS. */
uint32_t list_mails(const struct told *t, uint64_t index, const struct mail_model **ret_mails);

#endif
