/* policy: the limits and currencies of a whole cluster. docs/policy.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_drop = {
    .flag = "drop",
    .value = "NAMES",
    .meaning = "currencies that it leaves out: 'gems,dust'",
};

/* NULL: not answered, which was told. A cluster without a policy has an empty one. */
static json_t *policy_of_cluster(const struct arguments *arguments, int *ret_code)
{
    json_t *cluster =
        call_plain_json(arguments, "AdminService/GetCluster", json_object(), ret_code);
    json_t *policy = NULL;

    if (cluster != NULL)
        policy = json_incref(json_object_get(cluster, "policy"));
    if (cluster != NULL && policy == NULL)
        policy = json_object();
    json_decref(cluster);
    return policy;
}

static int get(const struct arguments *arguments)
{
    int code = 0;
    json_t *policy = policy_of_cluster(arguments, &code);

    if (policy != NULL)
        print_json(policy);
    json_decref(policy);
    return code;
}

/* Its place in a list of currencies; the list's size: it is not there. */
static size_t place_of(const json_t *currencies, const char *name)
{
    size_t i;
    json_t *each;

    json_array_foreach((json_t *)(uintptr_t)currencies, i, each)
    {
        if (strcmp(answer_text(each, "name"), name) == 0)
            break;
    }
    return i;
}

/* A currency that `changes` names gets the fields that it says there; the others stay. */
static void merge_currencies(json_t *currencies, const json_t *changes)
{
    size_t i;
    json_t *change;

    json_array_foreach((json_t *)(uintptr_t)changes, i, change)
    {
        size_t place = place_of(currencies, answer_text(change, "name"));

        if (place < json_array_size(currencies))
            json_object_update(json_array_get(currencies, place), change);
        else
            json_array_append(currencies, change);
    }
}

static json_t *drop_currencies(json_t *currencies, const char *names)
{
    json_t *dropped = json_array();

    while (names[0] != 0) {
        size_t size = strcspn(names, ",");
        json_t *name = json_stringn(names, size);

        json_array_remove(currencies, place_of(currencies, json_string_value(name)));
        json_array_append_new(dropped, name);
        names += size + (names[size] == ',');
    }
    return dropped;
}

/* The request that changes `policy` by `fields`. */
static json_t *request_of(const struct arguments *arguments, json_t *policy, json_t *fields)
{
    uint64_t version = answer_number(policy, "version") + 1;
    json_t *currencies = json_object_get(policy, "currencies");
    json_t *changes = json_incref(json_object_get(fields, "currencies"));

    if (currencies == NULL) {
        currencies = json_array();
        json_object_set_new(policy, "currencies", currencies);
    }
    json_object_del(fields, "currencies");
    json_object_set_new(policy, "version", json_integer((json_int_t)version));
    json_object_update(policy, fields);
    merge_currencies(currencies, changes);
    json_decref(changes);
    json_t *dropped = drop_currencies(currencies, option_text(arguments, &option_drop));
    return json_pack("{s:O, s:o}", "policy", policy, "dropCurrencies", dropped);
}

static int set(const struct arguments *arguments)
{
    int code = 0;
    json_error_t why;
    json_t *answer = NULL;
    json_t *fields = json_loads(arguments->words[0], 0, &why);
    const json_t *currencies = json_object_get(fields, "currencies");

    if (!json_is_object(fields) || (currencies != NULL && !json_is_array(currencies))) {
        fprintf(stderr, "holdfast: BODY: a JSON object, such as {\"mailboxMax\":500}%s%s\n",
                fields == NULL ? ": " : "", fields == NULL ? why.text : "");
        json_decref(fields);
        return 2;
    }
    json_t *policy = policy_of_cluster(arguments, &code);
    if (policy != NULL) {
        json_t *request = request_of(arguments, policy, fields);

        if (option_is_set(arguments, &option_dry_run))
            answer = request;
        else
            answer = call_plain_json(arguments, "AdminService/SetPolicy", request, &code);
    }
    if (answer != NULL)
        print_json(json_object_get(answer, "policy"));
    json_decref(answer);
    json_decref(policy);
    json_decref(fields);
    return code;
}

const struct verb verb_policy[] = {
    {
        .words = "policy get",
        .topic = VERB_TOPIC_API,
        .arguments = "",
        .summary = "the cluster's limits and currencies, as JSON",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "policy set",
        .topic = VERB_TOPIC_API,
        .arguments = "BODY",
        .summary = "change what BODY names of it; all else stays",
        .details =
            "BODY is JSON: holdfast policy set '{\"mailboxMax\":500}'. Of currencies it names "
            "those that change or come: '{\"currencies\":[{\"name\":\"gems\",\"maxBalance\":9}]}'.",
        .options = VERB_OPTIONS(&option_drop, &option_dry_run, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = set,
    },
    { .words = NULL },
};
