/*
 * scatter: splits the Batch methods into the requests of their elements, and joins the outcomes
 * in the order of the requests. Pure. Every Batch method has one shape (idl):
 *
 *   request  { repeated <Element>Request requests = 1; shared fields of the element's names }
 *   response { repeated Result results = 1; uint32 failed = 2; }
 *   Result   { response = 1 or error = 2 }
 *
 * DeliverMail comes in that shape, too (node_form.h): its elements differ in the player alone.
 */
#ifndef ROUTER_CORE_SCATTER_H
#define ROUTER_CORE_SCATTER_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

#define SCATTER_ELEMENTS_MAX 1000u /* Of any method; its row says of each. */
/* What a batch says once goes to the nodes with each element. The longest of use is an `include` of
 * 64 sections, below 5 KiB. */
#define SCATTER_SHARED_BYTES_MAX (8u * 1024u)

struct scatter_elements {
    ProtobufCMessage *const *messages; /* Borrowed from the batch. */
    uint32_t count;
};

/* Elements one call may carry; 0: not a Batch method. */
uint32_t scatter_limit(const struct method_info *method);

/* ERR_INVALID: too many elements; *ret_detail says so. No elements at all is fine. */
NODISCARD err scatter_split(const struct method_info *method, const ProtobufCMessage *message,
                            struct arena *arena, struct scatter_elements *ret_elements,
                            Holdfast__V1__ErrorDetail *ret_detail);

/*
 * Gives each element the batch's shared fields that it leaves empty: "", 0, no message, an empty
 * list. Elements are changed in place; they may share memory with the batch.
 *
 * ERR_INVALID: the shared authority is no authority, or the shared fields are larger together than
 * SCATTER_SHARED_BYTES_MAX; *ret_detail says so, and no element was
 * changed.
 */
NODISCARD err scatter_share(const struct method_info *method, const ProtobufCMessage *message,
                            struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail);
/*
 * After scatter_share. ERR_INVALID: two elements name the same player and op_id; *ret_detail names
 * the later one, "requests[7]". They would be one operation, and answer for each other.
 */
NODISCARD err scatter_check_distinct(const struct method_info *method,
                                     const struct scatter_elements *elements, struct arena *arena,
                                     Holdfast__V1__ErrorDetail *ret_detail);

/* What came of one element: the encoding of its response, or of an ErrorDetail. */
struct scatter_outcome {
    bool failed;
    struct slice bytes;
};

/*
 * What the answers of one batch may come to, without its errors: with up to SCATTER_ELEMENTS_MAX of
 * these the whole stays within what a frame, or a stock gRPC client, takes: 4 MiB.
 */
#define SCATTER_ANSWERS_BYTES_MAX (3584u * 1024u)

/* The error in the place of an answer for which no room is left. It says what brings the answer:
 * that request again, by itself. What writes was carried out. */
void scatter_overflow(const struct method_info *method, struct arena *arena,
                      Holdfast__V1__ErrorDetail *ret_detail);

/* Appends the encoding of the batch's response. */
void scatter_join(const struct scatter_outcome *outcomes, uint32_t count, struct buf *out);
/* The next outcome of a joined response, as a node gives it for a batch that goes whole; its bytes
 * are the response's. False: there is none left, or the bytes are malformed. */
bool scatter_next(struct reader *response, struct scatter_outcome *ret_outcome);
/* The size scatter_join would append. */
size_t scatter_joined_size(const struct scatter_outcome *outcomes, uint32_t count);

#endif
