/* Channel.Settle, which owners log: decisions that other shards have told. */
#include "tests/sim/servers/workload.h"

const struct workload_row workload_channel_settle = {
    .method = METHOD_CHANNEL_SETTLE,
    .rule = { .logged = goods_settled },
};
