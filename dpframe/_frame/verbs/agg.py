"""`agg`: several aggregates in one release, and the spellings that pandas has for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd

from dpframe._errors import BadType, BadValue, did_you_mean, find_close_name
from dpframe._frame.selection import BoundsLike
from dpframe._frame.signatures import verb
from dpframe._plans.aggregates import AGGREGATES, find_named_function, list_agg_names
from dpframe._plans.order import find_level
from dpframe._plans.price import WORDS

if TYPE_CHECKING:
    from dpframe._frame.verbs.measure import Measurable


@verb
def agg(
    self: Measurable,
    spec: object = None,
    /,
    *,
    bounds: BoundsLike = None,
    **outputs: object,
) -> Any:
    """Ask several aggregates of several columns in one release, in the shape that pandas gives.

    ``agg("mean")`` and ``agg({"age": "mean"})`` are Series. ``agg(["mean", "std"])``,
    ``agg({"age": ["mean"]})`` and ``agg(n=("age", "size"))`` are tables with a row for each
    aggregate or output, and NaN where nothing was asked. The keyword arguments of the price are
    those of `mean`. Aggregates of one column share one vector.

    Formal guarantee: epsilon-DP for its price; columns share it.

    >>> df = pd.DataFrame({"age": [30, 40], "cost": [5.0, 7.0]})
    >>> p = df.dp.open(1e3, bounds={"age": (0, 110), "cost": (0, 10)})
    >>> p.agg({"age": "mean", "cost": ["mean", "sum"]}, epsilon=900).round()
           age  cost
    mean  35.0   6.0
    sum    NaN  12.0
    """
    spec, named, payment = split_agg_keywords(spec, outputs, bounds, self._single)
    return self._aggregate(spec, named, bounds, payment)


# What `agg` is given: a name, a list of them, a dict of either, or named outputs ------------------

Form = Literal["one", "list", "dict", "dict of lists", "named"]


class Wanted(NamedTuple):
    """One output: the name it gets, its column, its aggregate."""

    label: Hashable
    column: Any
    aggregate: str


class Spec(NamedTuple):
    """What ``agg`` is asked, in one form, whatever its spelling."""

    form: Form
    wanted: tuple[Wanted, ...]


def read_aggregate(value: object, also: Sequence[str] = ()) -> str:
    """Return the name of an aggregate that has a price, or refuse what is not one.

    A function that means an aggregate, such as ``np.mean``, is one, too. ``also`` are further names
    to allow.
    """
    if callable(value):
        value = find_named_function(value) or _trace_aggregate(value) or value
    if isinstance(value, str) and value == "mode" and "argmax" in also:
        return "argmax"
    if not isinstance(value, str):
        raise BadType(
            "an aggregate is a name such as 'mean' or 'q90', or a list of names; not a function, "
            "which could see the data. Write a step of one row before it, "
            "p.assign(y='x / 2').groupby('k')['y'].mean(), and several names as a list, "
            "p.groupby('k')['x'].agg(['min', 'max'])."
        )
    kind = AGGREGATES.get(value)
    if (kind is None or not kind.named_in_agg) and find_level(value) is None and value not in also:
        names = [*list_agg_names(), *also]
        close = did_you_mean(value, names) if find_close_name(value, names) else ""
        raise BadValue(
            f"no private aggregate {value!r}{_INSTEAD.get(value, '.' + close)} "
            f"There are: {', '.join(names)}, and quantiles such as 'q90'."
        )
    return value


class _NamedAggregate:
    """The answer of an aggregate in a function that is traced: it has a name and no value.

    Of the most common values the first one may be taken, as of ``s.mode()[0]``.
    """

    def __init__(self, name: str):
        self.name = name

    @property
    def iloc(self) -> _NamedAggregate:
        """The same; its first entry may be taken."""
        return self

    def __getitem__(self, place: object) -> _NamedAggregate:
        """Return the same for the first place of a mode."""
        if self.name != "mode" or type(place) is not int or place != 0:
            raise BadType("only the first of the most common values may be taken.")
        return _NamedAggregate("argmax")


class _TracedColumn:
    """The stand-in for a column in a function that is given to `agg`. It has no data."""

    def __getattr__(self, name: str) -> Callable[[], _NamedAggregate]:
        """Return a function without arguments that stands for the aggregate of this name."""
        if name != "mode" and name not in list_agg_names():
            raise AttributeError(name)
        return lambda: _NamedAggregate(name)


def _trace_aggregate(function: Callable[..., object]) -> str | None:
    """Return the aggregate that a function asks of a column, or None if it does anything else.

    The function is called with a stand-in that has no data. So ``lambda s: s.mean()`` is "mean",
    and ``lambda s: s.mode()[0]`` is "argmax".
    """
    try:
        found = function(_TracedColumn())
    except Exception:  # whatever the user's function raises, it is no aggregate
        return None
    return found.name if isinstance(found, _NamedAggregate) else None


_INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("first", "last", "nth", "any", "idxmax", "idxmin"), ": it would be one person's value."
    ),
    "all": ": one person would decide it. Take the mean of the condition, which is the share of rows where it holds.",
    "mode": ": the most common value is p.argmax('x'), and that of each group p.groupby('k')['x'].argmax().",
    "argmax": ": the most common value is a verb of its own, p.argmax('x').",
    "unique": ": the values that many people have are p.unique(column).",
    "describe": ": several aggregates are a verb of their own, p.describe().",
}


def read_aggregates(values: Sequence[object], also: Sequence[str] = ()) -> list[str]:
    """Return the names of distinct aggregates, in their order; refuse a name given twice.

    ``also`` are further names to allow.
    """
    names = [read_aggregate(v, also) for v in values]
    if not names:
        raise BadValue("agg needs at least one aggregate: agg(['mean', 'std']).")
    if len(set(names)) < len(names):
        raise BadValue("an aggregate is named twice for one column. Name it once.")
    return names


def read_spec(
    spec: object,
    outputs: Mapping[str, object],
    columns: Sequence[Hashable] | None,
    single: bool = False,
    also: Sequence[str] = (),
) -> Spec:
    """Read what `agg` was asked, in whichever spelling, as a list of outputs.

    ``spec`` is a name, a list or a dict, and ``outputs`` are named ones. ``columns`` are the
    selected columns. ``single`` is true if one column is selected, and not a list. ``also`` are
    aggregates that only groups have.
    """
    if isinstance(spec, str) or callable(spec):
        name = read_aggregate(spec, also)
        return Spec("one", tuple(Wanted(c, c, name) for c in _check_columns(columns)))
    if isinstance(spec, list):
        names = read_aggregates(spec, also)
        named = _check_columns(columns)
        return Spec("list", tuple(Wanted((c, n), c, n) for c in named for n in names))
    if spec is not None and not isinstance(spec, Mapping):
        raise BadType(
            "agg takes a name, a list of names, a dict by column, or named outputs: "
            "agg(m=('age', 'mean'))."
        )
    if spec and single:
        raise BadType("of one column agg takes a name, a list of names, or agg(m='mean', s='std').")
    if spec and any(isinstance(v, list) for v in spec.values()):
        if outputs:
            raise BadType(
                "lists of aggregates and named outputs make different tables. Ask one of them."
            )
        pairs = [
            (c, n)
            for c, v in spec.items()
            for n in read_aggregates(v if isinstance(v, list) else [v], also)
        ]
        return Spec("dict of lists", tuple(Wanted((c, n), c, n) for c, n in pairs))
    wanted = [Wanted(c, c, read_aggregate(n, also)) for c, n in (spec or {}).items()]
    wanted += [
        _read_output(label, pair, columns if single else None, also)
        for label, pair in outputs.items()
    ]
    if not wanted:
        raise BadValue("agg needs at least one output: agg(mean_age=('age', 'mean')).")
    return Spec("named" if outputs else "dict", tuple(wanted))


def _read_output(
    label: str, pair: object, columns: Sequence[Hashable] | None, also: Sequence[str]
) -> Wanted:
    """Read one named output of `agg`, such as ``m=("age", "mean")``.

    ``label`` is its name. If a single column is selected, ``columns`` holds it, and ``pair`` may be
    an aggregate alone. ``also`` are aggregates that only groups have.
    """
    if columns and isinstance(pair, str):
        pair = (columns[0], pair)
    if isinstance(pair, pd.NamedAgg):
        if getattr(pair, "args", ()) or getattr(pair, "kwargs", {}):
            raise BadType(
                f"{label}=: an aggregate takes no arguments in agg. Ask it as a verb of its own."
            )
        pair = (pair.column, pair.aggfunc)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise BadType(f"{label}= must be a pair such as ('age', 'mean').")
    return Wanted(label, pair[0], read_aggregate(pair[1], also))


def _check_columns(columns: Sequence[Hashable] | None) -> Sequence[Hashable]:
    """Return the columns, or raise if none are named."""
    if columns is None:
        raise BadType(
            "name the columns: ['x'].agg('mean'), [['x', 'y']].agg([...]), or "
            "agg({'x': ['mean', 'std']})."
        )
    return columns


def split_agg_keywords(
    spec: object, outputs: dict[str, Any], bounds: object, single: bool = False
) -> tuple[object, dict[str, Any], dict[str, Any]]:
    """Return the arguments of `agg` in three parts: the spec, the named outputs, and the payment.

    ``outputs`` are all keyword arguments of the call. Those with names in `WORDS`, such as
    ``epsilon=``, are the payment. The others name outputs: ``mean_age=("age", "mean")``. ``n=`` and
    ``name=`` may be either: with a pair, or on one column (``single``) with an aggregate, they name
    outputs. Without ``spec``, ``func=`` is the spec, as in older pandas, unless it is a pair.
    """
    if spec is None and not isinstance(outputs.get("func"), tuple):
        spec = outputs.pop("func", None)
    payment = {word: outputs[word] for word in WORDS if word in outputs}
    for word in ("n", "name"):
        value = payment.get(word)
        # As payment n= is a number. On one column: agg(avg="mean", name="count").
        aggregate = (
            (single or word == "n")
            and isinstance(value, str)
            and (value in list_agg_names() or find_level(value) is not None)
        )
        if aggregate or isinstance(value, tuple | pd.NamedAgg):
            del payment[word]
    named = {w: value for w, value in outputs.items() if w not in payment}
    for word, value in [*payment.items(), ("bounds", bounds)]:
        if isinstance(value, tuple) and not (word == "bounds" and _is_pair_of_bounds(value)):
            raise BadValue(f"{word}= belongs to the price of agg, and cannot name an output.")
    return spec, named, payment


def _is_pair_of_bounds(value: tuple[object, ...]) -> bool:
    """Return whether a pair is of bounds, numbers or durations, and not a column and an aggregate."""
    if len(value) != 2 or not isinstance(value[1], str):
        return len(value) == 2
    return (
        value[1] not in AGGREGATES
        and find_level(value[1]) is None
        and value[1][:1] in "-+0123456789"
    )
