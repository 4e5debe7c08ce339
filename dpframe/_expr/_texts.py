"""Texts: regular expressions of linear time, texts put together and taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar

from dpframe._errors import BadType, BadValue
from dpframe._expr._base import Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import CALLS, CASTERS, _describe, fill, is_null, logical_or, str_part
from dpframe._expr._choices import in_order
from dpframe._expr._kinds import Kind
from dpframe._expr._moments import moment
from dpframe._expr._operators import BY_KIND
from dpframe._expr._patterns import ALL_MATCHES, Pattern, check_pattern

# op: kind of what it gives.
PATTERNS: dict[str, Kind] = {
    "match": "bool",
    "fullmatch": "bool",
    "count": "number",
    "extract": "text",
    "replace": "text",
}


@dataclass(frozen=True, slots=True)
class Regex(Expr):
    """What a regular expression finds in a text, in time linear in the text. Cells that are no
    strings are null; of a text column the answer to a yes-or-no question is no then."""

    identity: ClassVar[tuple[str, ...]] = (
        "regex",
        "x",
        "op",
        "pattern",
        "case",
        "group",
        "replacement",
        "most",
    )

    x: Expr
    op: str
    pattern: str
    case: bool = True
    group: int = 0
    replacement: str = ""
    most: int = -1

    @property
    def text_pattern(self) -> Pattern:
        """The pattern with its operation and options."""
        return Pattern(self.op, self.pattern, self.case, self.group, self.replacement, self.most)

    @property
    def kind(self) -> Kind:
        return PATTERNS[self.op]

    @property
    def nullable(self) -> bool:
        return self.kind != "bool" or self.x.kind != "text"

    @property
    def integral(self) -> bool:
        return self.kind in ("number", "bool")

    def __str__(self) -> str:
        more = {"extract": f", group {self.group}", "replace": f", {self.replacement!r}"}.get(
            self.op, ""
        )
        return (
            f"{self.x}.str.{self.op}({self.pattern!r}{more}{'' if self.case else ', case=False'})"
        )


@dataclass(frozen=True, slots=True)
class Join(Expr):
    """One text after the other; null where one is null, or where both together have more than
    65,536 characters."""

    identity: ClassVar[tuple[str, ...]] = ("join", "left", "right")

    left: Expr
    right: Expr

    @property
    def kind(self) -> Kind:
        return "text"

    @property
    def nullable(self) -> bool:
        return True

    def members(self, keys: KeysOf, ends: Lookup) -> tuple[Any, ...] | None:
        sides = [
            (side.value,) if isinstance(side, Constant) else side.members(keys, ends)
            for side in (self.left, self.right)
        ]
        if sides[0] is None or sides[1] is None or len(sides[0]) * len(sides[1]) > _MOST_KEYS:
            return None
        return in_order({a + b for a in sides[0] for b in sides[1] if type(a) is type(b) is str})

    def __str__(self) -> str:
        return f"({self.left} + {self.right})"


_MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Split(Expr):
    """``x.str.split(sep, n=)``: a list of texts, which has pieces and nothing else. Without a
    separator, blanks separate."""

    identity: ClassVar[tuple[str, ...]] = ("split", "x", "sep", "most", "right", "keeps")

    x: Expr
    sep: str | None
    most: int = -1
    right: bool = False
    keeps: bool = False  # the separator, as a piece of its own: partition

    @property
    def kind(self) -> Kind:
        return "other"

    @property
    def nullable(self) -> bool:
        return True

    def __str__(self) -> str:
        name = "partition" if self.keeps else "split"
        return (
            f"{self.x}.str.{'r' * self.right}{name}({'' if self.sep is None else repr(self.sep)})"
        )


@dataclass(frozen=True, slots=True)
class Piece(Expr):
    """``x.str.split(sep).str[i]``: one text of a list; null where there is none."""

    identity: ClassVar[tuple[str, ...]] = ("piece", "x", "place")

    x: Split
    place: int

    @property
    def kind(self) -> Kind:
        return "text"

    @property
    def nullable(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{self.x}.str[{self.place}]"


@dataclass(frozen=True, slots=True)
class Pieces(Expr):
    """``x.str.split(sep).str.len()``: how many texts a list has."""

    identity: ClassVar[tuple[str, ...]] = ("pieces", "x")

    x: Split

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        return True

    @property
    def integral(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"{self.x}.str.len()"


@dataclass(frozen=True, slots=True)
class Numeral(Expr):
    """A text read as a number, as a double: a sign, digits, a point and an exponent, between
    blanks; null where it is none."""

    identity: ClassVar[tuple[str, ...]] = ("numeral", "x")

    x: Expr

    @property
    def kind(self) -> Kind:
        return "number"

    @property
    def nullable(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"to_numeric({self.x})"


# ---- patterns ---------------------------------------------------------------------------------------------


def group_names(pattern: str) -> list[Any]:
    """What pandas calls the columns of the groups: their names, or their numbers from 0."""
    found = re.compile(pattern)
    names = {place: name for name, place in found.groupindex.items()}
    return [names.get(i + 1, i) for i in range(found.groups)]


def _may_be_absent(pattern: str) -> bool:
    """Whether a match may have a group without a part in it, which RE2 does not tell from an empty
    one: a group among alternatives, or one that may be repeated no times."""
    parser: Any = import_module("re._parser")
    return _has_group(parser.parse(pattern), False)


def _has_group(tree: Any, optional: bool) -> bool:
    for op, detail in tree:
        name = str(op)
        if name == "SUBPATTERN":
            inside = [(detail[-1], optional)]
            if detail[0] is not None and optional:
                return True
        elif name == "BRANCH":
            inside = [(part, True) for part in detail[1]]
        elif name.endswith("REPEAT"):
            inside = [(detail[2], optional or detail[0] == 0)]
        else:
            continue
        if any(_has_group(part, may) for part, may in inside):
            return True
    return False


# ---- constructors -----------------------------------------------------------------------------------------


def regex(
    x: Expr, op: str, pat: object, case: object = True, flags: object = 0, **more: Any
) -> Expr:
    """A question to a regular expression; ``flags=re.IGNORECASE`` is the one flag there is."""
    if x.kind not in ("text", "label"):
        raise BadType(f".str needs strings, and {_describe(x)} is none.")
    pat, case, flags = (v.value if isinstance(v, Constant) else v for v in (pat, case, flags))
    if isinstance(pat, re.Pattern):
        flags, pat = pat.flags & ~re.UNICODE, pat.pattern
    if not isinstance(pat, str):
        raise BadType(f".str.{op} needs pat as str.")
    if not _is_flag(flags) or not isinstance(case, bool | None):
        raise BadType(f".str.{op} has no other flags here than re.IGNORECASE.")
    found = Regex(x, op, pat, case is not False and not flags, **more)
    check_pattern(found.text_pattern)
    return found


def _is_flag(flags: object) -> bool:
    return isinstance(flags, int) and not isinstance(flags, bool) and flags in (0, re.IGNORECASE)


def extracted(x: Expr, pat: object, flags: object = 0) -> dict[Any, Expr]:
    """The groups of a pattern in the first place where it matches, by the names that pandas gives
    them."""
    found = regex(x, "extract", pat, flags=flags)
    assert isinstance(found, Regex)
    names = group_names(found.pattern)
    if not names:
        raise BadValue(".str.extract needs a group in the pattern, in parentheses: r'(\\d+)'.")
    if _may_be_absent(found.pattern):
        raise BadValue(
            ".str.extract: a group of this pattern may have no part in a match. Write the alternatives inside of the group, and "
            "what may be absent as (...*) and not (...)*."
        )
    return {
        name: Regex(found.x, "extract", found.pattern, found.case, i + 1)
        for i, name in enumerate(names)
    }


def join(op: str, left: Expr, right: Expr) -> Expr:
    """``left + right`` of texts."""
    if op != "+" or not {left.kind, right.kind} <= {"text", "label"}:
        raise BadType(
            f"{_describe(left)} {op} {_describe(right)} has no value. Texts are joined by +; numbers become texts by "
            ".astype('str')."
        )
    return Join(left, right)


BY_KIND.update(text=join, label=join)


def cat(x: Expr, others: object, sep: object = None, na_rep: object = None) -> Expr:
    """``x.str.cat(other, sep=)``."""
    listed = list(others) if isinstance(others, list | tuple) else [others]
    if not listed or not all(isinstance(o, Expr) for o in listed):
        raise BadType(
            ".str.cat takes a tracked column, or a list of them: alone it would join the rows of people."
        )
    if not isinstance(sep, str | None) or not isinstance(na_rep, str | None):
        raise BadType(".str.cat needs sep and na_rep as texts.")
    found: Expr = x if na_rep is None else fill(x, na_rep)
    for other in listed:
        assert isinstance(other, Expr)
        right = other if na_rep is None else fill(other, na_rep)
        found = join("+", join("+", found, Constant(sep)) if sep else found, right)
    return found


def split(
    x: Expr, pat: object = None, n: object = -1, regex: object = None, *, right: bool = False
) -> Split:
    """``x.str.split(sep)``, by a text that is no pattern."""
    if not isinstance(regex, bool | None):
        raise BadType(".str.split needs regex as bool.")
    _check_parts(x, pat, n)
    if (
        isinstance(pat, str)
        and is_special(pat)
        and (regex is True or (len(pat) > 1 and regex is not False))
    ):
        raise BadType(
            ".str.split has a plain text as its separator here: regex=False. A pattern is for .str.extract(r'(\\w+)')."
        )
    return Split(x, pat if isinstance(pat, str) and pat else None, _limit_matches(n), right)


def _limit_matches(n: Any) -> int:
    """Return how many matches count, or -1 for all: no text has as many as `ALL_MATCHES`."""
    return int(n) if isinstance(n, int) and 0 < n < ALL_MATCHES else -1


def partition(x: Expr, sep: object = " ", *, right: bool = False) -> Split:
    """``x.str.partition(sep)``: what stands before a separator, the separator, and what stands
    after it."""
    _check_parts(x, sep, -1)
    if not sep or not isinstance(sep, str):
        raise BadType(".str.partition needs a separator.")
    return Split(x, sep, 1, right, True)


def _check_parts(x: Expr, pat: object, n: object) -> None:
    if x.kind not in ("text", "label"):
        raise BadType(f".str needs strings, and {_describe(x)} is none.")
    if not isinstance(pat, str | None) or not isinstance(n, int | None) or isinstance(n, bool):
        raise BadType(".str.split takes a text and a number of splits.")


def piece(x: Expr, place: object) -> Expr:
    """One text of those that a text was split into."""
    if isinstance(place, bool) or not isinstance(place, int) or not isinstance(x, Split):
        raise BadType("a piece has a place, such as .str.split('-').str[0].")
    return Piece(x, place)


# ---- names of pandas --------------------------------------------------------------------------------------


def _asked(op: str) -> Callable[..., Expr]:
    def ask(
        x: Expr, pat: object, case: object = True, flags: object = 0, na: object = None
    ) -> Expr:
        return answered(x, regex(x, op, pat, case, flags), na)

    return ask


def answered(x: Expr, found: Expr, na: object) -> Expr:
    """The answer with what ``na=`` says of nulls."""
    if na is None or na is False:
        return fill(found, False) if na is False and found.nullable else found
    if na is True:
        return logical_or(is_null(x), found)
    raise BadType("na= is True or False.")


def _contained(
    x: Expr,
    pat: object,
    case: object = True,
    flags: object = 0,
    na: object = None,
    regex_: object = True,
) -> Expr:
    """``contains``: a pattern, but for ``regex=False``."""
    if isinstance(pat, re.Pattern):
        flags, pat = pat.flags & ~re.UNICODE, pat.pattern
    if not _is_flag(flags):
        raise BadType(".str.contains has no other flags here than re.IGNORECASE.")
    if not isinstance(regex_, bool):
        raise BadType(".str.contains needs regex as bool.")
    found = str_part(x, "contains", pat, False if flags else case, regex_)
    if regex_ and isinstance(pat, str):
        check_pattern(Pattern("contains", pat, case is not False and not flags))
    return answered(x, found, na)


def _begins(method: str) -> Callable[..., Expr]:
    def make(x: Expr, pat: object, na: object = None) -> Expr:
        """Whether it begins or ends with the text, or with one of a tuple of them."""
        if isinstance(pat, tuple) and pat:
            found = reduce(logical_or, [str_part(x, method, one) for one in pat])
            return answered(x, found, na)
        return answered(x, str_part(x, method, pat), na)

    return make


def _replaced(
    x: Expr,
    pat: object,
    repl: object,
    n: object = -1,
    case: object = None,
    flags: object = 0,
    regex_: object = False,
) -> Expr:
    """``replace``: plain text by plain text, or with ``regex=True`` what a pattern finds."""
    if not isinstance(pat, str | re.Pattern) or not isinstance(repl, str):
        raise BadType(".str.replace needs pat as str and repl as str.")
    if not isinstance(n, int) or isinstance(n, bool) or not _is_flag(flags):
        raise BadType(".str.replace needs n as a whole number, and no flags but re.IGNORECASE.")
    if not isinstance(regex_, bool) or not isinstance(case, bool | None):
        raise BadType(".str.replace needs regex and case as bool.")
    most = _limit_matches(n)
    plain = isinstance(pat, str) and most == -1 and case is not False and not flags
    if plain and not (regex_ and is_special(str(pat) + str(repl))):
        return str_part(x, "replace", pat, repl)
    if not regex_ and isinstance(pat, str):
        pat, repl = re.escape(pat), repl.replace("\\", "\\\\")
    return regex(x, "replace", pat, case is not False, flags, replacement=repl, most=most)


def is_special(pattern: str) -> bool:
    """Whether a text means something else as a pattern."""
    return bool(set(pattern) & set(".^$*+?{}[]\\|()"))


def text_part(x: Expr, method: str, *args: Any, **options: Any) -> Expr:
    """``x.str.method(...)`` of one text, by pandas' names and words."""
    if isinstance(x, Split):
        if method == "get" and len(args) == 1 and not options:
            return piece(x, args[0])
        if method == "len" and not args and not options:
            return Pieces(x)
        raise BadType("what was split has .str[i], .str.get(i) and .str.len().")
    make = TEXT_METHODS.get(method)
    if make is None:
        return str_part(x, method, *args, **options)
    words = {("regex_" if k == "regex" else k): v for k, v in options.items()}
    own = [p.replace("regex_", "regex") for p in list(signature(make).parameters)[1:]]
    try:
        signature(make).bind(x, *args, **words)
    except TypeError:
        raise BadType(f".str.{method} takes ({', '.join(own)}) here, nothing else.") from None
    return make(x, *args, **words)


def numeral(x: Expr) -> Expr:
    """``to_numeric`` of a text."""
    if x.kind not in ("text", "label"):
        raise BadType(f"to_numeric needs texts, and {_describe(x)} is none.")
    return Numeral(x)


CALLS.update(to_numeric=numeral)
CASTERS["float"] = numeral
CASTERS["time"] = moment
TEXT_METHODS: dict[str, Callable[..., Expr]] = {
    "contains": _contained,
    "startswith": _begins("startswith"),
    "endswith": _begins("endswith"),
    "match": _asked("match"),
    "fullmatch": _asked("fullmatch"),
    "count": lambda x, pat, flags=0: regex(x, "count", pat, flags=flags),
    "replace": _replaced,
    "cat": lambda x, others=None, sep=None, na_rep=None, join="left": cat(x, others, sep, na_rep),
    "split": lambda x, pat=None, n=-1, expand=False, regex_=None: split(x, pat, n, regex_),
    "rsplit": lambda x, pat=None, n=-1, expand=False: split(x, pat, n, right=True),
    "partition": lambda x, sep=" ", expand=False: partition(x, sep),
    "rpartition": lambda x, sep=" ", expand=False: partition(x, sep, right=True),
}
