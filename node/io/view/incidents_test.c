#include "node/io/view/incidents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"

typedef Holdfast__Internal__V1__ListNodeIncidentsResponse page_t;

static void add(struct incidents *incidents, uint64_t count)
{
    struct incident incident = { .kind = INCIDENT_RECONCILED, .unix_ms = 5, .what = "x" };

    for (uint64_t i = 0; i < count; i++)
        incidents_add(incidents, &incident);
}

static page_t *list(struct incidents *incidents, uint64_t life, uint64_t after, uint32_t page_size)
{
    Holdfast__Internal__V1__ListNodeIncidentsRequest request =
        HOLDFAST__INTERNAL__V1__LIST_NODE_INCIDENTS_REQUEST__INIT;
    uint8_t bytes[64];
    struct buf out = { 0 };

    request.life = life;
    request.after = after;
    request.page_size = page_size;
    size_t size = protobuf_c_message_pack(&request.base, bytes);
    incidents_append(incidents, (struct slice){ bytes, size }, &out);
    page_t *page =
        holdfast__internal__v1__list_node_incidents_response__unpack(NULL, out.size, out.data);
    buf_deinit(&out);
    assert_non_null(page);
    return page;
}

static void done(page_t *page)
{
    holdfast__internal__v1__list_node_incidents_response__free_unpacked(page, NULL);
}

static void pages_follow_each_other(void **state)
{
    struct incidents *incidents = incidents_new(9, 7);
    (void)state;

    page_t *page = list(incidents, 0, 0, 10);
    assert_int_equal(page->n_incidents, 0);
    assert_int_equal(page->life, 9);
    done(page);
    add(incidents, 25);
    uint64_t after = 0;
    for (int i = 0; i < 3; i++) {
        page = list(incidents, 9, after, 10);
        assert_int_equal(page->n_incidents, i < 2 ? 10 : 5);
        assert_int_equal(page->more, i < 2);
        assert_int_equal(page->lost, 0);
        assert_int_equal(page->incidents[0]->number, after + 1);
        assert_int_equal(page->incidents[0]->replica_id, 7);
        after = page->last;
        done(page);
    }
    assert_int_equal(after, 25);
    assert_int_equal(incidents_count(incidents, INCIDENT_RECONCILED), 25);
    assert_int_equal(incidents_count(incidents, INCIDENT_CONTAINED), 0);
    incidents_free(incidents);
}

static void what_was_overwritten_is_told_as_lost(void **state)
{
    struct incidents *incidents = incidents_new(9, 7);
    (void)state;

    add(incidents, INCIDENTS_MAX + 100);
    page_t *page = list(incidents, 9, 40, 10);
    assert_int_equal(page->lost, 60);
    assert_int_equal(page->incidents[0]->number, 101);
    assert_int_equal(page->last, 110);
    done(page);
    page = list(incidents, 9, INCIDENTS_MAX + 100, 10);
    assert_int_equal(page->n_incidents, 0);
    assert_int_equal(page->last, INCIDENTS_MAX + 100);
    done(page);
    incidents_free(incidents);
}

static void add_by(struct incidents *incidents, const char *by, uint64_t count)
{
    struct incident incident = { .kind = INCIDENT_DUPLICATE_ATTEMPT, .unix_ms = 5 };

    snprintf(incident.by, sizeof incident.by, "%s", by);
    for (uint64_t i = 0; i < count; i++)
        incidents_add(incidents, &incident);
}

static void one_key_overwrites_its_own_and_not_what_others_need(void **state)
{
    struct incidents *incidents = incidents_new(9, 7);
    char by[64];
    (void)state;

    add_by(incidents, "", 100);
    add_by(incidents, "system:mail/222222222222", 100);
    add_by(incidents, "system:payments/111111111111", 3 * INCIDENTS_MAX);
    for (uint64_t i = 0; i < 3 * INCIDENTS_MAX; i++) {
        snprintf(by, sizeof by, "session:%llu", (unsigned long long)i);
        add_by(incidents, by, 1);
    }
    page_t *page = list(incidents, 9, 0, 250);
    assert_int_equal(page->incidents[0]->number, 1);
    assert_int_equal(page->incidents[199]->number, 200);
    assert_int_equal(page->lost, page->last - 250);
    uint64_t seen = 250, lost = page->lost, after = page->last;
    bool more = page->more;
    done(page);
    while (more) {
        page = list(incidents, 9, after, 1000);
        assert_int_equal(page->lost, page->last - after - page->n_incidents);
        seen += page->n_incidents;
        lost += page->lost;
        after = page->last;
        more = page->more;
        done(page);
    }
    assert_int_equal(seen, INCIDENTS_MAX);
    assert_int_equal(after, 6 * INCIDENTS_MAX + 200);
    assert_int_equal(seen + lost, after);
    incidents_free(incidents);
}

static void another_life_begins_at_its_oldest(void **state)
{
    struct incidents *incidents = incidents_new(9, 7);
    (void)state;

    add(incidents, 3);
    page_t *page = list(incidents, 8, 1000, 10);
    assert_int_equal(page->life, 9);
    assert_int_equal(page->n_incidents, 3);
    done(page);
    page = list(incidents, 9, 1000, 10); /* Never told by this ring. */
    assert_int_equal(page->n_incidents, 3);
    done(page);
    incidents_free(incidents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_follow_each_other),
        cmocka_unit_test(what_was_overwritten_is_told_as_lost),
        cmocka_unit_test(one_key_overwrites_its_own_and_not_what_others_need),
        cmocka_unit_test(another_life_begins_at_its_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
