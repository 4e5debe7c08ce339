"""Person-wise steps: expressions, and verbs that make another tracked frame; a few of each that are refused."""

# ruff: noqa: E501  (tables: one thing a line)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz.programs import Generator, Known, literal

NUMERIC = ("number", "bool")
GROUPED = ("text", "label", "bool", "number", "time")

# Expressions ---------------------------------------------------------------------------------------------------------------


def scalar(g: Generator, name: Any) -> str:
    """A constant to compare a column with."""
    kind = g.kind(name)
    family = g.columns[name].family if name in g.columns else "number"
    if g.chance(0.06):
        return g.pick(
            ("1", "'a'", "None", "0.5", "True", "2**63", "nan", "inf", "10**400", "[1]", "pd.NA")
        )
    if kind is not None and family != "lists":
        return literal(g.cell(kind))
    return {"number": "1.5", "bool": "True", "time": "'2024-01-02'"}.get(family, "'a'")


def condition(g: Generator) -> str:
    """A mask made of tracked columns."""
    name = g.column(*GROUPED)
    n = literal(name)
    op = g.weighted(
        {"compare": 5, "isin": 3, "isna": 2, "between": 1, "str": 2, "dt": 1, "both": 1}
    )
    if op == "compare":
        return f"p[{n}] {g.pick(('==', '!=', '<', '<=', '>', '>='))} {scalar(g, name)}"
    if op == "isin":
        return f"p[{n}].isin({g.keys(g.kind(name))})"
    if op == "isna":
        return f"p[{n}].{g.pick(('isna', 'notna'))}()"
    if op == "between":
        name = g.column("number")
        return f"p[{literal(name)}].between(0, {scalar(g, name)})"
    if op == "str":
        name = literal(g.column("text", "label"))
        method = g.pick(
            (
                "contains('a')",
                "contains('A', case=False)",
                "contains('^a.$', regex=True)",
                "startswith('a')",
                "endswith('\\0')",
                "len() > 1",
                "lower() == 'a'",
            )
        )
        return f"p[{name}].str.{method}"
    if op == "dt":
        return f"p[{literal(g.column('time'))}].dt.{g.pick(('year == 2024', 'dayofweek < 3', 'hour >= 0', 'month.isin([1, 2])'))}"
    other = g.column("bool", "number")
    return (
        f"(p[{n}] == {scalar(g, name)}) {g.pick('&|')} ~(p[{literal(other)}] > {scalar(g, other)})"
    )


def value(g: Generator) -> tuple[str, Known]:
    """A new column."""
    op = g.weighted(
        {
            "arithmetic": 5,
            "str": 3,
            "dt": 2,
            "map": 3,
            "cut": 2,
            "cast": 3,
            "condition": 2,
            "other": 3,
        }
    )
    if op == "arithmetic":
        n = literal(g.column(*NUMERIC))
        m = literal(g.column(*NUMERIC))
        sign = g.pick(("+", "-", "*", "/", "//", "%", "**"))
        return f"p[{n}] {sign} {g.pick((f'p[{m}]', '2', '0', '0.5', '-1', '2**63', 'inf'))}", Known(
            "number", None
        )
    if op == "str":
        n = literal(g.column("text", "label"))
        method, family = g.pick(
            (
                ("upper()", "text"),
                ("lower()", "text"),
                ("title()", "text"),
                ("swapcase()", "text"),
                ("strip()", "text"),
                ("len()", "number"),
                ("slice(0, 1)", "text"),
                ("get(0)", "text"),
                ("get(-3)", "text"),
                ("zfill(5)", "text"),
                ("replace('a', 'bb')", "text"),
                ("contains('a')", "bool"),
                ("capitalize()", "text"),
                ("replace('', 'x')", "text"),
                ("[0]", "text"),
            )
        )
        dot = "" if method.startswith("[") else "."
        return f"p[{n}].str{dot}{method}", Known(family, None)
    if op == "dt":
        n = literal(g.column("time"))
        part, family = g.pick(
            (
                ("year", "number"),
                ("month", "number"),
                ("dayofweek", "number"),
                ("hour", "number"),
                ("day_name()", "text"),
                ("month_name()", "text"),
                ("quarter", "number"),
                ("date", "time"),
                ("floor('D')", "time"),
                ("nanosecond", "number"),
                ("dayofyear", "number"),
                ("second", "number"),
                ("normalize()", "time"),
            )
        )
        return f"p[{n}].dt.{part}", Known(family, None)
    if op == "map":
        name = g.column(*GROUPED)
        kind = g.kind(name)
        keys = g.keys(kind)
        target = g.pick(
            (
                "range(9)",
                "'xyzxyzxyz'",
                "[0.5] * 9",
                "[None, 1, 2, 3, 4, 5, 6]",
                "[True, False] * 4",
            )
        )
        family = "text" if "x" in target else "bool" if "True" in target else "number"
        return f"p[{literal(name)}].map(dict(zip({keys}, {target})))", Known(family, None)
    if op == "cut":
        n = literal(g.column("number"))
        return (
            f"p.cut({n}, {g.pick(('[0, 2, 5]', '[-inf, 0, inf]', '[0, 1, 2, 3]', '[3, 1]'))}{g.pick(('', ', right=False', ', labels=False'))})",
            Known("label", None),
        )
    if op == "cast":
        n = literal(g.column(*NUMERIC, "text", "label"))
        kind = g.pick(("float", "int", "bool", "str", "'Int64'", "'category'", "'datetime64[ns]'"))
        return f"p[{n}].astype({kind})", Known(
            {"float": "number", "int": "number", "bool": "bool"}.get(kind, "text"), None
        )
    if op == "condition":
        return condition(g), Known("bool", None)
    n = literal(g.column(*NUMERIC))
    text = g.pick(
        (
            "abs()",
            "round(1)",
            "clip(0, 3)",
            "fillna(0)",
            "clip(None, 2)",
            "fillna('a')",
            "isna()",
            "round(-2)",
        )
    )
    return f"p[{n}].{text}", Known("number", None)


def text_of_query(g: Generator) -> str:
    names = [n for n in g.columns if isinstance(n, str) and n.isidentifier()] or ["nowhere"]
    n, m = g.pick(names), g.pick(names)
    kind = g.kind(n)
    listed = g.keys(kind)
    plain = g.pick(
        (
            f"{n} > 1",
            f"{n} == 'a'",
            f"{n} in ['a', 'b']",
            f"{n} != 2",
            f"{n}.isna()",
            f"not ({n} < 2.5)",
            f"{n} == {m}",
            f"{n} == None",
            f"{n} > 0 and {m} < 3",
            f"{n}.str.len() > 1",
            f"{n} + 1 > {m}",
            f"{n} == 9223372036854775808",
            f"0 < {n} <= @TWO",
            f"{n} == True",
            f"{n}.dt.year == 2024",
            f"{n} // 0 > 1",
            f"{n} ** 2 > {m}",
            f"{n} =",
        )
    )
    return (
        f"{n} in {listed}"
        if g.chance(0.15)
        and "Timestamp" not in listed
        and "Decimal" not in listed
        and "range" not in listed
        else plain
    )


# Steps ---------------------------------------------------------------------------------------------------------------------


def s_query(g: Generator) -> str:
    return f"p.query({text_of_query(g)!r})"


def s_mask(g: Generator) -> str:
    return f"p[{condition(g)}]"


def s_assign(g: Generator) -> str:
    text, known = value(g)
    name = g.pick(
        (
            f"v{len(g.columns)}",
            *[n for n in g.columns if isinstance(n, str) and n.isidentifier()][:2],
        )
    )
    g.columns[name] = known
    if name in g.people:
        g.columns[name] = Known(known.family, None)
    return f"p.assign({name}={text})"


def s_rename(g: Generator) -> str:
    old = g.column()
    new = g.pick(("renamed", "c0", "size", "µ"))
    if old in g.columns:
        g.columns = {(new if n == old else n): k for n, k in g.columns.items()}
    return f"p.rename(columns={{{old!r}: {new!r}}})"


def s_select(g: Generator) -> str:
    names = g.some(list(g.columns) or ["nowhere"], 4)
    g.columns = {n: g.columns[n] for n in names if n in g.columns}
    return f"p[{names!r}]"


def s_drop(g: Generator) -> str:
    name = g.column()
    g.columns = {n: k for n, k in g.columns.items() if n != name}
    return g.pick((f"p.drop(columns={[name]!r})", f"p.drop({name!r})", f"p.drop([{name!r}])"))


def s_nulls(g: Generator) -> str:
    n = g.column()
    return g.pick(
        (
            "p.dropna()",
            f"p.dropna(subset=[{n!r}])",
            f"p.fillna({{{n!r}: {scalar(g, n)}}})",
            "p.fillna(0)",
            "p.clip(0, 3)",
            "p.clip(upper=2)",
        )
    )


def s_astype(g: Generator) -> str:
    n = g.column(*NUMERIC, "text")
    kind = g.pick(("float", "int", "bool", "str"))
    if n in g.columns:
        g.columns[n] = Known(
            {"float": "number", "int": "number", "bool": "bool"}.get(kind, "text"), None
        )
    return f"p.astype({{{n!r}: {kind}}})"


def limits(g: Generator, needed: float) -> str:
    return (
        g.pick(
            (
                ", max_rows=2, max_groups=1",
                ", max_rows=1, max_groups=1",
                ", max_rows=5, max_groups=2",
            )
        )
        if g.chance(needed)
        else ""
    )


def s_explode(g: Generator) -> str:
    n = g.column("lists")
    kind = g.kind(n)
    dtype = (
        ""
        if kind is None or kind.name != "list objects"
        else g.pick(("", "", ", dtype='str'", ", dtype='float'"))
    )
    if n in g.columns:
        g.columns[n] = Known("number" if "float" in dtype else "label", None)
    return f"p.explode({n!r}{dtype}{limits(g, 0.95)})"


def s_melt(g: Generator) -> str:
    family = g.pick((("number",), ("text", "label"), ("bool",), ("time",)))
    fitting = [n for n, k in g.columns.items() if k.family in family]
    values = g.some(fitting or list(g.columns) or ["nowhere"], 3)
    ids = [n for n in g.columns if n not in values]
    kept = g.some(ids, 2) if ids else []
    g.columns = {
        **{n: g.columns[n] for n in kept},
        "variable": Known("text", None),
        "value": Known(family[0], None),
    }
    return f"p.melt(id_vars={kept!r}, value_vars={values!r}{limits(g, 0.2)})"


def s_merge(g: Generator) -> str:
    name = g.column(*GROUPED, "lists")
    kind = g.kind(name)
    keys = g.keys(kind)
    how = g.pick(("'inner'", "'left'"))
    values = g.pick(("range(99)", "[0.5] * 99", "list('uvw' * 33)", "[None] * 99"))
    g.columns = {**g.columns, "looked": Known("text" if "uvw" in values else "number", None)}
    why = ", because='it is public'" if name in g.people else ""
    fitting = {
        "number": ("None", "'float'", "'uint64'"),
        "text": ("None", "'str'", "object"),
        "bool": ("None",),
        "time": ("'datetime64[ns]'", "'datetime64[us, UTC]'"),
    }
    dtype = g.pick(
        fitting.get(g.columns[name].family if name in g.columns else "", ("None", "object"))
    )
    return f"p.merge(table({name!r}, {keys}, {values}, {dtype}), on={name!r}, how={how}{limits(g, 0.2 if g.people else 0.02)}{why})"


def s_pipe(g: Generator) -> str:
    f = g.pick(("same", "same", "copied", "first_column", "numbered", "filtered", "doubled"))
    if f == "first_column" and len(g.columns) > 1:
        g.columns = dict(list(g.columns.items())[:-1]) if "id" not in g.columns else g.columns
    if f == "numbered":
        g.columns = {**g.columns, "one": Known("number", None)}
    return f"p.pipe({f}{limits(g, 0.2 if g.people else 0)})"


def s_other(g: Generator) -> str:
    g.columns = dict(g.root)
    n = g.column(*GROUPED)
    if g.chance(0.6):
        return g.pick(
            (
                "df.dp",
                f"df[[{n!r}]].dp",
                "df[list(df.columns)].dp",
                f"df.rename(columns={{{n!r}: 'z'}}).dp",
                "p.sort_values('c0')",
            )
        )
    return g.pick(
        (
            f"p.isin({{{n!r}: {g.keys(g.kind(n))}}})",
            "p.sort_values('c0')",
            "p.rename(str)",
            "df.dp",
            "df[list(df.columns)].dp",
            f"df[[{n!r}]].dp",
            "df.copy().dp",
            f"df.rename(columns={{{n!r}: 'z'}}).dp",
            "df[pd.Series(True, index=df.index, dtype=bool)].dp",
            "df.iloc[:].dp",
            "df.assign(one=1).dp",
            "df.head().dp",
            f"p.rename({{{n!r}: 'z'}}, axis=1)",
            "p.dropna(how='any')",
            f"p.drop([{n!r}], axis=1)",
        )
    )


STEPS: dict[Callable[[Generator], str], float] = {
    s_query: 4,
    s_mask: 5,
    s_assign: 8,
    s_rename: 1,
    s_select: 2,
    s_drop: 1,
    s_nulls: 4,
    s_astype: 2,
    s_explode: 4,
    s_melt: 3,
    s_merge: 4,
    s_pipe: 1.5,
    s_other: 2,
}
