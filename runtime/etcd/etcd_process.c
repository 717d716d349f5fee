#include "runtime/etcd/etcd_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/etcd/loopback_port.h"

enum {
    HEALTHY_MS_DEFAULT = 60000,
    STOP_MS = 5000,
    STEP_MS = 20,
    ANSWER_MS = 500,
    ELECTION_MS_DEFAULT = 1000
};

static uint64_t now_ms(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    struct timespec pause = { .tv_nsec = ms * 1000000 };

    nanosleep(&pause, NULL);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static err ports_choose(struct etcd_process *process)
{
    if (process->client_port == 0)
        process->client_port = loopback_port_claim();
    if (process->peer_port == 0)
        process->peer_port = loopback_port_claim();
    process->health_port =
        process->certs_dir[0] != 0 ? loopback_port_claim() : process->client_port;
    return process->client_port != 0 && process->peer_port != 0 && process->health_port != 0
               ? ERR_OK
               : ERR_IO;
}

/* Reads until the answer holds "true", the peer closes, or it takes too long. */
static bool read_health(int fd, uint64_t until_ms)
{
    char answer[512];
    size_t size = 0;

    while (size < sizeof answer - 1) {
        uint64_t now = now_ms();
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        if (now >= until_ms || poll(&ready, 1, (int)(until_ms - now)) <= 0)
            return false;
        ssize_t got = read(fd, answer + size, sizeof answer - 1 - size);
        if (got <= 0)
            return false;
        size += (size_t)got;
        answer[size] = '\0';
        if (strstr(answer, "\"true\"") != NULL)
            return true;
    }
    return false;
}

bool etcd_process_is_healthy(const struct etcd_process *process)
{
    static const char request[] = "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
    struct sockaddr_in address = loopback(process->health_port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool healthy = false;

    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof request - 1))
        healthy = read_health(fd, now_ms() + ANSWER_MS);
    close(fd);
    return healthy;
}

struct argument_list {
    char (*texts)[ETCD_ARGUMENT_BYTES];
    uint32_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct argument_list *list,
                                                      const char *format, ...)
{
    va_list values;

    CHECK(list->count < ETCD_ARGUMENTS_MAX);
    va_start(values, format);
    int size = vsnprintf(list->texts[list->count++], ETCD_ARGUMENT_BYTES, format, values);
    va_end(values);
    CHECK(size > 0 && size < (int)ETCD_ARGUMENT_BYTES);
}

/* Clients and peers show a certificate; whether it is well is told to all. */
static void add_certs(const struct etcd_process *process, struct argument_list *list)
{
    static const char *const prefixes[] = { "", "peer-" };
    const char *certs = process->certs_dir;

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        add(list, "--%strusted-ca-file=%s/ca.crt", prefixes[i], certs);
        add(list, "--%scert-file=%s/etcd.crt", prefixes[i], certs);
        add(list, "--%skey-file=%s/etcd.key", prefixes[i], certs);
        add(list, "--%sclient-cert-auth=true", prefixes[i]);
    }
    add(list, "--listen-metrics-urls=http://127.0.0.1:%u", (unsigned)process->health_port);
}

/* Any program that reaches the port may ask. But no page in a browser on this machine reads its
 * answers: not under a name of its own that points here, and not by etcd's leave, which it gives
 * to pages of any origin. */
static void add_origins(struct argument_list *list)
{
    add(list, "--host-whitelist=localhost,127.0.0.1");
    add(list, "--cors=http://127.0.0.1:1"); /* It wants one: of this port there is no page. */
}

uint32_t etcd_process_arguments(const struct etcd_process *process,
                                char ret_arguments[ETCD_ARGUMENTS_MAX][ETCD_ARGUMENT_BYTES])
{
    uint32_t election_ms = process->election_ms != 0 ? process->election_ms : ELECTION_MS_DEFAULT;
    bool has_certs = process->certs_dir[0] != 0;
    struct argument_list list = { .texts = ret_arguments };
    char peer[ETCD_ENDPOINT_SIZE];

    snprintf(peer, sizeof peer, "%s://127.0.0.1:%u", has_certs ? "https" : "http",
             (unsigned)process->peer_port);
    add(&list, "--data-dir=%s", process->data_dir);
    add(&list, "--listen-client-urls=%s", process->endpoint);
    add(&list, "--advertise-client-urls=%s", process->endpoint);
    add(&list, "--listen-peer-urls=%s", peer);
    add(&list, "--initial-advertise-peer-urls=%s", peer);
    add(&list, "--initial-cluster=default=%s", peer);
    add(&list, "--election-timeout=%u", election_ms);
    add(&list, "--heartbeat-interval=%u", election_ms / 10);
    add(&list, "--logger=zap");
    if (has_certs)
        add_certs(process, &list);
    else
        add_origins(&list);
    return list.count;
}

/* In the child: never returns. */
static void child_run(struct etcd_process *process, pid_t parent)
{
    char arguments[ETCD_ARGUMENTS_MAX][ETCD_ARGUMENT_BYTES];
    const char *argv[ETCD_ARGUMENTS_MAX + 2] = { process->binary };
    int log = open(process->log_file, O_WRONLY | O_CREAT | O_APPEND, 0600);

    uint32_t count = etcd_process_arguments(process, arguments);
    for (uint32_t i = 0; i < count; i++)
        argv[i + 1] = arguments[i];
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(127);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(127);
    /* A parent under libuv or a test runner may block signals; etcd must hear SIGTERM. */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(process->binary, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* True once the child is gone; process->pid is then 0. */
static bool reap(struct etcd_process *process, int flags)
{
    pid_t gone;

    do
        gone = waitpid(process->pid, NULL, flags);
    while (gone < 0 && errno == EINTR);
    if (gone == 0)
        return false;
    process->pid = 0;
    return true;
}

static err launch(struct etcd_process *process, uint64_t timeout_ms)
{
    uint64_t until_ms = now_ms() + (timeout_ms > 0 ? timeout_ms : (uint64_t)HEALTHY_MS_DEFAULT);
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return ERR_IO;
    if (pid == 0)
        child_run(process, parent);
    process->pid = pid;
    while (!etcd_process_is_healthy(process)) {
        if (reap(process, WNOHANG))
            return ERR_IO;
        if (now_ms() >= until_ms) {
            etcd_process_kill(process);
            return ERR_TIMEOUT;
        }
        pause_ms(STEP_MS);
    }
    /* Ours, and not somebody else who had the port already. */
    return reap(process, WNOHANG) ? ERR_IO : ERR_OK;
}

err etcd_process_plan(const struct etcd_process_options *options, struct etcd_process *ret_process)
{
    struct etcd_process process = { .client_port = options->client_port,
                                    .peer_port = options->peer_port,
                                    .election_ms = options->election_ms };
    const char *binary = options->binary != NULL ? options->binary : "etcd";

    const char *certs_dir = options->certs_dir != NULL ? options->certs_dir : "";

    if (strlen(options->data_dir) >= sizeof process.data_dir ||
        strlen(binary) >= sizeof process.binary || strlen(certs_dir) >= sizeof process.certs_dir)
        return ERR_INVALID;
    memcpy(process.certs_dir, certs_dir, strlen(certs_dir) + 1);
    memcpy(process.data_dir, options->data_dir, strlen(options->data_dir) + 1);
    memcpy(process.binary, binary, strlen(binary) + 1);
    snprintf(process.log_file, sizeof process.log_file, "%s.log", process.data_dir);
    if (mkdir(process.data_dir, 0700) != 0 && errno != EEXIST)
        return ERR_IO;
    err e = ports_choose(&process);
    if (e != ERR_OK)
        return e;
    snprintf(process.endpoint, sizeof process.endpoint, "%s://127.0.0.1:%u",
             certs_dir[0] != 0 ? "https" : "http", (unsigned)process.client_port);
    *ret_process = process;
    return ERR_OK;
}

err etcd_process_start(const struct etcd_process_options *options, struct etcd_process *ret_process)
{
    struct etcd_process process;
    err e = etcd_process_plan(options, &process);

    if (e == ERR_OK)
        e = launch(&process, options->timeout_ms);
    if (e == ERR_OK)
        *ret_process = process;
    return e;
}

err etcd_process_restart(struct etcd_process *process, uint64_t timeout_ms)
{
    CHECK(process->pid == 0);
    return launch(process, timeout_ms);
}

void etcd_process_stop(struct etcd_process *process)
{
    uint64_t until_ms = now_ms() + STOP_MS;

    if (process->pid == 0)
        return;
    kill(process->pid, SIGTERM);
    while (!reap(process, WNOHANG)) {
        if (now_ms() >= until_ms) {
            etcd_process_kill(process);
            return;
        }
        pause_ms(STEP_MS);
    }
}

void etcd_process_kill(struct etcd_process *process)
{
    if (process->pid == 0)
        return;
    kill(process->pid, SIGKILL);
    CHECK(reap(process, 0));
}
