#include "router/io/player_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/file_stamp.h"
#include "runtime/etcd/etcd_http.h"

#define FETCH_TIMEOUT_MS 5000u
#define WHY_BYTES        192u

struct player_keys {
    struct player_keys_options options;
    struct loop_timer timer;
    struct file_stamp stamp;
    struct etcd_http *http; /* NULL: a file. */
    struct etcd_http_request request;
    uint64_t asked_ms; /* The last request, on the loop's clock. */
    bool known;
    bool failing; /* Since the last document that could be used; then it was told. */
    uint8_t hash[SHA256_BYTES];
    struct jwk_set set; /* Until somebody watches. */
    player_keys_fn *fn;
    void *user;
    struct player_keys_stats stats;
};

static void tell(struct player_keys *keys)
{
    if (keys->fn != NULL && keys->known)
        keys->fn(keys->user, &keys->set);
}

static void failed(struct player_keys *keys, const char *why)
{
    keys->stats.failures++;
    if (keys->failing)
        return;
    keys->failing = true;
    log_event(keys->options.log, LOG_ERROR, "player_keys.not_read",
              LOG_S("source", keys->options.source), LOG_S("why", why),
              LOG_S("what", keys->known ? "the keys known stay in use; it is tried again"
                                        : "no player's token is taken; it is tried again"));
}

static err take(struct player_keys *keys, struct slice json)
{
    uint8_t hash[SHA256_BYTES];
    struct jwk_set set;
    struct jwk_why why;

    sha256_pair(json, (struct slice){ 0 }, hash);
    if (keys->known && memcmp(hash, keys->hash, sizeof hash) == 0) {
        keys->stats.reads++;
        keys->failing = false;
        return ERR_OK;
    }
    err e = jwk_set_read(json, keys->http == NULL, &set, &why);
    if (e != ERR_OK) {
        failed(keys, why.text);
        return e;
    }
    memcpy(keys->hash, hash, sizeof hash);
    jwk_set_deinit(&keys->set);
    keys->stats.reads++;
    keys->failing = false;
    keys->known = true;
    log_event(keys->options.log, set.count > 0 && set.unfit == 0 ? LOG_INFO : LOG_WARN,
              "player_keys.known", LOG_S("source", keys->options.source), LOG_N("keys", set.count),
              LOG_N("left_out", set.unfit), LOG_S("why", why.text[0] != 0 ? why.text : "none"));
    keys->set = set;
    tell(keys);
    return ERR_OK;
}

/* ---- a file ---- */

static err read_file(struct player_keys *keys)
{
    uint8_t *json = malloc(JWK_SET_BYTES_MAX + 1);
    FILE *file = fopen(keys->options.source, "rb");
    size_t size = 0;
    err e = ERR_IO;

    CHECK(json != NULL);
    if (file != NULL) {
        size = fread(json, 1, JWK_SET_BYTES_MAX + 1, file);
        if (ferror(file) == 0)
            e = ERR_OK;
        fclose(file);
    }
    if (e != ERR_OK)
        failed(keys, "the file cannot be read");
    else
        e = take(keys, (struct slice){ json, size });
    explicit_bzero(json, size);
    free(json);
    return e;
}

/* What could not be used is tried again. */
static void look(struct player_keys *keys)
{
    struct file_stamp stamp = file_stamp_of(keys->options.source);

    if (file_stamp_equal(&stamp, &keys->stamp) && !keys->failing)
        return;
    keys->stamp = stamp;
    (void)read_file(keys);
}

static err start_file(struct player_keys *keys)
{
    keys->stamp = file_stamp_of(keys->options.source); /* A change meanwhile is read again. */
    err e = read_file(keys);
    if (e == ERR_OK && keys->set.count == 0)
        e = ERR_INVALID;
    if (e == ERR_OK)
        loop_timer_start_repeating(&keys->timer, PLAYER_KEYS_FILE_MS);
    return e == ERR_OK ? ERR_OK : ERR_INVALID;
}

/* ---- a URL ---- */

static void fetch(struct player_keys *keys);

static void fetched(struct etcd_http_request *request, const struct etcd_http_outcome *outcome)
{
    struct player_keys *keys = CONTAINER_OF(request, struct player_keys, request);
    char why[WHY_BYTES];
    err e = ERR_IO;

    if (outcome->too_large)
        failed(keys, "it has more than 65536 bytes");
    else if (outcome->code != CURLE_OK)
        failed(keys, outcome->text);
    else if (outcome->status == 200)
        e = take(keys, buf_slice(&request->answer));
    else {
        (void)snprintf(why, sizeof why, "the answer is HTTP %ld", outcome->status);
        failed(keys, why);
    }
    loop_timer_start(&keys->timer, e == ERR_OK ? PLAYER_KEYS_PERIOD_MS : PLAYER_KEYS_AGAIN_MS);
}

static void fetch(struct player_keys *keys)
{
    if (keys->request.http != NULL)
        return;
    keys->asked_ms = loop_now_ms(keys->options.loop);
    keys->request.get = true;
    keys->request.repeatable = true;
    keys->request.timeout_ms = FETCH_TIMEOUT_MS;
    keys->request.answer_max = JWK_SET_BYTES_MAX;
    keys->request.done = fetched;
    if (etcd_http_send(keys->http, &keys->request, keys->options.source) == ERR_OK)
        return;
    failed(keys, "the request cannot be sent");
    loop_timer_start(&keys->timer, PLAYER_KEYS_AGAIN_MS);
}

/* A name or a password in front of the host, which logs would repeat. */
static bool has_password(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return memchr(host, '@', strcspn(host, "/?#")) != NULL;
}

static err start_url(struct player_keys *keys)
{
    const struct etcd_http_tls tls = {
        .ca_file = keys->options.ca[0] != 0 ? keys->options.ca : NULL,
    };
    err e;

    if (has_password(keys->options.source)) {
        log_event(keys->options.log, LOG_ERROR, "player_keys.not_read",
                  LOG_S("why", "the URL has a name or a password in front of its host"));
        return ERR_INVALID;
    }
    e = etcd_http_new(loop_uv(keys->options.loop), &tls, &keys->http);
    if (e != ERR_OK)
        return e;
    if (strncmp(keys->options.source, "http://", 7) == 0)
        log_event(keys->options.log, LOG_WARN, "player_keys.plain",
                  LOG_S("source", keys->options.source),
                  LOG_S("what", "who can change what comes over plain http can sign tokens"));
    fetch(keys);
    return ERR_OK;
}

/* ---- both ---- */

static void on_timer(void *user)
{
    struct player_keys *keys = user;

    if (keys->http == NULL)
        look(keys);
    else
        fetch(keys);
}

static bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0;
}

err player_keys_new(const struct player_keys_options *options, struct player_keys **ret_keys)
{
    struct player_keys *keys = mem_zalloc(sizeof *keys);

    keys->options = *options;
    loop_timer_init(&keys->timer, options->loop, on_timer, keys);
    err e = is_url(options->source) ? start_url(keys) : start_file(keys);
    if (e != ERR_OK) {
        player_keys_free(keys);
        return e;
    }
    *ret_keys = keys;
    return ERR_OK;
}

void player_keys_free(struct player_keys *keys)
{
    if (keys == NULL)
        return;
    loop_timer_stop(&keys->timer);
    etcd_http_request_deinit(&keys->request);
    if (keys->http != NULL)
        etcd_http_free(keys->http);
    jwk_set_deinit(&keys->set);
    explicit_bzero(keys, sizeof *keys);
    free(keys);
}

void player_keys_watch(struct player_keys *keys, player_keys_fn *fn, void *user)
{
    keys->fn = fn;
    keys->user = user;
    tell(keys);
}

bool player_keys_known(const struct player_keys *keys)
{
    return keys->known;
}

void player_keys_want(struct player_keys *keys)
{
    uint64_t now_ms = loop_now_ms(keys->options.loop);

    if (keys->http != NULL && now_ms >= keys->asked_ms + PLAYER_KEYS_AGAIN_MS)
        fetch(keys);
}

struct player_keys_stats player_keys_stats(const struct player_keys *keys)
{
    return keys->stats;
}
