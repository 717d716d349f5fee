#include "node/io/process/node_limits.h"

#include <stdio.h>

#include "runtime/base/check.h"

#define CACHE_BYTES_MIN       (4u * 1024 * 1024)
#define BLOCK_CACHE_BYTES_MIN (1024u * 1024)
#define ANSWERS_BYTES_MIN     (1024u * 1024)
#define SCRUB_PERIOD_MS_MIN   1000u

const char *node_limits_check(const struct node_config *config,
                              char ret_why[NODE_LIMITS_TEXT_BYTES])
{
    const struct {
        const char *option, *least;
        uint64_t value, min;
    } limits[] = {
        { "cache_size", "4MiB", config->cache_size, CACHE_BYTES_MIN },
        { "block_cache_size", "1MiB", config->block_cache_size, BLOCK_CACHE_BYTES_MIN },
        { "answers_size_max", "1MiB", config->answers_size_max, ANSWERS_BYTES_MIN },
    };

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        if (limits[i].value == 0 || limits[i].value >= limits[i].min)
            continue;
        snprintf(ret_why, NODE_LIMITS_TEXT_BYTES, "is 0, or at least %s", limits[i].least);
        return limits[i].option;
    }
    if (config->scrub_period == 0 || config->scrub_period >= SCRUB_PERIOD_MS_MIN)
        return NULL;
    snprintf(ret_why, NODE_LIMITS_TEXT_BYTES, "is 0, or at least 1s, not %llums",
             (unsigned long long)config->scrub_period);
    return "scrub_period";
}

const char *node_links_find(const struct node_config *config, enum link_transport *ret_transport,
                            enum link_names *ret_names, char ret_why[NODE_LIMITS_TEXT_BYTES])
{
    if (!link_transport_find(config->node_transport, ret_transport)) {
        snprintf(ret_why, NODE_LIMITS_TEXT_BYTES, "is nng or peer");
        return "node_transport";
    }
    if (!link_names_find(config->tls_names, ret_names)) {
        snprintf(ret_why, NODE_LIMITS_TEXT_BYTES, "is require or accept-unnamed");
        return "tls_names";
    }
    return NULL;
}
