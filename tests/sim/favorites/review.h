/*
 * review: edges that wait for a person: what moderators ask for, and what must hold: an edge counts
 * at every moment unless it waits, and what waits is listed. Rules that flag: rate.h.
 */
#ifndef TESTS_SIM_FAVORITES_REVIEW_H
#define TESTS_SIM_FAVORITES_REVIEW_H

#include "tests/sim/favorites/favorite_model.h"

/* Three in four of the runs with rate rules. */
bool review_runs(const struct sim *sim);
void review_act(struct sim *sim, uint32_t server);
/* What a change by its player makes of the edge's flag: `flag` is what rules flag it for. */
void review_follows(struct edge_step *edge, bool favorite, uint32_t flag, uint64_t now_ms);
/* An entry changed the edge, for its player. */
void review_followed(const struct change *c, const struct edge_step *was,
                     const struct edge_step *now);
/* After an entry that changed the edge: what its player's row says, and what the shard counts. */
void review_check_rows(const struct change *c, const struct edge_step *edge, uint32_t flagged);

/* What a moderator wanted, and was told. */
struct review_deed {
    uint32_t method;
    const char *collection;
    size_t count;
    char *const *targets; /* NULL: all. */
    uint32_t edges;
    uint64_t waiting;
};
void review_carried_out(struct change *c, const struct op_model *op,
                        const struct review_deed *deed);
void review_refused(const struct change *c, const struct op_model *op,
                    const struct review_deed *deed, const Holdfast__Internal__V1__Refusal *detail);
void review_told_list(const struct told *t);

#endif
