/*
 * chaos-wire: the network of a chaos run. Joins network namespaces by TUN devices, and carries,
 * delays and loses their packets as standard input says. Ends with it.
 *
 *   chaos-wire SEED NAMESPACE=ADDRESS...     the namespace "-" is its own
 *
 * Each command is a line and is answered by one, "ok" or "error: ...":
 *   cut FROM TO                              one way; hosts by number, in the order given
 *   slow FROM TO DELAY_US JITTER_US LOSS_PPM
 *   heal
 *   counts                                   answered by JSON
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "tests/chaos/wire/wire.h"

#define DEVICE           "hf0"
#define PACKET_BYTES_MAX 65536u
#define LINE_BYTES_MAX   256u
#define BURST_MAX        64u /* Packets of one host before the others' turn. */

struct shell {
    struct wire *wire;
    int own_namespace;
    int tuns[WIRE_HOSTS_MAX];
    uint32_t host_count;
    char line[LINE_BYTES_MAX];
    size_t line_size;
    uint8_t packet[PACKET_BYTES_MAX];
};

static uint64_t now_us(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static int fail(const char *what, const char *about)
{
    fprintf(stderr, "chaos-wire: %s %s: %s\n", what, about, strerror(errno));
    return -1;
}

/* The TUN device is made where the thread is; what it carries is read here. */
static int tun_open(void)
{
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return fail("cannot open", "/dev/net/tun");
    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", DEVICE);
    if (ioctl(fd, TUNSETIFF, &request) != 0) {
        close(fd);
        return fail("cannot make the device", DEVICE);
    }
    return fd;
}

static int namespace_enter(const char *name)
{
    char path[128];

    if (strcmp(name, "-") == 0)
        return 0;
    (void)snprintf(path, sizeof path, "/run/netns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail("cannot open", path);
    int result = setns(fd, CLONE_NEWNET);
    close(fd);
    return result == 0 ? 0 : fail("cannot enter", path);
}

static int host_add(struct shell *shell, char *argument)
{
    char *address = strchr(argument, '=');
    struct in_addr parsed;

    if (address == NULL || inet_pton(AF_INET, address + 1, &parsed) != 1) {
        errno = EINVAL;
        return fail("NAMESPACE=ADDRESS is wanted, not", argument);
    }
    *address = 0;
    if (wire_add_host(shell->wire, ntohl(parsed.s_addr)) != ERR_OK) {
        errno = EEXIST;
        return fail("too many hosts, or the address is taken:", address + 1);
    }
    if (namespace_enter(argument) != 0)
        return -1;
    int fd = tun_open();
    if (setns(shell->own_namespace, CLONE_NEWNET) != 0)
        return fail("cannot return from", argument);
    shell->tuns[shell->host_count++] = fd;
    return fd >= 0 ? 0 : -1;
}

/* ---- commands ---- */

static void answer_counts(struct shell *shell)
{
    struct wire_counts counts = wire_counts(shell->wire);

    printf("{\"passed\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"cut\":%" PRIu64 ",\"full\":%" PRIu64
           "}\n",
           counts.passed, counts.lost, counts.cut, counts.full);
}

static void obey(struct shell *shell, const char *line)
{
    struct wire_rule rule = { 0 };
    uint32_t from, to;
    err e = ERR_OK;

    if (strcmp(line, "counts") == 0) {
        answer_counts(shell);
    } else {
        if (strcmp(line, "heal") == 0) {
            wire_heal(shell->wire);
        } else if (sscanf(line, "cut %" SCNu32 " %" SCNu32, &from, &to) == 2) {
            rule.cut = true;
            e = wire_set(shell->wire, from, to, &rule);
        } else if (sscanf(line, "slow %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32,
                          &from, &to, &rule.delay_us, &rule.jitter_us, &rule.loss_ppm) == 5) {
            e = wire_set(shell->wire, from, to, &rule);
        } else {
            e = ERR_INVALID;
        }
        puts(e == ERR_OK ? "ok" : "error: not a command, or not a host or a number that it takes");
    }
    (void)fflush(stdout);
}

/* False: the input has ended. */
static bool commands_read(struct shell *shell)
{
    ssize_t got = read(STDIN_FILENO, shell->line + shell->line_size,
                       sizeof shell->line - 1 - shell->line_size);

    if (got <= 0)
        return false;
    shell->line_size += (size_t)got;
    shell->line[shell->line_size] = 0;
    for (char *end; (end = strchr(shell->line, '\n')) != NULL;) {
        *end = 0;
        obey(shell, shell->line);
        shell->line_size -= (size_t)(end + 1 - shell->line);
        memmove(shell->line, end + 1, shell->line_size + 1);
    }
    return shell->line_size < sizeof shell->line - 1; /* Or the line is too long. */
}

/* ---- packets ---- */

static void packets_read(struct shell *shell, uint32_t from)
{
    for (uint32_t i = 0; i < BURST_MAX; i++) {
        ssize_t got = read(shell->tuns[from], shell->packet, sizeof shell->packet);
        if (got <= 0)
            return;
        wire_offer(shell->wire, now_us(), from, (struct slice){ shell->packet, (size_t)got });
    }
}

/* A device that is down or full loses it, as a network does. */
static void packets_write(struct shell *shell)
{
    struct slice packet;
    uint32_t to;

    while (wire_take(shell->wire, now_us(), &to, &packet))
        (void)!write(shell->tuns[to], packet.data, packet.size);
}

static void wait_for_any(struct shell *shell, struct pollfd *fds)
{
    uint64_t due_us = wire_due_us(shell->wire), now = now_us();
    struct timespec wait = { 0 };

    if (due_us != UINT64_MAX && due_us > now) {
        wait.tv_sec = (time_t)((due_us - now) / 1000000u);
        wait.tv_nsec = (long)((due_us - now) % 1000000u) * 1000;
    }
    (void)ppoll(fds, shell->host_count + 1, due_us != UINT64_MAX ? &wait : NULL, NULL);
}

static void run(struct shell *shell)
{
    struct pollfd fds[WIRE_HOSTS_MAX + 1];

    for (uint32_t i = 0; i < shell->host_count; i++)
        fds[i] = (struct pollfd){ .fd = shell->tuns[i], .events = POLLIN };
    fds[shell->host_count] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    puts("ready");
    (void)fflush(stdout);
    for (;;) {
        wait_for_any(shell, fds);
        for (uint32_t i = 0; i < shell->host_count; i++) {
            if (fds[i].revents != 0)
                packets_read(shell, i);
        }
        packets_write(shell);
        if (fds[shell->host_count].revents != 0 && !commands_read(shell))
            return;
    }
}

int main(int argc, char **argv)
{
    struct shell *shell = mem_zalloc(sizeof *shell);
    int result = 1;

    if (argc < 3) {
        fputs("usage: chaos-wire SEED NAMESPACE=ADDRESS...\n", stderr);
        free(shell);
        return 2;
    }
    shell->wire = wire_new(strtoull(argv[1], NULL, 10));
    shell->own_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int added = 0;
    for (int i = 2; i < argc && added == 0; i++)
        added = host_add(shell, argv[i]);
    if (added == 0) {
        run(shell);
        result = 0;
    }
    wire_free(shell->wire);
    free(shell);
    return result;
}
