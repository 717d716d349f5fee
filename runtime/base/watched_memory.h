/*
 * watched_memory: pools tell the address sanitizer which bytes are handed out; it ends a program
 * that touches others. Without it they do nothing.
 */
#ifndef RUNTIME_BASE_WATCHED_MEMORY_H
#define RUNTIME_BASE_WATCHED_MEMORY_H

#if defined(__has_feature)
#define WATCHED_HAS_FEATURE(name) __has_feature(name)
#else
#define WATCHED_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || WATCHED_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define MEMORY_IS_WATCHED            1
#define memory_forbid(bytes, size)   ASAN_POISON_MEMORY_REGION(bytes, size)
#define memory_hand_out(bytes, size) ASAN_UNPOISON_MEMORY_REGION(bytes, size)
#else
#define MEMORY_IS_WATCHED            0
#define memory_forbid(bytes, size)   ((void)(bytes))
#define memory_hand_out(bytes, size) ((void)(bytes))
#endif

#endif
