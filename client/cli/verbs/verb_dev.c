/*
 * holdfast dev: a whole cluster on this machine: etcd, a coordinator, N nodes, a router. A process
 * that dies is started again. Ctrl-C or SIGTERM stops everything in order. DATA/cluster.json says
 * which process is which.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "client/cli/console/clock.h"
#include "client/cli/dev/dev_say.h"
#include "client/cli/console/options.h"
#include "client/cli/dev/process_certs.h"
#include "client/cli/dev/supervisor.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/etcd/loopback_port.h"

#define NODES_MAX          9u
#define READY_PATIENCE_MS  30000u
#define SHARDS_PATIENCE_MS 15000u /* Of a router that is ready. */
#define STOP_PATIENCE_MS   10000u
#define WATCH_MS           50u /* The end of a child ends a wait early. */
#define ETCD_ELECTION_MS   100u

static const struct command_option option_nodes = {
    .flag = "nodes",
    .value = "N",
    .initial = "3",
    .meaning = "storage nodes, 1 to 9",
};
static const struct command_option option_data = {
    .flag = "data",
    .value = "DIR",
    .initial = "holdfast-data",
    .meaning = "where everything is kept",
};
static const struct command_option option_port = {
    .flag = "port",
    .value = "PORT",
    .initial = "7400",
    .meaning = "public port; 0: any free one",
};
static const struct command_option option_currencies = {
    .flag = "currencies",
    .value = "LIST",
    .initial = "gold,gems",
    .meaning = "currencies of a new cluster",
};
static const struct command_option option_restart_ms = {
    .flag = "restart-ms",
    .value = "MS",
    .initial = "0",
    .meaning = "pause before a process that died is started again",
};
static const struct command_option option_access = {
    .flag = "access",
    .value = "WHO",
    .initial = "open",
    .meaning = "open (anybody may call) or keys (see holdfast key); then etcd wants certificates",
};

struct cluster {
    const struct arguments *arguments;
    char data[512];
    char programs[512]; /* Directory of the other binaries. */
    uint32_t nodes;
    uint16_t port;
    struct etcd_process etcd;     /* Only planned: it runs as the last child. */
    struct supervisor supervisor; /* Router, coordinator, nodes, etcd. */
};

/* The signal that asks for the end; 0: none yet. */
static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    stop_asked = number;
}

/* Only to end a sleep. */
static void on_child(int number)
{
    (void)number;
}

static int complain(const char *what, const char *why)
{
    dev_say(stderr, "holdfast dev: %s: %s", what, why);
    return 1;
}

/* The directory of this program: the others stand beside it. */
static bool find_programs(char ret_directory[512])
{
    ssize_t size = readlink("/proc/self/exe", ret_directory, 511);

    if (size <= 0)
        return false;
    ret_directory[size] = 0;
    char *slash = strrchr(ret_directory, '/');
    CHECK(slash != NULL);
    *slash = 0;
    return true;
}

static int make_certs(const struct cluster *cluster)
{
    static const char *const once[] = { "router/router", "coordinator/coordinator", "client",
                                        "etcd" };
    const char *name = option_text(cluster->arguments, &option_cluster);
    char directory[600], who[32];
    struct tls_error why = { "" };
    bool made;

    snprintf(directory, sizeof directory, "%s/certs", cluster->data);
    if (certs_make_ca(directory, name, &made, &why) != ERR_OK)
        return complain("certificates", why.text);
    for (size_t i = 0; i < ARRAY_SIZE(once) + cluster->nodes; i++) {
        char file[CERTS_NAME_SIZE_MAX + 1];

        snprintf(who, sizeof who, "node/node-%zu", i + 1 - ARRAY_SIZE(once));
        const struct process_cert cert = { directory, name, i < ARRAY_SIZE(once) ? once[i] : who };
        if (process_certs_make(&cert, &made, file, &why) != ERR_OK)
            return complain("certificates", why.text);
    }
    return 0;
}

/* Then etcd, too, answers this user alone: who writes it issues keys. */
static bool has_keys(const struct cluster *cluster)
{
    return strcmp(option_text(cluster->arguments, &option_access), "keys") == 0;
}

static struct child *add_child(struct cluster *cluster, const char *program)
{
    struct supervisor *supervisor = &cluster->supervisor;

    CHECK(supervisor->count < CHILDREN_MAX);
    struct child *child = &supervisor->children[supervisor->count++];

    child->metrics_port = loopback_port_claim();
    snprintf(child->program, sizeof child->program, "%s/%s", cluster->programs, program);
    child_argument(child, "--cluster=%s", option_text(cluster->arguments, &option_cluster));
    child_argument(child, "--etcd=%s", cluster->etcd.endpoint);
    child_argument(child, "--tls-ca=%s/certs/ca.crt", cluster->data);
    child_argument(child, "--metrics-port=%u", child->metrics_port);
    return child;
}

static void name_child(const struct cluster *cluster, struct child *child, const char *format,
                       uint32_t number)
{
    if (number > 0)
        snprintf(child->name, sizeof child->name, "%s-%u", format, number);
    else
        snprintf(child->name, sizeof child->name, "%s", format);
    snprintf(child->log_file, sizeof child->log_file, "%s/%s.log", cluster->data, child->name);
    child_argument(child, "--name=%s", child->name);
    child_argument(child, "--tls-cert=%s/certs/%s.crt", cluster->data, child->name);
    child_argument(child, "--tls-key=%s/certs/%s.key", cluster->data, child->name);
    if (has_keys(cluster)) {
        child_argument(child, "--etcd-ca=%s/certs/ca.crt", cluster->data);
        child_argument(child, "--etcd-cert=%s/certs/%s.crt", cluster->data, child->name);
        child_argument(child, "--etcd-key=%s/certs/%s.key", cluster->data, child->name);
    }
}

static struct child *router_of(struct cluster *cluster)
{
    return &cluster->supervisor.children[0];
}

static struct child *coordinator_of(struct cluster *cluster)
{
    return &cluster->supervisor.children[1];
}

static struct child *etcd_of(struct cluster *cluster)
{
    return &cluster->supervisor.children[cluster->supervisor.count - 1];
}

static void plan_etcd(struct cluster *cluster)
{
    char arguments[ETCD_ARGUMENTS_MAX][ETCD_ARGUMENT_BYTES];

    CHECK(cluster->supervisor.count < CHILDREN_MAX);
    cluster->supervisor.count++;
    struct child *child = etcd_of(cluster);
    snprintf(child->name, sizeof child->name, "etcd");
    snprintf(child->program, sizeof child->program, "%s", cluster->etcd.binary);
    snprintf(child->log_file, sizeof child->log_file, "%s", cluster->etcd.log_file);
    uint32_t count = etcd_process_arguments(&cluster->etcd, arguments);
    for (uint32_t i = 0; i < count; i++)
        child_argument(child, "%s", arguments[i]);
}

static void plan(struct cluster *cluster)
{
    struct child *router = add_child(cluster, "holdfast-router");
    name_child(cluster, router, "router", 0);
    child_argument(router, "--listen=127.0.0.1:%u", cluster->port);
    child_argument(router, "--access=%s", option_text(cluster->arguments, &option_access));

    struct child *coordinator = add_child(cluster, "holdfast-coordinator");
    name_child(cluster, coordinator, "coordinator", 0);
    child_argument(coordinator, "--listen=127.0.0.1:0");
    child_argument(coordinator, "--replication-factor=%u", cluster->nodes < 3 ? 1u : 3u);
    child_argument(coordinator, "--currencies=%s",
                   option_text(cluster->arguments, &option_currencies));

    for (uint32_t i = 1; i <= cluster->nodes; i++) {
        struct child *node = add_child(cluster, "holdfast-node");
        name_child(cluster, node, "node", i);
        child_argument(node, "--listen=127.0.0.1:0");
        child_argument(node, "--peer-listen=127.0.0.1:0");
        child_argument(node, "--data-dir=%s/node-%u", cluster->data, i);
        child_argument(node, "--zone=zone-%u", i);
    }
    plan_etcd(cluster);
}

/* What `holdfast key` needs beside etcd's URL. */
static void put_etcd_certs(const struct cluster *cluster, json_t *state)
{
    json_object_set_new(state, "etcdCa", json_sprintf("%s/certs/ca.crt", cluster->data));
    json_object_set_new(state, "etcdCert", json_sprintf("%s/certs/client.crt", cluster->data));
    json_object_set_new(state, "etcdKey", json_sprintf("%s/certs/client.key", cluster->data));
}

/* Replaced atomically: readers see the old one or the new one. */
static void write_state(struct cluster *cluster, bool ready)
{
    char path[600], next[600];
    json_t *children = json_array();
    const struct child *etcd = etcd_of(cluster);

    for (const struct child *child = router_of(cluster); child < etcd; child++) {
        json_array_append_new(children,
                              json_pack("{s:s, s:i, s:i, s:i}", "name", child->name, "pid",
                                        (int)child->pid, "metricsPort", (int)child->metrics_port,
                                        "starts", (int)child->starts));
    }
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", cluster->port);
    json_t *state =
        json_pack("{s:b, s:s, s:s, s:i, s:i, s:i, s:o}", "ready", ready, "endpoint", endpoint,
                  "etcd", cluster->etcd.endpoint, "etcdPid", (int)etcd->pid, "etcdStarts",
                  (int)etcd->starts, "pid", (int)getpid(), "processes", children);
    if (has_keys(cluster))
        put_etcd_certs(cluster, state);
    snprintf(path, sizeof path, "%s/cluster.json", cluster->data);
    snprintf(next, sizeof next, "%s/cluster.json.new", cluster->data);
    if (json_dump_file(state, next, JSON_INDENT(2)) != 0 || rename(next, path) != 0)
        complain(path, strerror(errno));
    json_decref(state);
}

/* False: it gives up. */
static bool watch(struct cluster *cluster)
{
    bool changed;
    bool goes_on = supervisor_watch(&cluster->supervisor, &changed);

    if (changed)
        write_state(cluster, cluster->supervisor.ready);
    return goes_on;
}

static bool wait_etcd(struct cluster *cluster, uint64_t end_ms)
{
    struct child *etcd = etcd_of(cluster);

    while (!stop_asked && watch(cluster)) {
        if (etcd->pid != 0 && etcd_process_is_healthy(&cluster->etcd))
            return true;
        if (monotonic_ms() >= end_ms) {
            complain("etcd does not answer; its output is in", etcd->log_file);
            return false;
        }
        sleep_ms(WATCH_MS / 5);
    }
    return false;
}

static bool wait_router(struct cluster *cluster, uint64_t end_ms)
{
    while (!stop_asked && watch(cluster)) {
        if (child_answers(router_of(cluster), "/readyz"))
            return true;
        if (monotonic_ms() >= end_ms) {
            complain("the router did not become ready; its output is in",
                     router_of(cluster)->log_file);
            return false;
        }
        sleep_ms(WATCH_MS / 5);
    }
    return false;
}

/* The owners confirm the policy when they serve and have it in force: not before can a player be
 * changed. */
static bool all_shards_serve(struct cluster *cluster)
{
    const struct child *coordinator = coordinator_of(cluster);

    return child_metric(coordinator, "holdfast_coordinator_active") == 1 &&
           child_metric(coordinator, "holdfast_coordinator_policy_pending") == 0 &&
           child_metric(coordinator, "holdfast_coordinator_shards_placed_now") > 0;
}

/* A shard that lost its data must not keep others from being used. False: it was stopped. */
static bool wait_shards(struct cluster *cluster)
{
    uint64_t end_ms = monotonic_ms() + SHARDS_PATIENCE_MS;

    while (!stop_asked && watch(cluster)) {
        if (all_shards_serve(cluster))
            return true;
        if (monotonic_ms() >= end_ms) {
            dev_say(stdout, "some shards are not served yet: `holdfast top` says which and why");
            return true;
        }
        sleep_ms(WATCH_MS / 5);
    }
    return false;
}

/* False: it was stopped, or cannot, and said so. */
static bool start_all(struct cluster *cluster)
{
    uint64_t end_ms = monotonic_ms() + READY_PATIENCE_MS;
    struct child *etcd = etcd_of(cluster);

    if (!supervisor_start(etcd) || !wait_etcd(cluster, end_ms))
        return false;
    for (uint32_t i = cluster->supervisor.count - 1; i > 0; i--) {
        if (!supervisor_start(&cluster->supervisor.children[i - 1]))
            return false;
    }
    return wait_router(cluster, end_ms) && wait_shards(cluster);
}

static err plan_all(struct cluster *cluster)
{
    char etcd_data[600], certs[600];
    struct etcd_process_options etcd = { .data_dir = etcd_data, .election_ms = ETCD_ELECTION_MS };

    snprintf(certs, sizeof certs, "%s/certs", cluster->data);
    if (has_keys(cluster))
        etcd.certs_dir = certs;
    snprintf(etcd_data, sizeof etcd_data, "%s/etcd", cluster->data);
    err e = etcd_process_plan(&etcd, &cluster->etcd);
    if (e != ERR_OK)
        complain(etcd_data, e == ERR_INVALID ? "the path is too long" : strerror(errno));
    else
        plan(cluster);
    return e;
}

static void say_keys(const struct cluster *cluster)
{
    dev_say(stdout,
            "for `holdfast key issue`: export HOLDFAST_ETCD=%s HOLDFAST_CLUSTER=%s "
            "HOLDFAST_ETCD_CA=%s/certs/ca.crt HOLDFAST_ETCD_CERT=%s/certs/client.crt "
            "HOLDFAST_ETCD_KEY=%s/certs/client.key",
            cluster->etcd.endpoint, option_text(cluster->arguments, &option_cluster), cluster->data,
            cluster->data, cluster->data);
}

static int run(struct cluster *cluster)
{
    uint64_t begun_ms = monotonic_ms();

    if (plan_all(cluster) != ERR_OK)
        return 1;
    bool started = start_all(cluster);
    if (started) {
        cluster->supervisor.ready = true;
        write_state(cluster, true);
        dev_say(stdout,
                "ready after %llu ms: http://127.0.0.1:%u (%u nodes, data in %s; each process "
                "writes to its NAME.log there)",
                (unsigned long long)(monotonic_ms() - begun_ms), cluster->port, cluster->nodes,
                cluster->data);
        if (has_keys(cluster))
            say_keys(cluster);
        while (!stop_asked && watch(cluster))
            sleep_ms(WATCH_MS);
    }
    if (stop_asked)
        dev_say(stderr, "signal %d (%s): stopping all", (int)stop_asked,
                strsignal((int)stop_asked));
    supervisor_stop(&cluster->supervisor, STOP_PATIENCE_MS);
    write_state(cluster, false);
    if (stop_asked)
        dev_say(stderr, "stopped");
    return started || stop_asked ? 0 : 1;
}

static int dev(const struct arguments *arguments)
{
    static struct cluster cluster; /* Some 100 KB: too much for a stack. */
    const char *directory = option_text(arguments, &option_data);
    uint32_t port;
    struct sigaction action = { .sa_handler = on_signal };
    struct sigaction child_action = { .sa_handler = on_child,
                                      .sa_flags = SA_NOCLDSTOP | SA_RESTART };

    cluster.arguments = arguments;
    if (option_number(arguments, &option_nodes, 1, NODES_MAX, &cluster.nodes) != ERR_OK ||
        option_number(arguments, &option_port, 0, 65535, &port) != ERR_OK ||
        option_number(arguments, &option_restart_ms, 0, 600000, &cluster.supervisor.restart_ms) !=
            ERR_OK)
        return 2;
    cluster.port = port != 0 ? (uint16_t)port : loopback_port_claim();
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return complain(directory, strerror(errno));
    char *data = realpath(directory, NULL);
    if (data == NULL || strlen(data) >= sizeof cluster.data)
        return complain(directory, "cannot be used as a directory");
    snprintf(cluster.data, sizeof cluster.data, "%s", data);
    free(data);
    if (!find_programs(cluster.programs))
        return complain("/proc/self/exe", strerror(errno));
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGCHLD, &child_action, NULL);
    int code = make_certs(&cluster);
    return code == 0 ? run(&cluster) : code;
}

const struct verb verb_dev[] = {
    {
        .words = "dev",
        .topic = VERB_TOPIC_DEV,
        .arguments = "",
        .summary = "start a whole local cluster with a real etcd",
        .details = "A process that dies is started again. Ctrl-C stops everything in order.",
        .options = VERB_OPTIONS(&option_nodes, &option_data, &option_port, &option_currencies,
                                &option_access, &option_cluster, &option_restart_ms),
        .run = dev,
    },
    { .words = NULL },
};
