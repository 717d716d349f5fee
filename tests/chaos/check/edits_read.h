/* edits_read: the lines of a history that tell of documents. */
#ifndef TESTS_CHAOS_CHECK_EDITS_READ_H
#define TESTS_CHAOS_CHECK_EDITS_READ_H

#include "tests/chaos/check/history_line.h"

void edits_read_edit(struct line *line);
void edits_read_edited(struct line *line);
void edits_read_look(struct line *line);
void edits_read_stands(struct line *line);

#endif
