#include "tests/sim/switches.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
#define SIM_KIND(name) #name,
    SIM_KINDS(SIM_KIND)
#undef SIM_KIND
};

const char *switches_kind_name(enum sim_without kind)
{
    return kind_names[kind];
}

bool switches_skip(const struct sim_switches *switches, uint32_t trouble)
{
    return trouble < SWITCHES_TROUBLES_MAX &&
           (switches->skipped[trouble / 64] >> trouble % 64 & 1) != 0;
}

void switches_set_skip(struct sim_switches *switches, uint32_t trouble, bool skip)
{
    uint64_t bit = 1ull << trouble % 64;

    if (trouble >= SWITCHES_TROUBLES_MAX)
        return;
    if (skip)
        switches->skipped[trouble / 64] |= bit;
    else
        switches->skipped[trouble / 64] &= ~bit;
}

bool switches_any(const struct sim_switches *switches)
{
    const struct sim_switches none = { .forbidden = switches->forbidden };

    return memcmp(switches, &none, sizeof none) != 0;
}

/* ---- options ---- */
static bool set_without(struct sim_switches *switches, const char *value)
{
    while (*value != '\0') {
        size_t size = strcspn(value, ",");
        uint32_t kind = 0;
        while (kind < WITHOUTS &&
               (strlen(kind_names[kind]) != size || strncmp(kind_names[kind], value, size) != 0))
            kind++;
        if (kind == WITHOUTS)
            return false;
        switches->without |= 1ull << kind;
        value += size + (value[size] == ',');
    }
    return true;
}

/* "3,7-9": only these happen. "none": no trouble does. */
static bool set_troubles(struct sim_switches *switches, const char *value)
{
    memset(switches->skipped, 0xff, sizeof switches->skipped);
    if (strcmp(value, "none") == 0)
        return true;
    while (*value != '\0') {
        char *end;
        unsigned long first = strtoul(value, &end, 10);
        unsigned long last = first;
        if (end == value)
            return false;
        if (*end == '-') {
            value = end + 1;
            last = strtoul(value, &end, 10);
            if (end == value)
                return false;
        }
        for (; first <= last && first < SWITCHES_TROUBLES_MAX; first++)
            switches_set_skip(switches, (uint32_t)first, false);
        value = end + (*end == ',');
        if (*end != '\0' && *end != ',')
            return false;
    }
    return true;
}

bool switches_option(struct sim_switches *switches, const char *name, const char *value)
{
    char *end;
    unsigned long long number = strtoull(value, &end, 10);
    bool is_number = end != value && *end == '\0' && number <= UINT32_MAX;

    if (strcmp(name, "--without") == 0)
        return set_without(switches, value);
    if (strcmp(name, "--troubles") == 0)
        return set_troubles(switches, value);
    if (strcmp(name, "--forbid") == 0) {
        switches->forbidden = value;
        return true;
    }
    if (!is_number)
        return false;
    if (strcmp(name, "--nodes") == 0)
        switches->nodes = (uint32_t)number;
    else if (strcmp(name, "--shards") == 0)
        switches->shards = (uint32_t)number;
    else if (strcmp(name, "--players") == 0)
        switches->players = (uint32_t)number;
    else if (strcmp(name, "--servers") == 0)
        switches->servers = (uint32_t)number;
    else if (strcmp(name, "--events") == 0)
        switches->events_max = number;
    else
        return false;
    return true;
}

/* ---- the other way round ---- */
struct text {
    char *at;
    size_t left;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int size = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= text->left)
        return;
    text->at += size;
    text->left -= (size_t)size;
}

static void put_number(struct text *text, const char *name, uint64_t number)
{
    if (number > 0)
        put(text, " --%s %" PRIu64, name, number);
}

static void put_troubles(struct text *text, const struct sim_switches *switches, uint32_t troubles)
{
    const char *comma = "";
    bool any = false;

    for (uint32_t i = 0; i < SWITCHES_TROUBLES_MAX; i++)
        any |= switches_skip(switches, i);
    if (!any)
        return;
    put(text, " --troubles ");
    any = false;
    for (uint32_t i = 0; i < troubles && i < SWITCHES_TROUBLES_MAX; i++) {
        if (switches_skip(switches, i))
            continue;
        put(text, "%s%u", comma, i);
        comma = ",";
        any = true;
    }
    if (!any)
        put(text, "none");
}

void switches_print(const struct sim_switches *switches, uint32_t troubles,
                    char ret_text[SWITCHES_TEXT_BYTES])
{
    struct text text = { ret_text, SWITCHES_TEXT_BYTES };
    const char *before = " --without ";

    ret_text[0] = '\0';
    put_number(&text, "nodes", switches->nodes);
    put_number(&text, "shards", switches->shards);
    put_number(&text, "players", switches->players);
    put_number(&text, "servers", switches->servers);
    for (uint32_t kind = 0; kind < WITHOUTS; kind++) {
        if ((switches->without >> kind & 1) == 0)
            continue;
        put(&text, "%s%s", before, kind_names[kind]);
        before = ",";
    }
    put_troubles(&text, switches, troubles);
    put_number(&text, "events", switches->events_max);
    if (switches->forbidden != NULL)
        put(&text, " --forbid %s", switches->forbidden);
}
