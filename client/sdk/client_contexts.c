#include "client/sdk/client_contexts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define ENTITY_BYTES_MAX     128
#define COLLECTION_BYTES_MAX 64
#define KEY_BYTES_MAX        200
#define NAME_BYTES_MAX       (ENTITY_BYTES_MAX + COLLECTION_BYTES_MAX + KEY_BYTES_MAX + 3)

/* The three texts, each with its NUL, so that no two documents share a name. */
struct name {
    uint8_t bytes[NAME_BYTES_MAX];
    size_t size;
};

struct seen {
    struct buf name;
    struct buf context; /* With its NUL. */
    uint64_t used;
};

struct client_contexts {
    struct seen *seen;
    size_t count;
    size_t max;
    uint64_t uses;
};

err client_contexts_new(size_t documents_max, struct client_contexts **ret_contexts)
{
    if (documents_max == 0 || documents_max > CLIENT_CONTEXTS_DOCUMENTS_MAX)
        return ERR_INVALID;
    struct client_contexts *contexts = mem_zalloc(sizeof *contexts);

    contexts->seen = mem_zalloc(documents_max * sizeof *contexts->seen);
    contexts->max = documents_max;
    *ret_contexts = contexts;
    return ERR_OK;
}

static void seen_deinit(struct seen *seen)
{
    buf_deinit(&seen->name);
    buf_deinit(&seen->context);
}

void client_contexts_free(struct client_contexts *contexts)
{
    if (contexts == NULL)
        return;
    for (size_t i = 0; i < contexts->count; i++)
        seen_deinit(&contexts->seen[i]);
    free(contexts->seen);
    free(contexts);
}

static bool name_add(struct name *name, const char *text, size_t bytes_max)
{
    size_t size = strnlen(text, bytes_max + 1);

    if (size > bytes_max)
        return false;
    memcpy(name->bytes + name->size, text, size + 1);
    name->size += size + 1;
    return true;
}

static bool name_of(const struct client_document *document, struct name *ret_name)
{
    ret_name->size = 0;
    return name_add(ret_name, document->entity, ENTITY_BYTES_MAX) &&
           name_add(ret_name, document->collection, COLLECTION_BYTES_MAX) &&
           name_add(ret_name, document->key, KEY_BYTES_MAX);
}

static struct seen *find(struct client_contexts *contexts, const struct name *name)
{
    for (size_t i = 0; i < contexts->count; i++) {
        struct seen *seen = &contexts->seen[i];

        if (seen->name.size == name->size &&
            memcmp(seen->name.data, name->bytes, name->size) == 0) {
            seen->used = ++contexts->uses;
            return seen;
        }
    }
    return NULL;
}

const char *client_contexts_get(struct client_contexts *contexts,
                                const struct client_document *document)
{
    struct name name;
    const struct seen *seen = name_of(document, &name) ? find(contexts, &name) : NULL;

    return seen != NULL ? (const char *)seen->context.data : "";
}

/* A place for one more document, with empty buffers or those of the one that leaves. */
static struct seen *place(struct client_contexts *contexts)
{
    struct seen *oldest = &contexts->seen[0];

    if (contexts->count < contexts->max)
        return &contexts->seen[contexts->count++];
    for (size_t i = 1; i < contexts->count; i++)
        if (contexts->seen[i].used < oldest->used)
            oldest = &contexts->seen[i];
    return oldest;
}

err client_contexts_keep(struct client_contexts *contexts, const struct client_document *document,
                         const char *context)
{
    size_t size = strnlen(context, CLIENT_CONTEXT_BYTES_MAX + 1);
    struct name name;

    if (!name_of(document, &name) || size > CLIENT_CONTEXT_BYTES_MAX)
        return ERR_TOO_LARGE;
    if (size == 0)
        return ERR_OK;
    struct seen *seen = find(contexts, &name);

    if (seen == NULL) {
        seen = place(contexts);
        seen->used = ++contexts->uses;
        buf_clear(&seen->name);
        buf_append(&seen->name, name.bytes, name.size);
    }
    buf_clear(&seen->context);
    buf_append(&seen->context, context, size + 1);
    return ERR_OK;
}

void client_contexts_forget(struct client_contexts *contexts,
                            const struct client_document *document)
{
    struct name name;
    struct seen *seen = name_of(document, &name) ? find(contexts, &name) : NULL;

    if (seen == NULL)
        return;
    seen_deinit(seen);
    *seen = contexts->seen[--contexts->count];
    contexts->seen[contexts->count] = (struct seen){ 0 };
}
