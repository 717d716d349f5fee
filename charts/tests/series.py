"""What a text of ours says of metrics, and what running processes show: names, types, labels.

Texts are PromQL (rules, dashboards) and Markdown (pages with names and PromQL in code). Nothing here
knows the source: `Shown` is filled from /metrics.
"""

import itertools
import re

NAME = re.compile(r"(?<![\w.])(?:holdfast|process)_[a-z_]*[a-z]")
SELECTOR = re.compile(r"((?:holdfast|process)_[a-z_]*[a-z])\s*\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
RATED = re.compile(r"\b(?:rate|irate|increase)\(\s*((?:holdfast|process)_[a-z_]*[a-z])")
# Given by the scrape: by a ServiceMonitor, or by Prometheus.
SCRAPED = {"namespace", "job", "pod", "instance"}
PARTS = ("_bucket", "_sum", "_count")
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")


class Shown:
    """What the processes show."""

    def __init__(self):
        self.types = {}  # family: type
        self.labels = {}  # series' name: {label: values}

    def add(self, text):
        """One answer of /metrics."""
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, family, kind = line.split()
                if self.types.setdefault(family, kind) != kind:
                    raise ValueError(f"{family} is a {kind}, and a {self.types[family]} elsewhere")
                self.labels.setdefault(family, {})  # It may have no series yet.
            elif line and not line.startswith("#"):
                name, labels, _ = SAMPLE.match(line).groups()
                known = self.labels.setdefault(name, {})
                for label, _, value in MATCHER.findall(labels or ""):
                    known.setdefault(label, set()).add(value)
        return self

    def family(self, name):
        """The family that a series belongs to; None: no process shows it."""
        if name in self.types:
            return name
        for part in PARTS:
            base = name.removesuffix(part)
            if base != name and self.types.get(base) == "histogram":
                return base
        return None

    def known(self, name):
        return self.family(name) is not None

    def label_values(self, name, label):
        """None: the metric has no such label."""
        found = self.labels.get(name, {}).get(label)
        if found is None and self.known(name):  # A histogram by its own name.
            found = self.labels.get(self.family(name) + "_bucket", {}).get(label)
        return found


def wrong_matcher(shown, name, matcher, more_values):
    label, operator, value = matcher
    if label in SCRAPED or value.startswith("$"):
        return ""
    if label == "__name__":
        return ""  # Names are found wherever they stand.
    values = shown.label_values(name, label)
    if values is None:
        return f"{name} has no label {label}"
    values = values | more_values.get(label, set())
    if operator in ("=", "!="):
        return "" if value in values else f"{name} has no {label}={value}"
    wanted = value.split("|") if re.fullmatch(r"[\w|]+", value) else [value]
    missing = [one for one in wanted if not any(re.fullmatch(one, v) for v in values)]
    return f"{name}: no {label} is like {missing}" if missing else ""


def wrong_in_query(shown, query, more_values=None):
    """What is wrong with a PromQL expression. `more_values`: of a label, shown only once it happened."""
    wrong = [f"no process shows {name}" for name in NAME.findall(query) if not shown.known(name)]
    if wrong:
        return wrong
    for name, matchers in SELECTOR.findall(query):
        wrong += [wrong_matcher(shown, name, m, more_values or {}) for m in MATCHER.findall(matchers)]
    names = NAME.findall(query)
    for group in GROUPED.findall(query):
        for label in re.findall(r"\w+", group):
            if label not in SCRAPED and all(shown.label_values(n, label) is None for n in names):
                wrong.append(f"grouped by {label}, which none of {names} has")
    for name in RATED.findall(query):
        if shown.types[shown.family(name)] == "gauge":
            wrong.append(f"{name} is a gauge: it has no rate")
    return [text for text in wrong if text]


def spans(markdown):
    """What stands in code: inline, or in blocks."""
    blocks = re.findall(r"^```.*?^```", markdown, re.S | re.M)
    rest = re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M)
    return blocks + re.findall(r"`([^`]+)`", rest)


def expanded(span):
    """`a_{b,c}_total` as two names."""
    pieces = [piece.split(",") for piece in re.split(r"(?<=_)\{([\w,]+)\}", span)]
    for place in range(0, len(pieces), 2):  # What stands between the braces is no list.
        pieces[place] = [",".join(pieces[place])]
    return ["".join(choice) for choice in itertools.product(*pieces)]


def wrong_in_span(shown, span, more_values=None):
    """What is wrong with a piece of code in a page, as far as it is about metrics."""
    pattern = re.fullmatch(r"(\.\.\.|(?:holdfast|process)(?=_))(_[a-z_]*)(\*?)", span)
    if pattern and (pattern[1] == "..." or pattern[3]):  # `..._calls_total`, `process_*`, `..._servers_*`
        begin = "" if pattern[1] == "..." else pattern[1]
        like = re.compile(("" if begin else ".*") + re.escape(begin + pattern[2]) + (".*" if pattern[3] else ""))
        found = any(like.fullmatch(name) for name in shown.types)
        return [] if found else [f"no process shows anything like {span}"]
    if re.fullmatch(r"[a-z][a-z_]*_total", span):  # Short for a name beside it.
        found = any(name.endswith(f"_{span}") or name == span for name in shown.types)
        return [] if found else [f"no process shows anything that ends in {span}"]
    wrong = []
    for text in expanded(re.sub(r"\.\.\._", "_", span)):
        labelled = re.findall(r"([a-z_]+[a-z])\{([a-z_]+(?:,[a-z_]+)*)\}", text)
        for name, labels in labelled:
            wrong += [f"{name} has no label {label}" for label in labels.split(",")
                      if shown.known(name) and shown.label_values(name, label) is None]
        wrong += wrong_in_query(shown, re.sub(r"\{[a-z_,]+\}", "", text), more_values)
    return wrong


def wrong_in_page(shown, markdown, more_values=None):
    inside = spans(markdown)
    wrong = [text for span in inside for text in wrong_in_span(shown, span, more_values)]
    outside = markdown
    for span in sorted(inside, key=len, reverse=True):  # A short one may be part of a name.
        outside = outside.replace(span, "")
    return wrong + [f"no process shows {name}" for name in NAME.findall(outside)
                    if not shown.known(name)]
