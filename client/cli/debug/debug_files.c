#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "client/cli/debug/debug_bundle.h"
#include "client/cli/console/options.h"
#include "runtime/base/check.h"

#define FETCH_MS 5000L

const struct command_option option_metrics = {
    .flag = "metrics",
    .value = "URLS",
    .meaning = "of processes, http://host:7409, with commas between",
};
const struct command_option option_log = {
    .flag = "log",
    .value = "FILES",
    .meaning = "logs of processes, of which the end is taken",
};

/* Calls `take` with each of a list with commas between. */
static void each_of(struct bundle *bundle, const char *list, const char *part,
                    void (*take)(struct bundle *bundle, const char *what, uint32_t number))
{
    struct slice one;
    char what[1024];

    for (uint32_t number = 1; list_next(&list, &one); number++) {
        if (number > BUNDLE_FILES_MAX) {
            bundle_miss(bundle, part, "only the first %u are taken", BUNDLE_FILES_MAX);
            return;
        }
        if (one.size > 0 && one.size < sizeof what) {
            snprintf(what, sizeof what, "%.*s", (int)one.size, (const char *)one.data);
            take(bundle, what, number);
        }
    }
}

/* A member's name from a URL or a path: what is no letter, digit, dot or dash becomes a dash. */
static void member_name(const char *folder, uint32_t number, const char *of, char ret_name[160])
{
    size_t size = (size_t)snprintf(ret_name, 160, "%s/%02u-", folder, number);
    size_t length = strlen(of);

    for (const char *c = length > 100 ? of + length - 100 : of; *c != 0 && size < 150; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || *c == '.' || *c == '-';
        ret_name[size++] = plain ? *c : '-';
    }
    snprintf(ret_name + size, 160 - size, ".txt");
}

/* ---- metrics ---- */

static size_t on_data(char *data, size_t unit, size_t count, void *user)
{
    struct buf *text = user;

    if (text->size + unit * count > BUNDLE_FETCH_BYTES)
        return 0;
    buf_append(text, data, unit * count);
    return unit * count;
}

static CURLcode fetch(const struct bundle *bundle, const char *url, struct buf *text,
                      char why[CURL_ERROR_SIZE])
{
    const char *ca_file = option_text(bundle->arguments, &option_ca);
    CURL *curl = curl_easy_init();

    CHECK(curl != NULL);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, text);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, FETCH_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    if (ca_file[0] != 0)
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return code;
}

/* A URL without its user and password, which are the host's business alone. */
static void hide_user(const char *url, char *ret_shown, size_t size)
{
    const char *scheme = strstr(url, "://");
    const char *authority = scheme != NULL ? scheme + 3 : url;
    size_t length = strcspn(authority, "/?#");
    const char *at = NULL;

    for (size_t i = 0; i < length; i++) {
        if (authority[i] == '@')
            at = authority + i;
    }
    snprintf(ret_shown, size, "%.*s%s", (int)(authority - url), url,
             at != NULL ? at + 1 : authority);
}

/* "http://10.0.0.7:7409" means its /metrics. */
static void take_metrics(struct bundle *bundle, const char *what, uint32_t number)
{
    const char *scheme = strstr(what, "://");
    const char *path = strchr(scheme != NULL ? scheme + 3 : what, '/');
    char name[160], url[1100], shown[1100], why[CURL_ERROR_SIZE] = "";
    struct buf text = { 0 };

    hide_user(what, shown, sizeof shown);
    member_name("metrics", number, shown, name);
    snprintf(url, sizeof url, "%s%s%s", scheme != NULL ? "" : "http://", what,
             path == NULL ? "/metrics" : "");
    CURLcode code = fetch(bundle, url, &text, why);
    if (code == CURLE_OK) {
        bundle_add(bundle, name, &text);
        return;
    }
    buf_deinit(&text);
    bundle_miss(bundle, name, "%s: %s", shown, why[0] != 0 ? why : curl_easy_strerror(code));
}

void bundle_take_metrics(struct bundle *bundle)
{
    each_of(bundle, option_text(bundle->arguments, &option_metrics), "metrics", take_metrics);
}

/* ---- logs ---- */

/* The last BUNDLE_LOG_BYTES, from the beginning of a line. ERR_IO: errno says why. */
static err read_end(const char *path, struct buf *text)
{
    FILE *file = fopen(path, "re");
    long size = 0;

    if (file == NULL)
        return ERR_IO;
    if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0) {
        fclose(file);
        return ERR_IO;
    }
    long from = size > (long)BUNDLE_LOG_BYTES ? size - (long)BUNDLE_LOG_BYTES : 0;
    err e = fseek(file, from, SEEK_SET) == 0 ? ERR_OK : ERR_IO;
    if (e == ERR_OK)
        text->size += fread(buf_reserve(text, BUNDLE_LOG_BYTES), 1, BUNDLE_LOG_BYTES, file);
    if (ferror(file) != 0)
        e = ERR_IO;
    fclose(file);
    const uint8_t *line = from > 0 ? memchr(text->data, '\n', text->size) : NULL;
    if (line != NULL)
        buf_consume(text, (size_t)(line - text->data) + 1);
    return e;
}

static void take_log(struct bundle *bundle, const char *what, uint32_t number)
{
    struct buf text = { 0 };
    char name[160];

    member_name("logs", number, what, name);
    if (read_end(what, &text) != ERR_OK) {
        bundle_miss(bundle, name, "%s: %s", what, strerror(errno));
        buf_deinit(&text);
        return;
    }
    scrub_log(&bundle->scrub, &text);
    bundle_add(bundle, name, &text);
}

void bundle_take_logs(struct bundle *bundle)
{
    each_of(bundle, option_text(bundle->arguments, &option_log), "logs", take_log);
}
