/*
 * fuzz: what every fuzz target is made of. A target is one file: fuzz_one takes bytes as an
 * attacker, a peer or a damaged disk may give them, and CHECKs what must hold of the answer;
 * fuzz_seed gives valid inputs to start from. Under the preset `fuzz` libFuzzer drives it; in
 * every other build replay.c runs it once over its seeds and over what once broke it.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "runtime/base/buf.h"

struct fuzz_seeds;

/* The target's own two functions. fuzz_one must depend on `input` alone. */
void fuzz_one(struct slice input);
void fuzz_seed(struct fuzz_seeds *seeds);

/* One seed, as a file of that name; the bytes are copied. */
void fuzz_seed_add(struct fuzz_seeds *seeds, const char *name, struct slice bytes);
/* The same, with one byte in front: most targets pick what to do by it. */
void fuzz_seed_add_kind(struct fuzz_seeds *seeds, const char *name, uint8_t kind,
                        struct slice bytes);
/* Runs fuzz_one over every seed of fuzz_seed; returns how many there were. */
unsigned fuzz_seed_run(void);

/* libFuzzer's entry points, in fuzz_entry.c. `--write-seeds DIR` writes them there and exits. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
