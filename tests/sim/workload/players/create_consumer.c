/* CreateConsumer: of a reader of events whose place the cluster keeps. */
#include "tests/sim/events/consumer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    (void)parts;
    consumer_encode(sim, op, out);
}

const struct workload_row workload_create_consumer = {
    .method = METHOD_CREATE_CONSUMER,
    .encode = encode,
    .taken = consumer_taken,
    .rule = { .logged = consumer_logged, .told = consumer_told },
};
