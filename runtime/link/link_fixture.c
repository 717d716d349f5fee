#include "runtime/link/link_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/tls/certs.h"

const struct fixture_mode fixture_modes[FIXTURE_MODES] = {
    { "nng", LINK_NNG, LINK_NNG, false, true },
    { "nng-tls", LINK_NNG, LINK_NNG, true, true },
    { "nng-callback-tls", LINK_NNG, LINK_NNG, true, false },
    { "peer", LINK_PEER, LINK_PEER, false, true },
    { "peer-tls", LINK_PEER, LINK_PEER, true, true },
    { "nng-to-peer-tls", LINK_NNG, LINK_PEER, true, true },
    { "peer-to-nng-tls", LINK_PEER, LINK_NNG, true, true },
};

const struct fixture_mode *fixture_mode_find(const char *name)
{
    for (size_t i = 0; i < FIXTURE_MODES; i++)
        if (strcmp(fixture_modes[i].name, name) == 0)
            return &fixture_modes[i];
    return NULL;
}

/* ---- certificates ---- */

static const char *const cert_names[] = { "ca", "client", "server" };

static void make_one_ca(const char *directory)
{
    struct tls_error error;
    bool made;

    CHECK(certs_make_ca(directory, "test", &made, &error) == ERR_OK);
    for (size_t i = 1; i < ARRAY_SIZE(cert_names); i++) {
        struct certs_leaf leaf = { .name = cert_names[i], .uri = "holdfast://test/node/*" };
        CHECK(certs_make_leaf(directory, &leaf, &made, &error) == ERR_OK);
    }
}

void fixture_certs_make(char ret_directory[TEST_DIRECTORY_BYTES])
{
    char other[80];

    test_directory_make("link", ret_directory);
    snprintf(other, sizeof other, "%s/other", ret_directory);
    make_one_ca(ret_directory);
    make_one_ca(other);
}

void fixture_certs_remove(const char *directory)
{
    test_directory_remove(directory);
}

struct tls_config *fixture_tls(const char *directory, enum tls_side side)
{
    const char *name = side == TLS_CLIENT ? "client" : "server";
    char ca[128], crt[128], key[128];
    struct tls_error error;
    struct tls_config *config;

    snprintf(ca, sizeof ca, "%s/ca.crt", directory);
    snprintf(crt, sizeof crt, "%s/%s.crt", directory, name);
    snprintf(key, sizeof key, "%s/%s.key", directory, name);
    struct tls_options options = {
        .side = side, .ca.path = ca, .cert.path = crt, .key.path = key, .verify_peer = true
    };
    CHECK(tls_config_new(&options, &config, &error) == ERR_OK);
    return config;
}

struct link_hub_options fixture_options(const struct fixture_mode *mode, struct loop *loop,
                                        const char *directory)
{
    struct link_hub_options options = { .loop = loop,
                                        .cluster = "test",
                                        .self = { .role = ROLE_NODE, .cluster_id = "blue" } };
    if (mode->tls) {
        options.tls_client = fixture_tls(directory, TLS_CLIENT);
        options.tls_server = fixture_tls(directory, TLS_SERVER);
    }
    return options;
}

void fixture_options_deinit(struct link_hub_options *options)
{
    tls_config_free(options->tls_client);
    tls_config_free(options->tls_server);
}

/* ---- one side ---- */

static void write_log(void *sink, enum log_level level, const char *event,
                      const struct log_field *fields)
{
    struct fixture_end *end = sink;
    size_t used = 0;

    (void)level;
    end->refused_lines += strcmp(event, "connection.refused") == 0;
    if (strcmp(event, "link.refused") != 0 && !end->verbose)
        return;
    for (; fields->key != NULL; fields++)
        used += (size_t)snprintf(end->logged + used, FIXTURE_LOG_SIZE - used, "%s=%s ", fields->key,
                                 fields->text != NULL ? fields->text : "#");
    if (end->verbose)
        fprintf(stderr, "%s %s\n", event, end->logged);
}

static void was_ready(void *user, struct link *link, const struct hello *peer)
{
    struct fixture_end *end = user;

    end->ready++;
    end->link = link;
    end->peer = *peer;
    if (end->pause_when_ready)
        link_pause(link);
}

static void was_closed(void *user, struct link *link, enum link_close_reason reason,
                       const char *text)
{
    struct fixture_end *end = user;

    end->closed++;
    end->reason = reason;
    snprintf(end->text, sizeof end->text, "%s", text);
    calls_closed(end->calls, link);
    if (end->link == link)
        end->link = NULL;
}

static void came(void *user, struct link *link, const struct frame *frame)
{
    struct fixture_end *end = user;

    if (calls_frame(end->calls, link, frame))
        return;
    CHECK(frame->kind == FRAME_MESSAGE);
    if (frame->request_id != end->messages++)
        end->disorder = true;
}

static void has_room(void *user, struct link *link)
{
    struct fixture_end *end = user;

    (void)link;
    end->writable++;
}

static void asked(void *user, struct link *link, const struct frame *frame,
                  const struct call_reply *reply)
{
    struct fixture_end *end = user;

    switch (frame->method) {
    case METHOD_ECHO:
        CHECK(call_answer(end->calls, reply, FRAME_STATUS_OK, frame->body) == ERR_OK);
        break;
    case METHOD_DEAF: /* Reads no more, answers nothing. */
        link_pause(link);
        /* fall through */
    case METHOD_HOLD:
        CHECK(end->held_count < FIXTURE_HELD_MAX);
        end->held[end->held_count++] = *reply;
        break;
    default:
        CHECK(call_answer(end->calls, reply, FRAME_STATUS_NO_METHOD, (struct slice){ 0 }) ==
              ERR_OK);
    }
}

static void called_off(void *user, const struct call_reply *reply)
{
    struct fixture_end *end = user;

    (void)reply;
    end->cancels++;
}

struct link_handlers fixture_handlers(struct fixture_end *end)
{
    return (struct link_handlers){
        .ready = was_ready, .frame = came, .writable = has_room, .closed = was_closed, .user = end
    };
}

void fixture_end_init(struct fixture_end *end, const struct link_hub_options *options)
{
    struct link_hub_options own = *options;

    end->log = (struct log){ write_log, end, LOG_DEBUG };
    own.log = &end->log;
    CHECK(link_hub_new(&own, &end->hub) == ERR_OK);
    struct calls_options calls = {
        .hub = end->hub, .loop = options->loop, .request = asked, .cancel = called_off, .user = end
    };
    CHECK(calls_new(&calls, &end->calls) == ERR_OK);
}

void fixture_end_deinit(struct fixture_end *end)
{
    link_hub_free(end->hub);
    calls_free(end->calls);
}

struct link_listener *fixture_listen(struct fixture_end *end, const struct fixture_mode *mode,
                                     uint16_t port)
{
    struct link_listener *listener;
    char address[32];

    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    struct link_listen_options options = { .transport = mode->listens,
                                           .address = address,
                                           .busy = mode->busy,
                                           .handlers = fixture_handlers(end) };
    CHECK(link_listen(end->hub, &options, &listener) == ERR_OK);
    return listener;
}

struct link *fixture_dial(struct fixture_end *end, const struct fixture_mode *mode, uint16_t port,
                          bool paced)
{
    struct link *link;
    char address[32];

    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    struct link_dial_options options = { .transport = mode->transport,
                                         .address = address,
                                         .paced = paced,
                                         .busy = mode->busy,
                                         .handlers = fixture_handlers(end) };
    CHECK(link_dial(end->hub, &options, &link) == ERR_OK);
    return link;
}

bool fixture_both_ready(void *user)
{
    struct fixture *f = user;

    return f->client.link != NULL && f->server.link != NULL;
}
