/*
 * documents: what must hold of documents that any member takes writes of (docs/documents.md), under
 * whatever was broken. Collections are `majority`, so that what was answered is kept.
 *
 * - What is shown was written before, and was not refused.
 * - In the end all members show the same of a document.
 * - What was answered `ok` stands in the end, unless a write replaced it that had been shown it. Of
 * a document of which the last write stands one value does.
 * - What an `ok` write replaced is gone for good, if the replaced one was answered long before: an
 * earlier attempt of it may be on its way until then, and is a write like others.
 * - Who reads with a context is shown what it was shown before and what it wrote, or what replaced
 * that.
 * - A counter is the sum of what was counted: each `ok` once, each unknown one at most once. It
 * never goes back for who reads with a context.
 */
#ifndef TESTS_CHAOS_CHECK_DOCUMENTS_H
#define TESTS_CHAOS_CHECK_DOCUMENTS_H

#include "tests/chaos/check/whole.h"

/* An attempt reaches a member no later than this after its write was answered. */
#define ATTEMPT_ENDS_NS (60 * INT64_C(1000000000))

void documents_judge(const struct edits *edits, struct findings *findings);

#endif
