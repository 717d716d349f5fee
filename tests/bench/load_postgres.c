/*
 * load_postgres: the same grants on PostgreSQL, in a closed loop: one prepared statement that calls
 * one function a grant, one outstanding per connection; epoll, one thread. Tables and function are
 * those of postgres.sql. Prints one line of JSON like loadgen's.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "load_grant.h"
#include "load_run.h"
#include "runtime/base/check.h"

#define EVENTS_MAX      256
#define CALL_TIMEOUT_NS 10000000000u

struct link {
    PGconn *postgres;
    uint64_t sent_ns;
    bool busy;
    struct load_outcome outcome;
    struct load_history history;
};

struct run {
    struct load_options options;
    struct load_run counts;
    struct link *links;
    int epoll;
};

static _Noreturn void die(const char *what, const PGconn *postgres)
{
    fprintf(stderr, "load_postgres: %s: %s\n", what, PQerrorMessage(postgres));
    exit(1);
}

static void call(struct run *run, struct link *link)
{
    struct load_grant grant = load_grant_next(&run->options, &link->history);
    char player[16], item[17] = "";
    const char *values[] = { player, grant.op_id, item };

    snprintf(player, sizeof player, "%u", grant.player);
    if (run->options.items > 0) /* The random half of the op_id. */
        snprintf(item, sizeof item, "%.16s", grant.op_id + strlen(grant.op_id) - 16);
    link->outcome = (struct load_outcome){ 0 };
    link->busy = true;
    link->sent_ns = clock_ns();
    if (PQsendQueryPrepared(link->postgres, "grant", 3, values, NULL, NULL, 0) != 1 ||
        PQflush(link->postgres) != 0)
        die("send", link->postgres);
}

/* The function answers the balance; negative when the op_id was known. */
static void take_result(struct link *link, const PGresult *result)
{
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fprintf(stderr, "load_postgres: %s", PQresultErrorMessage(result));
        link->outcome.failed = 1;
        return;
    }
    link->outcome.done = 1;
    link->outcome.duplicates = PQgetvalue(result, 0, 0)[0] == '-';
}

static void on_readable(struct run *run, struct link *link)
{
    PGresult *result;

    if (PQconsumeInput(link->postgres) != 1)
        die("read", link->postgres);
    while (PQisBusy(link->postgres) == 0) {
        result = PQgetResult(link->postgres);
        if (result == NULL) { /* The statement's end. */
            link->busy = false;
            load_run_count(&run->counts, link->sent_ns, &link->outcome);
            load_grant_answered(&link->history, link->outcome.failed == 0);
            if (run->counts.phase != LOAD_DRAIN)
                call(run, link);
            return;
        }
        take_result(link, result);
        PQclear(result);
    }
}

static bool any_busy(const struct run *run)
{
    for (unsigned i = 0; i < run->options.connections; i++) {
        if (run->links[i].busy)
            return true;
    }
    return false;
}

static void round_once(struct run *run)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(run->epoll, events, EVENTS_MAX, 100);

    for (int i = 0; i < count; i++)
        on_readable(run, events[i].data.ptr);
    load_run_advance(&run->counts, clock_ns());
}

static void link_connect(struct run *run, struct link *link)
{
    char target[128];
    PGresult *result;

    snprintf(target, sizeof target,
             "host=%s port=%u user=peer dbname=postgres sslmode=disable gssencmode=disable",
             run->options.host, run->options.port);
    link->postgres = PQconnectdb(target);
    if (PQstatus(link->postgres) != CONNECTION_OK)
        die("connect", link->postgres);
    result = PQprepare(link->postgres, "grant", "SELECT grant_once($1::int, $2::uuid, 1, $3::text)",
                       0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die("prepare", link->postgres);
    PQclear(result);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, PQsocket(link->postgres), &event) != 0)
        die("epoll_ctl", link->postgres);
}

int main(int argc, char **argv)
{
    static struct run run;

    load_options_parse(argc, argv, "grants on PostgreSQL; operation:\n    grant\n", &run.options);
    if (strcmp(run.options.op, "grant") != 0) {
        fprintf(stderr, "load_postgres: --op is grant\n");
        return 2;
    }
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    run.links = mem_zalloc(run.options.connections * sizeof *run.links);
    for (unsigned i = 0; i < run.options.connections; i++)
        link_connect(&run, &run.links[i]);
    load_run_start(&run.counts, &run.options);
    for (unsigned i = 0; i < run.options.connections; i++)
        call(&run, &run.links[i]);
    while (run.counts.phase != LOAD_DRAIN)
        round_once(&run);
    while (any_busy(&run) && clock_ns() < run.counts.end_ns + CALL_TIMEOUT_NS)
        round_once(&run);
    load_run_report(&run.counts, 1);
    printf("}\n");
    return 0;
}
