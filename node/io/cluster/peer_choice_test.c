#include "node/io/cluster/peer_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/link/link.h"

#define SILENT_MS ((uint64_t)PEER_SILENT_PINGS * LINK_PING_PERIOD_MS)

static void the_older_link_stays_while_it_is_alive(void **state)
{
    const struct {
        struct peer_held held;
        uint64_t life;
        enum peer_choice choice;
    } cases[] = {
        { { false, 0, 0 }, 7, PEER_TAKE },
        { { false, 9, SILENT_MS }, 7, PEER_TAKE },
        { { true, 7, 0 }, 7, PEER_REFUSE },
        { { true, 7, SILENT_MS - 1 }, 7, PEER_REFUSE },
        { { true, 7, SILENT_MS }, 7, PEER_REPLACE },
        { { true, 7, 0 }, 8, PEER_REPLACE }, /* Started again. */
        { { true, 7, 0 }, 6, PEER_REFUSE },  /* Its clock went back. */
        { { true, 7, SILENT_MS }, 6, PEER_REPLACE },
        { { true, 7, 0 }, 0, PEER_REFUSE }, /* An older program. */
        { { true, 0, 0 }, 7, PEER_REFUSE },
        { { true, 0, 0 }, 0, PEER_REFUSE },
        { { true, 0, SILENT_MS }, 0, PEER_REPLACE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(peer_choose(&cases[i].held, cases[i].life), cases[i].choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_older_link_stays_while_it_is_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
