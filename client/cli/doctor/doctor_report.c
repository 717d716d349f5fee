#include "client/cli/doctor/doctor_report.h"

void doctor_report_text(const struct findings *findings, struct buf *out)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];

        buf_printf(out, "%-8s%-13s%s\n", finding_level_name(finding->level), finding->check,
                   finding->what);
        if (finding->todo == NULL)
            continue;
        buf_printf(out, "%21s%s", "", finding->todo);
        if (finding->runbook != NULL)
            buf_printf(out, " (docs/runbooks/%s.md)", finding->runbook);
        buf_printf(out, "\n");
    }
    if (findings->left_out > 0)
        buf_printf(out, "and %u more\n", findings->left_out);
    buf_printf(out, "\n%u ok, %u warnings, %u failed, %u unknown\n", findings->levels[FINDING_OK],
               findings->levels[FINDING_WARN], findings->levels[FINDING_FAIL],
               findings->levels[FINDING_UNKNOWN]);
}

json_t *doctor_report_json(const struct findings *findings)
{
    json_t *checks = json_array();

    for (uint32_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        json_t *check = json_pack("{s:s, s:s, s:s}", "check", finding->check, "level",
                                  finding_level_name(finding->level), "what", finding->what);
        if (finding->todo != NULL)
            json_object_set_new(check, "todo", json_string(finding->todo));
        if (finding->runbook != NULL)
            json_object_set_new(check, "runbook", json_string(finding->runbook));
        json_array_append_new(checks, check);
    }
    return json_pack("{s:o, s:i, s:i, s:i, s:i, s:i}", "checks", checks, "ok",
                     (int)findings->levels[FINDING_OK], "warned",
                     (int)findings->levels[FINDING_WARN], "failed",
                     (int)findings->levels[FINDING_FAIL], "unknown",
                     (int)findings->levels[FINDING_UNKNOWN], "leftOut", (int)findings->left_out);
}
