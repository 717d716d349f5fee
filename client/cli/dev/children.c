#include "client/cli/dev/children.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/console/clock.h"
#include "runtime/base/check.h"

#define POLL_MS       10u
#define METRICS_BYTES (256u << 10)

void child_argument(struct child *child, const char *format, ...)
{
    va_list args;

    CHECK(child->argument_count < CHILD_ARGUMENTS_MAX - 2);
    va_start(args, format);
    int length =
        vsnprintf(child->arguments[child->argument_count++], CHILD_TEXT_BYTES, format, args);
    va_end(args);
    CHECK(length >= 0 && length < (int)CHILD_TEXT_BYTES);
}

static void become(const struct child *child, pid_t parent)
{
    const char *argv[CHILD_ARGUMENTS_MAX];
    int fd = open(child->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    argv[0] = child->program;
    for (uint32_t i = 0; i < child->argument_count; i++)
        argv[i + 1] = child->arguments[i];
    argv[child->argument_count + 1] = NULL;
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* It died before we asked to be told. */
        _exit(126);
    setpgid(0, 0); /* The terminal's Ctrl-C is for the parent, which stops us in order. */
    /* Whatever started the parent may have blocked signals; children must hear SIGTERM. */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(child->program, (char *const *)(uintptr_t)argv);
    dprintf(STDERR_FILENO, "%s cannot be run: %s\n", child->program, strerror(errno));
    _exit(127);
}

err child_start(struct child *child)
{
    struct stat output;
    uint64_t log_from = stat(child->log_file, &output) == 0 ? (uint64_t)output.st_size : 0;
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return ERR_IO;
    if (pid == 0)
        become(child, parent);
    child->pid = pid;
    child->started_at_ms = monotonic_ms();
    child->restart_at_ms = 0;
    child->log_from = log_from;
    child->starts++;
    return ERR_OK;
}

bool child_reap(struct child *child, int *ret_status)
{
    if (child->pid == 0 || waitpid(child->pid, ret_status, WNOHANG) != child->pid)
        return false;
    child->pid = 0;
    return true;
}

bool child_stop(struct child *child, uint64_t patience_ms, int *ret_status)
{
    uint64_t end_ms = monotonic_ms() + patience_ms;

    if (child->pid == 0)
        return true;
    kill(child->pid, SIGTERM);
    while (!child_reap(child, ret_status)) {
        if (monotonic_ms() >= end_ms) {
            kill(child->pid, SIGKILL);
            while (waitpid(child->pid, ret_status, 0) < 0 && errno == EINTR)
                continue;
            child->pid = 0;
            return false;
        }
        sleep_ms(POLL_MS);
    }
    return true;
}

size_t child_tail(const struct child *child, char *ret_text, size_t capacity)
{
    int fd = open(child->log_file, O_RDONLY | O_CLOEXEC);
    struct stat output;
    ssize_t got = 0;

    if (fd < 0)
        return 0;
    if (fstat(fd, &output) == 0 && (uint64_t)output.st_size > child->log_from) {
        uint64_t size = (uint64_t)output.st_size - child->log_from;
        size = size < capacity ? size : capacity;
        got = pread(fd, ret_text, (size_t)size, output.st_size - (off_t)size);
    }
    close(fd);
    if (got <= 0)
        return 0;
    /* The first line may have lost its beginning. */
    const char *end = (size_t)got == capacity ? memchr(ret_text, '\n', capacity) : NULL;
    size_t cut = end != NULL && end + 1 < ret_text + got ? (size_t)(end - ret_text) + 1 : 0;
    memmove(ret_text, ret_text + cut, (size_t)got - cut);
    return (size_t)got - cut;
}

static int connect_loopback(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct timeval patience = { .tv_sec = 1 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The begin of the answer, as much as fits, with a zero behind it. Returns its size. */
static size_t get(const struct child *child, const char *path, char *ret_text, size_t capacity)
{
    char request[256];
    size_t size = 0;
    int fd = connect_loopback(child->metrics_port);

    ret_text[0] = 0;
    if (fd < 0)
        return 0;
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    ssize_t got = write(fd, request, (size_t)length) == length ? 1 : -1;
    while (got > 0 && size < capacity - 1) {
        got = read(fd, ret_text + size, capacity - 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    ret_text[size] = 0;
    return size;
}

bool child_answers(const struct child *child, const char *path)
{
    char text[256];

    return get(child, path, text, sizeof text) >= 12 && strncmp(text, "HTTP/1.1 200", 12) == 0;
}

double child_metric(const struct child *child, const char *name)
{
    char *text = mem_alloc(METRICS_BYTES);
    char line[128];
    double value = -1;

    (void)get(child, "/metrics", text, METRICS_BYTES);
    int length = snprintf(line, sizeof line, "\n%s ", name);
    const char *found = strstr(text, line);
    if (found != NULL)
        value = strtod(found + length, NULL);
    free(text);
    return value;
}
