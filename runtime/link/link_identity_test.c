/* Who is who on links: what HELLO claims is held against the certificate, on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"
#include "runtime/tls/certs.h"

#define LIMIT_MS 30000u

static char certs[TEST_DIRECTORY_BYTES];

static const struct leaf {
    const char *file, *uri;
} leaves[] = {
    { "n1", "holdfast://test/node/n1" },
    { "n2", "holdfast://test/node/n2" },
    { "any", "holdfast://test/node/*" },
    { "r1", "holdfast://test/router/r1" },
    { "user", "holdfast://test/client/user?scopes=game" },
    { "elsewhere", "holdfast://other/node/n1" },
    { "unnamed", NULL },
    { "malformed", "holdfast://test/node/n%31" },
};

static int make_certs(void **state)
{
    struct tls_error error;
    bool made;

    (void)state;
    test_directory_make("link-identity", certs);
    assert_int_equal(certs_make_ca(certs, "test", &made, &error), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
        const struct certs_leaf leaf = { .name = leaves[i].file, .uri = leaves[i].uri };
        assert_int_equal(certs_make_leaf(certs, &leaf, &made, &error), ERR_OK);
    }
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    test_directory_remove(certs);
    return 0;
}

/* One side: its certificate, and what its HELLO claims. */
struct side {
    const char *cert;
    uint8_t role;
    uint64_t replica_id;
    const char *name;
};

struct attempt {
    struct side dialler, listener;
    struct link_expect expect;
    uint32_t roles; /* Of the listener. */
    enum link_names names;
    bool (*admits)(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method);
    enum link_refusal admit;           /* What the listener's user says. */
    enum link_refusal there, dialling; /* Who is to refuse, and why; LINK_ADMITTED: neither. */
};

struct pair {
    struct loop *loop;
    struct link_hub *hubs[2]; /* The dialler's, the listener's. */
    struct tls_config *tls[2][2];
    struct link *links[2]; /* Ready ones. */
    uint32_t readies[2], closes[2];
    struct frame seen; /* The last one, without its body. */
    uint32_t frames;
    enum link_refusal admit;
};

struct end {
    struct pair *pair;
    int side;
};

static struct end ends[2];
static const struct log silent = { .level_min = LOG_ERROR + 1 };

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    struct end *end = user;

    (void)peer;
    end->pair->links[end->side] = link;
    end->pair->readies[end->side]++;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct end *end = user;

    (void)link;
    end->pair->seen = *frame;
    end->pair->frames++;
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct end *end = user;

    (void)link;
    (void)reason;
    (void)text;
    end->pair->links[end->side] = NULL;
    end->pair->closes[end->side]++;
}

static enum link_refusal on_admit(void *user, struct link *link, const struct hello *peer)
{
    struct end *end = user;

    assert_false(link_is_ready(link));
    assert_true(link_identity(link) == NULL || link_identity(link)->role == peer->role);
    return end->side == 1 ? end->pair->admit : LINK_ADMITTED;
}

static struct tls_config *load(const char *cert, enum tls_side side)
{
    char ca[160], crt[160], key[160];
    struct tls_config *config;
    struct tls_error error;

    snprintf(ca, sizeof ca, "%s/ca.crt", certs);
    snprintf(crt, sizeof crt, "%s/%s.crt", certs, cert);
    snprintf(key, sizeof key, "%s/%s.key", certs, cert);
    const struct tls_options options = {
        .side = side, .ca.path = ca, .cert.path = crt, .key.path = key, .verify_peer = true
    };
    assert_int_equal(tls_config_new(&options, &config, &error), ERR_OK);
    return config;
}

static void open_side(struct pair *pair, int i, const struct side *side,
                      const struct attempt *attempt)
{
    struct link_hub_options options = {
        .loop = pair->loop,
        .log = &silent,
        .self = { .role = side->role, .replica_id = side->replica_id, .cluster_id = "uuid" },
        .cluster = "test",
        .names = attempt->names,
        .admits = attempt->admits,
    };

    snprintf(options.self.name, sizeof options.self.name, "%s", side->name);
    if (side->cert != NULL) {
        pair->tls[i][0] = options.tls_client = load(side->cert, TLS_CLIENT);
        pair->tls[i][1] = options.tls_server = load(side->cert, TLS_SERVER);
    }
    assert_int_equal(link_hub_new(&options, &pair->hubs[i]), ERR_OK);
    ends[i] = (struct end){ pair, i };
}

static struct link_handlers handlers(int i)
{
    return (struct link_handlers){ .admit = on_admit,
                                   .ready = on_ready,
                                   .frame = on_frame,
                                   .closed = on_closed,
                                   .user = &ends[i] };
}

static void open_pair(struct pair *pair, const struct attempt *attempt)
{
    struct link_listener *listener;
    struct link *link;
    char address[64];

    *pair = (struct pair){ .admit = attempt->admit };
    assert_int_equal(loop_new(&pair->loop), ERR_OK);
    open_side(pair, 0, &attempt->dialler, attempt);
    open_side(pair, 1, &attempt->listener, attempt);
    assert_int_equal(link_listen(pair->hubs[1],
                                 &(struct link_listen_options){ .transport = LINK_PEER,
                                                                .address = "127.0.0.1:0",
                                                                .roles = attempt->roles,
                                                                .handlers = handlers(1) },
                                 &listener),
                     ERR_OK);
    snprintf(address, sizeof address, "127.0.0.1:%u", link_listener_port(listener));
    assert_int_equal(link_dial(pair->hubs[0],
                               &(struct link_dial_options){ .transport = LINK_PEER,
                                                            .address = address,
                                                            .expect = attempt->expect,
                                                            .handlers = handlers(0) },
                               &link),
                     ERR_OK);
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        link_hub_free(pair->hubs[i]);
        tls_config_free(pair->tls[i][0]);
        tls_config_free(pair->tls[i][1]);
    }
    loop_free(pair->loop);
}

static bool both_ready(void *user)
{
    const struct pair *pair = user;

    return pair->links[0] != NULL && pair->links[1] != NULL;
}

static bool listener_refused(void *user)
{
    const struct pair *pair = user;
    struct link_stats stats = link_hub_stats(pair->hubs[1]);

    for (int i = LINK_ADMITTED + 1; i < LINK_REFUSALS; i++) {
        if (stats.refused[i] > 0)
            return true;
    }
    return false;
}

static bool dialler_refused(void *user)
{
    const struct pair *pair = user;
    struct link_stats stats = link_hub_stats(pair->hubs[0]);

    for (int i = LINK_ADMITTED + 1; i < LINK_REFUSALS; i++) {
        if (stats.refused[i] > 0)
            return true;
    }
    return false;
}

#define NODE1                                                                                      \
    {                                                                                              \
        "n1", ROLE_NODE, 1, "n1"                                                                   \
    }
#define NODE2                                                                                      \
    {                                                                                              \
        "n2", ROLE_NODE, 2, "n2"                                                                   \
    }
#define ROUTER1                                                                                    \
    {                                                                                              \
        "r1", ROLE_ROUTER, 0, "r1"                                                                 \
    }

static const struct attempt attempts[] = {
    { .dialler = NODE2, .listener = NODE1 },
    { .dialler = { "any", ROLE_NODE, 2, "n2" }, .listener = NODE1 },
    { .dialler = ROUTER1, .listener = NODE1, .expect = { ROLE_NODE, 1, "n1" } },
    { .dialler = { NULL, ROLE_NODE, 2, "n9" }, .listener = { NULL, ROLE_NODE, 1, "n1" } },
    /* Certificates that say something else than HELLO. */
    { .dialler = { "n2", ROLE_NODE, 1, "n1" }, .listener = NODE1, .there = LINK_REFUSED_NAME },
    { .dialler = { "user", ROLE_NODE, 2, "n2" }, .listener = NODE1, .there = LINK_REFUSED_ROLE },
    { .dialler = { "r1", ROLE_NODE, 2, "n2" }, .listener = NODE1, .there = LINK_REFUSED_ROLE },
    { .dialler = { "n2", ROLE_ROUTER, 0, "n2" }, .listener = NODE1, .there = LINK_REFUSED_ROLE },
    { .dialler = { "any", ROLE_CLIENT, 0, "x" }, .listener = NODE1, .there = LINK_REFUSED_ROLE },
    { .dialler = { "elsewhere", ROLE_NODE, 1, "n1" },
      .listener = NODE2,
      .there = LINK_REFUSED_CLUSTER,
      .dialling = LINK_ADMITTED },
    { .dialler = { "unnamed", ROLE_NODE, 1, "n1" },
      .listener = NODE2,
      .there = LINK_REFUSED_UNNAMED },
    { .dialler = { "malformed", ROLE_NODE, 1, "n1" },
      .listener = NODE2,
      .there = LINK_REFUSED_IDENTITY },
    /* The grace option is for certificates without an identity alone. */
    { .dialler = { "unnamed", ROLE_NODE, 1, "n1" }, .listener = NODE2, .names = LINK_NAMES_ACCEPT },
    { .dialler = { "malformed", ROLE_NODE, 1, "n1" },
      .listener = NODE2,
      .names = LINK_NAMES_ACCEPT,
      .there = LINK_REFUSED_IDENTITY },
    { .dialler = { "n1", ROLE_NODE, 2, "n2" },
      .listener = NODE2,
      .names = LINK_NAMES_ACCEPT,
      .there = LINK_REFUSED_NAME },
    /* Who connects where it has no business. */
    { .dialler = ROUTER1,
      .listener = NODE1,
      .roles = 1u << ROLE_NODE,
      .there = LINK_REFUSED_PLACE },
    { .dialler = { "user", ROLE_CLIENT, 0, "user" },
      .listener = NODE1,
      .roles = 1u << ROLE_ROUTER | 1u << ROLE_COORDINATOR,
      .there = LINK_REFUSED_PLACE },
    { .dialler = NODE2,
      .listener = NODE1,
      .admit = LINK_REFUSED_SECOND,
      .there = LINK_REFUSED_SECOND },
    /* The other side is not who was dialled. */
    { .dialler = ROUTER1, .listener = { "n2", ROLE_NODE, 1, "n1" }, .dialling = LINK_REFUSED_NAME },
    { .dialler = ROUTER1,
      .listener = { "user", ROLE_NODE, 1, "n1" },
      .dialling = LINK_REFUSED_ROLE },
    { .dialler = ROUTER1,
      .listener = NODE2,
      .expect = { ROLE_NODE, 1, NULL },
      .dialling = LINK_REFUSED_EXPECTED },
    { .dialler = ROUTER1,
      .listener = NODE2,
      .expect = { ROLE_NODE, 2, "n1" },
      .dialling = LINK_REFUSED_EXPECTED },
    { .dialler = NODE1,
      .listener = ROUTER1,
      .expect = { ROLE_COORDINATOR, 0, NULL },
      .dialling = LINK_REFUSED_EXPECTED },
};

static void hello_is_held_against_the_certificate_on_both_sides(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
        const struct attempt *attempt = &attempts[i];
        struct pair pair;

        open_pair(&pair, attempt);
        bool good = attempt->there == LINK_ADMITTED && attempt->dialling == LINK_ADMITTED;
        bool (*wanted)(void *) = good                              ? both_ready
                                 : attempt->there != LINK_ADMITTED ? listener_refused
                                                                   : dialler_refused;
        if (!loop_run_until(pair.loop, wanted, &pair, LIMIT_MS))
            fail_msg("attempt %zu", i);
        struct link_stats there = link_hub_stats(pair.hubs[1]);
        struct link_stats here = link_hub_stats(pair.hubs[0]);
        if (attempt->there != LINK_ADMITTED) {
            if (there.refused[attempt->there] == 0)
                fail_msg("attempt %zu was refused for another reason", i);
            assert_int_equal(pair.readies[1], 0);
            assert_int_equal(there.connects, 0);
        }
        if (attempt->dialling != LINK_ADMITTED) {
            if (here.refused[attempt->dialling] == 0)
                fail_msg("attempt %zu was refused for another reason", i);
            assert_int_equal(pair.readies[0], 0);
        }
        close_pair(&pair);
        /* `closed` follows `ready`, and nothing else. */
        assert_int_equal(pair.readies[0], pair.closes[0]);
        assert_int_equal(pair.readies[1], pair.closes[1]);
    }
}

static bool refused_seven_times(void *user)
{
    struct pair *pair = user;
    return link_hub_stats(pair->hubs[1]).refused[LINK_REFUSED_SECOND] >= 7;
}

/* The dialler finds nothing wrong, the listener refuses: without a growing pause that would be
 * hundreds of handshakes a second. Six pauses double from 5 ms on. */
static void a_refused_dialler_comes_back_ever_more_slowly(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, &(struct attempt){
                         .dialler = NODE2, .listener = NODE1, .admit = LINK_REFUSED_SECOND });
    uint64_t began_ms = loop_now_ms(pair.loop);
    assert_true(loop_run_until(pair.loop, refused_seven_times, &pair, LIMIT_MS));
    uint64_t took_ms = loop_now_ms(pair.loop) - began_ms;
    assert_true(took_ms >= 60 * LINK_BACKOFF_MS_MIN);
    pair.admit = LINK_ADMITTED;
    assert_true(loop_run_until(pair.loop, both_ready, &pair, LIMIT_MS));
    close_pair(&pair);
}

/* Method 7 alone may be asked, of anyone; nothing else may be sent. */
static bool admits_seven(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method)
{
    assert_true(self == ROLE_NODE || self == ROLE_ROUTER);
    assert_int_equal(self == ROLE_NODE ? peer : self, ROLE_ROUTER);
    return kind == FRAME_REQUEST && method == 7;
}

static bool one_frame(void *user)
{
    const struct pair *pair = user;

    return pair->frames == 1;
}

static bool is_parted(void *user)
{
    const struct pair *pair = user;

    return pair->closes[0] == 1 && pair->closes[1] == 1;
}

static void what_a_role_may_not_send_is_refused(void **state)
{
    struct pair pair;
    struct frame frame = { .kind = FRAME_REQUEST, .method = 7, .request_id = 5 };

    (void)state;
    open_pair(&pair,
              &(struct attempt){ .dialler = ROUTER1, .listener = NODE1, .admits = admits_seven });
    assert_true(loop_run_until(pair.loop, both_ready, &pair, LIMIT_MS));
    assert_int_equal(link_send(pair.links[0], &frame), ERR_OK);
    assert_true(loop_run_until(pair.loop, one_frame, &pair, LIMIT_MS));
    assert_int_equal(pair.seen.kind, FRAME_REQUEST);

    pair.frames = 0;
    frame.method = 8;
    assert_int_equal(link_send(pair.links[0], &frame), ERR_OK);
    assert_true(loop_run_until(pair.loop, one_frame, &pair, LIMIT_MS));
    assert_int_equal(pair.seen.kind, FRAME_RESPONSE);
    assert_int_equal(pair.seen.status, FRAME_STATUS_FORBIDDEN);
    assert_int_equal(pair.seen.request_id, 5);

    frame.kind = FRAME_MESSAGE;
    assert_int_equal(link_send(pair.links[0], &frame), ERR_OK);
    assert_true(loop_run_until(pair.loop, is_parted, &pair, LIMIT_MS));
    assert_int_equal(pair.frames, 1);
    assert_int_equal(link_hub_stats(pair.hubs[1]).refused[LINK_REFUSED_METHOD], 2);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_held_against_the_certificate_on_both_sides),
        cmocka_unit_test(a_refused_dialler_comes_back_ever_more_slowly),
        cmocka_unit_test(what_a_role_may_not_send_is_refused),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
