/*
 * wrong: in some runs a replica comes to other outcomes than the rest, as if its memory lost a bit.
 * It has to be quarantined, and to stay so whatever happens to it, until it takes rows from
 * another: it owns nothing, gives no rows, and no coordinator names it while another member can
 * own. An operator asks now and then to have it rebuilt.
 */
#ifndef TESTS_SIM_FAULTS_WRONG_H
#define TESTS_SIM_FAULTS_WRONG_H

#include "tests/sim/sim.h"

/* Decides for the run, by its seed alone; takes nothing from its chance. */
void wrong_choose(struct sim *sim);
/* Bytes a second that an owner gives of a snapshot. */
uint32_t wrong_snapshot_pace(const struct sim *sim, uint32_t otherwise);
void wrong_event(struct sim *sim, const struct sim_event *event);
/* Some replica of the shard was made wrong: from then on outcomes of its replicas may differ. */
bool wrong_shard(const struct sim *sim, uint32_t shard);
/* After a step of the shard there, or after its start. */
void wrong_look(struct sim *sim, struct sim_node *node, uint32_t shard);
/* Before it is sent. */
void wrong_look_at_part(struct sim *sim, struct sim_node *node, const struct rep_send *send);
void wrong_look_at_write(struct sim *sim, const struct coord *core,
                         const struct coord_write *write);

/* What events of EV_ROT name as their origin; nodes are fewer. */
#define WRONG_ORIGIN 1000u

#endif
