#include "runtime/cluster/mint_limits.h"

#include <string.h>

#include "runtime/cluster/incarnation.h"

uint32_t mint_limits_find(const struct mint_limits *limits, const char *name)
{
    for (uint32_t i = 0; i < limits->count; i++) {
        if (strcmp(limits->goods[i].name, name) == 0)
            return i;
    }
    return UINT32_MAX;
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] == 0x7f)
            return false;
    }
    return true;
}

/* "gold:1000" */
static err add_one(struct slice text, struct mint_limits *limits)
{
    const uint8_t *colon = text.size > 0 ? memrchr(text.data, ':', text.size) : NULL;
    char name[MINT_NAME_BYTES + 1] = "";
    uint64_t amount;

    if (colon == NULL || colon == text.data || limits->count == MINT_GOODS_MAX)
        return ERR_INVALID;
    size_t size = (size_t)(colon - text.data);
    if (size > MINT_NAME_BYTES || !is_printable((struct slice){ text.data, size }) ||
        decimal_parse((struct slice){ colon + 1, text.size - size - 1 }, &amount) != ERR_OK)
        return ERR_INVALID;
    memcpy(name, text.data, size);
    if (mint_limits_find(limits, name) != UINT32_MAX)
        return ERR_INVALID;
    memcpy(limits->goods[limits->count].name, name, sizeof name);
    limits->goods[limits->count++].amount = amount;
    return ERR_OK;
}

err mint_limits_parse(struct slice text, struct mint_limits *ret_limits)
{
    struct mint_limits limits = { 0 };
    size_t at = 0;

    while (at < text.size) {
        const uint8_t *comma = memchr(text.data + at, ',', text.size - at);
        size_t end = comma != NULL ? (size_t)(comma - text.data) : text.size;

        if (add_one((struct slice){ text.data + at, end - at }, &limits) != ERR_OK ||
            end + 1 == text.size)
            return ERR_INVALID;
        at = end + 1;
    }
    *ret_limits = limits;
    return ERR_OK;
}
