#include "runtime/config/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/config/config_file.h"
#include "runtime/config/config_option.h"
#include "runtime/config/config_value.h"

enum { NAME_MAX_SIZE = 64 };

/* listen_address -> listen-address */
static void flag_name(const struct config_option *option, char ret_name[NAME_MAX_SIZE])
{
    size_t i = 0;

    CHECK(strlen(option->name) < NAME_MAX_SIZE);
    for (; option->name[i] != '\0'; i++)
        ret_name[i] = option->name[i] == '_' ? '-' : option->name[i];
    ret_name[i] = '\0';
}

/* listen_address -> HOLDFAST_LISTEN_ADDRESS */
static void env_name(const struct config_option *option, char ret_name[NAME_MAX_SIZE + 16])
{
    size_t used = (size_t)snprintf(ret_name, NAME_MAX_SIZE + 16, "HOLDFAST_");

    CHECK(strlen(option->name) < NAME_MAX_SIZE);
    for (size_t i = 0; option->name[i] != '\0'; i++)
        ret_name[used++] = (char)toupper((unsigned char)option->name[i]);
    ret_name[used] = '\0';
}

static const struct config_option *flag_find(const struct config_program *program, const char *name,
                                             size_t length)
{
    for (size_t i = 0; i < program->option_count; i++) {
        char flag[NAME_MAX_SIZE];
        flag_name(&program->options[i], flag);
        if (strlen(flag) == length && memcmp(flag, name, length) == 0)
            return &program->options[i];
    }
    return NULL;
}

/* ---- Flags ---- */

/* One pass over the flags: `config` NULL only looks for --config, --help and --version. */
struct flags {
    const struct config_program *program;
    const struct config_input *input;
    void *config;
    int at; /* The argument being read. */
    const char *file;
    enum config_action action;
    struct config_error *why;
};

static err flag_refuse(struct flags *flags, const char *problem, const char *argument)
{
    char shown[NEAREST_SHOWN_BYTES];

    snprintf(flags->why->text, sizeof flags->why->text, "flag %s: %s",
             nearest_show(slice_from_text(argument), shown), problem);
    return ERR_INVALID;
}

/* Without its value, which may be a secret. */
static err refuse_unknown(struct flags *flags, struct slice name)
{
    const struct config_option *meant = config_option_nearest(flags->program, name);
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];
    char flag[NAME_MAX_SIZE + 2] = "";

    nearest_show(name, shown);
    if (meant != NULL) {
        memcpy(flag, "--", 2);
        flag_name(meant, flag + 2);
    }
    snprintf(flags->why->text, sizeof flags->why->text, "flag --%s: unknown%s%s", shown,
             nearest_hint(slice_from_text(flag), hint),
             meant != NULL ? " See --help" : "; see --help");
    return ERR_INVALID;
}

/* The value behind '=' or in the next argument. */
static const char *flag_value(struct flags *flags, const char *equals)
{
    if (equals != NULL)
        return equals + 1;
    if (flags->at + 1 >= flags->input->argc)
        return NULL;
    return flags->input->argv[++flags->at];
}

static err set_from_flag(struct flags *flags, const struct config_option *option, const char *text)
{
    struct config_source source;
    char name[NAME_MAX_SIZE];

    if (flags->config == NULL)
        return ERR_OK;
    flag_name(option, name);
    snprintf(source.text, sizeof source.text, "flag --%s", name);
    return config_value_set(option, flags->config, text, &source, flags->why);
}

/* A bare --name means true, unless the next argument says otherwise. */
static err take_bool(struct flags *flags, const struct config_option *option, const char *equals)
{
    bool ignored;
    bool next = equals == NULL && flags->at + 1 < flags->input->argc &&
                config_bool_parse(flags->input->argv[flags->at + 1], &ignored);

    if (equals == NULL && !next)
        return set_from_flag(flags, option, "true");
    return set_from_flag(flags, option, flag_value(flags, equals));
}

static err take_named(struct flags *flags, const char *argument)
{
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct config_option *option = flag_find(flags->program, name, length);

    if (option == NULL && equals == NULL && strncmp(name, "no-", 3) == 0) {
        option = flag_find(flags->program, name + 3, length - 3);
        if (option != NULL && option->type == CONFIG_BOOL)
            return set_from_flag(flags, option, "false");
        option = NULL;
    }
    bool is_file = length == 6 && memcmp(name, "config", 6) == 0;
    if (option == NULL && !is_file)
        return refuse_unknown(flags, (struct slice){ (const uint8_t *)name, length });
    if (option != NULL && option->type == CONFIG_BOOL)
        return take_bool(flags, option, equals);
    const char *value = flag_value(flags, equals);
    if (value == NULL)
        return flag_refuse(flags, "lacks its value", argument);
    if (is_file) {
        flags->file = value;
        return ERR_OK;
    }
    return set_from_flag(flags, option, value);
}

static err take_flags(struct flags *flags)
{
    err e = ERR_OK;

    for (flags->at = 1; e == ERR_OK && flags->at < flags->input->argc; flags->at++) {
        const char *argument = flags->input->argv[flags->at];
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
            flags->action = CONFIG_PRINT_HELP;
        else if (strcmp(argument, "--version") == 0)
            flags->action = CONFIG_PRINT_VERSION;
        else if (strncmp(argument, "--", 2) == 0)
            e = take_named(flags, argument);
        else
            e = flag_refuse(flags, "not a flag; see --help", argument);
        if (flags->action != CONFIG_RUN)
            return ERR_OK;
    }
    return e;
}

/* ---- The other sources ---- */

static void take_defaults(const struct config_program *program, void *config)
{
    for (size_t i = 0; i < program->option_count; i++) {
        const struct config_option *option = &program->options[i];
        struct config_source source;
        struct config_error why;
        snprintf(source.text, sizeof source.text, "default of %s", option->name);
        err e = config_value_set(option, config, option->initial, &source, &why);
        if (e != ERR_OK)
            fprintf(stderr, "%s\n", why.text);
        CHECK(e == ERR_OK); /* The table contradicts itself. */
    }
}

static err take_environment(const struct config_program *program, char *const *env, void *config,
                            struct config_error *ret_why)
{
    for (size_t i = 0; i < program->option_count; i++) {
        char name[NAME_MAX_SIZE + 16];
        env_name(&program->options[i], name);
        size_t length = strlen(name);
        for (char *const *at = env; at != NULL && *at != NULL; at++) {
            struct config_source source;
            if (strncmp(*at, name, length) != 0 || (*at)[length] != '=')
                continue;
            snprintf(source.text, sizeof source.text, "environment %s", name);
            err e =
                config_value_set(&program->options[i], config, *at + length + 1, &source, ret_why);
            if (e != ERR_OK)
                return e;
        }
    }
    return ERR_OK;
}

static void zero_fields(const struct config_program *program, void *config)
{
    static const size_t sizes[] = {
        [CONFIG_U32] = sizeof(uint32_t),
        [CONFIG_U64] = sizeof(uint64_t),
        [CONFIG_BOOL] = sizeof(bool),
        [CONFIG_TEXT] = sizeof(char *),
        [CONFIG_PATH] = sizeof(char *),
        [CONFIG_ADDRESS] = sizeof(char *),
        [CONFIG_LIST] = sizeof(struct config_list),
        [CONFIG_DURATION] = sizeof(uint64_t),
        [CONFIG_SIZE] = sizeof(uint64_t),
    };

    for (size_t i = 0; i < program->option_count; i++)
        memset((char *)config + program->options[i].offset, 0, sizes[program->options[i].type]);
}

err config_load(const struct config_program *program, const struct config_input *input,
                void *ret_config, enum config_action *ret_action, struct config_error *ret_why)
{
    struct flags look = { .program = program, .input = input, .why = ret_why };

    err e = take_flags(&look);
    if (e != ERR_OK)
        return e;
    *ret_action = look.action;
    if (look.action != CONFIG_RUN)
        return ERR_OK;
    zero_fields(program, ret_config);
    take_defaults(program, ret_config);
    if (look.file != NULL)
        e = config_file_load(program, look.file, ret_config, ret_why);
    if (e == ERR_OK)
        e = take_environment(program, input->env, ret_config, ret_why);
    struct flags apply = look;
    apply.config = ret_config;
    if (e == ERR_OK)
        e = take_flags(&apply);
    if (e != ERR_OK)
        config_deinit(program, ret_config);
    return e;
}

void config_deinit(const struct config_program *program, void *config)
{
    for (size_t i = 0; i < program->option_count; i++)
        config_value_free(&program->options[i], config);
}

/* ---- Printing ---- */

static void print_range(const struct config_option *option, struct buf *out)
{
    if (option->type == CONFIG_BOOL)
        return;
    buf_printf(out, ", ");
    if (option->type == CONFIG_TEXT || option->type == CONFIG_PATH ||
        option->type == CONFIG_ADDRESS)
        buf_printf(out, "length ");
    if (option->type == CONFIG_LIST)
        buf_printf(out, "count ");
    if (option->type == CONFIG_DURATION || option->type == CONFIG_SIZE ||
        option->type == CONFIG_U32 || option->type == CONFIG_U64) {
        config_limit_print(option, option->min, out);
        buf_printf(out, " to ");
        config_limit_print(option, option->max, out);
        return;
    }
    buf_printf(out, "%llu to %llu", (unsigned long long)option->min,
               (unsigned long long)option->max);
}

void config_print_help(const struct config_program *program, struct buf *out)
{
    buf_printf(out, "%s %s: %s\n\n", program->name, program->version, program->summary);
    buf_printf(out, "Usage: %s [--config FILE] [--option VALUE]...\n\n", program->name);
    buf_printf(out, "Later sources win: defaults, the YAML file, the environment, flags.\n\n");
    buf_printf(out, "  --config FILE\n      YAML file: the option names below with underscores\n");
    buf_printf(out, "  --help\n  --version\n");
    for (size_t i = 0; i < program->option_count; i++) {
        const struct config_option *option = &program->options[i];
        char flag[NAME_MAX_SIZE];
        char env[NAME_MAX_SIZE + 16];
        flag_name(option, flag);
        env_name(option, env);
        buf_printf(out, "  --%s %s%s%s\n      %s\n      default \"%s\"", flag,
                   config_type_word(option->type), option->unit[0] != '\0' ? ", " : "",
                   option->unit, option->doc, option->initial);
        print_range(option, out);
        buf_printf(out, "; %s\n", env);
    }
}

int config_load_for_main(const struct config_program *program, int argc, char *const *argv,
                         void *ret_config)
{
    struct config_input input = { .argc = argc, .argv = argv, .env = environ };
    struct config_error why;
    enum config_action action;
    struct buf text = { 0 };

    if (config_load(program, &input, ret_config, &action, &why) != ERR_OK) {
        fprintf(stderr, "%s: %s\n", program->name, why.text);
        return 2;
    }
    if (action == CONFIG_RUN)
        return -1;
    if (action == CONFIG_PRINT_VERSION)
        buf_printf(&text, "%s %s\n", program->name, program->version);
    else
        config_print_help(program, &text);
    bool written = fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    buf_deinit(&text);
    return written ? 0 : 1;
}
