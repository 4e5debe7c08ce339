"""Functions of texts: those of ``.str``, ``to_numeric``, and the parts of a text that was split.

A cell that is not a string is null. In a text column a yes-or-no question about a null is answered
with no, as pandas' own string dtype does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial, reduce
from importlib import import_module
from typing import Any

from dpframe._errors import BadType, BadValue
from dpframe._expr._base import Constant, Expr, KeysOf, Lookup
from dpframe._expr._build import CASTERS, describe, fill, is_null, logical_or
from dpframe._expr._choices import in_order
from dpframe._expr._kinds import Kind
from dpframe._expr._operators import BY_KIND
from dpframe._expr._patterns import ALL_MATCHES, LONGEST_TEXT, Pattern, check_pattern, find
from dpframe._expr.catalogue.ops import OPS, Arg, Call, Op, call, call_function, list_ops, register
from dpframe._types import Values

MAX_WIDTH = 10_000  # characters that a text is filled up to, and times that it is repeated
_MOST_KEYS = 10_000  # of two texts that are put together
TEXTS: tuple[Kind, ...] = ("text", "label")


# ---- plain texts ---------------------------------------------------------------------------------


def _answers_nulls(e: Call) -> bool:
    """Return whether the result of a function of texts can be null."""
    return e.kind != "bool" or e.operands[0].kind != "text"


text_op: Callable[..., Op] = partial(
    Op, of=TEXTS, nulls=_answers_nulls, identity=("text", "x", "name", "args")
)


def _limit_width(width: int) -> str | None:
    """Return what is wrong with a width, for a message; None if it is allowed.

    A width decides how much memory one cell takes.
    """
    if abs(width) <= MAX_WIDTH:
        return None
    return f"it is limited to a width of {MAX_WIDTH}, and {width} is beyond it."


def _check_fill(character: str) -> str | None:
    return None if len(character) == 1 else "it needs one character to fill with."


def _check_side(side: str) -> str | None:
    return None if side in _SIDES else f"the sides are 'left', 'right' and 'both', not {side!r}."


def _check_step(step: int | None) -> str | None:
    return "the step of a slice cannot be 0." if step == 0 else None


_MAYBE_INT, _MAYBE_TEXT = (int, type(None)), (str, type(None))
_START, _STOP = Arg("start", _MAYBE_INT, None), Arg("stop", _MAYBE_INT, None)
_STRIPPED = Arg("to_strip", _MAYBE_TEXT, None)
_WIDTH = Arg("width", (int,), problem=_limit_width)
_FILL = Arg("fillchar", (str,), " ", _check_fill)
_SOUGHT = (Arg("sub", (str,)), Arg("start", (int,), 0), Arg("end", _MAYBE_INT, None))
_PAT, _CASE = Arg("pat", (str,)), Arg("case", (bool,), True)
_SIDES = {"left": "rjust", "right": "ljust", "both": "center"}  # pandas names the side to be filled


def _pad(x: str, width: int, side: str, fillchar: str) -> str:
    found: str = getattr(x, _SIDES[side])(width, fillchar)
    return found


def _repeat(x: str, repeats: int) -> str | None:
    return x * repeats if len(x) * repeats <= LONGEST_TEXT else None


def _slice(x: str, start: int | None, stop: int | None, step: int | None) -> str:
    return x[start:stop:step]


def _replace_slice(x: str, start: int | None, stop: int | None, repl: str | None) -> str:
    """Return a text with ``repl`` in place of the slice from ``start`` to ``stop``.

    As in pandas, an empty slice is replaced where it begins.
    """
    rest = start if x[start:stop] == "" else stop
    before = "" if start is None else x[:start]
    return before + (repl or "") + ("" if stop is None else x[rest:])


def _replace(x: str, pat: str, repl: str) -> str | None:
    grown = len(x) + (x.count(pat) + (not pat)) * (len(repl) - len(pat))
    return x.replace(pat, repl) if grown <= LONGEST_TEXT else None


def _get(x: Any, i: int) -> Any:
    """Return the character of a text at a place, or the item of a list; None beyond its end."""
    return x[i] if -len(x) <= i < len(x) else None


_NUMERAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def _read_number(x: str) -> float | None:
    return float(x) if len(x) <= 400 and _NUMERAL.fullmatch(x) is not None else None


register(
    *[
        text_op(
            name=f"str.{name}", kind="text", value=getattr(str, name), doc=doc, examples=examples
        )
        for name, doc, examples in [
            ("lower", "Return the text in lower case.", [("Ab", "ab"), ("", ""), (None, None)]),
            ("upper", "Return the text in upper case.", [("Ab", "AB"), ("é", "É")]),
            ("title", "Return the text with each word in title case.", [("ab cD", "Ab Cd")]),
            (
                "capitalize",
                "Return the text with its first letter in upper case.",
                [("aB c", "Ab c")],
            ),
            ("swapcase", "Return the text with upper and lower case exchanged.", [("aB", "Ab")]),
            ("casefold", "Return the text without differences of case.", [("Straße", "strasse")]),
        ]
    ]
)
register(
    *[
        text_op(
            name=f"str.{name}",
            kind="text",
            value=getattr(str, name),
            args=(_STRIPPED,),
            doc=f"Return the text without blanks, or without some characters, at {where}.",
            examples=examples,
        )
        for name, where, examples in [
            ("strip", "both ends", [(" a ", None, "a"), ("xax", "x", "a")]),
            ("lstrip", "its start", [(" a ", None, "a "), ("xax", "x", "ax")]),
            ("rstrip", "its end", [(" a ", None, " a"), ("xax", "x", "xa")]),
        ]
    ]
)
register(
    *[
        text_op(
            name=f"str.{name}",
            kind="bool",
            value=getattr(str, name),
            examples=examples,
            doc=f"Return whether {what}.",
        )
        for name, what, examples in [
            (
                "isdigit",
                "all characters are digits",
                [("12", True), ("²", True), ("1a", False), ("", False)],
            ),
            ("isalpha", "all characters are letters", [("aß", True), ("a1", False), ("", False)]),
            ("isalnum", "all characters are letters or digits", [("a1", True), ("a-1", False)]),
            ("isnumeric", "all characters are numeric", [("½", True), ("a", False)]),
            ("isdecimal", "all characters are decimal digits", [("12", True), ("²", False)]),
            ("isspace", "all characters are whitespace", [(" ", True), ("a", False), ("", False)]),
            (
                "islower",
                "all letters are in lower case",
                [("a1", True), ("aB", False), ("1", False)],
            ),
            (
                "isupper",
                "all letters are in upper case",
                [("A1", True), ("aB", False), ("1", False)],
            ),
            ("istitle", "each word is in title case", [("Ab Cd", True), ("ab", False)]),
            ("isascii", "all characters are ASCII", [("a", True), ("é", False), ("", True)]),
        ]
    ]
)
register(
    text_op(
        name="str.len",
        kind="number",
        value=len,
        doc="Return the number of characters.",
        examples=[("abc", 3.0), ("", 0.0), (None, None)],
        sql={
            "duckdb": "LENGTH({x})",
            "postgresql": "CHAR_LENGTH({x})",
            "spark": "CHAR_LENGTH({x})",
        },  # a NUL ends a text for SQLite's LENGTH
    ),
    text_op(
        name="str.zfill",
        kind="text",
        value=str.zfill,
        args=(_WIDTH,),
        examples=[("-1", 4, "-001"), ("abc", 2, "abc")],
        doc="Return the text with zeros in front of it, behind a sign.",
    ),
    text_op(
        name="str.pad",
        kind="text",
        value=_pad,
        args=(_WIDTH, Arg("side", (str,), "left", _check_side), _FILL),
        examples=[("a", 3, "  a"), ("a", 3, "both", "*", "*a*")],
        doc="Return the text filled up to a width.",
    ),
    text_op(
        name="str.ljust",
        kind="text",
        value=str.ljust,
        args=(_WIDTH, _FILL),
        examples=[("a", 3, "a  "), ("a", 2, "*", "a*")],
        doc="Return the text filled up on its right.",
    ),
    text_op(
        name="str.rjust",
        kind="text",
        value=str.rjust,
        args=(_WIDTH, _FILL),
        examples=[("a", 3, "  a"), ("a", 2, "*", "*a")],
        doc="Return the text filled up on its left.",
    ),
    text_op(
        name="str.center",
        kind="text",
        value=str.center,
        args=(_WIDTH, _FILL),
        examples=[("a", 3, " a "), ("a", 3, "*", "*a*")],
        doc="Return the text filled up on both sides.",
    ),
    text_op(
        name="str.repeat",
        kind="text",
        value=_repeat,
        args=(Arg("repeats", (int,), problem=_limit_width),),
        examples=[("ab", 2, "abab"), ("ab", 0, "")],
        doc="Return the text several times over; null beyond 65,536 characters.",
    ),
    text_op(
        name="str.slice",
        kind="text",
        value=_slice,
        args=(_START, _STOP, Arg("step", _MAYBE_INT, None, _check_step)),
        examples=[("abc", 1, "bc"), ("abc", 0, 2, "ab"), ("abc", None, None, -1, "cba")],
        doc="Return a slice of the text.",
    ),
    text_op(
        name="str.slice_replace",
        kind="text",
        value=_replace_slice,
        args=(_START, _STOP, Arg("repl", _MAYBE_TEXT, None)),
        examples=[("abc", 0, 1, "Z", "Zbc"), ("abc", 1, "a")],
        doc="Return the text with another one in place of a slice.",
    ),
    text_op(
        name="str.get",
        kind="text",
        value=_get,
        args=(Arg("i", (int,)),),
        examples=[("abc", 0, "a"), ("abc", -1, "c"), ("a", 1, None)],
        doc="Return the character at a place.",
    ),
    text_op(
        name="str.find",
        kind="number",
        value=str.find,
        args=_SOUGHT,
        examples=[("abb", "b", 1.0), ("a", "b", -1.0)],
        doc="Return the place where another text first begins, or -1.",
    ),
    text_op(
        name="str.rfind",
        kind="number",
        value=str.rfind,
        args=_SOUGHT,
        examples=[("abb", "b", 2.0), ("a", "b", -1.0)],
        doc="Return the place where another text last begins, or -1.",
    ),
    text_op(
        name="str.removeprefix",
        kind="text",
        value=str.removeprefix,
        args=(Arg("prefix", (str,)),),
        examples=[("abc", "a", "bc"), ("abc", "b", "abc")],
        doc="Return the text without its beginning, if that is the given one.",
    ),
    text_op(
        name="str.removesuffix",
        kind="text",
        value=str.removesuffix,
        args=(Arg("suffix", (str,)),),
        examples=[("abc", "c", "ab"), ("abc", "b", "abc")],
        doc="Return the text without its end, if that is the given one.",
    ),
    text_op(
        name="to_numeric",
        kind="number",
        value=_read_number,
        whole=lambda e: False,
        identity=("numeral", "x"),
        examples=[("1.5", 1.5), (" -2e1 ", -20.0), ("x", None)],
        doc="Return the number that a text is; or null.",
    ),
)


# ---- beginnings and ends -------------------------------------------------------------------------


def answer_nulls(x: Expr, found: Expr, na: object) -> Expr:
    """Return a condition ``found`` with the answer that ``na=`` wants for a null of ``x``.

    None leaves the condition as it is.
    """
    if na is None or na is False:
        return fill(found, False) if na is False and found.nullable else found
    if na is True:
        return logical_or(is_null(x), found)
    raise BadType("na= is True or False.")


def _build_for_tuples(name: str) -> Callable[..., Expr]:
    """Return a function that builds the condition of a function of texts, such as ``startswith``.

    ``name`` is its name in the catalogue. It takes one text, or a tuple where one must fit.
    """

    def build(x: Expr, pat: str | tuple[str, ...], na: bool | None = None) -> Expr:
        """Return the condition for one text or any of a tuple; ``na`` is the answer for nulls."""
        if isinstance(pat, tuple) and pat:
            each: list[Expr] = [call(name, x, args=(one,)) for one in pat]
            found = reduce(logical_or, each)
        else:
            found = call(name, x, args=(pat,))
        return answer_nulls(x, found, na)

    return build


register(
    text_op(
        name="str.startswith",
        kind="bool",
        value=str.startswith,
        args=(_PAT,),
        build=_build_for_tuples("str.startswith"),
        examples=[
            ("ab", "a", True),
            ("ab", "b", False),
            ("ab", ("x", "a"), True),
            (None, "a", False),
        ],
        doc="Return whether the text begins with another, or with one of a tuple.",
        sql={
            "sqlite": "(INSTR(CAST({x} AS BLOB), CAST({pat} AS BLOB)) = 1)",
            "duckdb": "starts_with({x}, {pat})",
            "postgresql": "starts_with({x}, {pat})",
            "spark": "startswith({x}, {pat})",
        },
    ),
    text_op(
        name="str.endswith",
        kind="bool",
        value=str.endswith,
        args=(_PAT,),
        build=_build_for_tuples("str.endswith"),
        examples=[
            ("ab", "b", True),
            ("ab", "a", False),
            ("ab", ("x", "b"), True),
            ("ab", "", True),
        ],
        doc="Return whether the text ends with another, or with one of a tuple.",
        sql={
            "duckdb": "ends_with({x}, {pat})",
            "postgresql": "(RIGHT({x}, CHAR_LENGTH({pat})) = {pat})",
            "spark": "endswith({x}, {pat})",
        },
    ),
)


# ---- patterns ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def is_special(pattern: str) -> bool:
    """Return whether a text has a character that means something else in a regular expression."""
    return bool(set(pattern) & set(".^$*+?{}[]\\|()"))


def _contains_pattern(pat: str, case: bool, regex: bool) -> Pattern | None:
    return Pattern("contains", pat, case) if regex and is_special(pat) else None


# Functions that may look for a pattern, and the pattern, by their arguments.
PATTERNS: dict[str, Callable[..., Pattern | None]] = {
    "str.contains": _contains_pattern,
    "str.match": partial(Pattern, "match"),
    "str.fullmatch": partial(Pattern, "fullmatch"),
    "str.count": partial(Pattern, "count"),
    "str.extract": partial(Pattern, "extract"),
    "pattern.replace": lambda pat, case, repl, n: Pattern("replace", pat, case, 0, repl, n),
}


def _find_in_one(name: str) -> Callable[..., Any]:
    """Return a function that looks for a regular expression in one text.

    ``name`` is the catalogue's name of what is asked, such as "str.match".
    """

    def value(x: str, *args: object) -> Any:
        """Return what the regular expression that these arguments make finds in the text ``x``."""
        pattern = PATTERNS[name](*args)
        assert pattern is not None
        return find([x], pattern)[0]

    return value


def _contains(x: str, pat: str, case: bool, regex: bool) -> bool:
    """Return whether a text contains another one, or a match of a regular expression if ``regex``.

    Without ``case``, upper and lower case are the same.
    """
    if regex and is_special(pat):
        found: bool = _find_in_one("str.contains")(x, pat, case, regex)
        return found
    return pat in x if case else re.search(re.escape(pat), x, re.IGNORECASE) is not None


def _show_pattern(e: Call) -> str:
    """Return a call that looks for a regular expression as a plan shows it.

    An example is ``x.str.match('a')``.
    """
    op, args = OPS[e.op], dict(zip([arg.name for arg in OPS[e.op].args], e.args, strict=True))
    group = f", group {args['group']}" if "group" in args else ""
    repl = f", {args['repl']!r}" if "repl" in args else ""
    case = "" if args["case"] else ", case=False"
    return f"{e.operands[0]}.str.{op.label}({args['pat']!r}{group}{repl}{case})"


pattern_op: Callable[..., Op] = partial(
    text_op,
    identity=("regex", "x", "name", "pat", "case", "group", "repl", "n"),
    images=True,
    text=_show_pattern,
)


def _check_flags(name: str, flags: object) -> None:
    """Refuse flags of a regular expression other than ``re.IGNORECASE``.

    ``name`` is the catalogue's name of the function, for the message.
    """
    known = isinstance(flags, int) and not isinstance(flags, bool) and flags in (0, re.IGNORECASE)
    if not known:
        raise BadType(f"{OPS[name].spelling} has no other flags here than re.IGNORECASE.")


def _search(name: str, x: Expr, pat: object, case: object, flags: object, *more: object) -> Call:
    """Return the call of a function that looks for a regular expression, which is checked first.

    ``name`` is the function's name in the catalogue, and ``more`` has further arguments. A compiled
    pattern brings its own flags.
    """
    pat, case, flags = (v.value if isinstance(v, Constant) else v for v in (pat, case, flags))
    if isinstance(pat, re.Pattern):
        flags, pat = pat.flags & ~re.UNICODE, pat.pattern
    if not isinstance(pat, str):
        raise BadType(f"{OPS[name].spelling} needs pat as str.")
    _check_flags(name, flags)
    if not isinstance(case, bool | None):
        raise BadType(f"{OPS[name].spelling} needs case as bool.")
    found = call(name, x, args=(pat, case is not False and not flags, *more))
    pattern = PATTERNS[name](*found.args)
    assert pattern is not None
    check_pattern(pattern)
    return found


def _build_contains(
    x: Expr,
    pat: str | re.Pattern[str],
    case: bool = True,
    flags: int = 0,
    na: bool | None = None,
    regex: bool = True,
) -> Expr:
    """Return the condition that a regular expression is found in the text ``x``.

    With ``regex=False`` it is a plain text. ``na`` is the answer for a null.
    """
    if isinstance(pat, re.Pattern):
        flags, pat = pat.flags & ~re.UNICODE, pat.pattern
    _check_flags("str.contains", flags)
    found = call("str.contains", x, args=(pat, False if flags else case, regex))
    if regex:
        check_pattern(Pattern("contains", pat, case is not False and not flags))
    return answer_nulls(x, found, na)


def _build_search(name: str) -> Callable[..., Expr]:
    """Return a function that builds the condition of ``match`` or ``fullmatch``.

    ``name`` is the function's name in the catalogue.
    """

    def build(
        x: Expr,
        pat: str | re.Pattern[str],
        case: bool = True,
        flags: int = 0,
        na: bool | None = None,
    ) -> Expr:
        """Return the condition that the pattern matches, with the answer ``na`` for nulls."""
        return answer_nulls(x, _search(name, x, pat, case, flags), na)

    return build


def _build_count(x: Expr, pat: str | re.Pattern[str], flags: int = 0) -> Expr:
    """Return the number of times that a regular expression is found in the text ``x``."""
    return _search("str.count", x, pat, True, flags)


def _build_replace(
    x: Expr,
    pat: str | re.Pattern[str],
    repl: str,
    n: int = -1,
    case: bool | None = None,
    flags: int = 0,
    regex: bool = False,
) -> Expr:
    """Return the text ``x`` with another one in place of a plain text or of a regular expression.

    At most ``n`` matches are replaced; -1 is all.
    """
    if not isinstance(pat, str | re.Pattern) or not isinstance(repl, str):
        raise BadType(".str.replace needs pat as str and repl as str.")
    if not isinstance(n, int) or isinstance(n, bool):
        raise BadType(".str.replace needs n as a whole number.")
    _check_flags("str.replace", flags)
    if not isinstance(regex, bool) or not isinstance(case, bool | None):
        raise BadType(".str.replace needs regex and case as bool.")
    most = limit_matches(n)
    plain = isinstance(pat, str) and most == -1 and case is not False and not flags
    if plain and not (regex and is_special(str(pat) + repl)):
        return call("str.replace", x, args=(pat, repl))
    if not regex and isinstance(pat, str):
        pat, repl = re.escape(pat), repl.replace("\\", "\\\\")
    return _search("pattern.replace", x, pat, case is not False, flags, repl, most)


def limit_matches(n: object) -> int:
    """Return how many matches count, -1 for all: no text has as many as `ALL_MATCHES`."""
    return int(n) if isinstance(n, int) and 0 < n < ALL_MATCHES else -1


def extract(x: Expr, pat: object, flags: object = 0) -> dict[Any, Expr]:
    """Return each group of a regular expression where it first matches, as an expression.

    The result is a dict by pandas' names for the groups. A pattern without groups is refused, and
    so is one with a group that may be absent.
    """
    first = _search("str.extract", x, pat, True, flags, 0)
    pattern, case, _ = first.args
    names = name_groups(pattern)
    if not names:
        raise BadValue(".str.extract needs a group in the pattern, in parentheses: r'(\\d+)'.")
    if _may_be_absent(pattern):
        raise BadValue(
            ".str.extract: a group of this pattern may have no part in a match. Write the "
            "alternatives inside of the group, and "
            "what may be absent as (...*) and not (...)*."
        )
    return {
        name: call("str.extract", x, args=(pattern, case, place))
        for place, name in enumerate(names, start=1)
    }


def _extract_one(x: Expr, pat: str | re.Pattern[str], flags: int = 0, expand: bool = True) -> Expr:
    """Return the only group of a regular expression where it first matches the text ``x``.

    It is called where one column is wanted, so ``expand`` must be False.
    """
    found = extract(x, pat, flags)
    if expand or len(found) > 1:
        raise BadValue(
            ".str.extract gives a frame unless expand=False. In an expression write expand=False, "
            "and one group."
        )
    return next(iter(found.values()))


def name_groups(pattern: str) -> list[object]:
    """Return what pandas calls the columns of the groups of a regular expression.

    They are the names of the groups, or numbers from 0.
    """
    known = re.compile(pattern)
    names = {place: name for name, place in known.groupindex.items()}
    return [names.get(i + 1, i) for i in range(known.groups)]


def _may_be_absent(pattern: str) -> bool:
    """Return whether a regular expression may match without one of its groups.

    RE2 does not tell such a group from an empty one. It is among alternatives, or may be repeated
    no times.
    """
    parser: Any = import_module("re._parser")
    return _has_group(parser.parse(pattern), False)


def _has_group(tree: Any, optional: bool) -> bool:
    """Return whether a parsed regular expression has a group that a match may be without.

    ``optional`` says whether the whole ``tree`` may be absent.
    """
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


register(
    text_op(
        name="str.contains",
        kind="bool",
        value=_contains,
        args=(_PAT, _CASE, Arg("regex", (bool,), True)),
        build=_build_contains,
        examples=[
            ("abc", "b", True),
            ("abc", "a.c", True),
            ("abc", "B", False, True),
            ("a", "[ab]+$", True),
            (None, "a", False),
        ],
        doc="Return whether a pattern is found in the text, or with regex=False a plain text.",
    ),
    pattern_op(
        name="str.match",
        kind="bool",
        value=_find_in_one("str.match"),
        args=(_PAT, _CASE),
        build=_build_search("str.match"),
        examples=[("ab", "a", True), ("ab", "b", False), ("Ab", "a", False, True)],
        doc="Return whether the text begins with a match of a pattern.",
    ),
    pattern_op(
        name="str.fullmatch",
        kind="bool",
        value=_find_in_one("str.fullmatch"),
        args=(_PAT, _CASE),
        build=_build_search("str.fullmatch"),
        examples=[("ab", "a.", True), ("abc", "a.", False)],
        doc="Return whether a pattern matches the whole text.",
    ),
    pattern_op(
        name="str.count",
        kind="number",
        value=_find_in_one("str.count"),
        args=(_PAT, _CASE),
        build=_build_count,
        examples=[("abab", "a", 2.0), ("b", "a", 0.0)],
        doc="Return how often a pattern is found in the text.",
    ),
    pattern_op(
        name="str.extract",
        kind="text",
        value=_find_in_one("str.extract"),
        args=(_PAT, _CASE, Arg("group", (int,), 0)),
        build=_extract_one,
        examples=[("a-1", "([0-9])", 0, False, "1"), ("a", "([0-9])", 0, False, None)],
        doc="Return the groups of a pattern: a frame, or with expand=False a column.",
    ),
    text_op(
        name="str.replace",
        kind="text",
        value=_replace,
        args=(_PAT, Arg("repl", (str,))),
        build=_build_replace,
        examples=[
            ("aab", "a", "x", "xxb"),
            ("aab", "a", "x", 1, "xab"),
            ("ab", "[ab]", "x", -1, None, 0, True, "xx"),
        ],
        doc="Return the text with another one in place of a plain text, or of a pattern.",
    ),
    pattern_op(
        name="pattern.replace",
        kind="text",
        value=_find_in_one("pattern.replace"),
        args=(_PAT, _CASE, Arg("repl", (str,), ""), Arg("n", (int,), -1)),
        examples=[("ab", "[ab]", True, "x", 1, "xb")],
        doc="Return the text with another one in place of what a pattern finds.",
    ),
)


# ---- texts put together and taken apart ----------------------------------------------------------


def _join(x: str, y: str) -> str | None:
    return x + y if len(x) + len(y) <= LONGEST_TEXT else None


def _list_joint_texts(e: Call, keys: KeysOf, ends: Lookup) -> Values | None:
    """Return all texts that the keys of two operands make together; None if not known or too many.

    ``keys`` returns the group keys of a column, and ``ends`` its bounds.
    """
    one, two = [
        (x.value,) if isinstance(x, Constant) else x.members(keys, ends) for x in e.operands
    ]
    if one is None or two is None or len(one) * len(two) > _MOST_KEYS:
        return None
    return in_order({a + b for a in one for b in two if type(a) is type(b) is str})


def concatenate(op: str, left: Expr, right: Expr) -> Expr:
    """Return the expression ``left + right`` of texts; refuse other operators and operands."""
    times = [f"p[{one.name!r}].dt" for one in left.columns() if one.kind == "time"]
    if op == "-" and times and ".dt.to_period(" in str(left):
        raise BadType(
            "periods are labels here and have no difference. Subtract numbers of months instead, "
            f"such as {times[0]}.year * 12 + {times[0]}.month."
        )
    if op != "+" or not {left.kind, right.kind} <= {*TEXTS}:
        raise BadType(
            f"{describe(left)} {op} {describe(right)} has no value. Texts are joined by +; numbers "
            "become texts by "
            ".astype('str')."
        )
    return call("str.cat", left, right)


BY_KIND.update(text=concatenate, label=concatenate)


def _build_cat(
    x: Expr,
    others: object = None,
    sep: str | None = None,
    na_rep: str | None = None,
    join: str = "left",
) -> Expr:
    """Return the text ``x`` with the texts of other columns behind it.

    ``sep`` stands between them, and ``na_rep`` in place of nulls.
    """
    listed = list(others) if isinstance(others, list | tuple) else [others]
    if not listed or not all(isinstance(other, Expr) for other in listed):
        raise BadType(
            ".str.cat takes a tracked column, or a list of them: alone it would join the rows of "
            "people."
        )
    if not isinstance(sep, str | None) or not isinstance(na_rep, str | None):
        raise BadType(".str.cat needs sep and na_rep as texts.")
    found = x if na_rep is None else fill(x, na_rep)
    for other in listed:
        assert isinstance(other, Expr)
        right = other if na_rep is None else fill(other, na_rep)
        found = concatenate("+", concatenate("+", found, Constant(sep)) if sep else found, right)
    return found


def _split(x: str, sep: str | None, n: int, right: bool, keeps: bool) -> list[str]:
    """Return the pieces of a text between separators.

    At most ``n`` separators are used; -1 is all. If ``right``, separators are counted from the end.
    If ``keeps``, the result is the text before a separator, the separator, and the rest.
    """
    if keeps:
        return list(x.rpartition(sep or " ") if right else x.partition(sep or " "))
    return x.rsplit(sep, n) if right else x.split(sep, n)


def _show_split(e: Call) -> str:
    """Return a split as a plan shows it, such as ``x.str.split('-')``."""
    sep, _, right, keeps = e.args
    name = "r" * right + ("partition" if keeps else "split")
    return f"{e.operands[0]}.str.{name}({'' if sep is None else repr(sep)})"


def is_split(e: Expr) -> bool:
    """Return whether an expression is a text that was split, which has pieces and nothing else."""
    return isinstance(e, Call) and e.op == "str.split"


def count_pieces(e: Expr) -> int | None:
    """Return how many pieces a split text has at most; None if the text decides."""
    assert isinstance(e, Call)
    _, most, _, keeps = e.args
    return 3 if keeps else most + 1 if most >= 0 else None


def keeps_separator(e: Expr) -> bool:
    """Return whether an expression is a split that has its separator as a piece of its own."""
    return isinstance(e, Call) and e.op == "str.split" and bool(e.args[3])


def _split_text(x: Expr, pat: object, n: object, regex: object, right: bool) -> Expr:
    """Return the expression of the text ``x`` split at a plain text.

    A regular expression is refused. If ``right``, separators are counted from the end.
    """
    if not isinstance(regex, bool | None):
        raise BadType(".str.split needs regex as bool.")
    _check_parts(x, pat, n)
    single = isinstance(pat, str) and len(pat) == 1  # which pandas never reads as a pattern
    if isinstance(pat, str) and is_special(pat) and (regex or (not single and regex is None)):
        raise BadType(
            ".str.split has a plain text as its separator here: regex=False. A pattern is for "
            ".str.extract(r'(\\w+)')."
        )
    sep = pat if isinstance(pat, str) and pat else None
    return call("str.split", x, args=(sep, limit_matches(n), right, False))


def _build_split(
    x: Expr, pat: str | None = None, n: int = -1, expand: bool = False, regex: bool | None = None
) -> Expr:
    """Return the pieces of the text ``x`` between separators, which are blanks if none is given."""
    return _split_text(x, pat, n, regex, right=False)


def _build_rsplit(x: Expr, pat: str | None = None, n: int = -1, expand: bool = False) -> Expr:
    """Return the pieces of the text ``x`` between separators, which are counted from its end."""
    return _split_text(x, pat, n, None, right=True)


def _build_partition(x: Expr, sep: str = " ", expand: bool = True) -> Expr:
    """Return the text before a separator, the separator, and the text behind it."""
    return _cut_at(x, sep, right=False)


def _build_rpartition(x: Expr, sep: str = " ", expand: bool = True) -> Expr:
    """Return the same of the last separator of the text."""
    return _cut_at(x, sep, right=True)


def _cut_at(x: Expr, sep: object, right: bool) -> Expr:
    """Return three pieces of the text ``x``: before a separator, the separator, and behind it.

    If ``right``, it is the last such separator, else the first.
    """
    _check_parts(x, sep, -1)
    if not sep or not isinstance(sep, str):
        raise BadType(".str.partition needs a separator.")
    return call("str.split", x, args=(sep, 1, right, True))


def _check_parts(x: Expr, pat: object, n: object) -> None:
    """Refuse arguments with which a text cannot be split.

    ``x`` must be a text, ``pat`` a text or None, and ``n`` a number of splits or None.
    """
    if x.kind not in TEXTS:
        raise BadType(f".str needs strings, and {describe(x)} is not one.")
    if not isinstance(pat, str | None) or not isinstance(n, int | None) or isinstance(n, bool):
        raise BadType(".str.split takes a text and a number of splits.")


def piece(x: Expr, place: object) -> Expr:
    """Return the piece at a place of a text that was split, such as ``x.str.split('-').str[0]``."""
    if isinstance(place, bool) or not isinstance(place, int) or not is_split(x):
        raise BadType("a piece has a place, such as .str.split('-').str[0].")
    return call("list.get", x, args=(place,))


register(
    text_op(
        name="str.cat",
        kind="text",
        value=_join,
        build=_build_cat,
        identity=("join", "x", "y"),
        images=True,
        members=_list_joint_texts,
        text=lambda e: f"({e.operands[0]} + {e.operands[1]})",
        examples=[
            ("a", Constant("b"), "ab"),
            ("a", Constant("b"), "-", "a-b"),
            (None, Constant("b"), None),
        ],
        doc="Return the text with that of another column behind it; null beyond 65,536 characters.",
    ),
    text_op(
        name="str.split",
        kind="other",
        value=_split,
        build=_build_split,
        text=_show_split,
        args=(
            Arg("sep", _MAYBE_TEXT),
            Arg("n", (int,), -1),
            Arg("right", (bool,), False),
            Arg("keeps", (bool,), False),
        ),
        identity=("split", "x", "sep", "n", "right", "keeps"),
        examples=[
            ("a-b-c", "-", ["a", "b", "c"]),
            ("a-b-c", "-", 1, ["a", "b-c"]),
            ("a b", ["a", "b"]),
        ],
        doc="Return the pieces of the text between separators: .str[i] of it is one of them.",
    ),
    text_op(
        name="str.rsplit",
        kind="other",
        value=None,
        build=_build_rsplit,
        examples=[("a-b-c", "-", 1, ["a-b", "c"])],
        doc="Return the pieces of the text between separators, counted from its end.",
    ),
    text_op(
        name="str.partition",
        kind="other",
        value=None,
        build=_build_partition,
        examples=[("a-b-c", "-", ["a", "-", "b-c"]), ("ab", "-", ["ab", "", ""])],
        doc="Return the text before the first separator, the separator, and the text behind it.",
    ),
    text_op(
        name="str.rpartition",
        kind="other",
        value=None,
        build=_build_rpartition,
        examples=[("a-b-c", "-", ["a-b", "-", "c"]), ("ab", "-", ["", "", "ab"])],
        doc="Return the text before the last separator, the separator, and the text behind it.",
    ),
    Op(
        name="list.get",
        kind="text",
        value=_get,
        of=("other",),
        args=(Arg("i", (int,)),),
        identity=("piece", "x", "i"),
        images=True,
        text=lambda e: f"{e.operands[0]}.str[{e.args[0]}]",
        examples=[(["a", "b"], 1, "b"), (["a"], 1, None)],
        doc="Return one of the pieces of a text that was split.",
    ),
    Op(
        name="list.len",
        kind="number",
        value=len,
        of=("other",),
        identity=("pieces", "x"),
        text=lambda e: f"{e.operands[0]}.str.len()",
        examples=[(["a", "b"], 2.0)],
        doc="Return the number of pieces of a text that was split.",
    ),
)


def text_part(x: Expr, label: str, *args: object, **words: object) -> Expr:
    """Return the expression of ``x.str.label(...)``, with pandas' names and arguments.

    A text that was split has only ``get`` and ``len``.
    """
    if is_split(x):
        if label == "get" and len(args) == 1 and not words:
            return piece(x, args[0])
        if label == "len" and not args and not words:
            return call("list.len", x)
        raise BadType("what was split has .str[i], .str.get(i) and .str.len().")
    name = f"str.{label}"
    if x.kind not in TEXTS:
        raise BadType(f".str needs strings, and {describe(x)} is not one.")
    if name not in OPS:
        offered = ", ".join(sorted(list_ops("str")))
        raise BadValue(f".str.{label} is not offered. Use one of {offered}.")
    return call_function(name, x, *args, **words)


def read_number(x: Expr) -> Expr:
    """Return the expression of the number that a text is, as ``to_numeric``."""
    return call("to_numeric", x)


CASTERS["float"] = read_number
