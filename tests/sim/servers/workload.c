#include "tests/sim/servers/workload.h"

#include <stdlib.h>

#include "runtime/base/check.h"

/* The rows of one die, by place. */
struct die {
    const struct workload_row *rows[METHOD_ID_MAX];
    uint32_t count, faces;
};

struct workload {
    const struct workload_row *rows[METHOD_ID_MAX];
    const struct model_rule *rules[METHOD_ID_MAX];
    struct die dice[WISHES];
};

static bool comes_before(const struct workload_row *a, const struct workload_row *b,
                         enum workload_wish wish)
{
    if (a->shares[wish].place != b->shares[wish].place)
        return a->shares[wish].place < b->shares[wish].place;
    return a->method < b->method;
}

static void die_add(struct workload *workload, enum workload_wish wish,
                    const struct workload_row *row)
{
    struct die *die = &workload->dice[wish];
    uint32_t at = die->count++;

    CHECK(row->encode != NULL); /* game servers ask for it */
    for (; at > 0 && comes_before(row, die->rows[at - 1], wish); at--)
        die->rows[at] = die->rows[at - 1];
    die->rows[at] = row;
    die->faces += row->shares[wish].weight;
}

struct workload *workload_new(const struct workload_row *const *rows, uint32_t count)
{
    struct workload *workload = mem_zalloc(sizeof *workload);

    for (uint32_t i = 0; i < count; i++) {
        const struct workload_row *row = rows[i];
        CHECK(row->method < METHOD_ID_MAX && method_find(row->method) != NULL);
        CHECK(workload->rows[row->method] == NULL); /* one row a method */
        workload->rows[row->method] = row;
        workload->rules[row->method] = &row->rule;
        for (uint32_t wish = 0; wish < WISHES; wish++) {
            if (row->shares[wish].weight > 0)
                die_add(workload, (enum workload_wish)wish, row);
        }
    }
    return workload;
}

void workload_free(struct workload *workload)
{
    free(workload);
}

const struct model_rule *const *workload_rules(const struct workload *workload)
{
    return workload->rules;
}

const struct workload_row *workload_get(const struct sim *sim, uint32_t method)
{
    CHECK(method < METHOD_ID_MAX && sim->workload->rows[method] != NULL);
    return sim->workload->rows[method];
}

uint32_t workload_face(const struct sim *sim, enum workload_wish wish, uint64_t face)
{
    const struct die *die = &sim->workload->dice[wish];
    uint32_t row = 0;

    CHECK(wish < WISHES && die->faces > 0);
    face %= die->faces;
    for (; face >= die->rows[row]->shares[wish].weight; row++)
        face -= die->rows[row]->shares[wish].weight;
    return die->rows[row]->method;
}

uint32_t workload_part(const struct sim *sim, enum workload_wish wish, uint64_t part,
                       uint64_t whole)
{
    CHECK(wish < WISHES && part < whole);
    return workload_face(sim, wish, part * sim->workload->dice[wish].faces / whole);
}

uint32_t workload_draw(struct sim *sim, enum workload_wish wish)
{
    CHECK(wish < WISHES && sim->workload->dice[wish].faces > 0);
    return workload_face(sim, wish, sim_between(sim, 0, sim->workload->dice[wish].faces - 1));
}
