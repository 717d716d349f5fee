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
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "client/cli/children.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/etcd/loopback_port.h"
#include "runtime/tls/certs.h"

#define NODES_MAX         9u
#define READY_PATIENCE_MS 30000u
#define STOP_PATIENCE_MS  10000u
#define WATCH_MS          50u /* The end of a child ends a wait early. */
#define STARTS_APART_MS   1000u
#define ETCD_ELECTION_MS  100u

struct cluster {
    const struct arguments *arguments;
    char data[512];
    char programs[512]; /* Directory of the other binaries. */
    uint32_t nodes;
    uint32_t restart_ms;
    uint16_t port;
    struct etcd_process etcd;
    struct child children[CHILDREN_MAX]; /* Router, coordinator, nodes: stopped in this order. */
    uint32_t child_count;
};

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

/* Only to end a sleep. */
static void on_child(int number)
{
    (void)number;
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "holdfast dev: %s: %s\n", what, why);
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
    static const char *const names[] = { "node", "router", "coordinator", "client" };
    char directory[600];
    struct tls_error why = { "" };
    bool made;

    snprintf(directory, sizeof directory, "%s/certs", cluster->data);
    if (certs_make_ca(directory, cluster->arguments->cluster, &made, &why) != ERR_OK)
        return complain("certificates", why.text);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (certs_make_leaf(directory, &(struct certs_leaf){ .name = names[i] }, &made, &why) !=
            ERR_OK)
            return complain("certificates", why.text);
    }
    return 0;
}

static struct child *add_child(struct cluster *cluster, const char *program, const char *cert)
{
    CHECK(cluster->child_count < CHILDREN_MAX);
    struct child *child = &cluster->children[cluster->child_count++];

    child->metrics_port = loopback_port_claim();
    snprintf(child->program, sizeof child->program, "%s/%s", cluster->programs, program);
    child_argument(child, "--cluster=%s", cluster->arguments->cluster);
    child_argument(child, "--etcd=%s", cluster->etcd.endpoint);
    child_argument(child, "--tls-ca=%s/certs/ca.crt", cluster->data);
    child_argument(child, "--tls-cert=%s/certs/%s.crt", cluster->data, cert);
    child_argument(child, "--tls-key=%s/certs/%s.key", cluster->data, cert);
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
}

static void plan(struct cluster *cluster)
{
    struct child *router = add_child(cluster, "holdfast-router", "router");
    name_child(cluster, router, "router", 0);
    child_argument(router, "--listen=127.0.0.1:%u", cluster->port);
    child_argument(router, "--access=%s", cluster->arguments->access);

    struct child *coordinator = add_child(cluster, "holdfast-coordinator", "coordinator");
    name_child(cluster, coordinator, "coordinator", 0);
    child_argument(coordinator, "--listen=127.0.0.1:0");
    child_argument(coordinator, "--replication-factor=%u", cluster->nodes < 3 ? 1u : 3u);
    child_argument(coordinator, "--currencies=%s", cluster->arguments->currencies);

    for (uint32_t i = 1; i <= cluster->nodes; i++) {
        struct child *node = add_child(cluster, "holdfast-node", "node");
        name_child(cluster, node, "node", i);
        child_argument(node, "--listen=127.0.0.1:0");
        child_argument(node, "--peer-listen=127.0.0.1:0");
        child_argument(node, "--data-dir=%s/node-%u", cluster->data, i);
        child_argument(node, "--zone=zone-%u", i);
    }
}

/* Replaced atomically: readers see the old one or the new one. */
static void write_state(const struct cluster *cluster, bool ready)
{
    char path[600], next[600];
    json_t *children = json_array();

    for (uint32_t i = 0; i < cluster->child_count; i++) {
        const struct child *child = &cluster->children[i];
        json_array_append_new(children,
                              json_pack("{s:s, s:i, s:i, s:i}", "name", child->name, "pid",
                                        (int)child->pid, "metricsPort", (int)child->metrics_port,
                                        "starts", (int)child->starts));
    }
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", cluster->port);
    json_t *state = json_pack("{s:b, s:s, s:s, s:i, s:i, s:o}", "ready", ready, "endpoint",
                              endpoint, "etcd", cluster->etcd.endpoint, "etcdPid",
                              (int)cluster->etcd.pid, "pid", (int)getpid(), "processes", children);
    snprintf(path, sizeof path, "%s/cluster.json", cluster->data);
    snprintf(next, sizeof next, "%s/cluster.json.new", cluster->data);
    if (json_dump_file(state, next, JSON_INDENT(2)) != 0 || rename(next, path) != 0)
        complain(path, strerror(errno));
    json_decref(state);
}

static int start_all(struct cluster *cluster)
{
    char etcd_data[600];
    struct etcd_process_options etcd = { .data_dir = etcd_data, .election_ms = ETCD_ELECTION_MS };

    snprintf(etcd_data, sizeof etcd_data, "%s/etcd", cluster->data);
    if (etcd_process_start(&etcd, &cluster->etcd) != ERR_OK)
        return complain("etcd did not start; its output is in", cluster->etcd.log_file);
    plan(cluster);
    for (uint32_t i = cluster->child_count; i > 0; i--) {
        if (child_start(&cluster->children[i - 1]) != ERR_OK)
            return complain(cluster->children[i - 1].name, strerror(errno));
    }
    return 0;
}

static void say_died(const struct child *child, int status)
{
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s was killed by signal %d (%s)\n", child->name, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else
        fprintf(stderr, "%s exited with %d; its output is in %s\n", child->name,
                WEXITSTATUS(status), child->log_file);
}

/* Whoever lived long starts again at once, or after the pause that was asked for; whoever crashes
 * as soon as it starts does not keep the machine busy. */
static uint64_t restart_time_ms(const struct cluster *cluster, const struct child *child)
{
    uint64_t wanted_ms = monotonic_ms() + cluster->restart_ms;
    uint64_t earliest_ms = child->started_at_ms + STARTS_APART_MS;

    return wanted_ms > earliest_ms ? wanted_ms : earliest_ms;
}

/* Reaps and restarts. False: a process died before the cluster was ever ready. */
static bool watch(struct cluster *cluster, bool was_ready)
{
    bool changed = false;

    for (uint32_t i = 0; i < cluster->child_count; i++) {
        struct child *child = &cluster->children[i];
        int status;
        if (child_reap(child, &status)) {
            say_died(child, status);
            if (!was_ready)
                return false;
            child->restart_at_ms = restart_time_ms(cluster, child);
            changed = true;
        }
        if (child->restart_at_ms != 0 && monotonic_ms() >= child->restart_at_ms) {
            if (child_start(child) != ERR_OK)
                child->restart_at_ms = monotonic_ms() + STARTS_APART_MS;
            changed = true;
        }
    }
    if (changed)
        write_state(cluster, was_ready);
    return true;
}

static bool wait_ready(struct cluster *cluster)
{
    uint64_t end_ms = monotonic_ms() + READY_PATIENCE_MS;

    while (!stop_asked && watch(cluster, false)) {
        if (child_answers(&cluster->children[0], "/readyz"))
            return true;
        if (monotonic_ms() >= end_ms) {
            complain("the router did not become ready; see", cluster->children[0].log_file);
            return false;
        }
        sleep_ms(WATCH_MS / 5);
    }
    return false;
}

static void stop_all(struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->child_count; i++)
        child_stop(&cluster->children[i], STOP_PATIENCE_MS);
    etcd_process_stop(&cluster->etcd);
}

static int run(struct cluster *cluster)
{
    uint64_t begun_ms = monotonic_ms();
    int code = start_all(cluster);

    if (code == 0 && !wait_ready(cluster))
        code = stop_asked ? 0 : 1;
    else if (code == 0) {
        write_state(cluster, true);
        printf("ready after %llu ms: http://127.0.0.1:%u (%u nodes, data in %s)\n",
               (unsigned long long)(monotonic_ms() - begun_ms), cluster->port, cluster->nodes,
               cluster->data);
        fflush(stdout);
        while (!stop_asked && watch(cluster, true))
            sleep_ms(WATCH_MS);
    }
    stop_all(cluster);
    write_state(cluster, false);
    return code;
}

int verb_dev(const struct arguments *arguments)
{
    static struct cluster cluster; /* Some 100 KB: too much for a stack. */
    uint32_t port;
    struct sigaction action = { .sa_handler = on_signal };
    struct sigaction child_action = { .sa_handler = on_child,
                                      .sa_flags = SA_NOCLDSTOP | SA_RESTART };

    cluster.arguments = arguments;
    if (argument_number("nodes", arguments->nodes, 1, NODES_MAX, &cluster.nodes) != ERR_OK ||
        argument_number("port", arguments->port, 0, 65535, &port) != ERR_OK ||
        argument_number("restart-ms", arguments->restart_ms, 0, 600000, &cluster.restart_ms) !=
            ERR_OK)
        return 2;
    cluster.port = port != 0 ? (uint16_t)port : loopback_port_claim();
    if (mkdir(arguments->data, 0700) != 0 && errno != EEXIST)
        return complain(arguments->data, strerror(errno));
    char *data = realpath(arguments->data, NULL);
    if (data == NULL || strlen(data) >= sizeof cluster.data)
        return complain(arguments->data, "cannot be used as a directory");
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
