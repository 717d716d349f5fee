/*
 * loadgen: a closed loop of Connect JSON calls over HTTP/1.1 keep-alive, one call outstanding per
 * connection, one thread, epoll. Prints one line of JSON; the exit status is 0 even when calls
 * failed (see "errors"), 1 when the run itself could not be done.
 *
 *   loadgen -p port [-H host] [-o grant|batchgrant|read|batchread|startend] [-b batch]
 *           [-c connections] [-s seconds] [-w warm-up] [-n players] [-P pid,pid] [-k api-key]
 *           [-u currency]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load_op.h"
#include "load_stat.h"
#include "runtime/base/check.h"

#define CONNECTIONS_MAX 4096u
#define EVENTS_MAX      256
#define READ_BYTES      65536u
#define ANSWER_MAX      (64u << 20)
#define CALL_TIMEOUT_NS 10000000000u
#define RENEW_EVERY_NS  2000000000u
#define ERRORS_SHOWN    3u

enum phase { WARM_UP, MEASURE, DRAIN };

struct link {
    int fd;
    struct buf out;
    size_t sent;
    struct buf in;
    uint64_t sent_ns;
    bool busy;
    bool renews; /* The one that keeps the registration alive. */
    struct load_slot slot;
};

struct run {
    struct load_options options;
    struct link *links;
    size_t link_count;
    int epoll;
    enum phase phase;
    char incarnation[64];
    uint64_t renew_ns;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t operations;
    uint64_t errors;
    unsigned errors_shown;
    double server_cpu_s;
    double own_cpu_s;
    struct histogram histogram;
};

static void die(const char *what)
{
    fprintf(stderr, "loadgen: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void link_connect(struct run *run, struct link *link)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    int on = 1;

    address.sin_port = htons((uint16_t)run->options.port);
    if (inet_pton(AF_INET, run->options.host, &address.sin_addr) != 1)
        die("host is not a numeric IPv4 address");
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0 || connect(link->fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, link->fd, &event) != 0)
        die("epoll_ctl");
}

/* Requests are small against the socket's buffer; a full one is simply waited for. */
static void link_write(struct link *link)
{
    while (link->sent < link->out.size) {
        ssize_t size =
            send(link->fd, link->out.data + link->sent, link->out.size - link->sent, MSG_NOSIGNAL);
        if (size < 0)
            die("send");
        link->sent += (size_t)size;
    }
    buf_clear(&link->out);
    link->sent = 0;
}

static void call(struct run *run, struct link *link)
{
    if (link->renews) {
        struct buf body = { 0 };
        buf_printf(&body, "{\"incarnation\":\"%s\"}", run->incarnation);
        load_http_write(&run->options, "SessionService/RenewSessions", buf_slice(&body),
                        &link->out);
        buf_deinit(&body);
    } else {
        load_op_write(&run->options, run->incarnation, &link->slot, &link->out);
    }
    link->busy = true;
    link->sent_ns = clock_ns();
    link_write(link);
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

static void count(struct run *run, struct link *link, unsigned status, const char *body)
{
    unsigned failed = load_op_read(&run->options, &link->slot, status, body);
    uint64_t now_ns = clock_ns();

    if (failed > 0 && run->errors_shown < ERRORS_SHOWN) {
        run->errors_shown++;
        fprintf(stderr, "loadgen: status %u: %.300s\n", status, body);
    }
    if (run->phase != MEASURE || link->sent_ns < run->begin_ns)
        return;
    run->errors += failed;
    run->operations += load_op_count(&run->options) - failed;
    histogram_add(&run->histogram, now_ns - link->sent_ns);
}

static void on_readable(struct run *run, struct link *link)
{
    ssize_t size = recv(link->fd, buf_reserve(&link->in, READ_BYTES), READ_BYTES, MSG_DONTWAIT);
    unsigned status;
    char *body;
    size_t used;

    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0)
        die("the server closed a connection");
    link->in.size += (size_t)size;
    if (!answer_whole(link, &status, &body, &used))
        return;
    link->busy = false;
    if (!link->renews)
        count(run, link, status, body);
    buf_consume(&link->in, used);
    if (!link->renews && run->phase != DRAIN)
        call(run, link);
}

/* Phases by time: warm-up, measuring, waiting for the last answers. */
static void advance(struct run *run, uint64_t now_ns)
{
    if (run->phase == WARM_UP && now_ns >= run->begin_ns) {
        run->phase = MEASURE;
        run->begin_ns = now_ns;
        run->end_ns = now_ns + (uint64_t)(run->options.seconds * 1e9);
        run->server_cpu_s = server_cpu_s(run->options.pids);
        run->own_cpu_s = own_cpu_s();
    } else if (run->phase == MEASURE && now_ns >= run->end_ns) {
        run->phase = DRAIN;
        run->end_ns = clock_ns();
        run->server_cpu_s = server_cpu_s(run->options.pids) - run->server_cpu_s;
        run->own_cpu_s = own_cpu_s() - run->own_cpu_s;
    }
    if (run->incarnation[0] != 0 && now_ns >= run->renew_ns && !run->links[0].busy) {
        run->renew_ns = now_ns + RENEW_EVERY_NS;
        call(run, &run->links[0]);
    }
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
    int count_ready = epoll_wait(run->epoll, events, EVENTS_MAX, 100);

    for (int i = 0; i < count_ready; i++)
        on_readable(run, events[i].data.ptr);
    advance(run, clock_ns());
}

/* Sessions need a registered server. Uses the first link, which then renews. */
static void register_server(struct run *run)
{
    struct link *link = &run->links[0];
    struct slice body = SLICE_LITERAL("{\"name\":\"loadgen\"}");
    unsigned status = 0;
    char *answer = NULL;
    size_t used;

    load_http_write(&run->options, "SessionService/RegisterServer", body, &link->out);
    link_write(link);
    while (!answer_whole(link, &status, &answer, &used)) {
        ssize_t size = recv(link->fd, buf_reserve(&link->in, READ_BYTES), READ_BYTES, 0);
        if (size <= 0)
            die("RegisterServer");
        link->in.size += (size_t)size;
    }
    if (status != 200 ||
        !load_json_find(answer, "incarnation", run->incarnation, sizeof run->incarnation)) {
        fprintf(stderr, "loadgen: RegisterServer: status %u: %.300s\n", status, answer);
        exit(1);
    }
    buf_consume(&link->in, used);
}

static void report(const struct run *run)
{
    const struct load_options *options = &run->options;
    double seconds = (double)(run->end_ns - run->begin_ns) / 1e9;
    double ops = (double)run->operations;

    printf("{\"op\":\"%s\",\"batch\":%u,\"connections\":%u,\"players\":%u,\"seconds\":%.2f,",
           load_op_name(options->op), load_op_count(options), options->connections,
           options->players, seconds);
    printf("\"ops\":%llu,\"ops_per_s\":%.0f,\"calls\":%llu,\"errors\":%llu,",
           (unsigned long long)run->operations, ops / seconds,
           (unsigned long long)run->histogram.count, (unsigned long long)run->errors);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,", histogram_ms(&run->histogram, 0.5),
           histogram_ms(&run->histogram, 0.99), (double)run->histogram.max_ns / 1e6);
    printf("\"server_cpu_s\":%.2f,\"server_cpu_us_per_op\":%.2f,\"client_cpu_s\":%.2f}\n",
           run->server_cpu_s, ops > 0 ? run->server_cpu_s * 1e6 / ops : 0, run->own_cpu_s);
}

static void parse_options(int argc, char **argv, struct load_options *options)
{
    int option;

    while ((option = getopt(argc, argv, "H:p:o:b:c:s:w:n:P:k:u:")) != -1) {
        switch (option) {
        case 'H':
            options->host = optarg;
            break;
        case 'p':
            options->port = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            if (!load_op_parse(optarg, &options->op))
                exit(2);
            break;
        case 'b':
            options->batch = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            options->connections = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            options->seconds = strtod(optarg, NULL);
            break;
        case 'w':
            options->warm_up_s = strtod(optarg, NULL);
            break;
        case 'n':
            options->players = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'P':
            options->pids = optarg;
            break;
        case 'k':
            options->api_key = optarg;
            break;
        case 'u':
            options->currency = optarg;
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct run run = { .options = { .host = "127.0.0.1",
                                           .pids = "",
                                           .api_key = "",
                                           .currency = "gold",
                                           .connections = 64,
                                           .players = 100000,
                                           .batch = 100,
                                           .seconds = 5,
                                           .warm_up_s = 1 } };
    const struct load_options *options = &run.options;

    parse_options(argc, argv, &run.options);
    if (options->port == 0 || options->connections == 0 || options->players == 0 ||
        options->batch == 0 || options->connections > CONNECTIONS_MAX) {
        fprintf(stderr, "loadgen: -p port is needed; see the head of loadgen.c\n");
        return 2;
    }
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    run.link_count = options->connections + 1;
    run.links = mem_zalloc(run.link_count * sizeof *run.links);
    for (size_t i = 0; i < run.link_count; i++) {
        run.links[i].renews = i == 0;
        run.links[i].slot.index = (unsigned)i;
        link_connect(&run, &run.links[i]);
    }
    if (options->op == LOAD_START_END)
        register_server(&run);
    run.begin_ns = clock_ns() + (uint64_t)(options->warm_up_s * 1e9);
    run.renew_ns = clock_ns() + RENEW_EVERY_NS;
    for (size_t i = 1; i < run.link_count; i++)
        call(&run, &run.links[i]);
    while (run.phase != DRAIN)
        round_once(&run);
    while (any_busy(&run) && clock_ns() < run.end_ns + CALL_TIMEOUT_NS)
        round_once(&run);
    report(&run);
    return 0;
}
