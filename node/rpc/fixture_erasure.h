/* fixture_erasure: players with edges and additions, what of them is erased, and what is left.
 * Tests only. */
#ifndef NODE_RPC_FIXTURE_ERASURE_H
#define NODE_RPC_FIXTURE_ERASURE_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/erasure/erasure.h"
#include "node/rpc/fixture_edges.h"

#define GRACE_MS    60000
#define STATE(name) HOLDFAST__V1__ERASURE_STATE__ERASURE_STATE_##name
#define HOUR        3600000u
#define ERASURE_TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, fixture_erasure_setup, fixture_erasure_teardown)

/* cmocka: *state is a struct fixture of a cluster, with "favorites" and "plays"; an entry of an
 * erasure deals with two rows. In the end all counts fit. */
int fixture_erasure_setup(void **state);
int fixture_erasure_teardown(void **state);

/* At every committed moment a count is what stands with the target, and is not flagged. */
void fixture_check_erased_counts(struct fixture *f);
/* Edges, additions and rates; of partials all but when they changed. */
uint64_t fixture_edges_digest(struct fixture *f);
/* How many of these rows are the entity's, but for the one that counts outcomes. */
uint32_t fixture_edges_of(struct fixture *f, const char *entity);

/* NULL: refused. */
Holdfast__V1__Erasure *fixture_erase_player(struct fixture *f, const char *player,
                                            int64_t grace_ms);
Holdfast__V1__Erasure *fixture_undo_erasure(struct fixture *f, const char *player);
Holdfast__V1__Erasure *fixture_erasure(struct fixture *f, const char *player);
/* What is due, for as long as an erasure of some rows takes. */
void fixture_pass_steps(struct fixture *f);

/* Three edges, one that is gone, and additions to three targets. */
void fixture_some_rows(struct fixture *f, const char *player);
/* Of ann two are flagged, at different moments; of bob one, between them. */
void fixture_some_flagged(struct fixture *f);
const Holdfast__V1__ListFlaggedEdgesResponse *fixture_flagged(struct fixture *f, uint32_t page_size,
                                                              const char *cursor);
/* "player:target " of all pages of one row each, in static memory. */
const char *fixture_flagged_targets(struct fixture *f);

#endif
