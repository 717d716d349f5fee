#include "client/cli/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/check.h"

const char *finding_level_name(enum finding_level level)
{
    static const char *const names[] = { "ok", "warn", "fail", "unknown" };

    CHECK(level < ARRAY_SIZE(names));
    return names[level];
}

void finding_add(struct findings *findings, struct verdict verdict, const char *format, ...)
{
    va_list list;

    findings->levels[verdict.level]++;
    if (findings->count == FINDINGS_MAX) {
        findings->left_out++;
        return;
    }
    struct finding *finding = &findings->items[findings->count++];
    finding->level = verdict.level;
    finding->check = verdict.check;
    finding->todo = verdict.todo;
    finding->runbook = verdict.runbook;
    va_start(list, format);
    vsnprintf(finding->what, sizeof finding->what, format, list);
    va_end(list);
}
