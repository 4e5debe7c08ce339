"""What a tracked frame or column refuses, each with what to write instead; and whether errors show their causes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature, signature
from types import FunctionType
from typing import Any, NoReturn

from dpframe._errors import BadType, DPError, Refused, did_you_mean

SWITCH = "DPFRAME_DEBUG"
_ROWS = "it would hand out rows of people. Ask for a release instead: p.count(), p.mean('x'), p.groupby('k').size()."
ADVICE: dict[str, str] = {
    "len": "len() would be the exact number of rows. Write p.count().",
    "bool": "a tracked frame or column has no truth value. Combine conditions with &, | and ~, and ask p.count().",
    "number": "it has no single value that is free. Ask for one: p.count(), p.mean('x').",
    "operator": "an operator stands between columns and constants, in an expression for one row: p.assign(y='x + 1'), "
    "p[p['x'] > 1]. Those there are: + - * / // % ** == != < <= > >= & | ~.",
    "iteration": f"iterating is refused: {_ROWS} For the names of columns: p.columns.",
    "__array__": f"turning it into an array is refused: {_ROWS} Instead of pd.cut(p['x'], edges): p['x'].cut(edges).",
    "pickle": "a tracked frame cannot be pickled: its budget must exist once. Pickle the answers instead.",
    "shape": "shape would be the exact number of rows. Write p.count(), and len(p.columns) for the columns.",
    "size": "size would be the exact number of cells. Write p.count(); in groups p.groupby('k').size().",
    "empty": "empty would tell whether there are rows. Write p.count().",
    "mode": "write p.argmax(column, keys=[...]): the most common of public values.",
    "idxmax": "it would point to one person. Write p.argmax(column, keys=[...]) for the most common value.",
    "apply": "a function could look across people. Write the steps as expressions, p.assign(y='x / 2'), or p.pipe(f).",
    "transform": "a function could look across people. Write the steps as expressions: p.assign(y='x / 2').",
    "join": "write p.merge(table.reset_index(), on='key') with a public table.",
    "sample": "a sample of rows is not private. Every release already looks at all rows.",
    "duplicated": "it compares people with each other, so one person's row could change another's.",
    "drop_duplicates": "it compares people with each other, so one person's row could change another's.",
    "rank": "it compares people with each other, so one person's row could change another's.",
    "cumsum": "it adds across people in order. Ask p.resample('ME', on='t')['x'].sum() and add up the answer.",
    "shift": "it reads a neighbouring row, which is another person's.",
    "diff": "it reads a neighbouring row, which is another person's.",
    "ffill": "it fills from a neighbouring row, which is another person's. Write p.fillna(constant).",
    "bfill": "it fills from a neighbouring row, which is another person's. Write p.fillna(constant).",
    "nlargest": f"choosing rows by comparing people is refused: {_ROWS}",
    "nsmallest": f"choosing rows by comparing people is refused: {_ROWS}",
    "pivot": "it copies cells of people. Write p.pivot_table(values, index, columns, aggfunc): a release.",
    "groups": "it would list the rows of each group. The keys are those you declared.",
    "ngroups": "the groups are the keys you declared: len(p.groupby('k')).",
    "copy": "a tracked frame is never changed in place, so p itself is its copy.",
    "dtypes": "print(p) tells the kind of each column; the names are p.columns.",
    "info": "print(p) tells the kind of each column; for how many rows there are ask p.count().",
    "get_group": "choose the rows by a condition: p[p['k'] == 1].",
    "hist": "ask for the counts, and plot them: p.histogram('x', bins=...).dp.plot().",
    "plot": "plot an answer: p.histogram('x', bins=...).dp.plot().",
    "logistic": "write p.fit(LogisticRegression(...), X=[...], y='column') with a model of dpframe.learn.",
    "corr": "write p[['x', 'y']].corr(): one release for all pairs of these columns.",
    "cov": "write p[['x', 'y']].cov(): one release for all pairs of these columns.",
}
for _name in ("head", "tail", "values", "iloc", "loc", "at", "iat", "index", "T", "array", "item"):
    ADVICE[_name] = f".{_name} is refused: {_ROWS}"
for _name in ("loc", "iloc", "at", "iat", "xs"):
    ADVICE[_name] = (
        f".{_name} is refused, since rows have no labels here. Choose them by a condition, p[p['x'] > 1] or p.query('x > 1'), "
        "and columns by name, p[['x', 'y']]; for a release ask p.count()."
    )
for _name in (
    "to_numpy",
    "to_dict",
    "to_list",
    "tolist",
    "to_csv",
    "to_parquet",
    "to_pickle",
    "to_json",
    "items",
):
    ADVICE[_name] = f".{_name}() is refused: {_ROWS}"
for _name in (
    "iterrows",
    "itertuples",
    "to_string",
    "to_frame",
    "to_excel",
    "to_sql",
    "to_records",
    "first",
    "last",
):
    ADVICE[_name] = f".{_name}() is refused: {_ROWS}"
for _name in ("prod", "kurt", "any", "all"):
    ADVICE[_name] = (
        f"{_name} has no price rule. Those that have one: count, nunique, sum, mean, var, std, sem, skew, median, quantile, min, "
        "max, histogram, value_counts, argmax, and groupby(...).agg(...)."
    )

# Words that pandas' verbs take. The values that change nothing are let through; others are refused with the reason.
PANDAS_WORDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "axis": (
        (0, "index", "rows"),
        "a release goes down a column. Across the columns of one row write an expression: p.assign(total='a + b').",
    ),
    "numeric_only": ((False, True, None), "it is True or False."),
    "skipna": (
        (True,),
        "nulls count for nothing, as with skipna=True. Without it one person's null would decide whether there is an "
        "answer. For a value in its place write p.fillna(constant).",
    ),
    "min_count": (
        (0, -1),
        "whether a sum is shown would depend on the exact number of values. Ask for the count beside it and choose "
        "among the answers: p.agg(n=('x', 'count'), s=('x', 'sum')).",
    ),
    "engine": ((None, "cython"), "sums are exact integers, made by dpframe's own engine."),
    "engine_kwargs": ((None,), "sums are exact integers, made by dpframe's own engine."),
    "level": ((None,), "there are no index levels: p.groupby(columns) makes groups."),
    "subset": ((None,), "name one column, or group by several: p.groupby(['a', 'b'], keys=...).size()."),
    "include": ((None,), "name the columns: p[['age', 'cost']].describe()."),
    "exclude": ((None,), "name the columns: p[['age', 'cost']].describe()."),
    "inplace": (
        (False,),
        "a tracked frame is not changed in place. Keep what comes back: p = p.drop(columns='name').",
    ),
}


def neutral(word: str, value: object) -> bool:
    """Whether an argument of pandas' own has a value that changes nothing here."""
    return word in PANDAS_WORDS and any(_same(value, one) for one in PANDAS_WORDS[word][0])


def _same(one: object, two: object) -> bool:
    return one is two or (type(one) is type(two) and isinstance(one, bool | int | float | str) and one == two)


def own_errors(kind: type, like: type) -> None:
    """Makes the verbs of a class say in plain words which argument does not fit, where Python would name classes.

    In pandas a word at its default is the same as no word. So it is here, also where a verb has no such word: it is
    left out. ``like`` is the class of pandas that has these defaults.
    """
    made: dict[FunctionType, Any] = {}  # one verb under two names stays one
    for name in dir(kind):
        verb = getattr(kind, name)
        if name.startswith("_") or not isinstance(verb, FunctionType) or hasattr(verb, "_told"):
            continue
        method: Any = verb
        if ~verb.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS):  # one that takes anything misses nothing
            method = made.setdefault(verb, telling(verb, defaults_of(getattr(like, name, None))))
            method.__qualname__ = f"{kind.__name__}.{verb.__name__}"
            setattr(kind, name, method)
        method.__signature__ = _as_method(signature(verb), kind)


def _as_method(shown: Signature, kind: type) -> Signature:
    """The signature of a function as that of a method of a class: one that returns what it is given returns the class."""
    first, *others = shown.parameters.values()
    same = first.annotation is not Parameter.empty and first.annotation == shown.return_annotation
    returned = kind.__name__ if same else shown.return_annotation
    unnamed = first.replace(annotation=Parameter.empty)
    return shown.replace(parameters=[unnamed, *others], return_annotation=returned)


def defaults_of(verb: object) -> dict[str, Any]:
    """The arguments of a method of pandas, with their defaults."""
    if not callable(verb):
        return {}
    return {
        p.name: p.default for p in signature(verb).parameters.values() if p.default is not Parameter.empty
    }


def telling(
    verb: FunctionType, defaults: Mapping[str, Any], lead: Callable[[Any], tuple[Any, ...]] | None = None
) -> Any:
    """The verb, which says in dpframe's words what does not fit its arguments; ``lead`` tells which ones come first, from
    what it is a verb of."""
    missed, errors = misfit, (TypeError, DPError)

    @wraps(verb)
    def told(*args: Any, **words: Any) -> Any:
        try:
            return verb(*(args if lead is None else (*lead(args[0]), *args[1:])), **words)
        except errors[0] as error:
            inside = error.__traceback__
            if isinstance(error, errors[1]) or inside is None or inside.tb_next is not None:
                raise  # the verb was entered: what it raises is its own
        found = missed(verb, args[1:], words, defaults, 1 if lead is None else 2)
        if isinstance(found, errors[1]):
            raise found
        return told(*args, **found)

    # With the globals of the verb's module, since that is how doctest finds out where an example belongs.
    inner: Any = told
    own: Any = FunctionType(inner.__code__, verb.__globals__, verb.__name__, None, inner.__closure__)
    own = wraps(verb)(own)
    own._told = True
    return own


def misfit(
    verb: FunctionType,
    given: tuple[Any, ...],
    words: Mapping[str, Any],
    defaults: Mapping[str, Any],
    skip: int = 1,
) -> dict[str, Any] | DPError:
    """The arguments without those of pandas that change nothing; if none are left out, an error that names the misfit."""
    name = verb.__name__
    own = [p for p in list(signature(verb).parameters.values())[skip:] if p.kind is not Parameter.VAR_KEYWORD]
    known = {p.name for p in own if p.kind not in (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)}
    strange = [] if verb.__code__.co_flags & CO_VARKEYWORDS else [w for w in words if w not in known]
    idle = [w for w in strange if neutral(w, words[w]) or (w in defaults and _same(words[w], defaults[w]))]
    if idle:
        return {w: value for w, value in words.items() if w not in idle}
    if strange:
        word = strange[0]
        if word in PANDAS_WORDS:
            return BadType(f"{word}= is refused here: {PANDAS_WORDS[word][1]}")
        if word in defaults:
            return BadType(f"{name} has no {word}= here, but for what it is in pandas when left out.")
        return BadType(f"{name} has no argument {word}=.{did_you_mean(word, sorted(known), 'It has')}")
    places = [p.name for p in own if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    if len(given) > len(places):
        most = f"at most {len(places)} by position: {', '.join(places)}" if places else "none by position"
        return BadType(f"{name} is given {len(given)} arguments by position, and takes {most}.")
    twice = [w for w in places[: len(given)] if w in words]
    if twice:
        return BadType(f"{name} is given {twice[0]} twice, by position and by name.")
    lacking = [p.name for p in own[len(given) :] if p.default is Parameter.empty and p.name not in words]
    return BadType(f"{name} needs {lacking[0] if lacking else 'other arguments'}{'=' * bool(lacking)}.")


def refuse(what: str) -> NoReturn:
    raise Refused(ADVICE[what])


class Unprinted:
    """The ways Python and numpy would take rows out of an object, all refused."""

    def __len__(self) -> int:
        raise Refused(ADVICE["len"])

    def __bool__(self) -> bool:
        raise Refused(ADVICE["bool"])

    def __iter__(self) -> Any:
        refuse("iteration")

    def __contains__(self, value: object) -> bool:
        refuse("iteration")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse("__array__")

    def __float__(self) -> float:
        refuse("number")

    def __int__(self) -> int:
        refuse("number")

    def __index__(self) -> int:  # noqa: PLE0305  (it raises)
        refuse("number")

    def __complex__(self) -> complex:
        refuse("number")

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Any:
        refuse("__array__")

    def __dataframe__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse("__array__")

    def __arrow_c_stream__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse("__array__")

    def __reduce__(self) -> NoReturn:
        refuse("pickle")

    def _operated(self, *others: Any) -> Any:
        refuse("operator")

    # A column has those of an expression; what is left here is refused.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operated
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = (
        _operated
    )
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operated
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = _operated
    __neg__ = __pos__ = __invert__ = __abs__ = __round__ = _operated

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self  # nothing in it changes, and a copied budget would be a second one


def debugging() -> bool:
    """Whether the owner has set the environment variable that shows causes. Every session that is asked puts it on record."""
    return os.environ.get(SWITCH, "") not in ("", "0")
