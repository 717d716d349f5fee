#include "client/cli/debug/debug_zip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/cli/console/clock.h"
#include "client/cli/debug/debug_bundle.h"
#include "client/cli/doctor/doctor_gather.h"
#include "client/cli/doctor/doctor_report.h"
#include "client/cli/console/options.h"
#include "runtime/base/check.h"

const struct command_option option_redact = {
    .flag = "redact",
    .meaning = "replace ids of players and operations by hashes",
};

static err take_doctor(struct bundle *bundle)
{
    struct doctor_facts *facts = mem_zalloc(sizeof *facts);
    struct findings *findings = mem_zalloc(sizeof *findings);
    struct buf text = { 0 };
    err e = doctor_gather(bundle->arguments, facts);

    if (e == ERR_OK) {
        doctor_judge(facts, findings);
        doctor_report_text(findings, &text);
        bundle_add(bundle, "doctor.txt", &text);
        bundle_add_json(bundle, "doctor.json", doctor_report_json(findings));
    }
    doctor_facts_deinit(facts);
    free(findings);
    free(facts);
    return e;
}

static void take_about(struct bundle *bundle)
{
    json_t *players = json_array();
    char when[UTC_TEXT_BYTES];
    const char *id;
    json_t *value;

    json_object_foreach(bundle->scrub.players, id, value)
        json_array_append_new(players, json_string(id));
    bundle_add_json(bundle, "about.json",
                    json_pack("{s:s, s:s, s:s, s:b, s:o, s:s}", "made", utc_text(wall_ms(), when),
                              "version", HOLDFAST_VERSION, "endpoint",
                              option_text(bundle->arguments, &option_endpoint), "redacted",
                              bundle->scrub.redact, "players", players, "note",
                              "Players whose ids occur in these parts; of their documents there is "
                              "nothing here. What is missing stands in errors.txt."));
}

static err fill(struct bundle *bundle)
{
    err e = take_doctor(bundle);

    if (e != ERR_OK)
        return e;
    bundle_take_cluster(bundle);
    bundle_take_metrics(bundle);
    bundle_take_logs(bundle);
    take_about(bundle);
    bundle_add(bundle, "errors.txt", &bundle->errors);
    return bundle->broken ? ERR_IO : archive_finish(bundle->archive);
}

int debug_zip(const struct arguments *arguments, const char *path)
{
    struct bundle bundle = { .arguments = arguments,
                             .scrub = { .redact = option_is_set(arguments, &option_redact),
                                        .api_key = option_text(arguments, &option_key),
                                        .players = json_object() } };

    CHECK(getrandom(bundle.scrub.salt, sizeof bundle.scrub.salt, 0) ==
          (ssize_t)sizeof bundle.scrub.salt);
    err e = archive_new(path, (int64_t)(wall_ms() / 1000), &bundle.archive);
    if (e == ERR_OK)
        e = fill(&bundle);
    if (e == ERR_IO)
        fprintf(stderr, "holdfast: %s: %s\n", path, strerror(errno));
    archive_free(bundle.archive);
    if (e == ERR_OK && bundle.errors_count > 0)
        fprintf(stderr, "holdfast: %u things are missing: see errors.txt in it\n",
                bundle.errors_count);
    if (e == ERR_OK)
        printf("%s: %llu players' ids occur in it%s\n", path,
               (unsigned long long)json_object_size(bundle.scrub.players),
               bundle.scrub.redact ? ", as hashes" : "; --redact replaces them by hashes");
    json_decref(bundle.scrub.players);
    buf_deinit(&bundle.errors);
    explicit_bzero(&bundle.scrub, sizeof bundle.scrub);
    return e == ERR_OK ? 0 : e == ERR_INVALID ? 2 : 1;
}
