/* holdfast doctor: looks at a whole cluster and says what is wrong, and what to do. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/doctor/doctor_gather.h"
#include "client/cli/doctor/doctor_report.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"

static void print_report(const struct arguments *arguments, const struct findings *findings)
{
    struct buf text = { 0 };

    if (wants_json(arguments)) {
        json_t *report = doctor_report_json(findings);
        print_json(report);
        json_decref(report);
        return;
    }
    doctor_report_text(findings, &text);
    fwrite(text.data, 1, text.size, stdout);
    buf_deinit(&text);
}

static int doctor(const struct arguments *arguments)
{
    struct doctor_facts *facts = mem_zalloc(sizeof *facts);
    struct findings *findings = mem_zalloc(sizeof *findings);
    int code = 2;

    if (doctor_gather(arguments, facts) == ERR_OK) {
        doctor_judge(facts, findings);
        print_report(arguments, findings);
        code = findings->levels[FINDING_FAIL] > 0 ? 1 : 0;
    }
    doctor_facts_deinit(facts);
    free(findings);
    free(facts);
    return code;
}

const struct verb verb_doctor[] = {
    {
        .words = "doctor",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what is wrong, and what to do; exits with 1 if a check failed, 0 with warnings",
        .details = "--endpoint may name several routers, with commas between.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = doctor,
    },
    { .words = NULL },
};
