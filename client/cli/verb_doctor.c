/* holdfast doctor: looks at a whole cluster and says what is wrong, and what to do. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/doctor_gather.h"
#include "client/cli/doctor_report.h"
#include "client/cli/output.h"
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

int verb_doctor(const struct arguments *arguments)
{
    struct doctor_facts *facts = mem_zalloc(sizeof *facts);
    struct findings *findings = mem_zalloc(sizeof *findings);
    int code = 2;

    if (arguments->word_count != 1) {
        fprintf(stderr, "usage: holdfast doctor [--endpoint URL,..] [-o json]\n"
                        "It exits with 0 if nothing failed, though it may have warned, else with "
                        "1.\n");
    } else if (doctor_gather(arguments, facts) == ERR_OK) {
        doctor_judge(facts, findings);
        print_report(arguments, findings);
        code = findings->levels[FINDING_FAIL] > 0 ? 1 : 0;
    }
    doctor_facts_deinit(facts);
    free(findings);
    free(facts);
    return code;
}
