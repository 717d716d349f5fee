/*
 * process_config: the options that node, router and coordinator share, and how each of them
 * starts: configuration first, then a log as configured, before anything else is done.
 */
#ifndef RUNTIME_CONFIG_PROCESS_CONFIG_H
#define RUNTIME_CONFIG_PROCESS_CONFIG_H

#include "runtime/config/config.h"
#include "runtime/config/log_sink.h"

/* clang-format off */
/*    field         type  default                  min max    unit       doc */
#define PROCESS_CONFIG(X)                                                                                  \
    X(metrics_host, TEXT, "127.0.0.1",             1,  64,    "address", "where /metrics, /healthz and /readyz listen") \
    X(metrics_port, U32,  "0",                     0,  65535, "port",    "port of /metrics; 0: any free one") \
    X(etcd,         LIST, "http://127.0.0.1:2379", 1,  16,    "URLs",    "etcd endpoints") \
    X(etcd_ca,      PATH, "",                      0,  4000,  "",        "CA of etcd's certificates (PEM), for https") \
    X(etcd_cert,    PATH, "",                      0,  4000,  "",        "client certificate for etcd (PEM)") \
    X(etcd_key,     PATH, "",                      0,  4000,  "",        "key of etcd_cert (PEM)") \
    X(tls_ca,       PATH, "",                      0,  4000,  "",        "the cluster's CA (PEM)") \
    X(tls_cert,     PATH, "",                      0,  4000,  "",        "this process's certificate (PEM)") \
    X(tls_key,      PATH, "",                      0,  4000,  "",        "key of tls_cert (PEM)") \
    X(tls_names,    TEXT, "require",               1,  64,    "",        "require: links refuse certificates that name no process; accept-unnamed: for an upgrade") \
    X(insecure,     BOOL, "false",                 0,  1,     "",        "plain TCP between processes: for tests only") \
    X(links_max,    U32,  "1024",                  16, 65536, "",        "links between processes; an eighth is kept for those that this process dials") \
    X(links_unproven_max, U32, "128",              4,  4096,  "",        "accepted links that have not said HELLO yet; more put out the oldest of them") \
    X(links_address_max, U32, "32",                2,  4096,  "",        "those of one address (IPv6: one /64)") \
    X(handshake_rate, U32, "1000",                 1,  100000, "a second", "TLS handshakes begun by others at one port; as many may come at once") \
    X(handshake_address_rate, U32, "200",          1,  100000, "a second", "those of one address (IPv6: one /64)") \
    X(handshake_share, U32, "30",                  1,  90,    "percent", "of the event loop's time for TLS handshakes; more of them wait, 1024 at most") \
    X(metrics_connections_max, U32, "64",          4,  1024,  "",        "connections to the metrics port; more put out the oldest without a whole request")

#define PROCESS_LOG_CONFIG(X)                                                                              \
    X(log_level,    TEXT, "info",                  4,  5,     "",        "debug, info, warn or error") \
    X(log_format,   TEXT, "text",                  4,  4,     "",        "text or json")
/* clang-format on */

/* Where a process logs to: standard error. Must outlive the log. */
struct process_log {
    struct log_sink sink;
    struct log log;
};

/*
 * For main(): loads the configuration of a program whose table has `name`, log_level and
 * log_format, opens its log, and ignores SIGPIPE. Help, version and errors are printed. Returns -1
 * when the program should run, and then owes config_deinit; else its exit code.
 */
int process_start(const struct config_program *program, int argc, char *const *argv,
                  void *ret_config, struct process_log *ret_log);

#endif
