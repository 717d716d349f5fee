/*
 * etcd_process: runs a private etcd as a child process, for `holdfast dev` and for tests. One
 * member, loopback, data in a directory of the caller's. Blocking calls, each bounded in time.
 * Not for production.
 */
#ifndef RUNTIME_ETCD_ETCD_PROCESS_H
#define RUNTIME_ETCD_ETCD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"

#define ETCD_ENDPOINT_SIZE 48

struct etcd_process {
    pid_t pid; /* 0: not running. */
    uint16_t client_port;
    uint16_t peer_port;
    char binary[256];
    char data_dir[256];
    char log_file[272]; /* Its output: <data_dir>.log */
    uint32_t election_ms;
    char endpoint[ETCD_ENDPOINT_SIZE]; /* "http://127.0.0.1:<client_port>"; https with certs_dir. */
    char certs_dir[256];               /* Empty: plain HTTP, for any user of the machine. */
    uint16_t health_port; /* client_port; with certs_dir another one, for health alone. */
};

struct etcd_process_options {
    const char *binary;   /* NULL: "etcd" from PATH. */
    const char *data_dir; /* Made if missing; its parent must exist. */
    uint16_t client_port; /* 0: a free one, as peer_port. */
    uint16_t peer_port;
    uint64_t timeout_ms; /* For being healthy; 0: 60 s. */
    /* A start again waits one to two of these before the lone member elects itself; the shortest
     * lease is one and a half. 0: etcd's own, 1 s. From 100. */
    uint32_t election_ms;
    /* ca.crt, etcd.crt and etcd.key of certs.h: it then answers only clients with a certificate of
     * that CA, and has that certificate itself. NULL: it answers every user of the machine. */
    const char *certs_dir;
};

/* Where it will listen and write, and which ports it has claimed; makes its directory and starts
 * nothing. ERR_INVALID: a path is too long. ERR_IO: the directory cannot be made, or no port is
 * free. */
NODISCARD err etcd_process_plan(const struct etcd_process_options *options,
                                struct etcd_process *ret_process);
/* What it is run with, without argv[0]; returns how many there are. */
#define ETCD_ARGUMENTS_MAX  18u
#define ETCD_ARGUMENT_BYTES 320u
uint32_t etcd_process_arguments(const struct etcd_process *process,
                                char ret_arguments[ETCD_ARGUMENTS_MAX][ETCD_ARGUMENT_BYTES]);
/* Whether it answers /health now, within half a second. */
bool etcd_process_is_healthy(const struct etcd_process *process);
/* Starts etcd and waits until it answers /health. The child dies with the thread that started it
 * (PDEATHSIG), so call it on the main one.
 * ERR_IO: could not be started or exited at once; ERR_TIMEOUT: not healthy in time, was stopped. */
NODISCARD err etcd_process_start(const struct etcd_process_options *options,
                                 struct etcd_process *ret_process);
/* Starts it again on the same ports and data, after stop or kill. */
NODISCARD err etcd_process_restart(struct etcd_process *process, uint64_t timeout_ms);
/* SIGTERM, SIGKILL after 5 s; reaps it. Does nothing when it is not running. */
void etcd_process_stop(struct etcd_process *process);
/* SIGKILL at once; reaps it. */
void etcd_process_kill(struct etcd_process *process);

#endif
