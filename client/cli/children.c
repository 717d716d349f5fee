#include "client/cli/children.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define POLL_MS 10u

uint64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(uint32_t ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

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
    execv(child->program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

err child_start(struct child *child)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return ERR_IO;
    if (pid == 0)
        become(child, parent);
    child->pid = pid;
    child->started_at_ms = monotonic_ms();
    child->restart_at_ms = 0;
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

void child_stop(struct child *child, uint64_t patience_ms)
{
    uint64_t end_ms = monotonic_ms() + patience_ms;
    int status;

    if (child->pid == 0)
        return;
    kill(child->pid, SIGTERM);
    while (!child_reap(child, &status)) {
        if (monotonic_ms() >= end_ms) {
            kill(child->pid, SIGKILL);
            waitpid(child->pid, &status, 0);
            child->pid = 0;
            return;
        }
        sleep_ms(POLL_MS);
    }
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

bool child_answers(const struct child *child, const char *path)
{
    char text[256];
    int fd = connect_loopback(child->metrics_port);

    if (fd < 0)
        return false;
    int length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    ssize_t got = write(fd, text, (size_t)length) == length ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    return got >= 12 && strncmp(text, "HTTP/1.1 200", 12) == 0;
}
