"""What a tracked frame or column refuses, each with what to write instead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from dpframe._errors import Refused

_ROWS = "it would hand out rows of people. Ask for a release instead: p.count(), p.mean('x'), p.groupby('k').size()."
ADVICE: dict[str, str] = {
    "len": "len() would be the exact number of rows. Write p.count().",
    "bool": "a tracked frame or column has no truth value. Combine conditions with &, | and ~, and ask p.count().",
    "number": "it has no single value that is free. Ask for one: p.count(), p.mean('x').",
    "operator": "an operator stands between columns and constants, in an expression for one row: p.assign(y='x + 1'), "
    "p[p['x'] > 1]. Those there are: + - * / // % ** == != < <= > >= & | ~.",
    "iteration": f"iterating is refused: {_ROWS} For the names of columns: p.columns.",
    "__array__": f"turning it into an array is refused: {_ROWS}",
    "pickle": "a tracked frame cannot be pickled: its budget must exist once. Pickle the answers instead.",
    "shape": "shape would be the exact number of rows. Write p.count(), and len(p.columns) for the columns.",
    "size": "size would be the exact number of cells. Write p.count(); in groups p.groupby('k').size().",
    "empty": "empty would tell whether there are rows. Write p.count().",
    "dp": "it is tracked already: leave .dp out, p.count().",
    "mode": "write p.argmax(column, keys=[...]): the most common of public values; of each group p.groupby('k')['x'].argmax().",
    "idxmax": "it would point to one person. Write p.argmax(column, keys=[...]) for the most common value.",
    "apply": "a function could look across people. Write the steps as expressions, p.assign(y='x / 2'), or p.pipe(f).",
    "transform": "a function could look across people. Write the steps as expressions: p.assign(y='x / 2').",
    "join": "write p.merge(table.reset_index(), on='key') with a public table; join is of two tracked frames of the same people.",
    "duplicated": "it compares people with each other, so one person's row could change another's.",
    "drop_duplicates": "it compares people with each other, so one person's row could change another's. How many different "
    "values there are is p.nunique('x').",
    "rank": "it compares people with each other, so one person's row could change another's. Within a person, with unit=: "
    "p.groupby('patient_id')['x'].rank().",
    "cumsum": "it adds across people in order. Ask p.resample('ME', on='t')['x'].sum() and add up the answer; within a person, "
    "with unit=: p.groupby('patient_id')['x'].cumsum().",
    "shift": "it reads a neighbouring row, which is another person's. Within a person, with unit=: "
    "p.groupby('patient_id')['x'].shift().",
    "diff": "it reads a neighbouring row, which is another person's. Within a person, with unit=: "
    "p.groupby('patient_id')['x'].diff().",
    "ffill": "it fills from a neighbouring row, which is another person's. Write p.fillna(constant), or within a person, with "
    "unit=: p.groupby('patient_id')['x'].ffill().",
    "bfill": "it fills from a neighbouring row, which is another person's. Write p.fillna(constant), or within a person, with "
    "unit=: p.groupby('patient_id')['x'].bfill().",
    "nlargest": f"choosing rows by comparing people is refused: {_ROWS}",
    "nsmallest": f"choosing rows by comparing people is refused: {_ROWS}",
    "concat": "rows of two tables are put together before a session is opened: both = pd.concat([a, b]), and then "
    "both.dp.open(1).",
    "pivot": "it copies cells of people. Write p.pivot_table(values, index, columns, aggfunc): a release.",
    "groups": "it would list the rows of each group. The keys are those you declared.",
    "ngroups": "the groups are the keys you declared: len(p.groupby('k')).",
    "get_group": "choose the rows by a condition: p[p['k'] == 1].",
    "logistic": "write p.fit(LogisticRegression(...), X=[...], y='column') with a model of dpframe.learn.",
}
for _name in ("values", "index", "T", "array", "item"):
    ADVICE[_name] = f".{_name} is refused: {_ROWS}"
for _name in ("loc", "iloc", "at", "iat", "xs"):
    ADVICE[_name] = (
        f".{_name} is refused, since rows have no labels here. Choose them by a condition, p[p['x'] > 1] or p.query('x > 1'), "
        "and columns by name, p[['x', 'y']]; for a release ask p.count(), and for made-up rows to look at p.head()."
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
for _name in ("any", "all"):
    ADVICE[_name] = (
        f"whether {_name} of them hold may hang on one person. Ask how many do, (p['x'] > 1).sum(), or which share, "
        "(p['x'] > 1).mean()."
    )
for _name, _call in (("rolling", "rolling(7)"), ("expanding", "expanding()"), ("ewm", "ewm(7)")):
    ADVICE[_name] = (
        f"{_name} reads neighbouring rows, which are other people's. Release a series and smooth the answer, which is free: "
        f"p.resample('D', on='t')['x'].mean().{_call}.mean()."
    )
for _call in ("rolling(7)", "expanding()"):
    ADVICE[_call.partition("(")[0]] += (
        f" Within a person, with unit=: p.groupby('patient_id')['x'].{_call}.mean()."
    )
ADVICE["interpolate"] = (
    "it fills from neighbouring rows, which are other people's. Write p.fillna(constant), or within a person, with unit=: "
    "p.groupby('patient_id')['x'].ffill()."
)
ADVICE["pct_change"] = (
    "it reads a neighbouring row, which is another person's. Within a person, with unit=: "
    "p.groupby('patient_id')['x'].pct_change()."
)
for _name in ("prod", "product", "kurt", "kurtosis", "mad"):
    ADVICE[_name] = (
        f"{_name} has no price rule. dir(p) lists the verbs that have one, and groupby(...).agg(...) asks several at once."
    )

ADVICE["corrwith"] = (
    "the correlations of all pairs are one release, and those with one column are a column of it: "
    "p[['x', 'y']].corr()['x']."
)

_FAMILIES: dict[str, str] = {
    "synthetic synthesize synth synthesise fake": "dpframe.dummy(p) makes rows from the "
    "declarations alone, to try code on. They "
    "say nothing about the people: each column is drawn by itself.",
    "asfreq asof autocorr cumprod cummax cummin": "it looks at the rows before, "
    "which are other people's. Within a person, with unit=, there are p.groupby('patient_id')['x'].shift() and its kin; over "
    "time ask p.resample('ME', on='t')['x'].mean(), and take .rolling(3).mean() of the answer.",
    "stack unstack swaplevel droplevel reorder_levels align reindex_like truncate between_time at_time first_valid_index "
    "last_valid_index to_timestamp transpose swapaxes": "rows have no labels here. Ask first, and reshape the answer: "
    "p.groupby(['a', 'b']).size().unstack().",
    "to_html to_latex to_hdf to_clipboard to_stata to_feather to_markdown to_xarray to_iceberg to_orc to_xml to_arrow "
    "style": "it would hand out rows of people. Write an answer to a file or a page: "
    "p.groupby('k').size().to_frame('n').to_html().",
    "update combine combine_first compare equals": "it looks at another table row by row. Values of a public table come by "
    "p.merge(regions, on='key'), and null cells are filled by p.fillna({'x': 0}).",
    "idxmin argmin": "it would point to one person. Write p.argmax(column, keys=[...]) for the most common value, p.min('x') "
    "for the 1 % quantile.",
    "take argsort searchsorted repeat memory_usage nbytes hasnans is_unique is_monotonic_increasing "
    "is_monotonic_decreasing": f"it would tell how rows stand, or how many there are: {_ROWS}",
    "tz_convert tz_localize to_period": "it is about the labels of rows, which have none here. Of a column of times it is "
    "p['t'].dt.tz_localize('UTC').",
    # Words of other libraries, whose tables can be opened, too.
    "with_columns withColumn withColumns mutate": "the word is pandas' here: p.assign(y='x + 1').",
    "group_by groupBy": "the word is pandas' here: p.groupby('k').size().",
    "select project": "columns are chosen as in pandas: p[['x', 'y']].",
    "sort order order_by orderBy": "rows have no order here. Sort the answer: p.groupby('k').size().sort_values().",
    "collect execute compute persist show fetch fetchall fetchone fetchdf df pl limit toPandas to_pandas "
    "to_polars": f"{_ROWS} Made-up rows to look at are p.head().",
    "lazy cache checkpoint repartition coalesce rdd npartitions sql": "nothing has to be kept, moved or collected here: leave it "
    "out, and ask p.count().",
    "avg": "the word is pandas' here: p.mean('x').",
    "summary": "the word is pandas' here: p.describe().",
    "drop_nulls": "the word is pandas' here: p.dropna().",
    "group_by_dynamic": "the word is pandas' here: p.resample('ME', on='t').size().",
    "percentile percentile_approx approxQuantile approx_quantile": "the word is pandas' here: p.quantile('x', 0.5).",
    "withColumnRenamed": "the word is pandas' here: p.rename(columns={'x': 'another'}).",
    "schema collect_schema printSchema": "names and types of columns are p.dtypes.",
    "height": "it would be the exact number of rows. Write p.count().",
    "n_unique distinct countDistinct": "the word is pandas' here: p.nunique('x'), or p.unique('x') for the values.",
    "is_null isNull null_count": "the word is pandas' here: p['x'].isna().sum().",
    "is_not_null isNotNull": "the word is pandas' here: p['x'].notna().sum().",
    "fill_null fill_nan": "the word is pandas' here: p.fillna({'x': 0}).",
    "is_in": "the word is pandas' here: p['x'].isin([1, 2]).mean().",
    "is_between": "the word is pandas' here: p['x'].between(1, 2).mean().",
    "cast": "the word is pandas' here: p['x'].astype('float64').",
    "alias": "the word is pandas' here: p.rename(columns={'x': 'another'}).",
    "when otherwise": "a value where a condition holds is written as in pandas: p['x'].where(p['x'] > 1, 0).",
    "dot factorize": "it numbers or multiplies rows, which are people. Ask for sums, p.sum('x'), or the values, p.unique('x').",
}
for _names, _text in _FAMILIES.items():
    ADVICE.update(dict.fromkeys(_names.split(), _text))
_SIGNS = {
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "radd": "+",
    "rmul": "*",
    "rmod": "%",
    "rpow": "**",
}
for _name, _sign in _SIGNS.items():
    ADVICE[_name] = f"write it with the sign, p['x'] {_sign} 2."

# What looks at several rows of a group, and is offered within each person's own: of other groups it
# would look across people. Each with how it is called, which is of a column but for those that
# choose or count rows.
OWN_ROWS: dict[str, str] = {
    **{
        name: f"['x'].{name}()"
        for name in [
            "first",
            "last",
            "shift",
            "diff",
            "pct_change",
            "cumsum",
            "cumprod",
            "cummin",
            "cummax",
        ]
    },
    **{name: f"['x'].{name}()" for name in ["rank", "ffill", "bfill", "prod", "any", "all"]},
    **{name: f"['x'].{name}(3)" for name in ("nlargest", "nsmallest")},
    "head": ".head(3)",
    "tail": ".tail(3)",
    "nth": ".nth(0)",
    "cumcount": ".cumcount()",
    "transform": "['x'].transform('mean')",
    "filter": ".filter(lambda g: g['x'].max() > 1)",
}

# Words that pandas' verbs take. The values that change nothing are let through; others are refused
# with the reason.
PANDAS_WORDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "axis": (
        (0, "index", "rows"),
        "a release goes down a column. Across the columns of one row write an expression: p.assign(total='a + b').",
    ),
    "numeric_only": ((False, True, None), "it is True or False."),
    "interpolation": (
        ("linear",),
        "a quantile is a point of a public grid near that rank, and nothing is read between two people's values. Leave it out; "
        "resolution= says how fine the grid is.",
    ),
    "density": (
        (False, None),
        "bins are counted. For a density divide the answer of p.histogram('x'), which is free: counts / counts.sum().",
    ),
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
    "subset": (
        (None,),
        "name one column, or group by several: p.groupby(['a', 'b'], keys=...).size().",
    ),
    "include": ((None,), "name the columns: p[['age', 'cost']].describe()."),
    "exclude": ((None,), "name the columns: p[['age', 'cost']].describe()."),
    "inplace": (
        (False,),
        "this is not changed in place. Keep what comes back: p['x'] = p['x'].fillna(0), p = p.drop(columns='name').",
    ),
}


# Words of pandas' verbs that mean nothing where rows have no labels and nothing is copied, whatever
# their values here.
IDLE_WORDS: dict[str, tuple[Any, ...]] = {
    "copy": (True, False, None),
    "deep": (True, False),
    "ignore_index": (True, False),
    "engine": (None, "python", "numexpr"),
    "parser": ("pandas", "python"),
    "as_index": (True,),
    "method": ("single",),
}


# Names that texts of advice invent: pairs of them, one, and expressions of one.
_INVENTED = re.compile(r"\['\w', '\w'\]|'(patient_id|target|group|[xtk])( [^']*)?'")


def with_names(text: str, names: Mapping[str, Any]) -> str:
    """Return a text of advice with the invented column names replaced by those of a frame.
    ``names`` has the real names for ``x``, ``t``, ``k``, ``target`` and ``group``, for pairs such as
    ``['x', 'y']``, and for ``patient_id``. The last groups each person's own rows, where columns do.

    >>> with_names("p.groupby('patient_id')['x'].shift(), p.assign(y='x / 2').", {"patient_id": "id", "x": "the cost"})
    "p.groupby('id')['the cost'].shift(), p.assign(y='`the cost` / 2')."
    """

    def own(found: re.Match[str]) -> str:
        """Return the real name for one invented name found in the text, or the text unchanged if
        there is none."""
        invented, rest = found.groups()
        name = names.get(found[0] if invented is None else invented)
        # In an expression a column is named by a text alone.
        if name is None or (rest and not isinstance(name, str)):
            return found[0]
        if rest:
            return f"'{name if name.isidentifier() else f'`{name}`'}{rest}'"
        return repr(name)

    return _INVENTED.sub(own, text.replace(", with unit=", "") if "patient_id" in names else text)


# The libraries that people hand a tracked column or frame, by what they want of it.
_USES: dict[str, str] = {
    **dict.fromkeys(("matplotlib", "seaborn", "plotly", "altair", "bokeh", "plotnine"), "picture"),
    **dict.fromkeys(("sklearn", "statsmodels", "patsy", "formulaic"), "model"),
    **dict.fromkeys(("xgboost", "lightgbm", "lifelines"), "model"),
    **dict.fromkeys(("scipy", "pingouin"), "test"),
}
# What to write in place of handing rows to such a library.
USE_ADVICE: dict[str, str] = {
    "picture": "a picture of rows would show people. Pictures are drawn of releases: "
    "p['x'].hist(bins=30), p.boxplot('x'), "
    "p.groupby('k')['x'].mean().dp.plot().",
    "picture of values": "a picture of rows would show people. Pictures are drawn of releases: "
    "p['x'].value_counts().dp.plot().",
    "model": "a model of this library would read rows of people. Those of dpframe.learn are "
    "private: "
    "p.fit(LinearRegression(epsilon=1), X=['x'], y='target').",
    "test": "a test of this library would read rows of people. Private tests are p.test.means('x', "
    "by='group') and "
    "p.test.correlation('x', 'target'); a correlation is p[['x', 'y']].corr().",
}
# Their calls may come through these.
_BETWEEN = (
    *("dpframe", "numpy", "pandas", "narwhals"),
    *("abc", "collections", "contextlib", "functools", "typing"),
)


def find_use() -> str | None:
    """Return what the library that called the package is for: "picture", "model" or "test".

    It is None if the user's own code called, or another library.
    """
    frame = inspect.currentframe()
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _BETWEEN:
            return _USES.get(package)
        frame = frame.f_back
    return None


def refuse(what: str) -> NoReturn:
    """Raise the error that says what to write instead."""
    raise Refused(ADVICE[what])


class Unprinted:
    """The ways Python, numpy and pandas would take rows out of an object, all refused."""

    def _refuse_use(self, what: str) -> NoReturn:
        """Raise the error that says what to write instead. Frames and columns say it in the names
        of their columns."""
        refuse(what)

    def __len__(self) -> int:  # noqa: PLE0303  (it raises)
        self._refuse_use("len")

    def __bool__(self) -> bool:  # noqa: PLE0304  (it raises)
        self._refuse_use("bool")

    def __iter__(self) -> Any:
        self._refuse_use("iteration")

    def __contains__(self, value: object) -> bool:
        self._refuse_use("iteration")

    def __array__(self, *args: object, **kwargs: object) -> Any:
        self._refuse_use("__array__")

    def __float__(self) -> float:
        self._refuse_use("number")

    def __int__(self) -> int:
        self._refuse_use("number")

    def __index__(self) -> int:  # noqa: PLE0305  (it raises)
        self._refuse_use("number")

    def __complex__(self) -> complex:
        self._refuse_use("number")

    def __array_ufunc__(
        self, ufunc: object, method: object, *inputs: object, **options: object
    ) -> Any:
        self._refuse_use("__array__")

    @property
    def __dataframe__(self) -> NoReturn:
        """Refuse as soon as a library asks whether there is such a method.

        If it called a method, it would raise an error of its own in place of the advice.
        """
        self._refuse_use("__array__")

    def __arrow_c_stream__(self, *args: object, **kwargs: object) -> NoReturn:
        self._refuse_use("__array__")

    def __reduce__(self) -> NoReturn:
        self._refuse_use("pickle")

    def _operated(self, *others: object) -> Any:
        self._refuse_use("operator")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing in it changes, and a copied budget would be a second one


# A frame and a column have those of expressions; what is left here is refused.
_OPERATORS = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod"),
    *("pow", "rpow", "divmod", "rdivmod", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor"),
    *("lshift", "rlshift", "rshift", "rrshift", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs"),
    *("round",),
)  # fmt: skip
for _name in _OPERATORS:
    setattr(Unprinted, f"__{_name}__", Unprinted._operated)
