#include "runtime/cluster/link_right.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "idl/method.h"
#include "runtime/base/check.h"

/* Bits of who may ask whom: a letter pair "to<from". */
static unsigned asked_by(uint8_t self, uint16_t method)
{
    unsigned roles = 0;

    for (uint8_t peer = 0; peer <= ROLE_END; peer++) {
        if (link_right(self, peer, FRAME_REQUEST, method))
            roles |= 1u << peer;
    }
    return roles;
}

#define NODE        (1u << ROLE_NODE)
#define ROUTER      (1u << ROLE_ROUTER)
#define COORDINATOR (1u << ROLE_COORDINATOR)
#define CLIENT      (1u << ROLE_CLIENT)

/* Said a second time, from names: what crosses from a role that is not here is a hole. */
static unsigned wanted_at_node(const struct method_info *method)
{
    static const char *const of_routers[] = {
        "NodeService/RenewTokens",        "NodeService/ItemHistory",
        "TransactionService/SwapGoods",   "NodeService/ReadSettled",
        "MailboxService/DeliverToPlayer", "NodeService/ListNodeIncidents",
        "NodeService/GetNodeLoad",        "NodeService/GetPartials",
        "NodeService/GetShardTop",        "NodeService/ListShardEvents",
        "NodeService/ListEventNews",      "NodeService/ListNodeOnline",
        "NodeService/GetNodeClock",
    };
    static const char *const of_both[] = { "NodeService/GetNodeStatus", "NodeService/ApplyPolicy" };
    static const char *const of_coordinators[] = {
        "NodeService/ExpireServer", "NodeService/MemberState",   "NodeService/TakeCut",
        "NodeService/AuditSearch",  "NodeService/ContainPlayer", "NodeService/Define",
        "NodeService/GetDefined",
    };

    if (strstr(method->name, "PresenceService/Batch") != NULL ||
        strstr(method->name, "UserService/BatchGet") != NULL)
        return ROUTER; /* They go whole. */
    if (!method->internal)
        return method->route >= METHOD_MUTATION && method->route <= METHOD_SHARD_VIEW ? ROUTER : 0;
    for (size_t i = 0; i < ARRAY_SIZE(of_routers); i++)
        if (strstr(method->name, of_routers[i]) != NULL)
            return ROUTER;
    for (size_t i = 0; i < ARRAY_SIZE(of_both); i++)
        if (strstr(method->name, of_both[i]) != NULL)
            return ROUTER | COORDINATOR;
    for (size_t i = 0; i < ARRAY_SIZE(of_coordinators); i++)
        if (strstr(method->name, of_coordinators[i]) != NULL)
            return COORDINATOR;
    return strstr(method->name, "ChannelService/Deliver") != NULL ||
                   strstr(method->name, "NodeService/PullPartials") != NULL ||
                   strstr(method->name, "NodeService/ForgetPartials") != NULL
               ? NODE
               : 0;
}

/* What a node asks of its own shards alone. */
static bool is_of_the_node_itself(const struct method_info *method)
{
    return strstr(method->name, "NodeService/GetPulled") != NULL ||
           strstr(method->name, "NodeService/CheckCounts") != NULL ||
           strstr(method->name, "NodeService/TakePartials") != NULL;
}

static void every_method_is_open_to_the_roles_that_send_it_alone(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        uint16_t id = (uint16_t)all[i].id;
        bool report = strstr(all[i].name, "/ReportOwner") != NULL;
        bool status = strstr(all[i].name, "/GetCoordinatorStatus") != NULL ||
                      strstr(all[i].name, "CoordinatorService/ChangeDefinition") != NULL ||
                      strstr(all[i].name, "CoordinatorService/FindDefinitions") != NULL;

        if (asked_by(ROLE_NODE, id) != wanted_at_node(&all[i]))
            fail_msg("%s at a node: %x, not %x", all[i].name, asked_by(ROLE_NODE, id),
                     wanted_at_node(&all[i]));
        assert_int_equal(asked_by(ROLE_ROUTER, id), all[i].internal ? 0 : CLIENT);
        assert_int_equal(asked_by(ROLE_COORDINATOR, id), report ? NODE : status ? ROUTER : 0);
        assert_int_equal(asked_by(ROLE_CLIENT, id), 0);
        assert_int_equal(asked_by(0, id), 0);
    }
}

/* An internal method that a process answers has someone who may send it. */
static void no_internal_method_was_forgotten(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        uint16_t id = (uint16_t)all[i].id;
        bool answered = all[i].internal && all[i].route != METHOD_OWNER &&
                        !is_of_the_node_itself(&all[i]) &&
                        (all[i].traits & METHOD_ONLY_IN_LOGS) == 0;
        unsigned senders = asked_by(ROLE_NODE, id) | asked_by(ROLE_COORDINATOR, id);

        if (all[i].internal && (senders != 0) != answered)
            fail_msg("%s: senders %x", all[i].name, senders);
    }
}

/* In an upgrade a process asks for what an earlier program does not know: it is told so, and its
 * link stays. Strangers are told nothing. */
static void what_is_no_method_is_told_to_those_who_may_ask_for_others(void **state)
{
    (void)state;
    assert_int_equal(asked_by(ROLE_NODE, 65535), NODE | ROUTER | COORDINATOR);
    assert_int_equal(asked_by(ROLE_COORDINATOR, 65535), NODE | ROUTER);
    assert_int_equal(asked_by(ROLE_ROUTER, 65535), CLIENT);
    assert_int_equal(asked_by(ROLE_CLIENT, 65535), 0);
}

static void replication_is_between_nodes_alone(void **state)
{
    (void)state;
    for (uint8_t self = 0; self <= ROLE_END; self++) {
        for (uint8_t peer = 0; peer <= ROLE_END; peer++) {
            bool both = self == ROLE_NODE && peer == ROLE_NODE;
            bool cancels = (self == ROLE_NODE && peer >= ROLE_NODE && peer <= ROLE_COORDINATOR) ||
                           (self == ROLE_ROUTER && peer == ROLE_CLIENT) ||
                           (self == ROLE_COORDINATOR && (peer == ROLE_NODE || peer == ROLE_ROUTER));
            assert_int_equal(link_right(self, peer, FRAME_MESSAGE, 0), both);
            assert_int_equal(link_right(self, peer, FRAME_CANCEL, 0), cancels);
            assert_true(link_right(self, peer, FRAME_RESPONSE, 0));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_open_to_the_roles_that_send_it_alone),
        cmocka_unit_test(no_internal_method_was_forgotten),
        cmocka_unit_test(what_is_no_method_is_told_to_those_who_may_ask_for_others),
        cmocka_unit_test(replication_is_between_nodes_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
