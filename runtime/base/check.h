/*
 * check: assertions that stay on in release builds. A broken invariant must stop the process;
 * bad input is never a CHECK but an err with a message.
 */
#ifndef RUNTIME_BASE_CHECK_H
#define RUNTIME_BASE_CHECK_H

#include <stddef.h>
#include <stdnoreturn.h>

noreturn void check_failed(const char *expression, const char *file, int line);

#define CHECK(expression) ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))
#define IMPLIES(a, b)     (!(a) || (b))
#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
/* The struct that holds `member` at `pointer`. */
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Told of a failed check of this thread before the process ends, so that its next life knows. May
 * not allocate; a check that fails in it is not told. */
struct check_watch {
    void (*failed)(void *user, const char *where);
    void *user;
};
/* Of this thread, until it sets another; NULL: none. Borrowed. */
void check_watch_set(const struct check_watch *watch);

/* malloc, calloc and realloc that abort when memory is out: every size passed to them is bounded
 * by a limit checked earlier, so failure means the process cannot go on. */
void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t size_bytes);
void *mem_realloc(void *pointer, size_t size_bytes);

#endif
