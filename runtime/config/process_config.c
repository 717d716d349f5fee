#include "runtime/config/process_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"

static const char *text_option(const struct config_program *program, const void *config,
                               const char *name)
{
    for (size_t i = 0; i < program->option_count; i++) {
        const struct config_option *option = &program->options[i];
        if (strcmp(option->name, name) == 0 && option->type == CONFIG_TEXT)
            return *(char *const *)((const char *)config + option->offset);
    }
    CHECK(false); /* The table lacks PROCESS_LOG_CONFIG or a name. */
    return NULL;
}

int process_start(const struct config_program *program, int argc, char *const *argv,
                  void *ret_config, struct process_log *ret_log)
{
    struct log_sink *sink = &ret_log->sink;
    enum log_level level;
    int code = config_load_for_main(program, argc, argv, ret_config);

    if (code >= 0)
        return code;
    const char *level_text = text_option(program, ret_config, "log_level");
    const char *format_text = text_option(program, ret_config, "log_format");
    *sink = (struct log_sink){ .fd = STDERR_FILENO };
    bool level_known = log_level_parse(level_text, &level) == ERR_OK;
    if (!level_known || log_format_parse(format_text, &sink->format) != ERR_OK) {
        fprintf(stderr, "%s: %s is %s, not %s\n", program->name,
                level_known ? "log_format" : "log_level", level_known ? format_text : level_text,
                level_known ? "text or json" : "debug, info, warn or error");
        config_deinit(program, ret_config);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* Certificates are read again by themselves. */
    sink->program = text_option(program, ret_config, "name");
    ret_log->log = log_sink_open(sink, level);
    return -1;
}
