/*
 * mutant_run: which mutant is active, and which were reached. Only the preset `mutate` compiles
 * this; tools/mutate/schemata.py puts the macros into copies of the cores.
 */
#ifndef TOOLS_MUTATE_MUTANT_RUN_H
#define TOOLS_MUTATE_MUTANT_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* One mutated file. Its mutants are numbered from 1; marks[n] is 1 once the program came to n. */
struct mutant_file {
    const char *name;
    unsigned count;
    unsigned *active;
    unsigned char **marks;
};
/* Made by tools/mutate/build.py. */
extern const struct mutant_file mutant_files[];
extern const unsigned mutant_file_count;

/* Before main: reads HOLDFAST_MUTANT and HOLDFAST_MUTANT_MARKS. The table calls it, since a linker
 * takes the table from its library for its switches, and for them alone. */
void mutant_start(void);

/* MUTANT_ACTIVE and MUTANT_MARKS are the file's own. OFF: none of these is active; marks the first.
 */
#define MUTANT_MARK(n) (MUTANT_MARKS[n] = 1)
#define MUTANT_OFF(first, count)                                                                   \
    (MUTANT_MARK(first), __builtin_expect(MUTANT_ACTIVE - (first) >= (count), 1))
#define MUTANT_IS(n) (MUTANT_ACTIVE == (n))

#endif
