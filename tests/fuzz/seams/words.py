"""An example of every word that the package has, by the class or the registry that has the word.

A template names columns by what they hold: ``{n}`` and ``{m}`` are numbers, ``{b}`` a condition, ``{s}`` texts, ``{t}`` times,
``{d}`` durations, each as an expression; ``{N}``, ``{M}``, ``{B}``, ``{S}``, ``{T}``, ``{L}`` (lists), ``{G}`` (keys are listed)
and ``{C}`` (any) are names. ``{K}`` lists keys of ``{G}``, ``{Z}`` are bounds, ``{W}`` the words of a
price, and ``{R}`` limits of derived rows, or ``{Q}`` where only people have some.
A word with a reason in place of templates asks nothing of rows.
"""

# ruff: noqa: E501  (tables: one thing a line)
from __future__ import annotations

from typing import Any

from dpframe import _expr as ex
from tests.engines.entries import write_example

Templates = tuple[str, ...]

# Columns of one frame: `dir(PrivateColumn)` -------------------------------------------------------------------------------

COLUMN: dict[str, Templates | str] = {
    "abs": ("{n}.abs()",),
    **{op: (f"{{n}}.{op}({{m}})", f"{{n}}.{op}(2)") for op in ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "rsub", "rdiv")},
    **{op: (f"{{n}}.{op}({{m}})", f"{{n}}.{op}(1.5)", f"{{s}}.{op}('a')") for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    "apply": ("{n}.apply(lambda x: x * 2 + 1)",),
    "astype": ("{n}.astype(float)", "{n}.astype(bool)", "{n}.astype('Int64')", "{b}.astype(int)", "{s}.astype('category')"),
    "between": ("{n}.between(0, 2)", "{t}.between('2024-01-02', '2024-02-01')"),
    "case_when": ("{n}.case_when([({b}, {m}), ({n} > 1, 0)])",),
    "clip": ("{n}.clip(0, 2)", "{n}.clip(upper=1.5)"),
    "copy": ("{n}.copy()",),
    "cut": ("{n}.cut([-1, 0, 1, 3])", "{n}.cut([0, 2, 4], right=False)"),
    "fillna": ("{n}.fillna(0)", "{s}.fillna('a')"),
    "infer_objects": ("{n}.infer_objects()",),
    "isin": ("{n}.isin([0, 1, 2.5])", "{s}.isin(['a', 'bb'])"),
    "isna": ("{n}.isna()", "{s}.isna()", "{t}.isna()"),
    "isnull": ("{n}.isnull()",),
    "notna": ("{s}.notna()",),
    "notnull": ("{n}.notnull()",),
    "map": ("{s}.map({{'a': 'b', 'c': 'a'}})", "{s}.map({{'a': 1.5, 'b': 2}})", "{n}.map({{1: True, 2: False}})"),
    "mask": ("{n}.mask({b})", "{n}.mask({b}, {m})"),
    "where": ("{n}.where({b})", "{n}.where({b}, {m})", "{s}.where({b}, 'a')"),
    "replace": ("{n}.replace(1, 2)", "{s}.replace({{'a': 'c'}})"),
    "rename": ("{n}.rename('other')",),
    "round": ("{n}.round(1)", "{n}.round()"),
    "squeeze": ("{n}.squeeze()",),
    "str": ("{s}.str.lower()",),
    "dt": ("{t}.dt.year",),
    "cat": ("{s}.astype('category').cat.as_unordered()",),
    "sort_values": ("{n}.sort_values()",),
    "sort_index": ("{n}.sort_index()",),
    "reset_index": ("{n}.reset_index(drop=True)",),
    "dropna": ("{n}.dropna()",),
    "pipe": ("{n}.pipe(lambda c: c + 1)",),
}  # fmt: skip


def entry_templates(accessor: str, kind: str, hole: str) -> dict[str, Templates]:
    """Return a template for each example of the entries of an accessor, on a column of a kind."""
    return {
        label: tuple(
            "{" + hole + "}" + text.replace("{", "{{").replace("}", "}}") for text in texts
        )
        for label, op in ex.list_ops(accessor, kind).items()
        if (texts := [text for e in op.examples if (text := write_example(op, e)) is not None])
    }


# Of entries whose examples are no texts, or that are worth more.
TEXT: dict[str, Templates] = {
    **entry_templates("str", "text", "s"),
    "cat": ("{s}.str.cat({s}, sep='-')", "{s}.str.cat({s}, na_rep='?')"),
    "extract": ("{s}.str.extract('([ab])(.*)', expand=True)[0]", "{s}.str.extract('([ab])', expand=False)"),
    "partition": ("{s}.str.partition('a')[2]",),
    "rpartition": ("{s}.str.rpartition('a')[0]",),
    "split": ("{s}.str.split('a').str[0]", "{s}.str.split('a', n=1, expand=True)[1]"),
    "rsplit": ("{s}.str.rsplit('a', n=1).str[-1]",),
    "slice": ("{s}.str.slice(0, 1)", "{s}.str[1:]", "{s}.str[::-1]"),
}  # fmt: skip

TIME: dict[str, Templates] = {
    **entry_templates("dt", "duration", "d"),
    **entry_templates("dt", "time", "t"),
    **{name: (f"{{t}}.dt.{name}('D')", f"{{d}}.dt.{name}('h')") for name in ("floor", "ceil", "round")},
    "isocalendar": ("{t}.dt.isocalendar().week", "{t}.dt.isocalendar().year", "{t}.dt.isocalendar().day"),
    "to_period": ("{t}.dt.to_period('M').astype(str)", "{t}.dt.to_period('M')"),
    "tz_localize": ("{t}.dt.tz_localize('UTC')", "{t}.dt.tz_localize('Europe/Paris').dt.hour"),
    "tz_convert": ("{t}.dt.tz_localize('UTC').dt.tz_convert('Asia/Tokyo').dt.day",),
}  # fmt: skip

CATEGORY: dict[str, Templates | str] = {
    "as_ordered": ("p['k'].cat.as_ordered()",),
    "as_unordered": ("p['k'].cat.as_unordered()",),
    "codes": ("p['g'].astype('category').cat.codes", "p['k'].cat.codes"),
    "rename_categories": ("p['k'].cat.rename_categories({{'u': 'w'}})",),
    "categories": "the categories are cells of the data",
}

# Functions of numpy: by the number of their arguments, and of conditions where they take these.
CONDITIONS = (
    "logical_not",
    "invert",
    "logical_and",
    "bitwise_and",
    "logical_or",
    "bitwise_or",
    "logical_xor",
    "bitwise_xor",
)
NUMPY: dict[str, Templates] = {
    "where": ("np.where({b}, {n}, {m})", "np.where({b}, 'a', 'b')"),
    "select": ("np.select([{b}, {n} > 1], [{n}, {m}], 0)",),
    "clip": ("np.clip({n}, 0, 2)",),
    "round": ("np.round({n}, 1)",),
    "around": ("np.around({n}, 1)",),
    "isclose": ("np.isclose({n}, {m})", "np.isclose({n}, 1)"),
    "fix": ("np.fix({n})",),
}
OPERATORS: Templates = (
    *(f"{{n}} {op} {{m}}" for op in "+-*/"), *(f"{{n}} {op} 2" for op in ("//", "%", "**")),
    *(f"{{n}} {op} 1" for op in ("==", "!=", "<", "<=", ">", ">=")), "1 / {n}", "{n} / 0", "-{n}", "+{n}", "abs({n})", "~{b}",
    "{b} & {b}", "{b} | {b}", "{b} ^ {b}", "{t} - pd.Timestamp('2024-01-05')", "{t} + pd.Timedelta('36h')", "{t} - {t}",
    "{d} / pd.Timedelta('1h')", "{d} // pd.Timedelta('1h')", "{t} > '2024-01-03'", "{s} + 'x'", "{s} < 'b'", "{d} > '1h'", "round({n}, 1)",
)  # fmt: skip
FUNCTIONS: dict[str, Templates | str] = {  # of pandas, that are given tracked columns
    "cut": ("pd.cut({n}, [-1, 0, 2, 4])",),
    "to_datetime": (
        "pd.to_datetime({s}, errors='coerce')",
        "pd.to_datetime({s}, format='%Y-%m-%d', errors='coerce')",
    ),
    "to_timedelta": "is refused",
    "to_numeric": ("pd.to_numeric({s}, errors='coerce')",),
    "get_dummies": ("pd.get_dummies(p['k'])['u']",),
    "isna": ("pd.isna({n})",),
    "isnull": ("pd.isnull({s})",),
    "notna": ("pd.notna({t})",),
    "notnull": ("pd.notnull({n})",),
    "crosstab": "a question of `PrivateFrame`",
    "merge": "a step of `PrivateFrame`",
    "merge_asof": "is refused",
    "merge_ordered": "is refused",
    "melt": "a step of `PrivateFrame`",
    "pivot_table": "a question of `PrivateFrame`",
    "pivot": "is refused",
    "unique": "a question of `PrivateColumn`",
    "qcut": "is refused",
    "factorize": "is refused",
    "concat": "is refused",
}

# Within a person: `dir(PersonGroupBy)` and `dir(Window)` ----------------------------------------------------------------

OWN: dict[str, Templates | str] = {
    **{how: (f"own[{{N}}].{how}()",) for how in (
        "sum", "mean", "median", "var", "std", "sem", "skew", "prod", "min", "max", "count", "nunique", "size", "shift", "diff",
        "pct_change", "cumsum", "cumprod", "cummin", "cummax", "ffill", "bfill", "rank")},
    **{how: (f"own[{{N}}].{how}()", f"own[{{S}}].{how}()") for how in ("first", "last")},
    **{how: (f"own[{{B}}].{how}()",) for how in ("any", "all")},
    "quantile": ("own[{N}].quantile(0.25)",),
    "nth": ("own.nth(1)", "own.nth(-1)", "own.nth(0)"),
    "head": ("own.head(1)", "own.head(2)"),
    "tail": ("own.tail(1)", "own.tail(2)"),
    "nlargest": ("own[{N}].nlargest(2)",),
    "nsmallest": ("own[{N}].nsmallest(1)",),
    "cumcount": ("own.cumcount()", "own.cumcount(ascending=False)"),
    "agg": ("own.agg(a=({N}, 'sum'), c=({M}, 'last'))", "own[{N}].agg('max')"),
    "aggregate": ("own[{N}].aggregate('mean')",),
    "transform": ("own[{N}].transform('mean')", "own[{N}].transform(lambda x: x - x.mean())"),
    "apply": ("own[{N}].apply(lambda x: x.max() - x.min())",),
    "filter": ("own.filter(lambda rows: rows[{N}].sum() > 1)",),
    "pipe": ("own.pipe(lambda rows: rows[{N}].sum())",),
    "rolling": ("own[{N}].rolling(2).sum()",),
    "expanding": ("own[{N}].expanding().mean()",),
}  # fmt: skip
WINDOW: dict[str, Templates] = {
    **{how: (f"own[{{N}}].rolling(2, min_periods=1).{how}()", f"own[{{N}}].expanding().{how}()") for how in ("sum", "mean", "count")},
    **{how: (f"own[{{N}}].rolling(2).{how}()", f"own[{{N}}].rolling(3).{how}()") for how in ("var", "std", "min", "max")},
}  # fmt: skip

# Frames: `dir(PrivateFrame)` -------------------------------------------------------------------------------------------------

_FRAME_OPERATORS = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "rsub", "rdiv")
_HOW = ("inner", "left", "right", "outer")
STEPS: dict[str, Templates] = {
    "abs": ("p[[{N}, {M}]].abs()",),
    **{op: (f"p[[{{N}}, {{M}}]].{op}(2)",) for op in _FRAME_OPERATORS},
    **{op: (f"p[[{{N}}, {{M}}]].{op}(1)",) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    "add_prefix": ("p.add_prefix('a_')",),
    "add_suffix": ("p.add_suffix('_z')",),
    "all": ("p.assign(v=p[[{B}]].all(axis=1))", "p.assign(v=(p[[{N}, {M}]] > 1).all(axis=1))"),
    "any": ("p.assign(v=p[[{B}]].any(axis=1))", "p.assign(v=(p[[{N}, {M}]] > 1).any(axis=1))"),
    "apply": ("p.assign(v=p.apply(lambda row: row[{N}] * 2, axis=1))",),
    "assign": ("p.assign(v={n})", "p.assign(v={s})", "p.assign(v={b})", "p.assign(v={t})", "p.assign(**{{{N}: {n}}})", "p.assign(**{{{S}: {s}}})"),
    "astype": ("p.astype({{{N}: float}})",),
    "clip": ("p[[{N}, {M}]].clip(0, 2)",),
    "convert_dtypes": ("p.convert_dtypes()",),
    "copy": ("p.copy()",),
    "cut": ("p.assign(v=p.cut({N}, [-1, 0, 1, 4]))",),
    "drop": ("p.drop(columns=[{N}])",),
    "dropna": ("p.dropna()", "p.dropna(subset=[{C}])"),
    "eval": ("p.eval('v = x + y')", "p.eval('x > 1 or y < 2', inplace=False).to_frame('v')"),
    "fillna": ("p.fillna({{{N}: 0}})", "p.fillna({{{S}: 'a'}})"),
    "filter": ("p.filter(items=[{N}, {S}])", "p.filter(like='x')"),
    "get": ("p.get([{N}, {M}])",),
    "iloc": ("p.iloc[:, :5]",),
    "infer_objects": ("p.infer_objects()",),
    "insert": ("inserted(p, {n})",),
    "isin": ("p[[{N}, {M}]].isin([0, 1])",),
    "isna": ("p[[{N}, {S}]].isna()",),
    "isnull": ("p[[{N}, {T}]].isnull()",),
    "notna": ("p[[{N}, {S}]].notna()",),
    "notnull": ("p[[{N}, {T}]].notnull()",),
    "join": ("p.join(public({G}).set_index({G}), on={G}{Q})",),
    "loc": ("p.loc[{b}]", "p.loc[{b}, [{N}, {S}]]"),
    "map": ("p[[{N}, {M}]].map(lambda x: x + 1)",),
    "mask": ("p[[{N}, {M}]].mask({b})",),
    "where": ("p[[{N}, {M}]].where({b})", "p[[{N}, {M}]].where({b}, 0)"),
    "pop": ("popped(p, {N})",),
    "query": ("p.query('x > 0')", "p.query('x <= y or s == \"a\"')", "p.query('y in [0, 1, 2]')", "p.query('x.isna()')", "p[{b}]"),
    "reindex": ("p.reindex(columns=[{N}, {S}])",),
    "rename": ("p.rename(columns={{{N}: 'r'}})",),
    "rename_axis": ("p.rename_axis('rows')",),
    "replace": ("p.replace({{{N}: {{1: 2}}}})",),
    "reset_index": ("p.reset_index(drop=True)",),
    "round": ("p.round(1)",),
    "select_dtypes": ("p.select_dtypes('number')",),
    "set_axis": ("p[[{N}, {M}]].set_axis(['q', 'r'], axis=1)",),
    "set_index": ("p.set_index({G})",),
    "sort_index": ("p.sort_index()",),
    "sort_values": ("p.sort_values({N})", "p.sort_values([{N}, {S}], ascending=False)", "p.sort_values({T})"),
    "squeeze": ("p.squeeze()",),
    "transform": ("p[[{N}, {M}]].transform(lambda x: x + 1)",),
    "explode": ("p.explode({L}, dtype='str'{R})", "p.explode({L}{R})"),
    "melt": ("p.melt(id_vars=[], value_vars=[{N}, {M}]{R})", "p.melt(id_vars=[{G}], value_vars=[{N}]{R})", "p.melt(id_vars=[{N}], value_vars=[{S}]{R})", "p.melt(id_vars=[*person(p), {M}], value_vars=[{N}]{R})", "p.melt(id_vars=person(p), value_vars=[{N}, {M}]{R})"),
    "merge": (
        *(f"p.merge(public({{G}}), on={{G}}, how={how!r}{{Q}})" for how in ("inner", "left")),
        *(f"p.merge(public({{G}}, True), on={{G}}, how={how!r}{{R}})" for how in ("inner", "left")),
        *(f"part(p, 1).merge(part(p, 2), how={how!r})" for how in _HOW),
        *(f"listed(p, {{L}}).merge(part(p, 1), how={how!r})" for how in _HOW),
        *(f"own_row(p).merge(own_row(p), on=person(p), how={how!r})" for how in _HOW),
        *(f"p.merge(own_row(p, 2), on=[*person(p), {{G}}], how={how!r})" for how in _HOW),
        "part(p, 1).merge(part(p, 2), how='outer').merge(part(p, 3), how='outer')",
    ),
    "pipe": ("p.pipe(same{R})", "p.pipe(sliced{R})"),
    "adopt": ("p.adopt(df.copy(), because='the same rows'{R})", "p.adopt(df.assign(y=1), because='one'{R})"),
    "drop_duplicates": ("p.drop_duplicates()", "p.drop_duplicates(subset=[*person(p), {G}])", "p.drop_duplicates(subset=person(p), keep='last')"),
    "duplicated": ("p.assign(v=p.duplicated(subset=[*person(p), {G}]))",),
}  # fmt: skip
# Those of people alone, whose rows have columns that name them.
PERSONAL = ("drop_duplicates", "duplicated", "sort_values", "suggest_limits", "over_limits")

_MEASURES = ("sum", "mean", "var", "std", "sem", "skew")
ASKS: dict[str, Templates] = {
    "count": ("p.count({W})", "p.count({C}, {W})"),
    "nunique": ("p.nunique({C}, {W})",),
    **{how: (f"p.{how}({{N}}, bounds={{Z}}, {{W}})", f"p[{{N}}].{how}(bounds={{Z}}, {{W}})") for how in _MEASURES},
    **{how: (f"p.{how}({{N}}, bounds={{Z}}, {{W}})",) for how in ("median", "min", "max")},
    "quantile": ("p.quantile({N}, q=[0.25, 0.5], bounds={Z}, {W})", "p.quantile({N}, q=0.9, bounds={Z}, {W})"),
    "agg": ("p.agg({{{N}: ['mean', 'sum'], {M}: 'count'}}, bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "aggregate": ("p.aggregate(a=({N}, 'mean'), bounds={Z}, {W})",),
    "describe": ("p.describe({N}, bounds={Z}, {W})", "p[[{N}]].describe(bounds={{{N}: {Z}}}, {W})"),
    "histogram": ("p.histogram({N}, 4, bounds={Z}, {W})", "p.histogram({N}, [0, 1, 2, 3], {W})"),
    "value_counts": ("p.value_counts({G}, keys={K}, {W})", "p.value_counts({G}, keys={K}, other='rest', {W})", "p.value_counts({G}, {W})"),
    "unique": ("p.unique({G}, {W})", "p.unique([{G}, {B}], {W})"),
    "argmax": ("p.argmax({G}, keys={K}, {W})", "p.argmax({{'yes': {b}, 'more': {n} > 1}}, {W})"),
    "top": ("p.top({G}, 2, keys={K}, {W})",),
    "choose": ("p.choose([0, 1, 2], distance({N}, bounds=(-1, 3)), {W})", "p.choose([1, 2], revenue({N}), {W})", "p.choose([1, 2, 3], lambda q, c: -(q[{N}] - c).abs(), bounds={Z}, {W})"),
    "counts": ("p.counts({{'a': {b}, 'c': {n} > 1}}, {W})",),
    "crosstab": ("p.crosstab({G}, {B}, keys={{{G}: {K}}}, {W})", "p.crosstab({G}, {B}, keys={{{G}: {K}}}, margins=True, {W})"),
    "pivot_table": ("p.pivot_table({N}, {G}, {B}, 'mean', keys={{{G}: {K}}}, bounds={Z}, {W})", "p.pivot_table({N}, {G}, aggfunc='sum', keys={{{G}: {K}}}, bounds={Z}, {W})"),
    "cov": ("p[[{N}, {M}]].cov(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "corr": ("p[[{N}, {M}]].corr(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "groupby": ("p.groupby({G}, keys={K}).size({W})", "p.groupby({B}).size({W})", "p.groupby([{G}, {B}], keys={{{G}: {K}}}).size({W})", "p.groupby({G}).size({W})"),
    "resample": ("p.resample('W', on={T}, bounds=('2024-01-01', '2024-03-01')).size({W})", "p.resample('ME', on={T}, bounds=('2024-01-01', '2024-03-01'))[{N}].mean(bounds={Z}, {W})"),
    "randomize": ("p.randomize({B}, keys=[True, False], {W})", "p.randomize({G}, keys={K}, {W})"),
    "clipped": ("p.clipped({N}, bounds={Z}, {W})",),
    "suggest_bounds": ("p.suggest_bounds({N}, {W})",),
    "suggest_limits": ("p.suggest_limits({W})",),
    "over_limits": ("p.over_limits({W})",),
    "fit": ("p.fit(LinearRegression(l2=1, norm=1, max_iter=2), X=[{N}], y={M}, bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})", "p.fit(LinearRegression('statistics', l2=1, norm=1), X=[{N}], y={M}, bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})"),
    "plan_ahead": ("batch(p, lambda q: [q.count(epsilon=1), q.sum({N}, bounds={Z}, epsilon=1)])",),
    "test": ("p.test.means({N}, {B}, bounds={Z}, {W})", "p.test.shares({B}, {G}, keys=['a', 'b'], {W})", "p.test.independence({G}, {B}, keys={{{G}: {K}}}, {W})", "p.test.correlation({N}, {M}, bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
}  # fmt: skip
GROUPS: dict[str, Templates | str] = {
    "size": ("grouped.size({W})",),
    "count": ("grouped[{N}].count({W})",),
    "nunique": ("grouped[{C}].nunique({W})",),
    **{how: (f"grouped[{{N}}].{how}(bounds={{Z}}, {{W}})",) for how in (*_MEASURES, "median", "min", "max")},
    "quantile": ("grouped[{N}].quantile(0.5, bounds={Z}, {W})",),
    "clipped": ("grouped[{N}].clipped(bounds={Z}, {W})",),
    "describe": ("grouped[{N}].describe(bounds={Z}, {W})",),
    "value_counts": ("grouped[{B}].value_counts({W})",),
    "histogram": ("grouped[{N}].histogram(3, bounds={Z}, {W})",),
    "hist": "a picture of `histogram`",
    "agg": ("grouped.agg(n=({N}, 'size'), a=({N}, 'mean'), c=({M}, 'sum'), bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "aggregate": ("grouped[{N}].aggregate('mean', bounds={Z}, {W})",),
    "argmax": ("grouped.argmax({B}, {W})",),
    "top": ("grouped.top({B}, 1, {W})",),
    "cov": ("grouped[[{N}, {M}]].cov(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "corr": ("grouped[[{N}, {M}]].corr(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "explain": "a plan: nothing is read",
}  # fmt: skip
GROUPED: Templates = ("p.groupby({G}, keys={K})", "p.groupby({B})", "p.groupby({G}, keys={K}, other='rest')", "p.groupby([{G}, {B}], keys={{{G}: {K}}})", "p.groupby({G}, keys={K}, dropna=False)")  # fmt: skip
COLUMN_ASKS: dict[str, Templates] = {
    "count": ("{n}.count({W})",),
    "nunique": ("{n}.nunique({W})", "{s}.nunique({W})"),
    **{how: (f"{{n}}.{how}(bounds={{Z}}, {{W}})",) for how in (*_MEASURES, "median", "min", "max")},
    "quantile": ("{n}.quantile([0.1, 0.5], bounds={Z}, {W})",),
    "clipped": ("{n}.clipped(bounds={Z}, {W})",),
    "describe": ("{n}.describe(bounds={Z}, {W})",),
    "histogram": ("{n}.histogram(3, bounds={Z}, {W})",),
    "value_counts": ("{b}.value_counts({W})", "{s}.value_counts(keys=['a', 'b'], {W})"),
    "unique": ("{s}.unique({W})",),
    "argmax": ("{s}.argmax(keys=['a', 'b'], {W})",),
    "mode": ("{s}.mode(keys=['a', 'b'], {W})",),
    "top": ("{s}.top(1, keys=['a', 'b'], {W})",),
    "randomize": ("{b}.randomize(keys=[True, False], {W})",),
    "agg": ("{n}.agg(['mean', 'sum'], bounds={Z}, {W})",),
    "aggregate": ("{n}.aggregate('mean', bounds={Z}, {W})",),
    "cov": ("p[{N}].cov(p[{M}], bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "corr": ("p[{N}].corr(p[{M}], bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})",),
    "groupby": ("{n}.groupby({b}).mean(bounds={Z}, {W})",),
    "resample": ("p[[{N}, {T}]].resample('ME', on={T}, bounds=('2024-01-01', '2024-03-01'))[{N}].sum(bounds={Z}, {W})",),
    "to_frame": ("{n}.to_frame('v').count({W})",),
}  # fmt: skip

# Lines that are one release each: the second is free. The same columns and words of a price stand in both.
_LISTED = "keys={{{G}: {K}}}"
SAME: tuple[tuple[str, str], ...] = (
    ("p.groupby({G}, keys={K}).size({W})", "p.value_counts({G}, keys={K}, {W})"),
    ("p.groupby({G}, keys={K})[{N}].mean(bounds={Z}, {W})", f"p.pivot_table({{N}}, {{G}}, {_LISTED}, bounds={{Z}}, {{W}})"),
    (f"p.groupby([{{G}}, {{B}}], {_LISTED})[{{N}}].sum(bounds={{Z}}, {{W}})", f"p.groupby([{{B}}, {{G}}], {_LISTED})[{{N}}].sum(bounds={{Z}}, {{W}})"),
    (f"p.crosstab({{G}}, {{B}}, {_LISTED}, {{W}})", f"p.groupby([{{B}}, {{G}}], {_LISTED}).size({{W}})"),
    (f"p.crosstab({{G}}, {{B}}, {_LISTED}, {{W}})", f"p.crosstab({{B}}, {{G}}, {_LISTED}, {{W}})"),
    ("p.agg(m=({N}, 'mean'), bounds={Z}, {W})", "p.mean({N}, bounds={Z}, {W})"),
    ("p.agg(a=({N}, 'mean'), c=({M}, 'sum'), bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})", "p.agg(c=({M}, 'sum'), b=({N}, 'mean'), bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})"),
    ("p.groupby({G}, keys={K}).agg(a=({N}, 'mean'), n=({N}, 'size'), bounds={Z}, {W})", "p.groupby({G}, keys={K}).agg(n=({N}, 'size'), m=({N}, 'mean'), bounds={Z}, {W})"),
    ("p[{N}].agg(['mean', 'count'], bounds={Z}, {W})", "p[{N}].agg(['count', 'mean'], bounds={Z}, {W})"),
    ("p.groupby({G}, keys=['a', 'b', 'c'])[{N}].sum(bounds={Z}, {W})", "p.groupby({G}, keys=['c', 'a', 'b'])[{N}].sum(bounds={Z}, {W})"),
    ("p.groupby({G}, keys=['a', 'b', None], dropna=False).size({W})", "p.groupby({G}, keys=[None, 'b', 'a'], dropna=False).size({W})"),
    ("p.argmax({G}, keys=['a', 'b', 'c'], {W})", "p.argmax({G}, keys=['c', 'a', 'b'], {W})"),
    ("p.var({N}, bounds={Z}, {W})", "p.std({N}, bounds={Z}, {W})"),
    ("p.var({N}, bounds={Z}, {W})", "p.var({N}, bounds={Z}, ddof=0, {W})"),
    ("p[({n} > 1) & ({b})].count({W})", "p[{b}][{n} > 1].count({W})"),
    ("p[{N}].sum(bounds={Z}, {W})", "p.rename(columns={{{N}: 'other'}}).sum('other', bounds={Z}, {W})"),
    ("p[[{N}, {M}]].cov(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})", "p[[{N}, {M}]].corr(bounds={{{N}: {Z}, {M}: (0, 3)}}, {W})"),
)  # fmt: skip
# And these where a row is a person.
SAME_OF_ROWS: tuple[tuple[str, str], ...] = (
    ("({n} > 1).sum({W})", "p[{n} > 1].count({W})"),
    ("p.counts({{'a': {n} > 1}}, {W})", "p[{n} > 1].count({W})"),
    # A column that cannot be null is counted as rows, and no condition says so of it.
    ("({n}).where({b}).count({W})", "p[(({n}).where({b})).notna()].count({W})"),
    ("({s}).where({b}).count({W})", "p[(({s}).where({b})).notna()].count({W})"),
)

# Words that ask nothing of rows, and why.
IDLE: dict[str, str] = {
    **dict.fromkeys(("accountant", "budget", "ledger", "declarations", "card", "report", "close", "open"), "the session's own"),
    **dict.fromkeys(("columns", "dtypes", "dtype", "name", "ndim", "shape", "keys", "explain"), "public: schema and plans"),
    **dict.fromkeys(("head", "tail", "sample", "info"), "rows that are made up"),
    **dict.fromkeys(("hist", "boxplot", "plot"), "a picture of answers that other words ask for"),
    "groupby.explain": "plans",
}  # fmt: skip
ALIASES: dict[str, Any] = {"loc": "rows by a condition: `PrivateFrame.loc`"}
