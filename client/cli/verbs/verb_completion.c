/*
 * holdfast completion: a script for bash (or zsh, through its bashcompinit) that completes verbs,
 * options, formats and files. Written from the tables of verbs and options, so it knows what this
 * very binary knows.
 */
#include <stdio.h>
#include <string.h>

#include "client/cli/verb_table.h"
#include "runtime/base/buf.h"
#include "runtime/base/check.h"

/* Of an option: what its value is, and how that is completed. */
static const struct {
    const char *value;
    const char *how;
} values[] = {
    { "FORMAT", "offers='table json'" },
    { "WHO", "offers='open keys'" },
    { "FILE", "files=-f" },
    { "FILES", "files=-f" },
    { "DIR", "files=-d" },
};

static bool has_word(const char *list, const char *word)
{
    size_t size = strlen(word);

    for (const char *at = list; *at != 0; at += strcspn(at, " "), at += *at == ' ') {
        if (strcspn(at, " ,.|") == size && strncmp(at, word, size) == 0)
            return true;
    }
    return false;
}

static bool takes_path(const struct verb *verb)
{
    return has_word(verb->arguments, "FILE") || has_word(verb->arguments, "DIR") ||
           has_word(verb->arguments, "PATH");
}

/* Whether an earlier verb begins with the same word. */
static bool is_repeated(size_t place)
{
    struct slice word = verb_word(verb_at(place), 0);

    for (size_t i = 0; i < place; i++) {
        if (slice_equal(verb_word(verb_at(i), 0), word))
            return true;
    }
    return false;
}

static void append_word(struct buf *out, struct slice word)
{
    buf_printf(out, "%.*s ", (int)word.size, (const char *)word.data);
}

static void append_first_words(struct buf *out)
{
    const struct verb *verb;

    buf_printf(out, "        '') offers='");
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (!is_repeated(i))
            append_word(out, verb_word(verb, 0));
    }
    buf_printf(out, "' ;;\n");
}

static void append_second_words(struct buf *out)
{
    const struct verb *verb, *other;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        struct slice first = verb_word(verb, 0);

        if (is_repeated(i))
            continue;
        buf_printf(out, "        ' %.*s') offers='", (int)first.size, (const char *)first.data);
        for (size_t k = i; (other = verb_at(k)) != NULL; k++) {
            if (slice_equal(verb_word(other, 0), first) && verb_word_count(other) == 2)
                append_word(out, verb_word(other, 1));
        }
        buf_printf(out, "' ;;\n");
    }
}

/* After which words a file may follow. */
static void append_paths(struct buf *out)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (takes_path(verb))
            buf_printf(out, "        ' %s'%s) files=-f ;;\n", verb->words,
                       strstr(verb->arguments, "..") != NULL ? "*" : "");
    }
}

/* Of verbs with two words first: "backup list" is not "backup" with an argument. */
static void append_option_cases(struct buf *out)
{
    const struct verb *verb;

    buf_printf(out, "    options='--help --version '\n    case \"$said \" in\n");
    for (uint32_t words = 2; words > 0; words--) {
        for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
            if (verb_word_count(verb) != words)
                continue;
            buf_printf(out, "        ' %s '*) options+='", verb->words);
            for (size_t k = 0; verb->options[k] != NULL; k++)
                buf_printf(out, "--%s ", verb->options[k]->flag);
            buf_printf(out, "' ;;\n");
        }
    }
    buf_printf(out, "    esac\n");
}

/* Which options take a value, and what becomes of it. */
static void append_values(struct buf *out)
{
    const struct command_option *options[OPTIONS_MAX];
    size_t count = options_gather(options);

    for (size_t i = 0; i < count; i++) {
        const char *how = "offers=''";

        if (options[i]->value == NULL)
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            if (strcmp(options[i]->value, values[k].value) == 0)
                how = values[k].how;
        }
        buf_printf(out, "        --%s%s) %s ;;\n", options[i]->flag,
                   strcmp(options[i]->flag, "output") == 0 ? " | -o" : "", how);
    }
}

static void append_value_flags(struct buf *out)
{
    const struct command_option *options[OPTIONS_MAX];
    size_t count = options_gather(options);

    buf_printf(out, "-o");
    for (size_t i = 0; i < count; i++) {
        if (options[i]->value != NULL)
            buf_printf(out, " | --%s", options[i]->flag);
    }
}

static void append_script(struct buf *out)
{
    buf_printf(out, "# Completion of holdfast, made by `holdfast completion bash`.\n"
                    "_holdfast() {\n"
                    "    local cur=${COMP_WORDS[COMP_CWORD]} pending='' said='' word i\n"
                    "    local offers='' files='' options='' IFS=$' \\t\\n'\n"
                    "    COMPREPLY=()\n"
                    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                    "        word=${COMP_WORDS[i]}\n"
                    "        if [[ $word == '=' ]]; then continue; fi\n"
                    "        if [[ -n $pending ]]; then pending=''; continue; fi\n"
                    "        case $word in\n            ");
    append_value_flags(out);
    buf_printf(out, ") pending=$word ;;\n"
                    "            -*) ;;\n"
                    "            *) said+=\" $word\" ;;\n"
                    "        esac\n"
                    "    done\n"
                    "    if [[ $cur == '=' ]]; then cur=''; fi\n");
    append_option_cases(out);
    buf_printf(out, "    if [[ -n $pending ]]; then case $pending in\n");
    append_values(out);
    buf_printf(out, "    esac; elif [[ $cur == -* ]]; then offers=$options\n"
                    "    else case $said in\n");
    append_first_words(out);
    append_second_words(out);
    buf_printf(out, "        esac\n        case $said in\n");
    append_paths(out);
    buf_printf(out, "        esac\n"
                    "    fi\n"
                    "    COMPREPLY=($(compgen -W \"$offers\" -- \"$cur\"))\n"
                    "    if [[ -n $files ]]; then\n"
                    "        IFS=$'\\n'\n"
                    "        COMPREPLY+=($(compgen \"$files\" -- \"$cur\"))\n"
                    "        type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null\n"
                    "    fi\n"
                    "    return 0\n"
                    "}\n"
                    "complete -F _holdfast holdfast\n");
}

static int print(const char *before)
{
    struct buf script = { 0 };

    buf_printf(&script, "%s", before);
    append_script(&script);
    fwrite(script.data, 1, script.size, stdout);
    buf_deinit(&script);
    return 0;
}

static int bash(const struct arguments *arguments)
{
    (void)arguments;
    return print("");
}

static int zsh(const struct arguments *arguments)
{
    (void)arguments;
    return print("autoload -Uz compinit bashcompinit && compinit && bashcompinit\n");
}

const struct verb verb_completion[] = {
    {
        .words = "completion bash",
        .topic = VERB_TOPIC_SHELL,
        .arguments = "",
        .summary = "a script that lets bash complete verbs and options",
        .details = "In ~/.bashrc: source <(holdfast completion bash)",
        .options = VERB_OPTIONS(NULL),
        .run = bash,
    },
    {
        .words = "completion zsh",
        .topic = VERB_TOPIC_SHELL,
        .arguments = "",
        .summary = "the same for zsh",
        .details = "In ~/.zshrc: source <(holdfast completion zsh)",
        .options = VERB_OPTIONS(NULL),
        .run = zsh,
    },
    { .words = NULL },
};
