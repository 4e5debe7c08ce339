"""Random lines of examples: steps and a question, of words that the package lists, on the columns that are there by then.

What a step makes is learned by taking it, on a frame of made-up rows: the generator has no opinion of its own.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpframe import DPError
from dpframe._frame.surface import PrivateColumn, PrivateFrame
from tests.engines.entries import UFUNCS
from tests.fuzz import names
from tests.fuzz.programs import Line
from tests.fuzz.seams import words
from tests.fuzz.seams.frames import BOUNDS, DTYPES
from tests.internals import NUMPY_FUNCTIONS

Pool = dict[str, tuple[str, ...]]


def asked_of(table: dict[str, Any]) -> Pool:
    """The words of a table that have templates."""
    return {name: templates for name, templates in table.items() if not isinstance(templates, str)}


def _of_ufunc(name: str) -> tuple[str, ...]:
    if name == "isnat":
        return ("np.isnat({t})",)
    kind = ("b", "b") if name in words.CONDITIONS else ("n", "m")
    inside = ", ".join(f"{{{k}}}" for k in kind[: getattr(np, name).nin])
    pair = (
        ()
        if "," not in inside or kind[0] == "b"
        else (f"np.{name}({{n}}, 1)", f"np.{name}(-{{n}}, {{n}})")
    )
    return (f"np.{name}({inside})", *pair)


# Expressions, by registry: those of numpy are made of its own names.
EXPRESSIONS: dict[str, Pool] = {
    "ufuncs": {name: _of_ufunc(name) for name in UFUNCS},
    "numpy": {
        name: words.NUMPY.get(name, (f"np.{name}({{n}})",))
        for name in NUMPY_FUNCTIONS
        if name in words.NUMPY
    },
    "column": asked_of(words.COLUMN),
    "text": dict(words.TEXT),
    "time": dict(words.TIME),
    "category": asked_of(words.CATEGORY),
    "operators": {template: (template,) for template in words.OPERATORS},
    "functions": asked_of(words.FUNCTIONS),
}
OWN: dict[str, Pool] = {"own": asked_of(words.OWN), "window": dict(words.WINDOW)}
STEPS: Pool = words.STEPS
ASKS: Pool = words.ASKS
GROUPS: Pool = asked_of(words.GROUPS)
COLUMN_ASKS: Pool = words.COLUMN_ASKS
ASKED: dict[str, Pool] = {"asks": ASKS, "groups": GROUPS, "column asks": COLUMN_ASKS}
# Every word, and within people every word once more for rows that were made of others: seeds take turns with them.
WORDS: tuple[tuple[str, str], ...] = (
    *(
        (table, name)
        for table, pool in {**EXPRESSIONS, **OWN, "steps": STEPS, **ASKED}.items()
        for name in pool
    ),
    *(("order", name) for pool in OWN.values() for name in pool),
)
NAMES = dict(names.NAMES)  # and the frame that lines are made on, as "model"
DAY = "(pd.Timestamp('2024-01-10') - p['t'])"


class Planned(BaseException):
    """A question is planned, and would be paid for now."""


class Unfit(Exception):
    """No column is there for what was drawn."""


@dataclass
class Generator:
    """Draws lines for a frame, which is taken along step by step."""

    r: random.Random
    root: Any  # a tracked frame of made-up rows
    people: bool
    delta: bool
    replaces: bool
    limits: str = ""  # of derived rows
    p: Any = None
    last: Any = None

    def line(self) -> Line:
        """One line; where the frame has no column for what was drawn, another is drawn."""
        self.p, steps = self.root, []
        recipe = [self.step] * self.r.choice((0, 0, 1, 1, 1, 2, 3))
        # What goes by the order of rows that were made of others.
        if self.people and self.r.random() < 0.2:
            recipe = [self.sort, self.derive, self.own][self.r.randrange(2) :]
        for make in recipe:
            step = self.attempt(make)
            if step is not None:
                steps.append(step)
        ask = self.attempt(self.ask, keep=True)
        return Line(steps, ask or "p.count(epsilon=1)")

    def attempt(self, make: Callable[[], str], keep: bool = False) -> str | None:
        """What can be taken here. A step that is refused is drawn again; now and then a refused question is kept."""
        for _ in range(12):
            try:
                text = make()
                made = self.value(text)
            except Planned:
                return text
            except Unfit:
                continue
            except DPError:
                if keep and self.r.random() < 0.1:
                    return text
                continue
            except Exception:
                continue  # what has no meaning in Python: the same on both sides, and nothing was asked
            if not keep:
                self.p = made
            return text
        return None

    def pair(self) -> tuple[Line, Line]:
        """Two lines that are one release."""
        self.p, steps = self.root, []
        if self.r.random() < 0.3:
            step = self.attempt(self.step)
            steps = [] if step is None else [step]
        of_rows = (
            not self.people and not steps
        )  # a step may make rows of others, or choose columns to be counted
        pairs = (*words.SAME, *words.SAME_OF_ROWS) if of_rows else words.SAME
        for _ in range(5):
            first, second = self.r.choice(pairs)
            text = self.attempt(lambda: self.fill(f"{first} == {second}"))  # noqa: B023
            if text is None:
                continue
            one, other = text.split(" == ", 1)
            if self.attempt(lambda: other) is not None:  # noqa: B023
                return Line(steps, one), Line(steps, other)
        return Line([], "p.count(epsilon=1)"), Line([], "p.agg(n=('y', 'size'), epsilon=1)")

    def value(self, text: str) -> Any:
        return eval(text, {**NAMES, "p": self.p, "df": NAMES.get("model")})

    def about(self, registry: str, name: str) -> Line:
        """A line about one word: of an expression what it makes of every row, of a step a question of what it makes."""
        self.p, steps = self.root, []
        if registry in ASKED:
            text = self.attempt(lambda: self.asked(registry, name))
            return Line([], text) if text else self.line()
        if registry == "order":
            recipe = [self.sort, self.derive, lambda: self.own(name)][self.r.randrange(2) :]
        elif registry in OWN:
            recipe = [lambda: self.own(name)]
        elif registry == "steps":
            recipe = [lambda: self.stepped(name)]
        else:
            recipe = [lambda: self.looked_at(self.fill(self.r.choice(EXPRESSIONS[registry][name])))]
        for make in recipe:
            step = self.attempt(make)
            if step is not None:
                steps.append(step)
        return Line(steps, self.attempt(self.summary) or "p.count(epsilon=1)")

    def looked_at(self, text: str) -> str:
        """A step that shows what an expression is in each row: the sign of a zero, too."""
        made = eval(text, {**NAMES, "p": self.p})
        kind = made._expr.kind if isinstance(made, PrivateColumn) else None
        if kind == "bool":
            return f"p[{text}]"
        if kind == "number":
            probes = (f"p[1 / ({text}) > 0]", f"p[1 / ({text}) < 0]", f"p.assign(v=1 / ({text}))")
            return self.r.choice((*probes, f"p.assign(v={text})", f"p[({text}).isna()]"))
        return f"p.assign(v={text})"

    def summary(self) -> str:
        """A question that most rows have a say in."""
        if "v" not in self.p._selection.columns or self.r.random() < 0.2:
            return self.r.choice(
                ("p.count(epsilon=1)", self.fill("p.sum({N}, bounds={Z}, epsilon=1)"))
            )
        kind = self.p._selection.columns["v"].kind
        if kind == "number":
            return self.fill("p.sum('v', bounds={Z}, epsilon=1)")
        asks = ["p.count('v', epsilon=1)", "p.nunique('v', epsilon=1)"]
        if kind in ("text", "label"):
            asks.append("p.value_counts('v', keys=['a', 'b', 'A', 'aa'], epsilon=1)")
        return self.r.choice(asks)

    # Words ----------------------------------------------------------------------------------------------------------

    def drawn(self, registries: dict[str, Pool]) -> str:
        registry = self.r.choice(tuple(registries))
        name = self.r.choice(tuple(registries[registry]))
        return self.fill(self.r.choice(registries[registry][name]))

    def sort(self) -> str:
        return self.fill(self.r.choice(STEPS["sort_values"]))

    def derive(self) -> str:
        """Rows that are made of others, with the column that names their person."""
        text = self.fill(self.r.choice(STEPS[self.r.choice(("melt", "explode", "merge"))]))
        if "id" not in self.value(text)._selection.columns:
            raise Unfit
        return text

    def own(self, name: str | None = None) -> str:
        """A step within each person's rows."""
        if name is None:
            text = self.drawn(OWN)
        else:
            text = self.fill(
                self.r.choice(next(pool[name] for pool in OWN.values() if name in pool))
            )
        return f"p.assign(v={text})" if isinstance(self.value(text), PrivateColumn) else text

    def probe(self) -> str:
        """A condition that tells the sign of a zero, and nulls from infinities."""
        number = self.expression("number")
        return self.r.choice((f"1 / ({number}) > 0", f"1 / ({number}) < 0", f"({number}).isna()"))

    def step(self) -> str:
        if self.people and self.r.random() < 0.25:
            return self.own()
        if self.r.random() < 0.35:
            kind = self.r.random()
            if kind < 0.3:
                return f"p[{self.probe()}]"
            expression = self.expression(None)
            return f"p.assign(v={expression})" if kind < 0.8 else f"p[{self.expression('bool')}]"
        names = [n for n in STEPS if self.people or n not in words.PERSONAL]
        names = [
            n for n in names if self.people or "person(p)" not in "".join(STEPS[n]) or n == "merge"
        ]
        heavy = [
            *("merge" for _ in range(12)),
            *("melt" for _ in range(6)),
            *("explode" for _ in range(6)),
        ]
        return self.stepped(self.r.choice([*names, *heavy]))

    def stepped(self, name: str) -> str:
        text = self.fill(self.r.choice(STEPS[name]))
        made = self.value(text)
        return text if isinstance(made, PrivateFrame) else f"p.assign(v={text})"

    def ask(self) -> str:
        registry = self.r.choice(("asks", "asks", "groups", "column asks", "column asks"))
        return self.asked(registry, self.r.choice(tuple(ASKED[registry])))

    def asked(self, registry: str, name: str) -> str:
        text = self.fill(self.r.choice(ASKED[registry][name]))
        if registry != "groups":
            return text
        return text.replace("grouped", self.fill(self.r.choice(words.GROUPED)), 1)

    # What stands in templates ---------------------------------------------------------------------------------------

    def columns(self, *kinds: str) -> list[Any]:
        found = self.p._selection.columns.items()
        return [n for n, e in found if not kinds or e.kind in kinds]

    def name(self, *kinds: str) -> Any:
        fitting = [
            n for n in self.columns(*kinds) if n != "id" and (n == "l") == ("other" in kinds)
        ]
        if not fitting:
            raise Unfit
        return self.r.choice(fitting)

    def expression(self, kind: str | None, depth: int = 0) -> str:
        """An expression of a kind, a column most of the time where it stands inside another."""
        for _ in range(10):
            text = self.drawn(
                {**EXPRESSIONS, **(OWN if self.people and self.r.random() < 0.2 else {})}
            )
            try:
                made = eval(text, {**NAMES, "p": self.p})
            except Exception:
                continue
            if isinstance(made, PrivateColumn) and kind in (None, made._expr.kind):
                return text
        raise Unfit

    def value_of(self, kind: str, depth: int) -> str:
        if kind == "duration" and not self.columns("duration"):
            if "t" not in self.columns("time"):
                raise Unfit
            return DAY
        fitting = [n for n in self.columns(kind) if n not in ("id", "l")]
        if depth < 2 and (not fitting or self.r.random() < 0.25):
            return f"({self.expression(kind, depth + 1)})"
        return f"p[{self.name(kind)!r}]"

    def fill(self, template: str, depth: int = 0) -> str:
        """A template with columns of this frame."""
        found = {}
        for _, token, _, _ in string.Formatter().parse(template):
            if token is None or token in found:
                continue
            found[token] = self.token(token, depth)
        text = template.format(**found)
        return text.replace("own", "p.groupby('id')", 1) if _names_own(text) else text

    def token(self, token: str, depth: int) -> str:
        kinds = {
            "n": "number",
            "m": "number",
            "b": "bool",
            "s": "text",
            "t": "time",
            "d": "duration",
        }
        if token in kinds:
            return self.value_of(kinds[token], depth)
        names = {
            "N": ("number",),
            "M": ("number",),
            "B": ("bool",),
            "S": ("text",),
            "T": ("time",),
            "L": ("other", "label"),
        }
        if token == "M":  # another than the one before, if there is one
            others = [n for n in self.columns("number") if n not in ("id", self.last)]
            return repr(self.r.choice(others) if others else self.name("number"))
        if token in names:
            self.last = self.name(*names[token])
            return repr(self.last)
        if token == "G":
            return repr(self.name("text", "label"))
        if token == "C":
            return repr(self.name("number", "text", "bool", "time", "label"))
        if token == "K":
            return self.r.choice(
                ("['a', 'b', 'c']", "['b', 'a']", "['c', 'a', None]", "['a', 'bb', 'ab', 'u']")
            )
        if token == "Z":
            return self.r.choice(("(0, 1)", "(-2, 5)", "(0, 3)", "(0.1, 0.7)", "(-1, 1)"))
        if token in ("R", "Q"):
            return self.limits if token == "R" or self.people else ""
        assert token == "W", token
        found = [f"epsilon={self.r.choice((0.5, 1, 2))}"]
        if self.r.random() < 0.15:
            found.append(
                f"mechanism={self.r.choice(('laplace', 'gaussian') if self.delta else ('laplace',))!r}"
            )
        if self.people and self.r.random() < 0.15:
            found.append(self.r.choice(("max_rows=1", "max_rows=2", "max_groups=1")))
        return ", ".join(found)


def _names_own(text: str) -> bool:
    return text.startswith(("own[", "own."))


__all__ = ["BOUNDS", "DTYPES", "Generator", "Line"]
