#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>

#include "runtime/base/check.h"
#include "runtime/cluster/endpoint_url.h"

static void a_url_has_a_host_and_says_whether_it_is_this_machine(void **state)
{
    static const struct {
        const char *text, *host;
        bool tls, loopback;
    } cases[] = {
        { "https://cms.example/games", "cms.example", true, false },
        { "http://cms.example:8080?x=1", "cms.example", false, false },
        { "http://127.0.0.9:80/", "127.0.0.9", false, true },
        { "http://localhost", "localhost", false, true },
        { "https://[::1]:8443/a", "::1", true, true },
        { "https://127.0.0.1.evil.example/", "127.0.0.1.evil.example", true, false },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct endpoint_url url;
        assert_int_equal(endpoint_url_parse(slice_from_text(cases[i].text), &url), ERR_OK);
        assert_true(slice_equal(url.host, slice_from_text(cases[i].host)));
        assert_int_equal(url.tls, cases[i].tls);
        assert_int_equal(url.loopback, cases[i].loopback);
    }
}

static void what_is_no_url_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "cms.example",
        "ftp://cms.example/",
        "file:///etc/passwd",
        "https://",
        "https:///games",
        "https://user@cms.example/",
        "https://cms.example:0/",
        "https://cms.example:65536/",
        "https://cms.example:80a/",
        "https://cms example/",
        "https://cms.example/#part",
        "https://cms.example\\@evil.example/",
        "https://[::1/",
        "https://[::1]x/",
        "HTTPS://cms.example/",
    };
    char long_text[ENDPOINT_URL_MAX + 32] = "https://cms.example/";
    struct endpoint_url url;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (endpoint_url_parse(slice_from_text(texts[i]), &url) != ERR_INVALID)
            fail_msg("%s is taken", texts[i]);
    }
    memset(long_text + 20, 'x', ENDPOINT_URL_MAX - 19);
    assert_int_equal(endpoint_url_parse(slice_from_text(long_text), &url), ERR_INVALID);
    long_text[ENDPOINT_URL_MAX] = '\0';
    assert_int_equal(endpoint_url_parse(slice_from_text(long_text), &url), ERR_OK);
}

static bool is_good(const char *text, bool loopback)
{
    struct sockaddr_in four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return endpoint_address_is_good((const struct sockaddr *)(const void *)&four, loopback);
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return endpoint_address_is_good((const struct sockaddr *)(const void *)&six, loopback);
}

static void no_connection_goes_where_a_cloud_tells_credentials(void **state)
{
    static const char *const never[] = { "169.254.169.254", "0.0.0.0",
                                         "224.0.0.1",       "::",
                                         "fe80::1",         "ff02::1",
                                         "255.255.255.255", "::ffff:169.254.169.254" };
    static const char *const here[] = { "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1" };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        if (is_good(never[i], false) || is_good(never[i], true))
            fail_msg("%s is taken", never[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
        assert_false(is_good(here[i], false));
        assert_true(is_good(here[i], true));
    }
    assert_true(is_good("10.0.0.7", false));
    assert_true(is_good("2001:db8::7", false));
}

static void a_list_has_names_and_ends_of_names(void **state)
{
    const struct slice host = SLICE_LITERAL("Cms.example");
    (void)state;

    assert_false(endpoint_host_is_listed(host, ""));
    assert_true(endpoint_host_is_listed(host, "a.example, cms.example"));
    assert_true(endpoint_host_is_listed(host, "*.example"));
    assert_true(endpoint_host_is_listed(host, "*"));
    assert_false(endpoint_host_is_listed(host, "*.cms.example"));
    assert_false(endpoint_host_is_listed(host, "example, cms.exampl"));
    assert_false(
        endpoint_host_is_listed(SLICE_LITERAL("xcms.example"), "cms.example,*.cms.example"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_a_host_and_says_whether_it_is_this_machine),
        cmocka_unit_test(what_is_no_url_is_refused),
        cmocka_unit_test(no_connection_goes_where_a_cloud_tells_credentials),
        cmocka_unit_test(a_list_has_names_and_ends_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
