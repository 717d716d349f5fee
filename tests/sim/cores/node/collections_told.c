#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/collections.h"

typedef Holdfast__V1__Document document_told_of;
typedef Holdfast__V1__GetDocumentRequest get_request;

/* ---- a document ---- */

static void check_siblings(struct hall *h, const struct paper *paper,
                           const struct paper_shown *shown, const document_told_of *told)
{
    uint32_t count = shown->sibling_count > 1 ? shown->sibling_count : 0;

    PROMISE(h->sim, told->n_siblings == count, "%zu siblings, not %u", told->n_siblings, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct paper_part *part = shown->siblings[i];
        const Holdfast__V1__DocumentSibling *sibling = told->siblings[i];

        PROMISE(h->sim, strcmp(sibling->json, part->text) == 0, "the sibling %s is told, not %s",
                sibling->json, part->text);
        PROMISE(h->sim,
                (uint64_t)sibling->written_at_ms == paper->writes[part->write].at_ms &&
                    (uint64_t)sibling->expires_at_ms == part->ends_ms,
                "a sibling is told with another time");
    }
    h->sim->counts.collections_siblings += count > 0;
}

void hall_check_told(struct hall *h, const struct paper *paper, uint64_t known,
                     const document_told_of *told)
{
    struct paper_shown shown;

    paper_show(h->sim, paper, known, h->pair.now_ms, &shown);
    PROMISE(h->sim, (told != NULL) == (shown.json != NULL), "%s/%s: %s is told, not %s",
            paper->entity, paper->key, told != NULL ? told->json : "nothing",
            shown.json != NULL ? shown.json : "nothing");
    if (told == NULL)
        return;
    check_siblings(h, paper, &shown, told);
    PROMISE(h->sim, strcmp(told->json, shown.json) == 0, "%s/%s (policy %d): %s is told, not %s",
            paper->entity, paper->key, (int)paper->policy, told->json, shown.json);
    if (paper->policy != MERGE_POLICY_COUNTER) {
        PROMISE(h->sim, (uint64_t)told->written_at_ms == shown.at_ms,
                "written at %" PRId64 ", not %" PRIu64, told->written_at_ms, shown.at_ms);
        PROMISE(h->sim, (uint64_t)told->expires_at_ms == shown.ends_ms,
                "ends at %" PRId64 ", not %" PRIu64, told->expires_at_ms, shown.ends_ms);
    }
    h->sim->counts.collections_read++;
}

/* ---- one ---- */

static void check_answer(struct hall *h, struct slice answer, const struct shelf *shelf,
                         const struct paper *paper, uint64_t known)
{
    const Holdfast__V1__GetDocumentResponse *told = (void *)arena_unpack(
        &h->sim->arena, &holdfast__v1__get_document_response__descriptor, answer);

    PROMISE(h->sim, told != NULL, "an answer that cannot be read");
    if (h->pair.erased) {
        PROMISE(h->sim, told->document == NULL && told->context[0] == 0,
                "something of an erased entity is told");
        return;
    }
    hall_check_told(h, paper, known, told->document);
    if (told->document != NULL)
        PROMISE(h->sim,
                strcmp(told->document->collection, shelf->name) == 0 &&
                    strcmp(told->document->key, paper->key) == 0,
                "a document is told under another name");
    hall_keep_context(h, &(struct context){ shelf, shelf->number, paper, told->context, known, 0 });
}

/* What a majority has comes, and is kept by the member that was asked. */
static void get_majority(struct hall *h, uint32_t member, const get_request *request,
                         const struct shelf *shelf, const struct paper *paper)
{
    struct document_context context = pair_context(&h->pair, (int)member);
    uint64_t ticket = h->pair.begun.ticket;
    struct slice answer;

    PROMISE(h->sim, ticket != 0, "a majority is asked, and nothing is waited for");
    hall_exchange(h);
    const struct merge_done *done = hall_done(h, member, ticket);

    PROMISE(h->sim, done != NULL && done->result == ERR_OK && done->record != NULL,
            "a majority did not answer");
    h->pair.refusal = (struct refusal){ 0 };
    h->pair.erased = rsim_chance(h->sim, 10);
    context.erased = h->pair.erased;
    PROMISE(h->sim,
            document_told(&context, arena_pack(&h->sim->arena, &request->base), done->record,
                          &answer) == ERR_OK,
            "what a majority has is not told");
    check_answer(h, answer, shelf, paper, paper->known[member]);
    h->pair.erased = false;
    h->sim->counts.collections_majority++;
}

/* Something that the context has seen, besides `less`, is not at that member. */
static bool lacks(uint32_t member, const struct paper *paper, const struct context *before,
                  uint64_t less)
{
    return ((before->seen | before->own) & ~less & ~paper->known[member]) != 0;
}

struct reading {
    struct shelf *shelf;
    const struct paper *paper;
    struct context before;
    bool majority;
};

/* For what it is refused; 0: it is answered. */
static Holdfast__V1__ErrorCode get_fault(struct hall *h, uint32_t member,
                                         const struct reading *reading)
{
    if (reading->shelf->deleted)
        return CODE(NOT_FOUND);
    if (h->pair.erased)
        return 0;
    if (reading->majority && h->no_disk)
        return CODE(UNAVAILABLE);
    if (!context_holds(&reading->before, reading->shelf, reading->paper))
        return CODE(INVALID_ARGUMENT);
    if (reading->majority)
        return hall_is_near(h, member) ? 0 : CODE(UNAVAILABLE);
    return lacks(member, reading->paper, &reading->before, reading->paper->idle) ? CODE(UNAVAILABLE)
                                                                                 : 0;
}

static void check_fault(struct hall *h, err e, Holdfast__V1__ErrorCode code)
{
    hall_refused(h, e, code,
                 code == CODE(NOT_FOUND)          ? "collection"
                 : code == CODE(INVALID_ARGUMENT) ? "context"
                                                  : NULL);
    PROMISE(h->sim, (code == CODE(UNAVAILABLE)) == (h->pair.refusal.retry_after_ms > 0),
            "a wait of %u ms is told", (unsigned)h->pair.refusal.retry_after_ms);
}

void hall_get(struct hall *h, uint32_t member, struct shelf *shelf, struct paper *paper)
{
    static const Holdfast__V1__DocumentConsistency consistencies[] = {
        HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_UNSPECIFIED,
        HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY,
        HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY,
    };
    struct reading reading = { .shelf = shelf,
                               .paper = paper,
                               .majority = rsim_chance(h->sim, 15) };
    get_request request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;

    hall_draw_context(h, shelf, paper, &reading.before);
    request.entity = text_lend(paper->entity);
    request.collection = shelf->name;
    request.key = text_lend(paper->key);
    request.context = text_lend(reading.before.text != NULL ? reading.before.text : "");
    request.consistency = consistencies[reading.majority ? 2 : rsim_between(h->sim, 0, 1)];
    Holdfast__V1__ErrorCode code = get_fault(h, member, &reading);
    err e = hall_call(h, member, METHOD_GET_DOCUMENT, &request.base);

    if (code != 0) {
        check_fault(h, e, code);
        h->sim->counts.collections_unseen += code == CODE(UNAVAILABLE) && !reading.majority;
        return;
    }
    if (e != ERR_OK && lacks(member, paper, &reading.before, 0))
        return;
    PROMISE(h->sim, e == ERR_OK, "a read is refused: %d %s", (int)h->sim->detail.code,
            h->sim->detail.message);
    if (reading.majority && !h->pair.erased)
        get_majority(h, member, &request, shelf, paper);
    else
        check_answer(h, h->pair.begun.answer, shelf, paper, paper->known[member]);
}

/* ---- lists ---- */

struct list {
    const char *entity, *prefix;
    uint32_t page_size, next;
    const struct paper *wanted[SHELF_PAPERS]; /* Those that are shown, in order. */
    uint32_t count;
};

static void list_page(struct hall *h, struct list *list, uint32_t member,
                      const Holdfast__V1__ListDocumentsResponse *page, const struct shelf *shelf)
{
    uint32_t size = list->page_size > 0 ? list->page_size : 20;

    PROMISE(h->sim, page->n_documents <= size, "a page of %zu, not %u", page->n_documents, size);
    for (size_t i = 0; i < page->n_documents; i++) {
        PROMISE(h->sim, list->next < list->count, "more is listed than there is: %s",
                page->documents[i]->key);
        const struct paper *paper = list->wanted[list->next++];

        PROMISE(h->sim,
                strcmp(page->documents[i]->key, paper->key) == 0 &&
                    strcmp(page->documents[i]->collection, shelf->name) == 0,
                "%s is listed, not %s", page->documents[i]->key, paper->key);
        hall_check_told(h, paper, paper->known[member], page->documents[i]);
    }
    PROMISE(h->sim, (page->next_cursor[0] != 0) == (list->next < list->count),
            "a cursor behind the last, or none before it");
    PROMISE(h->sim, page->next_cursor[0] == 0 || page->n_documents == size, "a page is short");
}

static void list_choose(struct hall *h, uint32_t member, struct shelf *shelf, struct list *list)
{
    static const uint32_t order[SHELF_PAPERS] = { 1, 0, 2 }; /* hall, hall-2 */

    for (uint32_t i = 0; i < SHELF_PAPERS && !h->pair.erased; i++) {
        const struct paper *paper = &shelf->papers[order[i]];
        struct paper_shown shown;

        paper_show(h->sim, paper, paper->known[member], h->pair.now_ms, &shown);
        if (shown.json != NULL && strcmp(paper->entity, list->entity) == 0 &&
            strncmp(paper->key, list->prefix, strlen(list->prefix)) == 0)
            list->wanted[list->count++] = paper;
    }
}

void hall_list(struct hall *h, uint32_t member, struct shelf *shelf)
{
    static const char *const prefixes[] = { "", "", "hall", "hall-", "hall-2", "hall-20", "hb" };
    Holdfast__V1__ListDocumentsRequest request = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;
    struct list list = { .entity = RSIM_PICK(h->sim, shelf->papers).entity,
                         .prefix = RSIM_PICK(h->sim, prefixes),
                         .page_size = (uint32_t)rsim_between(h->sim, 0, 2) };

    request.entity = text_lend(list.entity);
    request.collection = shelf->name;
    request.prefix = text_lend(list.prefix);
    request.page_size = list.page_size;
    list_choose(h, member, shelf, &list);
    do {
        err e = hall_call(h, member, METHOD_LIST_DOCUMENTS, &request.base);

        if (shelf->deleted) {
            hall_refused(h, e, CODE(NOT_FOUND), "collection");
            return;
        }
        PROMISE(h->sim, e == ERR_OK, "a list is refused: %s", h->sim->detail.message);
        const Holdfast__V1__ListDocumentsResponse *page =
            (void *)arena_unpack(&h->sim->arena, &holdfast__v1__list_documents_response__descriptor,
                                 h->pair.begun.answer);

        PROMISE(h->sim, page != NULL, "a page that cannot be read");
        list_page(h, &list, member, page, shelf);
        request.cursor = page->next_cursor;
    } while (request.cursor[0] != 0);
    PROMISE(h->sim, list.next == list.count, "less is listed than there is");
    h->sim->counts.collections_listed++;
}
