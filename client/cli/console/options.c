#include "client/cli/console/options.h"

const struct command_option option_endpoint = {
    .flag = "endpoint",
    .value = "URL",
    .initial = "http://127.0.0.1:7400",
    .environment = "HOLDFAST_ENDPOINT",
    .meaning = "router to call; doctor, debug zip: several, with commas",
    .common = true,
};
const struct command_option option_key = {
    .flag = "key",
    .value = "KEY",
    .environment = "HOLDFAST_KEY",
    .meaning = "API key",
    .common = true,
};
const struct command_option option_ca = {
    .flag = "ca",
    .value = "FILE",
    .environment = "HOLDFAST_CA",
    .meaning = "CA of the router's certificate, for https",
    .common = true,
};
const struct command_option option_deadline_ms = {
    .flag = "deadline-ms",
    .value = "MS",
    .initial = "10000",
    .meaning = "of a call, retries included",
    .common = true,
};
const struct command_option option_output = {
    .flag = "output",
    .value = "FORMAT",
    .initial = "table",
    .meaning = "table or json (short: -o)",
    .common = true,
};
const struct command_option option_json = {
    .flag = "json",
    .meaning = "as --output json",
    .common = true,
};
const struct command_option option_cluster = {
    .flag = "cluster",
    .value = "NAME",
    .initial = "dev",
    .environment = "HOLDFAST_CLUSTER",
    .meaning = "name of the cluster",
};
const struct command_option option_dry_run = {
    .flag = "dry-run",
    .meaning = "tell what would be done, and do nothing",
};
const struct command_option option_reason = {
    .flag = "reason",
    .value = "TEXT",
    .meaning = "why; it is logged",
};
const struct command_option option_page_size = {
    .flag = "page-size",
    .value = "N",
    .initial = "50",
    .meaning = "rows a page",
};
const struct command_option option_cursor = {
    .flag = "cursor",
    .value = "CURSOR",
    .meaning = "from the page before",
};
const struct command_option option_op_id = {
    .flag = "op-id",
    .value = "ID",
    .meaning = "of the change, so that it can be repeated; else a fresh one",
};
const struct command_option option_throttle = {
    .flag = "throttle",
    .value = "MIB",
    .initial = "16",
    .meaning = "at most so much a second",
};
