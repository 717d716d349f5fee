#include "runtime/http/h1_head.h"

#include <string.h>

#include "runtime/base/hex.h"

/* A header line without its CRLF, not empty. */
static bool line_is_good(const uint8_t *line, size_t size, bool is_first)
{
    if (line[0] == ' ' || line[0] == '\t' || memchr(line, '\r', size) != NULL ||
        memchr(line, 0, size) != NULL)
        return false;
    if (is_first)
        return true;
    const uint8_t *colon = memchr(line, ':', size);
    return colon != NULL && colon > line && colon[-1] != ' ' && colon[-1] != '\t';
}

enum h1_head h1_head_scan(struct slice bytes, size_t *ret_size)
{
    const uint8_t *at = bytes.data;
    const uint8_t *end = bytes.data + bytes.size;

    for (bool is_first = true; at < end; is_first = false) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL)
            return H1_HEAD_PARTIAL;
        if (newline == at || newline[-1] != '\r')
            return H1_HEAD_BAD;
        size_t size = (size_t)(newline - 1 - at);
        if (size == 0) {
            *ret_size = (size_t)(newline + 1 - bytes.data);
            return is_first ? H1_HEAD_BAD : H1_HEAD_WHOLE;
        }
        if (!line_is_good(at, size, is_first))
            return H1_HEAD_BAD;
        at = newline + 1;
    }
    return H1_HEAD_PARTIAL;
}

/* It may go into an answer. */
static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    }
    return true;
}

bool h1_head_find(struct slice head, const char *name, struct slice *ret_value)
{
    const uint8_t *at = head.data;
    const uint8_t *end = head.data + head.size;
    size_t name_size = strlen(name);
    const uint8_t *newline;

    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        struct slice value = { at, (size_t)(newline - at) };
        at = newline + 1;
        if (value.size <= name_size || value.data[name_size] != ':' ||
            !http_text_equal((struct slice){ value.data, name_size }, name))
            continue;
        value = (struct slice){ value.data + name_size + 1, value.size - name_size - 1 };
        while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t'))
            value = (struct slice){ value.data + 1, value.size - 1 };
        while (value.size > 0 && value.data[value.size - 1] <= ' ')
            value.size--;
        *ret_value = value;
        return is_printable(value);
    }
    return false;
}

#define CHUNK_BYTES_MAX 0xffffffffu

/* The state after `c` in a line that gives a size. CHUNK_END: malformed. */
static enum h1_chunk_state chunk_size_take(struct h1_chunks *chunks, uint8_t c)
{
    int digit = hex_digit(c);

    if (chunks->state == CHUNK_SIZE_LF) {
        if (c != '\n')
            return CHUNK_END;
        return chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER_FIRST;
    }
    if (chunks->state != CHUNK_EXTENSION && digit >= 0) {
        chunks->left = chunks->left * 16 + (unsigned)digit;
        return chunks->left <= CHUNK_BYTES_MAX ? CHUNK_SIZE : CHUNK_END;
    }
    if (chunks->state == CHUNK_SIZE_FIRST)
        return CHUNK_END;
    if (c == '\r')
        return CHUNK_SIZE_LF;
    if (chunks->state == CHUNK_SIZE)
        return c == ';' ? CHUNK_EXTENSION : CHUNK_END;
    return c >= ' ' || c == '\t' ? CHUNK_EXTENSION : CHUNK_END;
}

/* The same behind the data and in trailers. */
static enum h1_chunk_state chunk_line_take(const struct h1_chunks *chunks, uint8_t c)
{
    switch (chunks->state) {
    case CHUNK_DATA_CR:
        return c == '\r' ? CHUNK_DATA_LF : CHUNK_END;
    case CHUNK_DATA_LF:
        return c == '\n' ? CHUNK_SIZE_FIRST : CHUNK_END;
    case CHUNK_TRAILER_LF:
        return c == '\n' ? CHUNK_TRAILER_FIRST : CHUNK_END;
    case CHUNK_TRAILER_FIRST:
        if (c == '\r')
            return CHUNK_END_LF;
        return c == ' ' || c == '\t' || c == '\n' ? CHUNK_END : CHUNK_TRAILER;
    default:
        if (c == '\r')
            return CHUNK_TRAILER_LF;
        return c == '\n' || c == 0 ? CHUNK_END : CHUNK_TRAILER;
    }
}

bool h1_chunks_scan(struct h1_chunks *chunks, struct slice bytes, size_t *ret_used)
{
    size_t at = 0;

    while (at < bytes.size && chunks->state != CHUNK_END) {
        if (chunks->state == CHUNK_DATA) {
            size_t part = bytes.size - at < chunks->left ? bytes.size - at : (size_t)chunks->left;
            at += part;
            chunks->left -= part;
            if (chunks->left == 0)
                chunks->state = CHUNK_DATA_CR;
            continue;
        }
        uint8_t c = bytes.data[at++];
        if (chunks->state == CHUNK_END_LF) {
            chunks->state = CHUNK_END;
            *ret_used = at;
            return c == '\n';
        }
        chunks->state = chunks->state <= CHUNK_SIZE_LF ? chunk_size_take(chunks, c)
                                                       : chunk_line_take(chunks, c);
        if (chunks->state == CHUNK_END)
            return false;
    }
    *ret_used = at;
    return true;
}

static size_t header_count(const struct http_exchange *exchange, const char *name,
                           struct slice *ret_value)
{
    size_t count = 0;

    for (size_t i = 0; i < exchange->header_count; i++) {
        if (!slice_equal(exchange->headers[i].name, slice_from_text(name)))
            continue;
        *ret_value = exchange->headers[i].value;
        count++;
    }
    return count;
}

static bool all_digits(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0 && text.size <= 18;
}

const char *h1_head_check(const struct http_exchange *exchange)
{
    struct slice host = { 0 };
    struct slice length = { 0 };
    struct slice encoding = { 0 };
    size_t hosts = header_count(exchange, "host", &host);
    size_t lengths = header_count(exchange, "content-length", &length);
    size_t encodings = header_count(exchange, "transfer-encoding", &encoding);

    if (hosts > 1 || (hosts == 0 && !exchange->old))
        return "exactly one Host header is needed";
    if (lengths > 1 || (lengths == 1 && !all_digits(length)))
        return "Content-Length must be one number";
    if (encodings > 0 && lengths > 0)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (encodings > 1 || (encodings == 1 && !http_text_equal(encoding, "chunked")))
        return "the only Transfer-Encoding is chunked";
    if (encodings > 0 && exchange->old)
        return "HTTP/1.0 has no Transfer-Encoding";
    return NULL;
}

bool h1_head_set_target(struct http_exchange *exchange, struct slice target)
{
    const uint8_t *mark;

    /* The absolute form, as sent to proxies. */
    if (slice_begins_with(target, SLICE_LITERAL("http://")) ||
        slice_begins_with(target, SLICE_LITERAL("https://"))) {
        size_t skip = target.data[4] == 's' ? 8 : 7;
        mark = memchr(target.data + skip, '/', target.size - skip);
        if (mark == NULL)
            return false;
        target = (struct slice){ mark, (size_t)(target.data + target.size - mark) };
    }
    if (target.size == 0 || (target.data[0] != '/' && target.data[0] != '*'))
        return false;
    exchange->path = target;
    mark = memchr(target.data, '?', target.size);
    if (mark != NULL) {
        exchange->path.size = (size_t)(mark - target.data);
        exchange->query = (struct slice){ mark + 1, target.size - exchange->path.size - 1 };
    }
    return true;
}
