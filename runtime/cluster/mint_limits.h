/*
 * mint_limits: what an API key may make out of nothing: which currencies and which kinds of items,
 * how much in one call and how much a day, as `holdfast key issue --grants gold:1000,item/sword:5
 * --per-day gold:100000` has it. Pure.
 */
#ifndef RUNTIME_CLUSTER_MINT_LIMITS_H
#define RUNTIME_CLUSTER_MINT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define MINT_GOODS_MAX  16u
#define MINT_NAME_BYTES 72u /* A currency, or "item/" and a kind. */
#define MINT_TEXT_SIZE  1024u
#define MINT_FORM       "<currency>:<amount> or item/<kind>:<count>, with commas between, each once"

struct mint_limits {
    uint32_t count;
    struct {
        char name[MINT_NAME_BYTES + 1];
        uint64_t amount;
    } goods[MINT_GOODS_MAX];
};

/* ERR_INVALID: the text is not MINT_FORM, or names more than MINT_GOODS_MAX; *ret_limits is then
 * untouched. An empty text has no goods. */
NODISCARD err mint_limits_parse(struct slice text, struct mint_limits *ret_limits);
/* Its place; UINT32_MAX: it is not among them. */
uint32_t mint_limits_find(const struct mint_limits *limits, const char *name);

#endif
