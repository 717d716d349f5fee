/* The YAML source: one flat mapping of option names to scalars or sequences of scalars. */
#include "runtime/config/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/config/config_option.h"
#include "runtime/config/config_value.h"

struct file {
    const struct config_program *program;
    const char *path;
    void *config;
    yaml_parser_t parser;
    struct config_error *why;
};

static err refuse(struct file *file, size_t line, const char *problem, const char *value)
{
    snprintf(file->why->text, sizeof file->why->text, "file %s line %zu: %s%s%.128s%s", file->path,
             line + 1, problem, value[0] != '\0' ? " \"" : "", value, value[0] != '\0' ? "\"" : "");
    return ERR_INVALID;
}

static err refuse_unknown(struct file *file, size_t line, const char *key)
{
    struct slice name = slice_from_text(key);
    const struct config_option *meant = config_option_nearest(file->program, name);
    struct slice name_meant = slice_from_text(meant != NULL ? meant->name : "");
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];
    char problem[NEAREST_SHOWN_BYTES + NEAREST_HINT_BYTES + 20];

    snprintf(problem, sizeof problem, "unknown option \"%s\"%s", nearest_show(name, shown),
             nearest_hint(name_meant, hint));
    return refuse(file, line, problem, "");
}

static struct config_source source_of(const struct file *file, size_t line, const char *name)
{
    struct config_source source;

    snprintf(source.text, sizeof source.text, "file %.200s line %zu: %.64s", file->path, line + 1,
             name);
    return source;
}

static err next(struct file *file, yaml_event_t *ret_event)
{
    if (yaml_parser_parse(&file->parser, ret_event) == 1)
        return ERR_OK;
    *ret_event = (yaml_event_t){ 0 };
    return refuse(file, file->parser.problem_mark.line,
                  file->parser.problem != NULL ? file->parser.problem : "not YAML", "");
}

static const char *scalar(const yaml_event_t *event)
{
    return (const char *)event->data.scalar.value;
}

/* A NUL inside would cut the text short. */
static bool scalar_is_text(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT && strlen(scalar(event)) == event->data.scalar.length;
}

/* The rest of a sequence whose start was read. */
static err take_sequence(struct file *file, const struct config_option *option, size_t line)
{
    char *items[CONFIG_LIST_MAX + 1] = { NULL };
    struct config_source source = source_of(file, line, option->name);
    size_t count = 0;
    err e = ERR_OK;

    while (e == ERR_OK) {
        yaml_event_t event;
        e = next(file, &event);
        bool end = e == ERR_OK && event.type == YAML_SEQUENCE_END_EVENT;
        if (e == ERR_OK && !end && !scalar_is_text(&event))
            e = refuse(file, event.start_mark.line, "not a plain value in the list of",
                       option->name);
        if (e == ERR_OK && !end && count == ARRAY_SIZE(items))
            e = refuse(file, event.start_mark.line, "too many items in", option->name);
        if (e == ERR_OK && !end) {
            items[count] = strdup(scalar(&event));
            CHECK(items[count] != NULL);
            count++;
        }
        yaml_event_delete(&event);
        if (end)
            break;
    }
    if (e == ERR_OK)
        e = config_value_set_list(option, file->config,
                                  &(struct config_items){ (const char *const *)items, count },
                                  &source, file->why);
    for (size_t i = 0; i < count; i++)
        free(items[i]);
    return e;
}

static err take_value(struct file *file, const struct config_option *option)
{
    yaml_event_t event;

    err e = next(file, &event);
    if (e != ERR_OK)
        return e;
    size_t line = event.start_mark.line;
    if (event.type == YAML_SEQUENCE_START_EVENT && option->type == CONFIG_LIST) {
        e = take_sequence(file, option, line);
    } else if (scalar_is_text(&event)) {
        struct config_source source = source_of(file, line, option->name);
        e = config_value_set(option, file->config, scalar(&event), &source, file->why);
    } else {
        e = refuse(file, line, "not a plain value for", option->name);
    }
    yaml_event_delete(&event);
    return e;
}

/* One key with its value. *ret_end: the mapping is over. */
static err take_entry(struct file *file, bool *seen, bool *ret_end)
{
    yaml_event_t event;

    err e = next(file, &event);
    if (e != ERR_OK)
        return e;
    *ret_end = event.type == YAML_MAPPING_END_EVENT;
    if (!*ret_end && !scalar_is_text(&event))
        e = refuse(file, event.start_mark.line, "a key must be plain text", "");
    if (e != ERR_OK || *ret_end) {
        yaml_event_delete(&event);
        return e;
    }
    const struct config_option *option = config_option_find(file->program, scalar(&event));
    if (option == NULL) {
        e = refuse_unknown(file, event.start_mark.line, scalar(&event));
    } else if (seen[option - file->program->options]) {
        e = refuse(file, event.start_mark.line, "stands twice:", option->name);
    } else {
        seen[option - file->program->options] = true;
        e = take_value(file, option);
    }
    yaml_event_delete(&event);
    return e;
}

static err take_document(struct file *file)
{
    bool *seen = mem_zalloc(file->program->option_count * sizeof *seen + 1);
    bool end = false;
    err e = ERR_OK;

    while (e == ERR_OK && !end) {
        yaml_event_t event;
        e = next(file, &event);
        yaml_event_type_t type = event.type;
        size_t line = event.start_mark.line;
        bool empty = type == YAML_SCALAR_EVENT && event.data.scalar.length == 0;
        yaml_event_delete(&event);
        if (e != ERR_OK || type == YAML_STREAM_END_EVENT)
            break;
        if (type == YAML_MAPPING_START_EVENT) {
            while (e == ERR_OK && !end)
                e = take_entry(file, seen, &end);
        } else if (type == YAML_SEQUENCE_START_EVENT || type == YAML_ALIAS_EVENT ||
                   (type == YAML_SCALAR_EVENT && !empty)) {
            e = refuse(file, line, "not a mapping of options", "");
        }
    }
    free(seen);
    return e;
}

err config_yaml_load(const struct config_program *program, const char *path, struct slice yaml,
                     void *config, struct config_error *ret_why)
{
    struct file file = { .program = program, .path = path, .config = config, .why = ret_why };

    CHECK(yaml_parser_initialize(&file.parser) == 1);
    yaml_parser_set_input_string(&file.parser, yaml.data, yaml.size);
    err e = take_document(&file);
    yaml_parser_delete(&file.parser);
    return e;
}

err config_file_load(const struct config_program *program, const char *path, void *config,
                     struct config_error *ret_why)
{
    struct buf text = { 0 };
    FILE *stream = fopen(path, "re");
    err e = ERR_OK;

    if (stream == NULL) {
        snprintf(ret_why->text, sizeof ret_why->text, "file %s: %s", path, strerror(errno));
        return ERR_IO;
    }
    text.size = fread(buf_reserve(&text, CONFIG_FILE_MAX + 1), 1, CONFIG_FILE_MAX + 1, stream);
    if (ferror(stream)) {
        snprintf(ret_why->text, sizeof ret_why->text, "file %s: cannot be read", path);
        e = ERR_IO;
    } else if (text.size > CONFIG_FILE_MAX) {
        snprintf(ret_why->text, sizeof ret_why->text, "file %s: more than %d bytes", path,
                 (int)CONFIG_FILE_MAX);
        e = ERR_TOO_LARGE;
    }
    fclose(stream);
    if (e == ERR_OK)
        e = config_yaml_load(program, path, buf_slice(&text), config, ret_why);
    buf_deinit(&text);
    return e;
}
