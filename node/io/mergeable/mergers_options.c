/* What a replica is made with. */
#include <string.h>
#include <sys/random.h>

#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define INDEX_DOTS_MAX    (1u << 20)
#define CHUNK_RECORDS_MAX 256u
#define CLOSED_MAX        256u
#define OP_WINDOW_MS      (15u * 60u * 1000u)

static void sign(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    const struct mergers *mergers = user;
    uint8_t mac[HMAC_BYTES];

    hmac_sign(&mergers->secret, message, mac);
    memcpy(ret_mac, mac, MERGE_TOKEN_MAC_BYTES);
}

/* Boots rise, whatever the clock does: within one process, too. */
uint64_t mergers_next_boot(const struct mergers *mergers, uint32_t shard)
{
    uint64_t last = mergers->shards[shard].boot, boot = mergers->options.boot;

    return last >= boot ? last + 1 : boot;
}

struct merge_options mergers_options_of(struct mergers *mergers, uint32_t shard)
{
    struct merge_options options = { .shard = shard,
                                     .generation = mergers_generation_of(&mergers->shards[shard]),
                                     .member = mergers->options.self,
                                     .boot = mergers->shards[shard].boot,
                                     .index_dots_max = INDEX_DOTS_MAX,
                                     .chunk_records_max = CHUNK_RECORDS_MAX,
                                     .closed_max = CLOSED_MAX,
                                     .op_window_ms = OP_WINDOW_MS,
                                     .mac = { .sign = sign, .user = mergers } };

    CHECK(getrandom(&options.random, sizeof options.random, 0) == (ssize_t)sizeof options.random);
    return options;
}
