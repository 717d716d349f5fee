"""The operators: each looks at a node of the syntax tree and says which mistakes could stand there."""

import re

from clang.cindex import CursorKind, TypeKind

import scope
from places import ENTRY, EXPRESSION, LOOP_END, STATEMENT, Mutant, Site

COMPARISON, LOOP, CONSTANT, CONDITION = "comparison", "loop", "constant", "condition"
REMOVED, CALL, SWAP, RETURN, ENUM = "statement", "call", "arguments", "return", "enum"
OPERATORS = {
    COMPARISON: "== and != swapped; < and <=, > and >= swapped (boundary) or turned round",
    LOOP: "the same in the head of a for loop; its first and last number by one; it ends after one round",
    CONSTANT: "a number one more or one less; true and false swapped",
    CONDITION: "a condition, or an operand of && and ||, negated",
    REMOVED: "an assignment, break, continue or early return removed",
    CALL: "a call whose result is not used removed",
    SWAP: "two arguments of one type swapped",
    RETURN: "the function returns at once",
    ENUM: "another constant of the same enum",
}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
INTEGERS = {TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG,
            TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG,
            TypeKind.LONGLONG, TypeKind.ENUM}
TRANSPARENT = {CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR}
LOOPS = {CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT}
OPERATOR_TEXT = re.compile(r"^\s*(?:/\*.*?\*/\s*)*([-+*/%&|^<>=!]+)\s*(?:/\*.*?\*/\s*)*$", re.S)
NUMBER = re.compile(r"^(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")


def bare(node):
    """The node without parentheses and implicit conversions."""
    while node.kind in TRANSPARENT:
        children = list(node.get_children())
        if len(children) != 1:
            break
        node = children[0]
    return node


def asserts(function):
    """Its name says so, it returns nothing and is given nothing that it could write to."""
    if function is None or not scope.ASSERTING_NAME.search(function.spelling):
        return False
    types = [argument.type.get_canonical() for argument in function.get_arguments()]
    return function.result_type.kind == TypeKind.VOID and all(
        one.kind != TypeKind.POINTER or one.get_pointee().is_const_qualified() for one in types)


class Finder:
    """Walks the functions of one source and collects sites."""

    def __init__(self, source, chosen):
        self.source, self.chosen = source, chosen
        self.sites, self.function = [], ""
        self.greater = set()  # Comparisons that choose the greater or lesser of two: equal ones are one.

    def find(self):
        for function in self.source.functions():
            self.function = function.spelling
            if any(left.search(self.function) for left in (scope.CALLS, scope.AHEAD, scope.ASSERTIONS)) or asserts(function):
                continue
            body = [c for c in function.get_children() if c.kind == CursorKind.COMPOUND_STMT]
            if body:
                self._entry(function, body[0])
                self._block(body[0])
        return self.sites

    # ---- what is added ----
    def _add(self, kind, span, mutants):
        mutants = [m for m in mutants if m.operator in self.chosen]
        if mutants:
            self.sites.append(Site(kind, *span, self.function, mutants))

    def _expression(self, node, mutants):
        span = self.source.span(node)
        same = [s for s in self.sites[-4:] if s.kind == EXPRESSION and (s.start, s.end) == span]
        mutants = [m for m in mutants if m.operator in self.chosen]
        if same:
            same[0].mutants += [m for m in mutants if m.text not in {k.text for k in same[0].mutants}]
        elif mutants:
            self.sites.append(Site(EXPRESSION, *span, self.function, mutants))

    # ---- statements ----
    def _entry(self, function, body):
        statements = list(body.get_children())
        kind = function.result_type.get_canonical().kind
        spelling = function.result_type.spelling
        only = statements[0] if len(statements) == 1 else None
        if not statements or (only is not None and kind == TypeKind.VOID):
            return  # The same as its only statement removed.
        if all(self.source.macro_at(self.source.span(s)[0]) == self.source.span(s) for s in statements):
            return  # It only checks.
        if kind == TypeKind.VOID:
            values = [""]
        elif spelling in ("bool", "_Bool"):
            values = ["true", "false"]
        elif kind in INTEGERS or kind == TypeKind.POINTER:
            values = ["0"]
        elif kind == TypeKind.RECORD:
            values = [f"({spelling}){{0}}"]
        else:
            return
        told = self.source.text_of(only) if only is not None else ""
        values = [v for v in values if told != f"return {v}"]
        start = self.source.span(body)[0] + 1
        self._add(ENTRY, (start, start), [Mutant(RETURN, f" return {v};" if v else " return;") for v in values])

    def _block(self, block):
        statements = list(block.get_children())
        for place, node in enumerate(statements):
            self._statement(node, False, place + 1 < len(statements))

    def _statement(self, node, guarded, followed):
        """`guarded`: the body of an if without else that something follows."""
        kind = node.kind
        macro = self.source.macro_at(self.source.span(node)[0])
        if not self._clean(node) or (macro is not None and not kind.is_expression()):
            return
        if kind == CursorKind.COMPOUND_STMT:
            statements = list(node.get_children())
            for place, child in enumerate(statements):
                last = place + 1 == len(statements)
                self._statement(child, guarded and last, followed or not last)
        elif kind == CursorKind.IF_STMT:
            self._if(node, followed)
        elif kind in LOOPS:
            self._loop(node)
        elif kind == CursorKind.SWITCH_STMT:
            self._children(node, followed)
        elif kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT):
            children = list(node.get_children())
            if children:  # A label's value is a constant.
                self._statement(children[-1], False, True)
        elif kind == CursorKind.DECL_STMT:
            for child in node.get_children():
                self._declaration(child, None)
        else:
            self._simple(node, guarded)

    def _children(self, node, followed):
        for child in node.get_children():
            if child.kind.is_expression():
                self._visit(child, None)
            else:
                self._statement(child, False, followed)

    def _if(self, node, followed):
        children = list(node.get_children())
        self._condition(children[0])
        self._note_greater(children[0], self._assigned(children[1]) if len(children) == 2 else ())
        self._visit(children[0], None)
        guarded = len(children) == 2 and followed
        for child in children[1:]:
            self._statement(child, guarded, followed)

    def _loop(self, node):
        children = list(node.get_children())
        body = children[0] if node.kind == CursorKind.DO_STMT else children[-1]
        is_for = node.kind == CursorKind.FOR_STMT
        for child in children:
            if child == body:
                continue
            if child.kind == CursorKind.DECL_STMT:
                for declared in child.get_children():
                    self._declaration(declared, LOOP)
                continue
            end = self.source.span(child)[1]
            before = self.source.text[:self.source.span(child)[0]].rstrip()[-1:]
            is_condition = not is_for or (before == ";" and self.source.text[end:].lstrip()[:1] == ";")
            if is_condition:
                self._condition(child)
            self._visit(child, LOOP if is_for else None)
        self._statement(body, False, True)
        if body.kind == CursorKind.COMPOUND_STMT and self._clean(body) and list(body.get_children()):
            end = self.source.span(body)[1] - 1
            last = list(body.get_children())[-1].kind
            if last not in (CursorKind.RETURN_STMT, CursorKind.BREAK_STMT):
                self._add(LOOP_END, (end, end), [Mutant(LOOP, " break;")])

    def _assigned(self, body):
        """Both sides of the only assignment of an if's body."""
        if body.kind == CursorKind.COMPOUND_STMT:
            statements = list(body.get_children())
            body = statements[0] if len(statements) == 1 else body
        if body.kind == CursorKind.BINARY_OPERATOR and self._operator(body) == "=":
            return list(body.get_children())
        return ()

    def _note_greater(self, condition, two):
        """`a < b ? a : b`, and `if (a < b) a = b`: it makes no difference which of two equal ones is taken."""
        inner = bare(condition)
        if inner.kind == CursorKind.BINARY_OPERATOR and self._operator(inner) in BOUNDARY:
            sides = [self.source.text_of(side) for side in inner.get_children()]
            if sorted(sides) == sorted(self.source.text_of(one) for one in two):
                self.greater.add(self.source.span(inner))

    def _declaration(self, node, place):
        if node.kind != CursorKind.VAR_DECL or node.storage_class.name == "STATIC":
            return
        children = [c for c in node.get_children() if c.kind.is_expression()]
        if not children:
            return
        initial = children[-1]
        start = self.source.span(initial)[0]
        if self.source.text[:start].rstrip()[-1:] == "=":
            self._visit(initial, place)

    def _simple(self, node, guarded):
        """An expression, a return, a break: removed, and looked into."""
        span = self._with_semicolon(node)
        inner = bare(node)
        if inner.kind == CursorKind.CSTYLE_CAST_EXPR and node.type.kind == TypeKind.VOID:
            inner = bare(list(inner.get_children())[-1])
        text = self.source.text_of(node)
        is_macro = self.source.macro_at(self.source.span(node)[0]) == self.source.span(node)
        if is_macro or span is None or scope.STATISTICS.search(text.split("=")[0]) or scope.GROWTH.match(text):
            return
        if inner.kind == CursorKind.CALL_EXPR:
            if scope.CALLS.match(inner.spelling or "") or asserts(inner.referenced):
                return
            self._add(STATEMENT, span, [Mutant(CALL, "")])
        elif node.kind == CursorKind.RETURN_STMT:
            if guarded:
                self._add(STATEMENT, span, [Mutant(REMOVED, "")])
        elif node.kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT) or self._changes(inner):
            self._add(STATEMENT, span, [Mutant(REMOVED, "")])
        if node.kind.is_expression():
            self._visit(node, None)
        else:
            self._children(node, True)

    def _changes(self, node):
        if node.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            return True
        if node.kind == CursorKind.BINARY_OPERATOR:
            return self._operator(node) == "="
        return node.kind == CursorKind.UNARY_OPERATOR and ("++" in self.source.text_of(node)
                                                           or "--" in self.source.text_of(node))

    def _with_semicolon(self, node):
        start, end = self.source.span(node)
        found = re.match(r"\s*;", self.source.text[end:end + 200])
        return (start, end + found.end()) if found else None

    # ---- expressions ----
    def _clean(self, node):
        """Whether the node is written here: no part of what a macro stands for."""
        start, end = self.source.span(node)
        if end <= start:
            return False
        macro = self.source.macro_at(start)
        if macro is not None and (start, end) != macro and (start != macro[0] or end < macro[1]):
            return False
        last = self.source.macro_at(end - 1)
        return last is None or last[1] == end

    def _operator(self, node):
        children = list(node.get_children())
        if len(children) != 2:
            return ""
        between = self.source.text[self.source.span(children[0])[1]:self.source.span(children[1])[0]]
        found = OPERATOR_TEXT.match(between)
        return found[1] if found else ""

    def _visit(self, node, place):
        if not self._clean(node):
            return
        span, kind = self.source.span(node), node.kind
        if self.source.macro_at(span[0]) == span:
            self._macro(node, place)
            return
        if kind == CursorKind.CALL_EXPR and (scope.CALLS.match(node.spelling or "")
                                             or scope.ALLOCATIONS.match(node.spelling or "")):
            return
        if kind in (CursorKind.CXX_UNARY_EXPR, CursorKind.StmtExpr):  # sizeof
            return
        if kind == CursorKind.INIT_LIST_EXPR and re.fullmatch(r"\{\s*0\s*\}", self.source.text_of(node)):
            return
        if kind == CursorKind.UNEXPOSED_EXPR and node.type.kind == TypeKind.POINTER and \
                bare(node).kind == CursorKind.INTEGER_LITERAL:
            return
        if kind == CursorKind.BINARY_OPERATOR:
            self._binary(node, place)
        elif kind == CursorKind.CONDITIONAL_OPERATOR:
            children = list(node.get_children())
            self._condition(children[0])
            self._note_greater(children[0], children[1:])
        elif kind == CursorKind.INTEGER_LITERAL:
            self._number(node, self.source.text_of(node), place)
        elif kind == CursorKind.DECL_REF_EXPR:
            self._enum(node, place)
        elif kind == CursorKind.CALL_EXPR:
            self._arguments(node)
        for child in node.get_children():
            if child.kind.is_expression():
                self._visit(child, place)

    def _macro(self, node, place):
        text = self.source.text_of(node)
        inner = bare(node)
        if re.fullmatch(r"\w+", text) and inner.kind == CursorKind.INTEGER_LITERAL:
            if node.type.get_canonical().kind in INTEGERS:
                self._number(node, text, place)

    def _binary(self, node, place):
        operator = self._operator(node)
        left, right = list(node.get_children())
        if operator in ("&&", "||"):
            self._condition(left)
            self._condition(right)
        if operator not in OPPOSITE:
            return
        one, two = self.source.text_of(left), self.source.text_of(right)
        name = LOOP if place == LOOP else COMPARISON
        mutants = [Mutant(name, f"{one} {OPPOSITE[operator]} {two}")]
        if operator in BOUNDARY and self.source.span(node) not in self.greater:
            spans = (self.source.span(left), self.source.span(right))
            mutants.append(Mutant(name, f"{one} {BOUNDARY[operator]} {two}", spans))
        self._expression(node, mutants)

    def _condition(self, node):
        """A comparison's opposite is the comparison's business, an operand's the operand's."""
        inner = bare(node)
        if not self._clean(node) or not self._clean(inner):
            return
        if inner.kind == CursorKind.BINARY_OPERATOR and self._operator(inner) in {*OPPOSITE, "&&", "||"}:
            return
        if inner.kind == CursorKind.INTEGER_LITERAL:
            return
        text = self.source.text_of(inner)
        if inner.kind == CursorKind.UNARY_OPERATOR and text.startswith("!"):
            self._expression(inner, [Mutant(CONDITION, text[1:].lstrip())])
        else:
            self._expression(inner, [Mutant(CONDITION, f"!({text})")])

    def _number(self, node, text, place):
        name = LOOP if place == LOOP else CONSTANT
        if text in ("true", "false"):
            self._expression(node, [Mutant(name, "false" if text == "true" else "true")])
            return
        found = NUMBER.match(text)
        mutants = [Mutant(name, f"({text} + 1)")]
        if found is None or int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10) > 0:
            mutants.append(Mutant(name, f"({text} - 1)"))
        self._expression(node, mutants)

    def _enum(self, node, place):
        constant = node.referenced
        if constant is None or constant.kind != CursorKind.ENUM_CONSTANT_DECL:
            return
        kind = constant.semantic_parent
        if kind.spelling == "" or kind.is_anonymous():  # A number with a name, not one of several.
            self._number(node, constant.spelling, place)
            return
        known = [c for c in kind.get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL]
        at = [c.spelling for c in known].index(constant.spelling)
        others = [c for c in known[at + 1:] + known[:at][::-1] if c.enum_value != constant.enum_value
                  and not scope.SENTINELS.search(c.spelling)]
        if others:
            self._expression(node, [Mutant(ENUM, others[0].spelling)])

    def _arguments(self, node):
        given = [a for a in node.get_arguments() if a is not None]
        name, mutants = node.spelling or "", []
        if scope.SYMMETRIC.search(name) or (scope.COMPARED.match(name) and scope.EQUALITY.match(
                self.source.text, self.source.span(node)[1])):
            return
        for at, one in enumerate(given):
            two = next((a for a in given[at + 1:] if same_type(a, one)), None)
            if two is None or not self._clean(one) or not self._clean(two):
                continue
            (start, end), (a, b), (c, d) = (self.source.span(n) for n in (node, one, two))
            text = self.source.text
            if "%" in text[a:b] + text[c:d]:  # A format is none of the values.
                continue
            if text[a:b] != text[c:d]:
                mutants.append(Mutant(SWAP, text[start:a] + text[c:d] + text[b:c] + text[a:b] + text[d:end]))
        self._expression(node, mutants)


def same_type(one, two):
    """Of what the function takes; what is given has been converted to it."""
    spelled = [re.sub(r"\bconst\b|\s", "", a.type.get_canonical().spelling) for a in (one, two)]
    return spelled[0] == spelled[1]
