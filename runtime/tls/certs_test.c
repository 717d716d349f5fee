#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/test_directory.h"
#include "runtime/tls/certs.h"
#include "runtime/tls/tls_config.h"

struct place {
    char directory[TEST_DIRECTORY_BYTES];
    char path[128];
    struct tls_error error;
    bool made;
};

static const char *at(struct place *p, const char *file)
{
    snprintf(p->path, sizeof p->path, "%s/%s", p->directory, file);
    return p->path;
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    test_directory_make("certs", p->directory);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    test_directory_remove(p->directory);
    free(p);
    return 0;
}

static ino_t inode(struct place *p, const char *file)
{
    struct stat info;
    assert_int_equal(stat(at(p, file), &info), 0);
    return info.st_ino;
}

static void keys_are_for_the_owner_only_and_pairs_load(void **state)
{
    struct place *p = *state;
    struct certs_leaf leaf = { .name = "n1" };
    struct stat info;
    char ca[128], crt[128], key[128];
    struct tls_config *config;
    assert_int_equal(certs_make_ca(p->directory, "test", &p->made, &p->error), ERR_OK);
    assert_true(p->made);
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    assert_true(p->made);
    assert_int_equal(stat(at(p, "ca.key"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(at(p, "n1.key"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    snprintf(ca, sizeof ca, "%s", at(p, "ca.crt"));
    snprintf(crt, sizeof crt, "%s", at(p, "n1.crt"));
    snprintf(key, sizeof key, "%s", at(p, "n1.key"));
    struct tls_options options = { .side = TLS_SERVER,
                                   .ca = { .path = ca },
                                   .cert = { .path = crt },
                                   .key = { .path = key },
                                   .verify_peer = true };
    assert_int_equal(tls_config_new(&options, &config, &p->error), ERR_OK);
    assert_true(tls_config_expires_ms(config) > 0);
    tls_config_free(config);
    options.key.path = at(p, "ca.key");
    assert_int_equal(tls_config_new(&options, &config, &p->error), ERR_INVALID);
    assert_non_null(strstr(p->error.text, "does not belong"));
    options.key.path = "/nonexistent/key";
    assert_int_equal(tls_config_new(&options, &config, &p->error), ERR_IO);
    assert_non_null(strstr(p->error.text, "/nonexistent/key"));
}

static void what_is_valid_stays_and_a_changed_name_list_makes_a_new_one(void **state)
{
    struct place *p = *state;
    static const char *const more[] = { "node-1.nodes.svc", "10.1.2.3", NULL };
    struct certs_leaf leaf = { .name = "n1" };
    assert_int_equal(certs_make_ca(p->directory, "test", &p->made, &p->error), ERR_OK);
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    ino_t ca = inode(p, "ca.crt"), crt = inode(p, "n1.crt");
    assert_int_equal(certs_make_ca(p->directory, "test", &p->made, &p->error), ERR_OK);
    assert_false(p->made);
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    assert_false(p->made);
    assert_int_equal(inode(p, "ca.crt"), ca);
    assert_int_equal(inode(p, "n1.crt"), crt);
    leaf.sans = more;
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    assert_true(p->made);
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    assert_false(p->made);
}

static void expired_leaf_is_made_anew(void **state)
{
    struct place *p = *state;
    struct certs_leaf old = { .name = "n1",
                              .not_before_ms = 946684800000,
                              .not_after_ms = 978307200000 };
    struct certs_leaf leaf = { .name = "n1" };
    assert_int_equal(certs_make_ca(p->directory, "test", &p->made, &p->error), ERR_OK);
    assert_int_equal(certs_make_leaf(p->directory, &old, &p->made, &p->error), ERR_OK);
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_OK);
    assert_true(p->made);
}

static void unusable_ca_is_reported_and_not_overwritten(void **state)
{
    struct place *p = *state;
    struct certs_leaf leaf = { .name = "n1" };
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(at(p, i == 0 ? "ca.crt" : "ca.key"), "w");
        fputs("not a certificate", file);
        fclose(file);
    }
    ino_t before = inode(p, "ca.crt");
    assert_int_equal(certs_make_ca(p->directory, "test", &p->made, &p->error), ERR_INVALID);
    assert_int_equal(inode(p, "ca.crt"), before);
}

static void names_that_would_leave_the_directory_are_refused(void **state)
{
    struct place *p = *state;
    struct certs_leaf leaf = { .name = "../n1" };
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_INVALID);
    leaf.name = "ca";
    assert_int_equal(certs_make_leaf(p->directory, &leaf, &p->made, &p->error), ERR_INVALID);
    assert_int_equal(certs_make_ca(p->directory, "a,O=b", &p->made, &p->error), ERR_INVALID);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(keys_are_for_the_owner_only_and_pairs_load),
        CASE(what_is_valid_stays_and_a_changed_name_list_makes_a_new_one),
        CASE(expired_leaf_is_made_anew),
        CASE(unusable_ca_is_reported_and_not_overwritten),
        CASE(names_that_would_leave_the_directory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
