#!/usr/bin/python3
"""tools/mutate: what it makes of C, that each mutant is what it says, and that judges end and tell the truth."""

import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import build  # noqa: E402
import equivalent  # noqa: E402
import judge  # noqa: E402
import operators  # noqa: E402
import report  # noqa: E402
import schemata  # noqa: E402
import scope  # noqa: E402
import syntax  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NAME = "node/core/entry/subject.c"
RUN_S_MAX = 60
SUBJECT = """
#include <stdbool.h>
#define CHECK(e) ((e) ? (void)0 : check_failed())
#define LIMIT 5
enum colour { RED, GREEN, BLUE };
struct stats { int seen; int bytes; };
struct pot { struct stats stats; int gold; };
void check_failed(void);
void log_event(int level);
void tell(int one, int two);
int table[3 + 1] = { 1, 2, 3 };

int subject(struct pot *pot, int a, int b)
{
    static int kept = 7;
    int sum = 0;

    CHECK(a < 1000);
    log_event(3);
    pot->stats.seen++;
    pot->stats.bytes += 2;
    if (a > LIMIT && b)
        return -1;
    for (int i = 0; i < a; i++) {
        sum += b;
    }
    tell(a, b);
    switch (sum) {
    case 4:
        pot->gold = GREEN;
        break;
    default:
        break;
    }
    return sum + kept;
}
"""
MAIN = """
#include <stdio.h>
struct pot { int seen, bytes, gold; };
int subject(struct pot *pot, int a, int b);
void check_failed(void) { printf("check "); }
void log_event(int level) { printf("log %d ", level); }
void tell(int one, int two) { printf("tell %d %d ", one, two); }
int main(void)
{
    struct pot pot = { 0 };
    printf("%d ", subject(&pot, 2, 2));
    printf("%d ", subject(&pot, 5, 1));
    printf("%d ", subject(&pot, 6, 1));
    printf("%d %d %d", pot.seen, pot.bytes, pot.gold);
    return 0;
}
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="holdfast-mutate.")))

    def mutate(self, text, **more):
        path = self.folder / "subject.c"
        path.write_text(text)
        return schemata.mutate(path, NAME, "node/core", ["-std=c11", f"-I{scope.ROOT}"], **more)


class MutantsTest(Folder):
    def changes(self, text, **more):
        return {(m.operator, m.old, m.new) for m in self.mutate(text, **more)[1]}

    def test_each_operator_finds_its_places(self):
        found = self.changes(SUBJECT)
        for wanted in (("comparison", "a > LIMIT", "a >= LIMIT"), ("comparison", "a > LIMIT", "a <= LIMIT"),
                       ("loop", "i < a", "i <= a"), ("loop", "0", "(0 + 1)"), ("loop", "", " break;"),
                       ("constant", "LIMIT", "(LIMIT + 1)"), ("constant", "2", "(2 - 1)"), ("condition", "b", "!(b)"),
                       ("statement", "sum += b;", ""), ("statement", "return -1;", ""), ("call", "tell(a, b);", ""),
                       ("arguments", "tell(a, b)", "tell(b, a)"), ("return", "", " return 0;"),
                       ("enum", "GREEN", "BLUE")):
            self.assertIn(wanted, found)

    def test_checks_logs_statistics_and_declarations_stay_as_they_are(self):
        texts = [old for _, old, _ in self.changes(SUBJECT)]
        for alone in ("a < 1000", "1000", "log_event(3);", "3", "pot->stats.seen++;", "7", "4"):
            self.assertNotIn(alone, texts)
        self.assertIn("pot->stats.bytes += 2;", texts)

    def test_what_could_make_no_difference_is_left_out(self):
        text = """
            #include <string.h>
            void *mem_alloc(unsigned long);
            int f(int a, int b, const char *c, const char *d) {
                if (a < b) a = b;
                if (strcmp(c, d) == 0) return a > b ? a : b;
                return strcmp(c, d) < (a < b) ? mem_alloc(9) != 0 : 8;
            }"""
        found = [(m.old, m.new) for m in self.mutate(text)[1]]
        self.assertEqual(found.count(("strcmp(c, d)", "strcmp(d, c)")), 1)
        self.assertEqual(found.count(("a < b", "a <= b")), 1)  # The other one chooses the greater.
        self.assertNotIn(("a > b", "a >= b"), found)
        self.assertIn(("a > b", "a <= b"), found)
        self.assertNotIn("9", [old for old, _ in found])

    def test_what_only_a_check_asks_and_how_a_list_grows_are_left_alone(self):
        text = """
            struct list { int capacity, count; };
            static int server_left(int a) { return a > 1; }
            int shards_left(int a) { return server_left(a); }
            int f(struct list *list) {
                list->capacity = list->capacity > 0 ? list->capacity * 2 : 8;
                list->count = list->count > 0 ? list->count * 2 : 8;
                return list->capacity > list->count;
            }"""
        found = self.mutate(text)[1]
        self.assertEqual({m.function for m in found}, {"f", "shards_left"})  # Another name is no assertion.
        self.assertNotIn("list->capacity > 0", [m.old for m in found])
        for kept in ("list->count > 0", "list->capacity > list->count"):
            self.assertIn(kept, [m.old for m in found])

    def test_a_function_that_can_only_assert_and_its_calls_are_left_alone(self):
        text = """
            #define CHECK(e) ((e) ? (void)0 : check_failed())
            void check_failed(void);
            struct pot { int gold; };
            void pot_check(const struct pot *pot) { for (int i = 0; i < pot->gold; i++) CHECK(i < 9); }
            void add_check(struct pot *pot) { pot->gold = 3; }
            int text_check(const struct pot *pot) { return pot->gold > 5; }
            void pot_fill(const struct pot *pot, struct pot *other) { pot_check(pot); add_check(other); }"""
        found = self.mutate(text)[1]
        self.assertEqual({m.function for m in found}, {"add_check", "text_check", "pot_fill"})
        self.assertEqual([m.old for m in found if m.operator == "call"], ["add_check(other);"])

    def test_only_the_operators_that_are_asked_for(self):
        self.assertEqual({m.operator for m in self.mutate(SUBJECT, chosen=("enum",))[1]}, {"enum"})

    def test_a_file_that_does_not_compile_is_refused_with_the_compilers_words(self):
        with self.assertRaisesRegex(syntax.DoesNotCompile, r"subject\.c:1: .*undeclared identifier 'gold'"):
            self.mutate("int f(void) { return gold; }")

    def test_a_mutant_that_does_not_compile_is_left_out_and_counted(self):
        text = "int f(int a) { int own[] = { [1] = 2 }; return own[a]; }"
        _, known, dropped = self.mutate(text)
        self.assertGreater(dropped, 0)
        self.assertEqual([m.operator for m in known if m.old == "1"], [])

    def test_every_operator_is_told(self):
        self.assertEqual({m.operator for m in self.mutate(SUBJECT)[1]}, set(operators.OPERATORS))


class ProgramTest(Folder):
    """All mutants in one program, against each mutant compiled alone."""

    def compile(self, name, *sources):
        program = self.folder / name
        done = subprocess.run(["cc", "-std=gnu11", "-w", f"-I{scope.ROOT}", "-o", program, *sources], text=True,
                              capture_output=True, check=False, timeout=RUN_S_MAX)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def said(self, program, **environment):
        return subprocess.run([program], text=True, capture_output=True, check=True, env=environment,
                              timeout=RUN_S_MAX).stdout

    def schemata(self, text, known):
        made = build.Build(self.folder)
        made.known = known
        (self.folder / "all.c").write_bytes(text)
        (self.folder / "table.c").write_text(made.table([NAME]))
        (self.folder / "main.c").write_text(MAIN)
        return made, self.compile("all", self.folder / "all.c", self.folder / "table.c", self.folder / "main.c",
                                  HERE / "mutant_run.c")

    def test_a_chosen_mutant_does_what_its_text_says_and_none_changes_nothing(self):
        text, known, _ = self.mutate(SUBJECT)
        _, program = self.schemata(text, known)
        plain = self.said(self.compile("plain", self.folder / "subject.c", self.folder / "main.c"))
        self.assertEqual(self.said(program), plain)
        differ = 0
        compared = known[::3]
        for mutant in compared:
            (self.folder / "one.c").write_text(report.changed(SUBJECT, mutant))
            alone = self.said(self.compile("one", self.folder / "one.c", self.folder / "main.c"))
            self.assertEqual(self.said(program, HOLDFAST_MUTANT=mutant.name), alone, mutant)
            differ += alone != plain
        self.assertGreater(differ, len(compared) // 2)

    def test_marks_tell_which_mutants_were_reached_and_a_boundary_only_where_its_sides_are_equal(self):
        text, known, _ = self.mutate(SUBJECT)
        made, program = self.schemata(text, known)
        self.said(program, HOLDFAST_MUTANT_MARKS=str(self.folder / "marks"))
        marks = (self.folder / "marks").read_bytes()
        start = made.places([NAME])[NAME]
        reached = {(m.operator, m.old, m.new) for m in known if marks[start + m.reach]}
        self.assertIn(("comparison", "a > LIMIT", "a >= LIMIT"), reached)  # a is 5 once.
        self.assertIn(("loop", "i < a", "i <= a"), reached)
        other = self.mutate(SUBJECT.replace("#define LIMIT 5", "#define LIMIT 4"))
        _, program = self.schemata(other[0], other[1])
        self.said(program, HOLDFAST_MUTANT_MARKS=str(self.folder / "marks4"))
        marks = (self.folder / "marks4").read_bytes()
        reached = {(m.operator, m.old, m.new) for m in other[1] if marks[start + m.reach]}
        self.assertNotIn(("comparison", "a > LIMIT", "a >= LIMIT"), reached)
        self.assertIn(("comparison", "a > LIMIT", "a <= LIMIT"), reached)

    def test_a_mutant_that_does_not_exist_is_no_verdict(self):
        text, known, _ = self.mutate(SUBJECT)
        _, program = self.schemata(text, known)
        for wrong in (f"{NAME}:0", f"{NAME}:{len(known) + 1}", "node/core/x.c:1", "1"):
            with self.assertRaisesRegex(build.Broken, "cannot be used"):
                judge.execute([str(program)], 5, {"HOLDFAST_MUTANT": wrong})


class JudgeTest(unittest.TestCase):
    def test_an_endless_loop_ends_by_its_processor_time(self):
        self.assertIsNone(judge.execute([sys.executable, "-c", "while True: pass"], 1, {})[0])

    def test_an_exit_code_and_a_signal_are_told(self):
        code, said, _ = judge.execute(["sh", "-c", "echo a.c:1: check failed: 1 == 2; echo more; exit 3"], 5, {})
        self.assertEqual((code, judge.reason(said)), (3, "a.c:1: check failed: 1 == 2"))
        self.assertEqual(judge.execute(["sh", "-c", "kill -ABRT $$"], 5, {})[0], -6)

    def bench(self, *judges):
        made = judge.Bench([], [])
        made.judges, made.seeds_max = list(judges), 2
        return made

    def verdict(self, *judges):
        mutant = schemata.Known(NAME, 1, 1, "node/core", "enum", "f", 1, 0, 1, "a", "b")
        return self.bench(*judges).judge(mutant, 1)

    def test_seeds_come_first_and_only_those_that_reach_it(self):
        def one(name, simulator, reaches, command):
            return judge.Judge(name, [command], simulator, 0.1, bytes([0, reaches]))

        told = self.verdict(one("test", False, 1, "false"), one("seed 1", True, 1, "true"),
                            one("seed 2", True, 0, "false"))
        self.assertEqual((told.simulator, told.verdict, told.runs), (judge.SURVIVED, judge.KILLED, 2))
        told = self.verdict(one("test", False, 0, "false"), one("seed 1", True, 1, "false"))
        self.assertEqual((told.simulator, told.verdict, told.runs), (judge.KILLED, judge.KILLED, 1))
        told = self.verdict(one("test", False, 0, "false"), one("seed 1", True, 0, "false"))
        self.assertEqual((told.simulator, told.verdict, told.runs), (judge.NOT_REACHED, judge.NOT_REACHED, 0))
        told = self.verdict(one("test", False, 1, "true"), one("seed 1", True, 0, "false"))
        self.assertEqual((told.simulator, told.verdict), (judge.NOT_REACHED, judge.SURVIVED))

    def limited(self, budget_s, *judges):
        made = self.bench(*judges)
        made.budget_s = budget_s
        return made.judge(schemata.Known(NAME, 1, 1, "node/core", "enum", "f", 1, 0, 1, "a", "b"), 1)

    def test_a_mutant_that_is_not_found_in_its_time_survives_and_says_so(self):
        def one(name, simulator, cpu_s, command):
            return judge.Judge(name, [command], simulator, cpu_s, bytes([0, 1]))

        told = self.limited(2, one("seed 1", True, 0.5, "true"), one("seed 2", True, 1.6, "false"),
                            one("test", False, 0.1, "true"))
        self.assertEqual((told.simulator, told.verdict, told.runs, told.cut_short),
                         (judge.SURVIVED, judge.SURVIVED, 2, True))
        told = self.limited(2, one("seed 1", True, 1.6, "false"), one("test", False, 0.1, "false"))
        self.assertEqual((told.verdict, told.runs, told.cut_short), (judge.KILLED, 1, False))
        told = self.limited(2.2, one("seed 1", True, 1.6, "false"), one("test", False, 3, "false"))
        self.assertEqual((told.simulator, told.cut_short), (judge.KILLED, False))
        told = self.limited(None, one("seed 1", True, 90, "true"))
        self.assertEqual((told.verdict, told.cut_short), (judge.SURVIVED, False))

    def test_what_was_used_counts_and_not_what_was_foreseen(self):
        busy = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]
        mutant = schemata.Known(NAME, 1, 1, "node/core", "enum", "f", 1, 0, 1, "a", "b")
        made = self.bench(judge.Judge("seed 1", busy, True, 0.0001, bytes([0, 1]), alone=True),
                          judge.Judge("seed 2", ["false"], True, 0.001, bytes([0, 1]), alone=True))
        made.budget_s = 0.05
        told = made.judge(mutant, 1)
        self.assertEqual((told.verdict, told.runs, told.cut_short), (judge.SURVIVED, 1, True))
        self.assertGreater(told.seconds, 0.05)

    def test_the_first_handful_of_each_room_comes_before_the_second_of_any(self):
        def one(room, handful, cpu_s):
            return judge.Judge(f"{room} {handful}", ["true"], True, cpu_s, bytes([0, 1]), True, handful)

        ran = []
        made = self.bench(one("a", 0, 0.1), one("a", 1, 0.1), one("b", 0, 0.2), one("b", 1, 0.2))
        made._fails = lambda judged, mutant, verdict: ran.append(judged.name)
        made.judge(schemata.Known(NAME, 1, 1, "node/core", "enum", "f", 1, 0, 1, "a", "b"), 1)
        self.assertEqual(ran, ["a 0", "b 0", "a 1", "b 1"])

    def test_a_judge_that_fails_without_a_mutant_is_refused(self):
        with self.assertRaisesRegex(build.Broken, "seed 1 fails without any mutant"):
            self.bench(judge.Judge("seed 1", ["false"], True)).measure(1)
        with self.assertRaisesRegex(build.Broken, "seed 1 marked nothing"):
            self.bench(judge.Judge("seed 1", ["true"], True)).measure(1)


class ReportTest(unittest.TestCase):
    def verdict(self, core, simulator, together):
        start = SUBJECT.index("a > LIMIT")
        mutant = schemata.Known(NAME, 7, 7, core, "comparison", "subject", 23, start, start + 9, "a > LIMIT",
                                "a >= LIMIT")
        return judge.Verdict(mutant, simulator, together)

    def test_scores_count_both_judges_and_what_none_reached(self):
        verdicts = [self.verdict("node/core", judge.KILLED, judge.KILLED),
                    self.verdict("node/core", judge.SURVIVED, judge.KILLED),
                    self.verdict("node/rpc", judge.SURVIVED, judge.SURVIVED),
                    self.verdict("node/rpc", judge.NOT_REACHED, judge.NOT_REACHED)]
        whole = report.whole(verdicts)
        self.assertEqual(whole["all"], {"mutants": 4, "simulator": 1, "together": 2, "not_reached": 1,
                                        "cut_short": 0})
        self.assertEqual(whole["cores"]["node/core"], {"mutants": 2, "simulator": 1, "together": 2, "not_reached": 0,
                                                        "cut_short": 0})
        self.assertEqual(len(report.survivors(verdicts)), 2)

    def test_a_survivor_is_told_as_a_diff_with_its_line_for_the_equivalents(self):
        told = report.as_dict(self.verdict("node/core", judge.SURVIVED, judge.SURVIVED),
                              (NAME, "subject", "comparison", "if (a)", "a => b"), {NAME: SUBJECT})
        self.assertIn("-    if (a > LIMIT && b)\n+    if (a >= LIMIT && b)", told["diff"])
        self.assertEqual(told["equivalent_line"], f"{NAME}\tsubject\tcomparison\tif (a)\ta => b\tREASON")

    def test_a_sample_below_its_bar_fails(self):
        below = runpy.run_path(str(HERE / "run"))["below"]
        self.assertEqual(list(below([self.verdict("node/core", judge.KILLED, judge.KILLED)] * 30)), [])
        low = list(below([self.verdict("node/core", judge.SURVIVED, judge.SURVIVED)] * 30))
        self.assertEqual([line.split(":")[0] for line in low], ["simulator", "together"])
        self.assertIn("0.0 % of 30 mutants were found; the bar is", low[0])

    def test_a_sample_that_judged_almost_nothing_fails_however_it_went(self):
        below = runpy.run_path(str(HERE / "run"))["below"]
        for found in (judge.KILLED, judge.SURVIVED):
            low = list(below([self.verdict("node/core", found, found)] * 29))
            self.assertEqual(len(low), 1)
            self.assertIn("too few: 29 mutants were judged; below 30", low[0])

    def test_what_ended_for_its_time_is_counted_and_marked(self):
        cut = self.verdict("node/core", judge.SURVIVED, judge.SURVIVED)
        cut.cut_short = True
        key = (NAME, "subject", "comparison", "if (a)", "a => b")
        told = "\n".join(report.text([cut], {cut.mutant.name: key}, {NAME: SUBJECT}))
        self.assertEqual(report.score([cut])["cut_short"], 1)
        self.assertIn("---- survived, cut short: ", told)
        self.assertIn("cut short\n", told)
        self.assertTrue(report.as_dict(cut, key, {NAME: SUBJECT})["cut_short"])


class EquivalentTest(Folder):
    def marked(self, text):
        (self.folder / "subject.c").write_text(SUBJECT)
        known = self.mutate(SUBJECT)[1]
        path = self.folder / "equivalent"
        path.write_text(text)
        return equivalent.marked(path, equivalent.keys(known, lambda _, n: SUBJECT.splitlines()[n - 1]))

    def test_a_line_marks_one_mutant(self):
        line = f"{NAME}\tsubject\tloop\tfor (int i = 0; i < a; i++) {{\ti < a => i <= a\tfor this test\n"
        self.assertEqual(list(self.marked("# why\n\n" + line).values()), ["for this test"])

    def test_a_statement_that_is_left_out_becomes_nothing(self):
        line = f"{NAME}\tsubject\tstatement\tsum += b;\tsum += b; =>\tfor this test\n"
        self.assertEqual(list(self.marked(line).values()), ["for this test"])

    def test_a_line_that_names_no_mutant_is_told_with_the_nearest(self):
        line = f"{NAME}\tsubject\tloop\tfor (int j = 0; j < a; j++) {{\tj < a => j <= a\tfor this test\n"
        with self.assertRaisesRegex(equivalent.Stale, r"equivalent:1: no such mutant: .*j < a.*did you mean .*i < a => i <= a"):
            self.marked(line)

    def test_a_line_without_a_reason_is_refused(self):
        with self.assertRaisesRegex(equivalent.Stale, "equivalent:1: 5 parts"):
            self.marked(f"{NAME}\tsubject\tloop\tfor\ta => b\n")


class CommandTest(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([sys.executable, HERE / "run", *words], text=True, capture_output=True, check=False,
                              timeout=RUN_S_MAX)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_an_unknown_operator_or_file_is_told_with_the_nearest(self):
        self.assertIn("did you mean comparison?", self.refused("--operators", "comparisons"))
        self.assertIn("did you mean node/core/rows/blob.c?", self.refused("--files", "node/core/rows/blo.c"))

    def test_the_files_of_all_four_cores_have_mutants_and_tests_have_none(self):
        files = scope.files()
        self.assertEqual({scope.core_of(name) for name in files}, set(scope.CORES))
        self.assertEqual([n for n in files if "_test" in n or "/sim/" in n or "fixture" in n], [])


class SampleTest(unittest.TestCase):
    def test_a_sample_has_as_many_of_each_core_and_depends_on_its_seed_alone(self):
        known = [schemata.Known("f", n, n, core, "enum", "f", 1, 0, 1, "a", "b")
                 for core in scope.CORES for n in range(50 if core == "node/core" else 9)]
        take = runpy.run_path(str(HERE / "run"))["sample"]
        first = take(known, 24, "s")
        self.assertEqual(first, take(known, 24, "s"))
        self.assertNotEqual(first, take(known, 24, "t"))
        self.assertEqual([sum(m.core == core for m in first) for core in scope.CORES], [6] * 4)
        self.assertEqual(len(take(known, 60, "s")), 60)


if __name__ == "__main__":
    unittest.main()
