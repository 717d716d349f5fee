/* holdfast-router: the public endpoint. router/io/router_process.h says what it is made of. */
#include <sys/resource.h>

#include "router/io/router_process.h"
#include "runtime/config/process_config.h"
#include "runtime/memory/heap.h"

#define DESCRIPTORS_BESIDE 256u

CONFIG_OPTIONS(router_config, ROUTER_CONFIG)

struct program {
    struct loop *loop;
    struct router_process *process;
};

static void on_signal(void *user, int number)
{
    struct program *program = user;

    (void)number;
    router_process_drain(program->process);
}

static void on_stopped(void *user)
{
    struct program *program = user;

    loop_stop(program->loop);
}

/* A descriptor for each public connection, and some for files, etcd and nodes: as many as the
 * system lets us have. */
static void allow_descriptors(const struct router_config *config, const struct log *log)
{
    const rlim_t wanted = (rlim_t)config->connections_max + DESCRIPTORS_BESIDE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted)
        log_event(
            log, LOG_WARN, "router.few_descriptors", LOG_N("allowed", limit.rlim_cur),
            LOG_N("wanted", wanted),
            LOG_S("what", "connections_max cannot be reached; raise the limit of open files"));
}

static int run(const struct router_config *config, const struct log *log)
{
    struct program program = { 0 };
    struct router_process_options options = {
        .config = config,
        .log = log,
        .version = HOLDFAST_VERSION,
        .stopped = on_stopped,
        .user = &program,
    };
    bool failed;

    allow_descriptors(config, log);
    if (loop_new(&program.loop) != ERR_OK)
        return 1;
    options.loop = program.loop;
    if (router_process_new(&options, &program.process) != ERR_OK ||
        loop_signals_start(program.loop, on_signal, &program) != ERR_OK)
        return 1;
    loop_run(program.loop);
    failed = router_process_failed(program.process);
    log_event(log, LOG_INFO, "router.stopping", LOG_N("failed", failed));
    router_process_free(program.process);
    loop_free(program.loop);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct config_program program = {
        .name = "holdfast-router",
        .version = HOLDFAST_VERSION,
        .summary = "Routes game servers' calls to the nodes that own their players.",
        .options = router_config_options,
        .option_count = sizeof router_config_options / sizeof router_config_options[0],
    };
    struct router_config config;
    struct process_log log;
    int code = process_start(&program, argc, argv, &config, &log);

    if (code >= 0)
        return code;
    heap_configure();
    code = run(&config, &log.log);
    config_deinit(&program, &config);
    return code;
}
