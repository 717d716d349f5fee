#include "runtime/http/http_out.h"

#include <stdlib.h>

#include "runtime/base/check.h"

/* What comes behind conn->out: bodies as they were given, and what was appended between them. */
struct http_piece {
    struct http_piece *next;
    struct buf bytes;
    bool given;
};

static struct http_piece *add_piece(struct http_conn *conn)
{
    struct http_piece *piece = mem_zalloc(sizeof *piece);

    if (conn->last_piece != NULL)
        conn->last_piece->next = piece;
    else
        conn->first_piece = piece;
    conn->last_piece = piece;
    return piece;
}

bool http_out_takes(const struct http_answer *answer)
{
    return answer->given != NULL && answer->body.size >= HTTP_GIVEN_BYTES_MIN &&
           answer->given->capacity / 2 <= answer->body.size;
}

struct buf *http_out_end(struct http_conn *conn)
{
    if (conn->last_piece == NULL)
        return &conn->out;
    return conn->last_piece->given ? &add_piece(conn)->bytes : &conn->last_piece->bytes;
}

void http_out_give(struct http_conn *conn, struct buf *bytes)
{
    if (bytes->size < HTTP_GIVEN_BYTES_MIN) {
        buf_append(http_out_end(conn), bytes->data, bytes->size);
        return;
    }
    struct http_piece *piece = add_piece(conn);

    piece->given = true;
    piece->bytes = *bytes;
    *bytes = (struct buf){ 0 };
}

struct buf *http_out_first(struct http_conn *conn)
{
    while (conn->out.size == 0 && conn->first_piece != NULL) {
        struct http_piece *piece = conn->first_piece;
        conn->first_piece = piece->next;
        if (piece->next == NULL)
            conn->last_piece = NULL;
        buf_deinit(&conn->out);
        conn->out = piece->bytes;
        free(piece);
    }
    return &conn->out;
}

size_t http_out_bytes(const struct http_conn *conn)
{
    size_t bytes = conn->out.size;

    for (const struct http_piece *piece = conn->first_piece; piece != NULL; piece = piece->next)
        bytes += piece->bytes.size;
    return bytes;
}

void http_out_deinit(struct http_conn *conn)
{
    do {
        buf_clear(&conn->out);
        (void)http_out_first(conn);
    } while (conn->first_piece != NULL);
    buf_deinit(&conn->out);
}
