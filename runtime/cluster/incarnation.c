#include "runtime/cluster/incarnation.h"

#include <string.h>

#include "runtime/base/check.h"

err decimal_parse(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 20)
        return ERR_INVALID;
    if (text.size > 1 && text.data[0] == '0')
        return ERR_INVALID;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return ERR_INVALID;
        uint64_t digit = (uint64_t)(text.data[i] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return ERR_INVALID;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return ERR_OK;
}

err incarnation_parse(struct slice text, struct incarnation *ret_incarnation)
{
    const uint8_t *dash = text.size > 0 ? memchr(text.data, '-', text.size) : NULL;
    struct incarnation parsed;

    if (dash == NULL)
        return ERR_INVALID;
    size_t left = (size_t)(dash - text.data);
    if (decimal_parse((struct slice){ text.data, left }, &parsed.generation) != ERR_OK)
        return ERR_INVALID;
    struct slice right = { dash + 1, text.size - left - 1 };
    if (decimal_parse(right, &parsed.revision) != ERR_OK)
        return ERR_INVALID;
    if (parsed.generation == 0 || parsed.revision == 0)
        return ERR_INVALID;
    *ret_incarnation = parsed;
    return ERR_OK;
}

/* From the last digit on, up to `end`; returns where the first one is. */
static char *print_before(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

/* By hand: each operation under a session has one, and printf costs as much as the rest of it. */
void incarnation_print(struct incarnation incarnation, char ret_text[INCARNATION_TEXT_SIZE])
{
    char text[INCARNATION_TEXT_SIZE];
    char *end = text + sizeof text;
    char *at = end;

    *--at = '\0';
    at = print_before(at, incarnation.revision);
    *--at = '-';
    at = print_before(at, incarnation.generation);
    memcpy(ret_text, at, (size_t)(end - at));
}

int incarnation_compare(struct incarnation a, struct incarnation b)
{
    if (a.generation != b.generation)
        return a.generation < b.generation ? -1 : 1;
    return (a.revision > b.revision) - (a.revision < b.revision);
}

bool incarnation_is_none(struct incarnation incarnation)
{
    return incarnation.generation == 0 && incarnation.revision == 0;
}
