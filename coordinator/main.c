/* holdfast-coordinator: names the owners of shards and expires game servers.
 * coordinator/io/coordinator.h says what it is made of. */
#include "coordinator/io/coordinator.h"
#include "runtime/config/process_config.h"

CONFIG_OPTIONS(coordinator_config, COORDINATOR_CONFIG)

static void on_signal(void *user, int number)
{
    (void)number;
    loop_stop(user);
}

static int run(const struct coordinator_config *config, const struct log *log)
{
    struct loop *loop;
    struct coordinator *coordinator;
    struct coordinator_options options = {
        .log = log,
        .config = config,
        .version = HOLDFAST_VERSION,
    };

    if (loop_new(&loop) != ERR_OK || loop_signals_start(loop, on_signal, loop) != ERR_OK)
        return 1;
    options.loop = loop;
    if (coordinator_new(&options, &coordinator) != ERR_OK)
        return 1;
    loop_run(loop);
    bool failed = coordinator_failed(coordinator);

    log_event(log, LOG_INFO, "coordinator.stopping", LOG_N("failed", failed));
    coordinator_free(coordinator);
    loop_free(loop);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct config_program program = {
        .name = "holdfast-coordinator",
        .version = HOLDFAST_VERSION,
        .summary = "Names the owners of shards and expires game servers; one of several acts.",
        .options = coordinator_config_options,
        .option_count = sizeof coordinator_config_options / sizeof coordinator_config_options[0],
    };
    struct coordinator_config config;
    struct process_log log;
    int code = process_start(&program, argc, argv, &config, &log);

    if (code >= 0)
        return code;
    code = run(&config, &log.log);
    config_deinit(&program, &config);
    return code;
}
