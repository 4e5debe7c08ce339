"""What a tracked frame or column refuses, each with what to write instead."""

from __future__ import annotations

from typing import Any, NoReturn

from dpframe._errors import Refused

_ROWS = "it would hand out rows of people. Ask for a release instead: p.count(), p.mean('x'), p.groupby('k').size()."
ADVICE: dict[str, str] = {
    "len": "len() would be the exact number of rows. Write p.count().",
    "bool": "a tracked frame or column has no truth value. Combine conditions with &, | and ~, and ask p.count().",
    "iteration": f"iterating is refused: {_ROWS} For the names of columns: p.columns.",
    "__array__": f"turning it into an array is refused: {_ROWS} Instead of pd.cut(p['x'], edges): p['x'].cut(edges).",
    "pickle": "a tracked frame cannot be pickled: its budget must exist once. Pickle the answers instead.",
    "shape": "shape would be the exact number of rows. Write p.count(), and len(p.columns) for the columns.",
    "size": "size would be the exact number of cells. Write p.count(); in groups p.groupby('k').size().",
    "empty": "empty would tell whether there are rows. Write p.count().",
    "mode": "write argmax(column, keys=[...]): the most common of public values.",
    "idxmax": "it would point to one person. Write argmax(column, keys=[...]) for the most common value.",
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
    "ffill": "it fills from a neighbouring row, which is another person's. Write fillna(constant).",
    "bfill": "it fills from a neighbouring row, which is another person's. Write fillna(constant).",
    "nlargest": f"choosing rows by comparing people is refused: {_ROWS}",
    "nsmallest": f"choosing rows by comparing people is refused: {_ROWS}",
    "pivot": "it copies cells of people. Write pivot_table(values, index, columns, aggfunc): a release.",
    "groups": "it would list the rows of each group. The keys are those you declared.",
    "ngroups": "the groups are the keys you declared: len(p.groupby('k')).",
    "plot": "plot an answer: p.histogram('x', bins=...).dp.plot().",
    "logistic": "write p.fit(LogisticRegression(...), X=[...], y='column') with a model of dpframe.learn.",
    "corr": "write p[['x', 'y']].corr(): one release for all pairs of these columns.",
    "cov": "write p[['x', 'y']].cov(): one release for all pairs of these columns.",
}
for _name in ("head", "tail", "values", "iloc", "loc", "at", "iat", "index", "T", "array", "item"):
    ADVICE[_name] = f".{_name} is refused: {_ROWS}"
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
for _name in ("prod", "sem", "skew", "kurt", "any", "all"):
    ADVICE[_name] = (
        f"{_name} has no price rule. Those that have one: count, sum, mean, var, std, median, quantile, min, max, "
        "histogram, value_counts, argmax, and groupby(...).agg(...)."
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
        "among the answers: agg(n=('x', 'count'), s=('x', 'sum')).",
    ),
    "engine": ((None, "cython"), "sums are exact integers, made by dpframe's own engine."),
    "engine_kwargs": ((None,), "sums are exact integers, made by dpframe's own engine."),
    "level": ((None,), "there are no index levels: groupby(columns) makes groups."),
    "subset": ((None,), "name one column, or group by several: p.groupby(['a', 'b'], keys=...).size()."),
    "include": ((None,), "name the columns: p[['age', 'cost']].describe()."),
    "exclude": ((None,), "name the columns: p[['age', 'cost']].describe()."),
}


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

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Any:
        refuse("__array__")

    def __dataframe__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse("__array__")

    def __arrow_c_stream__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse("__array__")

    def __reduce__(self) -> NoReturn:
        refuse("pickle")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self  # nothing in it changes, and a copied budget would be a second one
