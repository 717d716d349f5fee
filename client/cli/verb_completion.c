/*
 * holdfast completion: a script for bash (or zsh, through its bashcompinit) that completes verbs,
 * options, formats and files. Written from the tables of verbs and options, so it knows what this
 * very binary knows.
 */
#include <stdio.h>
#include <string.h>

#include "client/cli/verb.h"
#include "client/cli/verb_table.h"
#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define WORD_BYTES 64u

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

/* The word at `place` of "node drain|undrain", 0 the first. Empty: there is none. */
static void word_at(const char *words, uint32_t place, char ret_word[WORD_BYTES])
{
    for (; place > 0 && words[0] != 0; place--) {
        words += strcspn(words, " ");
        words += words[0] == ' ';
    }
    snprintf(ret_word, WORD_BYTES, "%.*s", (int)strcspn(words, " "), words);
}

static bool has_word(const char *list, const char *word)
{
    char each[WORD_BYTES] = "?";

    for (uint32_t i = 0; each[0] != 0; i++) {
        word_at(list, i, each);
        each[strcspn(each, ",.|")] = 0;
        if (strcmp(each, word) == 0 && word[0] != 0)
            return true;
    }
    return false;
}

static bool takes_path(const struct verb *verb)
{
    return has_word(verb->arguments, "FILE") || has_word(verb->arguments, "DIR") ||
           has_word(verb->arguments, "PATH");
}

/* Whether an earlier row of the table has the same first word. */
static bool is_repeated(const struct verb *verbs, size_t place)
{
    char word[WORD_BYTES];

    word_at(verbs[place].words, 0, word);
    return verb_find(word) != &verbs[place];
}

static void append_first_words(struct buf *out)
{
    size_t count;
    const struct verb *verbs = verb_all(&count);
    char word[WORD_BYTES];

    buf_printf(out, "        '') offers='");
    for (size_t i = 0; i < count; i++) {
        word_at(verbs[i].words, 0, word);
        if (!is_repeated(verbs, i))
            buf_printf(out, "%s ", word);
    }
    buf_printf(out, "' ;;\n");
}

static void append_second_words(struct buf *out)
{
    size_t count;
    const struct verb *verbs = verb_all(&count);
    char word[WORD_BYTES], other[WORD_BYTES];

    for (size_t i = 0; i < count; i++) {
        if (is_repeated(verbs, i))
            continue;
        word_at(verbs[i].words, 0, word);
        buf_printf(out, "        ' %s') offers='", word);
        for (size_t k = i; k < count; k++) {
            if (verb_find(word) != verb_find((word_at(verbs[k].words, 0, other), other)))
                continue;
            word_at(verbs[k].words, 1, other);
            for (char *bar = strchr(other, '|'); bar != NULL; bar = strchr(other, '|'))
                *bar = ' ';
            if (other[0] != 0)
                buf_printf(out, "%s ", other);
        }
        buf_printf(out, "' ;;\n");
    }
}

/* After which words a file may follow. */
static void append_paths(struct buf *out)
{
    size_t count;
    const struct verb *verbs = verb_all(&count);

    for (size_t i = 0; i < count; i++) {
        if (takes_path(&verbs[i]))
            buf_printf(out, "        ' %s'%s) files=-f ;;\n", verbs[i].words,
                       strstr(verbs[i].arguments, "..") != NULL ? "*" : "");
    }
}

/* Those of all verbs, and those of the one. */
static void append_options(const char *verb, struct buf *out)
{
    size_t count;
    const struct command_option *options = command_option_all(&count);

    for (size_t i = 0; i < count; i++) {
        if (verb[0] == 0 ? options[i].verbs[0] == 0 : has_word(options[i].verbs, verb))
            buf_printf(out, "--%s ", options[i].flag);
    }
}

static void append_option_cases(struct buf *out)
{
    size_t count;
    const struct verb *verbs = verb_all(&count);
    char word[WORD_BYTES];

    buf_printf(out, "    options='--help --version ");
    append_options("", out);
    buf_printf(out, "'\n    case $verb in\n");
    for (size_t i = 0; i < count; i++) {
        if (is_repeated(verbs, i))
            continue;
        word_at(verbs[i].words, 0, word);
        buf_printf(out, "        %s) options+=' ", word);
        append_options(word, out);
        buf_printf(out, "' ;;\n");
    }
    buf_printf(out, "    esac\n");
}

/* Which options take a value, and what becomes of it. */
static void append_values(struct buf *out)
{
    size_t count;
    const struct command_option *options = command_option_all(&count);

    for (size_t i = 0; i < count; i++) {
        const char *how = "offers=''";

        if (options[i].value == NULL)
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
            if (strcmp(options[i].value, values[k].value) == 0)
                how = values[k].how;
        }
        buf_printf(out, "        --%s%s) %s ;;\n", options[i].flag,
                   strcmp(options[i].flag, "output") == 0 ? " | -o" : "", how);
    }
}

static void append_value_flags(struct buf *out)
{
    size_t count;
    const struct command_option *options = command_option_all(&count);

    buf_printf(out, "-o");
    for (size_t i = 0; i < count; i++) {
        if (options[i].value != NULL)
            buf_printf(out, " | --%s", options[i].flag);
    }
}

static void append_script(struct buf *out)
{
    buf_printf(out, "# Completion of holdfast, made by `holdfast completion bash`.\n"
                    "_holdfast() {\n"
                    "    local cur=${COMP_WORDS[COMP_CWORD]} pending='' said='' verb='' word i\n"
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
                    "            *) said+=\" $word\"; verb=${verb:-$word} ;;\n"
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

int verb_completion(const struct arguments *arguments)
{
    const char *shell = arguments->word_count == 2 ? arguments->words[1] : "";
    struct buf script = { 0 };

    if (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0) {
        fprintf(stderr, "usage: holdfast completion bash | zsh\n"
                        "in ~/.bashrc or ~/.zshrc: source <(holdfast completion bash)\n");
        return 2;
    }
    if (strcmp(shell, "zsh") == 0)
        buf_printf(&script, "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n");
    append_script(&script);
    fwrite(script.data, 1, script.size, stdout);
    buf_deinit(&script);
    return 0;
}
