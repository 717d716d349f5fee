/* load_options: the command line that all load generators share; each says with `uses` what of it
 * matters to it. */
#ifndef TESTS_BENCH_LOAD_OPTIONS_H
#define TESTS_BENCH_LOAD_OPTIONS_H

#include <stdbool.h>

/* clang-format off */
/*    field         long            short kind    default      help                                                  */
#define LOAD_OPTIONS(X)                                                                                                 \
    X(host,         "host",         'H',  TEXT,   "127.0.0.1", "numeric IPv4 address of the server")                    \
    X(port,         "port",         'p',  NUMBER, "0",         "its port; must be given")                               \
    X(op,           "op",           'o',  TEXT,   "grant",     "what to do; see above")                                 \
    X(connections,  "connections",  'c',  NUMBER, "64",        "connections, each with one request outstanding")        \
    X(seconds,      "seconds",      's',  REAL,   "5",         "measured time")                                         \
    X(warm_up_s,    "warm-up",      'w',  REAL,   "1",         "seconds before that are not measured")                  \
    X(players,      "players",      'n',  NUMBER, "100000",    "players p0, p1, ... drawn uniformly")                   \
    X(prefix,       "prefix",       'f',  TEXT,   "p",         "before their numbers; audit: of other players")         \
    X(batch,        "batch",        'b',  NUMBER, "100",       "operations in one request of a batch, or of a pipeline") \
    X(items,        "items",        'i',  NUMBER, "0",         "items in each grant (Redis and PostgreSQL: 0 or 1)")    \
    X(repeat,       "repeat",       'r',  NUMBER, "0",         "one in so many grants repeats an earlier op_id; 0: none") \
    X(rate,         "rate",         'R',  REAL,   "0",         "open loop: requests a second in all; 0: closed loop")   \
    X(stock,        "stock",        't',  NUMBER, "384",       "transfer: items a connection makes before it gives any") \
    X(targets,      "targets",      'T',  NUMBER, "10000",     "favorite: targets g0, g1, ... drawn uniformly")         \
    X(hot,          "hot",          'O',  TEXT,   "",          "favorite: a target that half of them go to")            \
    X(method,       "method",       'M',  TEXT,   "",          "call: Service/Method")                                  \
    X(bodies,       "bodies",       'B',  TEXT,   "",          "call: a file with a request as JSON on each line")       \
    X(persist,      "persist",      'x',  FLAG,   "0",         "dial lost connections again instead of giving up")      \
    X(answer_min,   "answer-min",   'm',  NUMBER, "0",         "a read answered with fewer bytes a player has failed")  \
    X(currency,     "currency",     'u',  TEXT,   "gold",      "currency to grant")                                     \
    X(api_key,      "api-key",      'k',  TEXT,   "",          "sent as bearer token")                                  \
    X(pids,         "pids",         'P',  TEXT,   "",          "pid,pid: servers whose processor time counts")          \
    X(aside_pids,   "aside-pids",   'A',  TEXT,   "",          "pid,pid: others, whose time is told separately")
/* clang-format on */

#define LOAD_TYPE_TEXT   const char *
#define LOAD_TYPE_NUMBER unsigned
#define LOAD_TYPE_REAL   double
#define LOAD_TYPE_FLAG   bool

struct load_options {
#define LOAD_FIELD(field, name, letter, kind, standard, help) LOAD_TYPE_##kind field;
    LOAD_OPTIONS(LOAD_FIELD)
#undef LOAD_FIELD
};

/* Exits with 0 after --help and with 2 on a bad option. Texts are borrowed from argv. */
void load_options_parse(int argc, char **argv, const char *about, struct load_options *ret_options);

#endif
