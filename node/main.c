/* holdfast-node: stores and replicates shards. node/io/process/node.h says what it is made of. */
#include "node/io/process/node.h"
#include "node/rpc/handlers.h"
#include "runtime/config/process_config.h"
#include "runtime/memory/heap.h"

CONFIG_OPTIONS(node_config, NODE_CONFIG)

static void on_signal(void *user, int number)
{
    (void)number;
    loop_stop(user);
}

static int run(const struct node_config *config, const struct log *log)
{
    struct loop *loop;
    struct node *node;
    struct node_options options = {
        .config = config,
        .version = HOLDFAST_VERSION,
        .log = log,
        .handlers = node_handlers(),
    };

    if (loop_new(&loop) != ERR_OK || loop_signals_start(loop, on_signal, loop) != ERR_OK)
        return 1;
    options.loop = loop;
    if (node_new(&options, &node) != ERR_OK)
        return 1;
    loop_run(loop);
    bool failed = node_failed(node);
    log_event(log, LOG_INFO, "node.stopping", LOG_N("failed", failed));
    node_free(node);
    loop_free(loop);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct config_program program = {
        .name = "holdfast-node",
        .version = HOLDFAST_VERSION,
        .summary = "Owns and replicates shards of the player-state store.",
        .options = node_config_options,
        .option_count = sizeof node_config_options / sizeof node_config_options[0],
    };
    struct node_config config;
    struct process_log log;
    int code = process_start(&program, argc, argv, &config, &log);

    if (code >= 0)
        return code;
    heap_configure();
    code = run(&config, &log.log);
    config_deinit(&program, &config);
    return code;
}
