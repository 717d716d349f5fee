/*
 * loadgen: Connect JSON calls to Holdfast over HTTP/1.1 keep-alive, one call outstanding per
 * connection, one thread, epoll; a closed loop, or an open one with --rate. A refused caller
 * waits for as long as it is asked to; in an open loop the next one comes when it is due. Prints
 * one line of JSON; the exit status is 0 even when calls failed (see "errors"), 1 when the run
 * itself could not be done. SIGTERM ends the measured time early. --help lists operations and
 * options.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load_op.h"
#include "load_run.h"
#include "load_stat.h"
#include "runtime/base/check.h"

#define EVENTS_MAX         256
#define READ_BYTES         65536u
#define ANSWER_MAX         (64u << 20)
#define CALL_TIMEOUT_NS    10000000000u
#define RENEW_EVERY_NS     2000000000u
#define FAILED_PAUSE_NS    20000000u
#define ERRORS_SHOWN       3u
#define SWEEP_FAILURES_MAX 100000u

struct link {
    int fd; /* -1: lost; dialled again when it wakes. */
    struct buf out;
    struct buf in;
    uint64_t sent_ns; /* Open loop: when it should have been sent. */
    uint64_t due_ns;  /* Open loop: of the next request. */
    uint64_t wake_ns; /* 0: does not wait for a time. */
    bool busy;
    bool renews; /* The one that keeps the registration alive. */
    struct load_slot slot;
};

struct run {
    struct load_options options;
    struct load_work work;
    struct load_run counts;
    struct link *links;
    size_t link_count;
    size_t waiting; /* Links with a wake_ns. */
    int epoll;
    uint64_t renew_ns;
    unsigned errors_shown;
    unsigned failures;
};

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "loadgen: %s: %s\n", what, strerror(errno));
    exit(1);
}

static bool link_connect(struct run *run, struct link *link)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    int on = 1;

    address.sin_port = htons((uint16_t)run->options.port);
    if (inet_pton(AF_INET, run->options.host, &address.sin_addr) != 1)
        die("host is not a numeric IPv4 address");
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        die("socket");
    if (connect(link->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(link->fd);
        link->fd = -1;
        return false;
    }
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, link->fd, &event) != 0)
        die("epoll_ctl");
    return true;
}

/* Requests are small against the socket's buffer; a full one is simply waited for. False: lost. */
static bool link_write(struct link *link)
{
    size_t sent = 0;

    while (sent < link->out.size) {
        ssize_t size = send(link->fd, link->out.data + sent, link->out.size - sent, MSG_NOSIGNAL);
        if (size < 0)
            break;
        sent += (size_t)size;
    }
    bool whole = sent == link->out.size;
    buf_clear(&link->out);
    return whole;
}

static void wake_at(struct run *run, struct link *link, uint64_t wake_ns)
{
    CHECK(link->wake_ns == 0);
    link->wake_ns = wake_ns;
    run->waiting++;
}

static void note_failure(struct run *run, unsigned status, const char *body)
{
    if (run->errors_shown < ERRORS_SHOWN) {
        run->errors_shown++;
        fprintf(stderr, "loadgen: status %u: %.300s\n", status, body);
    }
    if (load_op_sweeps(run->work.op) && ++run->failures > SWEEP_FAILURES_MAX)
        die("too many failures");
}

static void link_lost(struct run *run, struct link *link, const char *what)
{
    struct load_outcome outcome;

    if (!run->options.persist || link->renews)
        die(what);
    close(link->fd);
    link->fd = -1;
    buf_clear(&link->in);
    if (link->busy) {
        outcome = load_op_lost(&run->work, &link->slot);
        load_run_count(&run->counts, link->sent_ns, &outcome);
    }
    link->busy = false;
    wake_at(run, link, clock_ns() + FAILED_PAUSE_NS);
}

static void call(struct run *run, struct link *link)
{
    bool second = link->slot.token[0] != 0;

    if (link->renews) {
        struct buf body = { 0 };
        buf_printf(&body, "{\"incarnation\":\"%s\"}", run->work.incarnation);
        load_http_write(&run->options, "SessionService/RenewSessions", buf_slice(&body),
                        &link->out);
        buf_deinit(&body);
    } else if (!load_op_write(&run->work, &link->slot, &link->out)) {
        return;
    }
    link->busy = true;
    if (!second) /* The second half of a pair is timed from the first. */
        link->sent_ns = run->options.rate > 0 ? link->due_ns : clock_ns();
    if (!link_write(link))
        link_lost(run, link, "send");
}

/* Calls now or when it is time: `pause_ns` after a failure, and on schedule in an open loop. */
static void call_next(struct run *run, struct link *link, uint64_t pause_ns)
{
    uint64_t now_ns = clock_ns();
    uint64_t at_ns = now_ns + pause_ns;

    if (run->counts.phase == LOAD_DRAIN && link->slot.token[0] == 0)
        return;
    if (run->options.rate > 0) {
        link->due_ns += (uint64_t)(1e9 / run->options.rate * run->options.connections);
        if (at_ns < link->due_ns)
            at_ns = link->due_ns;
    }
    if (at_ns > now_ns)
        wake_at(run, link, at_ns);
    else
        call(run, link);
}

static void wake_links(struct run *run, uint64_t now_ns)
{
    for (size_t i = 1; i < run->link_count && run->waiting > 0; i++) {
        struct link *link = &run->links[i];
        if (link->wake_ns == 0 || link->wake_ns > now_ns)
            continue;
        link->wake_ns = 0;
        run->waiting--;
        if (run->counts.phase == LOAD_DRAIN)
            continue;
        if (link->fd < 0 && !link_connect(run, link))
            wake_at(run, link, now_ns + FAILED_PAUSE_NS);
        else
            call(run, link);
    }
}

/* A whole answer in link->in: true, with its status and where the body is. */
static bool answer_whole(struct link *link, unsigned *ret_status, char **ret_body, size_t *ret_size)
{
    uint8_t *end = link->in.size > 0 ? memmem(link->in.data, link->in.size, "\r\n\r\n", 4) : NULL;
    const char *length;

    if (end == NULL)
        return false;
    *end = 0;
    length = strcasestr((char *)link->in.data, "\r\ncontent-length:");
    size_t body = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
    size_t head = (size_t)(end + 4 - link->in.data);
    *end = '\r';
    if (body > ANSWER_MAX)
        die("an answer is too long");
    if (link->in.size < head + body)
        return false;
    *ret_status = (unsigned)strtoul((char *)link->in.data + 9, NULL, 10);
    *ret_size = head + body;
    buf_put_u8(&link->in, 0);
    link->in.data[head + body] = 0;
    link->in.size--;
    *ret_body = (char *)link->in.data + head;
    return true;
}

/* How long to wait before the next call. */
static uint64_t take_answer(struct run *run, struct link *link, unsigned status, const char *body)
{
    struct load_outcome outcome = load_op_read(&run->work, &link->slot, status, body);

    load_run_count(&run->counts, link->sent_ns, &outcome);
    if (outcome.failed == 0)
        return 0;
    note_failure(run, status, body);
    if (outcome.retry_after_ms == 0)
        return FAILED_PAUSE_NS;
    return run->options.rate > 0 ? 0 : outcome.retry_after_ms * 1000000ull;
}

static void on_readable(struct run *run, struct link *link)
{
    ssize_t size = recv(link->fd, buf_reserve(&link->in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    unsigned status;
    char *body;
    size_t used;
    uint64_t pause_ns = 0;

    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0) {
        link_lost(run, link, "the server closed a connection");
        return;
    }
    link->in.size += (size_t)size;
    if (!answer_whole(link, &status, &body, &used))
        return;
    link->busy = false;
    run->work.answer_bytes += used;
    if (!link->renews)
        pause_ns = take_answer(run, link, status, body);
    buf_consume(&link->in, used);
    if (!link->renews)
        call_next(run, link, pause_ns);
}

static bool any_busy(const struct run *run)
{
    for (size_t i = 0; i < run->link_count; i++) {
        if (run->links[i].busy)
            return true;
    }
    return false;
}

static void round_once(struct run *run)
{
    struct epoll_event events[EVENTS_MAX];
    int count_ready = epoll_wait(run->epoll, events, EVENTS_MAX, run->waiting > 0 ? 1 : 100);
    uint64_t now_ns;

    for (int i = 0; i < count_ready; i++)
        on_readable(run, events[i].data.ptr);
    now_ns = clock_ns();
    load_run_advance(&run->counts, now_ns);
    wake_links(run, now_ns);
    if (run->work.incarnation[0] != 0 && now_ns >= run->renew_ns && !run->links[0].busy) {
        run->renew_ns = now_ns + RENEW_EVERY_NS;
        call(run, &run->links[0]);
    }
}

/* Sessions need a registered server. Uses the first link, which then renews. */
static void register_server(struct run *run)
{
    struct link *link = &run->links[0];
    struct slice body = SLICE_LITERAL("{\"name\":\"loadgen\"}");
    char *incarnation = run->work.incarnation;
    unsigned status = 0;
    char *answer = NULL;
    size_t used;

    load_http_write(&run->options, "SessionService/RegisterServer", body, &link->out);
    if (!link_write(link))
        die("RegisterServer");
    while (!answer_whole(link, &status, &answer, &used)) {
        ssize_t size = recv(link->fd, buf_reserve(&link->in, READ_BYTES), READ_BYTES, 0);
        if (size <= 0)
            die("RegisterServer");
        link->in.size += (size_t)size;
    }
    if (status != 200 ||
        !load_json_find(answer, "incarnation", incarnation, sizeof run->work.incarnation)) {
        fprintf(stderr, "loadgen: RegisterServer: status %u: %.300s\n", status, answer);
        exit(1);
    }
    buf_consume(&link->in, used);
}

static void report(const struct run *run)
{
    const struct load_work *work = &run->work;

    load_run_report(&run->counts, load_op_count(work));
    printf(",\"answer_bytes\":%llu", (unsigned long long)work->answer_bytes);
    if (work->op == LOAD_AUDIT)
        printf(",\"balance\":%llu,\"items\":%llu", (unsigned long long)work->balance,
               (unsigned long long)work->items);
    if (work->op == LOAD_TRANSFER || work->op == LOAD_SWAP)
        printf(",\"items\":%llu", (unsigned long long)work->items);
    if (work->op == LOAD_LEDGER)
        printf(",\"entries\":%llu", (unsigned long long)work->entries);
    if (work->op == LOAD_EDGES)
        printf(",\"edges\":%llu", (unsigned long long)work->edges);
    printf("}\n");
}

static void start(struct run *run)
{
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->link_count = run->options.connections + 1;
    run->links = mem_zalloc(run->link_count * sizeof *run->links);
    for (size_t i = 0; i < run->link_count; i++) {
        run->links[i].renews = i == 0;
        run->links[i].slot.index = (unsigned)(i > 0 ? i - 1 : 0);
        run->links[i].slot.turn = (unsigned)load_random();
        run->links[i].fd = -1;
        if ((i > 0 || run->work.op == LOAD_START_END) && !link_connect(run, &run->links[i]))
            die("connect");
    }
    if (run->work.op == LOAD_START_END)
        register_server(run);
    load_run_start(&run->counts, &run->options);
    run->renew_ns = clock_ns() + RENEW_EVERY_NS;
    for (size_t i = 1; i < run->link_count; i++) {
        struct link *link = &run->links[i];
        if (run->options.rate > 0) {
            link->due_ns = clock_ns() + (uint64_t)((double)i * 1e9 / run->options.rate);
            wake_at(run, link, link->due_ns);
        } else {
            call(run, link);
        }
    }
}

int main(int argc, char **argv)
{
    static struct run run;
    struct sigaction action = { .sa_handler = on_signal };
    char about[2000];

    snprintf(about, sizeof about, "load on Holdfast; operations:\n%s", load_op_list());
    load_options_parse(argc, argv, about, &run.options);
    run.work.options = &run.options;
    if (!load_op_parse(run.options.op, &run.work.op)) {
        fprintf(stderr, "loadgen: --op: '%s' is none of\n%s", run.options.op, load_op_list());
        return 2;
    }
    if (load_op_sweeps(run.work.op)) { /* Ends when every player was visited. */
        run.options.warm_up_s = 0;
        run.options.seconds = 1e6;
    }
    load_op_start(&run.work);
    sigaction(SIGTERM, &action, NULL);
    start(&run);
    while (run.counts.phase != LOAD_DRAIN) {
        round_once(&run);
        if (stop_asked != 0 || (load_op_sweeps(run.work.op) && run.waiting == 0 && !any_busy(&run)))
            load_run_finish(&run.counts);
    }
    while (any_busy(&run) && clock_ns() < run.counts.end_ns + CALL_TIMEOUT_NS)
        round_once(&run);
    report(&run);
    return 0;
}
