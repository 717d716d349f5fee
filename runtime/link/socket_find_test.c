#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/link/socket_find.h"

#define LOOK_MAX   200u
#define CROWD      100
#define PAIRS      3
#define IS_FAR_OFF 100 /* More than half of LOOK_MAX away: not looked at. */

struct pair {
    int dialled;
    int accepted;
};

static void address_of(int fd, struct sockaddr_storage *ret_own, struct sockaddr_storage *ret_peer)
{
    socklen_t size = sizeof *ret_own;

    assert_int_equal(getsockname(fd, (struct sockaddr *)ret_own, &size), 0);
    size = sizeof *ret_peer;
    assert_int_equal(getpeername(fd, (struct sockaddr *)ret_peer, &size), 0);
}

static int find(int fd, uint32_t look_max)
{
    struct sockaddr_storage own, peer;

    address_of(fd, &own, &peer);
    return socket_find(&own, &peer, look_max);
}

static void listen_at(int family, int *ret_listener, struct sockaddr_storage *ret_address)
{
    socklen_t size = sizeof *ret_address;

    *ret_address = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
    if (family == AF_INET)
        ((struct sockaddr_in *)ret_address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)ret_address)->sin6_addr = in6addr_loopback;
    *ret_listener = socket(family, SOCK_STREAM, 0);
    assert_true(*ret_listener >= 0);
    assert_int_equal(bind(*ret_listener, (struct sockaddr *)ret_address, size), 0);
    assert_int_equal(listen(*ret_listener, PAIRS), 0);
    assert_int_equal(getsockname(*ret_listener, (struct sockaddr *)ret_address, &size), 0);
}

static void join(int listener, const struct sockaddr_storage *address, struct pair *ret_pair)
{
    ret_pair->dialled = socket(address->ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(ret_pair->dialled, (const struct sockaddr *)address, sizeof *address),
                     0);
    ret_pair->accepted = accept(listener, NULL, NULL);
    assert_true(ret_pair->accepted >= 0);
}

/* All of one listener share an address of one side; each is told from the others by the other. */
static void each_end_of_each_connection_is_found(void **state)
{
    int family = *(const int *)*state;
    struct sockaddr_storage address;
    struct pair pairs[PAIRS];
    int listener;

    listen_at(family, &listener, &address);
    for (int i = 0; i < PAIRS; i++)
        join(listener, &address, &pairs[i]);
    for (int i = 0; i < PAIRS; i++) {
        assert_int_equal(find(pairs[i].dialled, LOOK_MAX), pairs[i].dialled);
        assert_int_equal(find(pairs[i].accepted, LOOK_MAX), pairs[i].accepted);
    }
    for (int i = 0; i < PAIRS; i++) {
        close(pairs[i].dialled);
        close(pairs[i].accepted);
    }
    close(listener);
}

static void a_socket_that_is_gone_is_not_found(void **state)
{
    struct sockaddr_storage address, own, peer;
    struct pair pair;
    int listener;

    (void)state;
    listen_at(AF_INET, &listener, &address);
    join(listener, &address, &pair);
    address_of(pair.dialled, &own, &peer);
    close(pair.dialled);
    assert_int_equal(socket_find(&own, &peer, LOOK_MAX), -1);
    close(pair.accepted);
    close(listener);
}

/* Numbers far from the lowest free one are beyond the bound, on either side of it. */
static void only_so_many_descriptors_are_looked_at(void **state)
{
    struct sockaddr_storage address;
    int listener, crowd[2 * CROWD];
    struct pair pair;

    (void)state;
    listen_at(AF_INET, &listener, &address);
    join(listener, &address, &pair);
    for (int i = 0; i < 2 * CROWD; i++)
        crowd[i] = fcntl(listener, F_DUPFD, 0);
    assert_true(crowd[2 * CROWD - 1] - pair.dialled > IS_FAR_OFF);
    assert_int_equal(find(pair.dialled, LOOK_MAX), -1);
    assert_int_equal(find(pair.dialled, 8 * CROWD), pair.dialled);
    int far_off = fcntl(pair.dialled, F_DUPFD, crowd[2 * CROWD - 1] + 1);
    close(pair.dialled);
    assert_int_equal(find(far_off, LOOK_MAX), -1);
    assert_int_equal(find(far_off, 8 * CROWD), far_off);
    for (int i = 0; i < 2 * CROWD; i++)
        close(crowd[i]);
    close(far_off);
    close(pair.accepted);
    close(listener);
}

static void nothing_is_found_when_nothing_may_be_looked_at(void **state)
{
    struct sockaddr_storage address;
    struct pair pair;
    int listener;

    (void)state;
    listen_at(AF_INET, &listener, &address);
    join(listener, &address, &pair);
    assert_int_equal(find(pair.dialled, 0), -1);
    close(pair.dialled);
    close(pair.accepted);
    close(listener);
}

int main(void)
{
    static int v4 = AF_INET, v6 = AF_INET6;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(each_end_of_each_connection_is_found, &v4),
        cmocka_unit_test_prestate(each_end_of_each_connection_is_found, &v6),
        cmocka_unit_test(a_socket_that_is_gone_is_not_found),
        cmocka_unit_test(only_so_many_descriptors_are_looked_at),
        cmocka_unit_test(nothing_is_found_when_nothing_may_be_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
