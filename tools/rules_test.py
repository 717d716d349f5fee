#!/usr/bin/env python3
"""The rules of tools/ find what they are for: circles of files, functions of too many parameters,
functions that only tests use, helpers that are there twice."""

import pathlib
import subprocess
import tempfile
import unittest

import circles
import json_shapes
import parameters
import twins
import uncalled


class CirclesTest(unittest.TestCase):
    def test_a_chain_is_no_circle(self):
        self.assertEqual(circles.circles({"a": {"b": ""}, "b": {"c": ""}, "c": {}}), [])

    def test_units_that_depend_on_each_other_are_one(self):
        edges = {"a": {"b": "f"}, "b": {"c": "g"}, "c": {"b": "h", "d": "i"}, "d": {}}
        self.assertEqual(circles.circles(edges), [{"b", "c"}])

    def test_the_shortest_circle_is_told_with_its_reasons(self):
        edges = {"a": {"b": "f"}, "b": {"c": "g", "a": "k"}, "c": {"a": "h"}}
        (members,) = circles.circles(edges)
        self.assertEqual(circles.told(edges, circles.shortest(edges, members)), "a -> b (f) -> a (k)")

    def test_a_header_and_its_source_are_one_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.h").write_text('#include "b.h"\n')
            (root / "b.h").write_text("")
            (root / "a.c").write_text('#include "a.h"\n')
            (root / "b.c").write_text('#include "a.h"\n')
            edges = set(circles.include_edges(root, ["a.c", "a.h", "b.c", "b.h"]))
        self.assertEqual({(unit, to) for unit, to, _ in edges}, {("a", "b"), ("b", "a")})

    def test_symbols_are_read_from_objects(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.c").write_text("int f(void); int g(void) { return f(); } int main(void) { return g(); }\n")
            (root / "b.c").write_text("int f(void) { return 1; } int main(void) { return 0; }\n")
            for name in "ab":
                subprocess.run(["cc", "-c", root / f"{name}.c", "-o", root / f"{name}.o"], check=True)
            compiled = {str(root / f"{name}.o"): f"{name}.c" for name in "ab"}
            self.assertEqual(list(circles.link_edges(compiled)), [("a", "b", "f")])


class JsonShapesTest(unittest.TestCase):
    TABLE = 'X("p.A", "json", DOCUMENT) \\\nX("p.A", "name",  KEY)\n'
    PROTO = ("package p;\nmessage A {\n  // (key) Its name.\n  string name = 1;\n  oneof x {\n"
             "    // (document) Two\n    // lines.\n    string json = 2;\n  }\n  // Not (key).\n"
             "  string other = 3;\n}\n")

    def differences(self, table, proto):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / json_shapes.TABLE).parent.mkdir(parents=True)
            (root / json_shapes.TABLE).write_text(table)
            (root / "idl").mkdir()
            (root / "idl/a.proto").write_text(proto)
            return list(json_shapes.differences(root))

    def test_a_table_and_comments_that_agree_are_quiet(self):
        self.assertEqual(self.differences(self.TABLE, self.PROTO), [])

    def test_a_field_that_only_one_of_them_marks_is_told(self):
        told = self.differences(self.TABLE, self.PROTO.replace("(key) ", ""))
        self.assertEqual(told, ["p.A.name is key here, and its comment does not begin with (key)"])
        told = self.differences(self.TABLE.replace("KEY", "VALUE"), self.PROTO)
        self.assertEqual(len(told), 2)


class ParametersTest(unittest.TestCase):
    def numbers(self, text):
        return [(line, function, number) for line, function, number in parameters.definitions(text)]

    def test_parameters_of_definitions_are_counted(self):
        text = ("int none(void)\n{\n}\n"
                "static struct a *two(struct a *a, /* one, or two */ int b)\n{\n}\n"
                "void six(int a, int b,\n         int c, int d, int e, int f)\n{\n}\n")
        self.assertEqual(self.numbers(text), [(1, "none", 0), (4, "two", 2), (7, "six", 6)])

    def test_a_function_as_a_parameter_is_one(self):
        text = "void run(void (*fn)(void *user, int a), void *user)\n{\n}\n"
        self.assertEqual(self.numbers(text), [(1, "run", 2)])

    def test_what_a_format_prints_is_part_of_it(self):
        text = "void say(int a, const char *format, ...)\n{\n}\n"
        self.assertEqual(self.numbers(text), [(1, "say", 2)])

    def test_declarations_and_calls_are_not_definitions(self):
        text = "int f(int a, int b, int c, int d, int e, int g);\nint h(int a)\n{\n    return f(a, a, a, a, a, a);\n}\n"
        self.assertEqual(self.numbers(text), [(2, "h", 1)])

    def check(self, allowed, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / parameters.ALLOWED).write_text(allowed)
            check = parameters.Check(root)
            check.source(root / "a.c", text)
            check.end(root / parameters.ALLOWED)
            return [(path.name, what) for path, _, what in check.problems]

    def test_six_are_refused_unless_they_are_allowed(self):
        text = "void f(int a, int b, int c, int d, int e, int g)\n{\n}\n"
        self.assertEqual(self.check("", text), [("a.c", "f takes 6 parameters")])
        self.assertEqual(self.check("# Why.\na.c f 6\n", text), [])

    def test_the_list_may_only_shrink(self):
        text = "void f(int a, int b, int c, int d, int e, int g)\n{\n}\n"
        more = self.check("a.c f 7\n", text)
        self.assertEqual(more, [("parameters.allow", "a.c f takes no 7 parameters any more")])
        gone = self.check("a.c f 6\n", "void f(int a)\n{\n}\n")
        self.assertEqual(gone, [("parameters.allow", "a.c f takes no 6 parameters any more")])


class UncalledTest(unittest.TestCase):
    def check(self, sources, allowed=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / uncalled.ALLOWED).write_text(allowed)
            check = uncalled.Check(root)
            for name, text in sources.items():
                check.source(name, text)
            check.end()
            return check.problems

    HEADER = "int a_get(const struct a *a);\n"
    SOURCE = "/* a_get() says what. */\nint a_get(const struct a *a)\n{\n    return a->b;\n}\n"

    def test_what_no_source_calls_is_told(self):
        told = [("a.c", 2, "no source of the product uses a_get")]
        self.assertEqual(self.check({"a.h": self.HEADER, "a.c": self.SOURCE}), told)
        self.assertEqual(self.check({"a.h": self.HEADER, "a.c": self.SOURCE, "b.c": 'say("a_get()");\n'}), told)

    def test_a_caller_in_any_source_suffices(self):
        caller = "static int twice(struct a *a)\n{\n    return 2 * a_get(a);\n}\n"
        self.assertEqual(self.check({"a.h": self.HEADER, "a.c": self.SOURCE, "b.c": caller}), [])
        self.assertEqual(self.check({"a.h": self.HEADER, "a.c": self.SOURCE + caller}), [])

    def test_constants_are_told_as_well(self):
        sources = {"a.h": "extern const struct shape a_shape;\n", "a.c": "const struct shape a_shape = { 1 };\n"}
        self.assertEqual(self.check(sources), [("a.c", 1, "no source of the product uses a_shape")])

    def test_what_a_macro_or_a_table_of_files_names_is_used(self):
        made = {"a.c": "int a_get_cat(void)\n{\n}\n", "b.c": "#define X(name) a_get_##name(),\n    X(cat)\n"}
        self.assertEqual(self.check(made), [])
        self.assertEqual(self.check({"router/rpc/x_y.c": "void x_y_handle(int a)\n{\n}\n"}), [])

    def test_walks_of_invariants_are_for_tests(self):
        self.assertEqual(self.check({"a.c": "void a_check(const struct a *a)\n{\n}\n"}), [])
        self.assertEqual(len(self.check({"a.c": "err a_check(const struct a *a)\n{\n}\n"})), 1)

    def test_the_list_may_only_shrink(self):
        sources = {"a.h": self.HEADER, "a.c": self.SOURCE}
        self.assertEqual(self.check(sources, "# Why.\na_get\n"), [])
        self.assertEqual(len(self.check(sources, "a_get\nb_get\n")), 1)


class TwinsTest(unittest.TestCase):
    BODY = "    for (size_t i = 0; i < list->count; i++)\n        if (list->ids[i] == id)\n            return true;\n"

    def check(self, sources, allowed=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / twins.ALLOWED).write_text(allowed)
            check = twins.Check(root)
            for name, text in sources.items():
                check.source(name, text)
            check.end()
            return check.problems

    def function(self, name, body, given="const struct list *list, int id"):
        return f"static bool {name}({given})\n{{\n{body}}}\n"

    def test_a_body_that_is_there_twice_is_told_whatever_its_name(self):
        sources = {"a.c": self.function("has", self.BODY), "b.c": "\n" + self.function("holds", self.BODY)}
        self.assertEqual(self.check(sources), [("b.c", 2, "holds does what has of a.c:1 does")])
        sources["b.c"] = self.function("holds", "    /* As said. */\n" + self.BODY.replace("        if", "      if"))
        self.assertEqual(len(self.check(sources)), 1)

    def test_short_ones_and_those_of_other_structures_may_repeat(self):
        short = "    return list->count;\n"
        self.assertEqual(self.check({"a.c": self.function("f", short), "b.c": self.function("f", short)}), [])
        other = self.function("has", self.BODY, "const struct queue *list, int id")
        self.assertEqual(self.check({"a.c": self.function("has", self.BODY), "b.c": other}), [])

    def test_the_list_may_only_shrink(self):
        sources = {"a.c": self.function("has", self.BODY), "b.c": self.function("has", self.BODY)}
        self.assertEqual(self.check(sources, "# Why.\nb.c has\n"), [])
        self.assertEqual(len(self.check({"a.c": sources["a.c"]}, "b.c has\n")), 1)


if __name__ == "__main__":
    unittest.main()
