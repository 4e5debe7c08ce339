"""Lines of a program: chains of person-wise steps, and a question of every kind at the end, wrong ones too."""

# ruff: noqa: E501  (tables: one thing a line)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz.programs import Generator, Line, Unfit
from tests.fuzz.steps import GROUPED, NUMERIC, STEPS


def line(g: Generator) -> Line:
    """One line; the generator knows the columns after each step."""
    g.columns = dict(g.root)
    steps = [_drawn(g, STEPS) for _ in range(g.weighted({0: 5, 1: 4, 2: 2, 3: 1}))]
    return Line(steps, _drawn(g, {**QUESTIONS, **(FOUND if g.many else {})}))


def again(g: Generator) -> list[Line]:
    """A question by the accuracy that is wanted, other words, and the same question once more."""
    g.columns = dict(g.root)
    n = g.pick([n for n, k in g.columns.items() if k.family in NUMERIC] or list(g.columns))
    verb = g.pick((f"sum({n!r}, bounds=(0, 5), ", f"mean({n!r}, bounds=(0, 5), ", "count("))
    asked_ = Line([], f"p.explain.{verb}within={g.pick((1, 5, 50))})")
    words = g.pick(("max_rows=7", "max_rows=2", "n=33", "n=10**7", "queries=3", "max_groups=3"))
    return [asked_, Line([], f"df.dp.open({words})"), asked_, line(g)]


def _drawn(g: Generator, table: dict[Callable[[Generator], str], float]) -> str:
    """Drawn again where the frame has no column for it."""
    for _ in range(30):
        before = g.columns
        try:
            return g.weighted(table)(g)
        except Unfit:
            g.columns = before
    return "p.count()" if table is not STEPS else "p[:0]"


# Questions -----------------------------------------------------------------------------------------------------------------


def price(g: Generator, **words: Any) -> str:
    """The words of a price, after a comma."""
    found = []
    kind = g.weighted(
        {"none": 3, "epsilon": 7, "large": 9 if g.many else 3, "within": 0.7, "wrong": 0.2}
    )
    if kind == "epsilon":
        found.append(f"epsilon={g.pick((0.01, 0.1, 0.3, 1))}")
    elif kind == "large":
        found.append(f"epsilon={g.pick((5, 20, 50) if g.epsilon == 1000 else (0.5, 2))}")
    elif kind == "within":
        found.append(f"within={g.pick((1, 5, 100, 0.01))}")
        if g.chance(0.4):
            found.append(f"n={g.pick((10, 100, 10**6))}")
    elif kind == "wrong":
        found.append(
            g.pick(
                (
                    "epsilon=0",
                    "epsilon=nan",
                    "epsilon=-1",
                    "epsilon='1'",
                    "epsilon=10**9",
                    "within=0",
                    "delta=2",
                    "mechanism='none'",
                    "epsilon=1, within=1",
                )
            )
        )
    if g.chance(0.06):
        found.append(
            f"mechanism={g.pick(('laplace', 'gaussian', 'exponential') if g.delta else ('laplace', 'exponential'))!r}"
        )
    if g.chance(0.07):
        found.append("fresh=True")
    if g.chance(0.05):
        found.append(f"name={g.pick(('one', 'two'))!r}")
    if (g.people and g.chance(0.15)) or g.chance(0.01):
        found.append(
            g.pick(("max_rows=1", "max_rows=4", "max_groups=1", "max_rows=2, max_groups=3"))
        )
    if g.chance(0.04 if g.delta else 0.004):
        found.append("delta=1e-7")
    return "".join(f", {w}" for w in {w.split("=")[0]: w for w in found}.values())


def maybe_bounds(g: Generator, name: Any) -> str:
    declared = name in g.bounded and g.columns.get(name) is g.root.get(name)
    return f", bounds={g.bounds(g.kind(name))}" if g.chance(0.3 if declared else 0.92) else ""


def maybe_keys(g: Generator, name: Any) -> str:
    declared = name in g.listed and g.columns.get(name) is g.root.get(name)
    often = 0.3 if declared else 0.15 if g.many else 0.5 if g.delta else 0.97
    return f", keys={g.keys(g.kind(name))}" if g.chance(often) else ""


def asked(g: Generator) -> str:
    return "p.explain" if g.chance(0.08) else "p"


def q_count(g: Generator) -> str:
    n = g.column()
    arguments = g.pick(("", repr(n)))
    return f"{asked(g)}.count({(arguments + price(g)).removeprefix(', ')})"


def q_number(g: Generator) -> str:
    n = g.column(*NUMERIC)
    verb = g.pick(("sum", "mean", "mean", "var", "std", "describe"))
    if g.chance(0.1):
        return f"{asked(g)}[{n!r}].{verb}({(maybe_bounds(g, n) + price(g)).removeprefix(', ')})"
    return f"{asked(g)}.{verb}({n!r}{maybe_bounds(g, n)}{price(g)})"


def q_order(g: Generator) -> str:
    n = g.column("number")
    verb = g.pick(("median", "min", "max", "quantile"))
    q = (
        g.pick((", q=0.5", ", q=[0.25, 0.75]", ", q=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]", ""))
        if verb == "quantile"
        else ""
    )
    return f"{asked(g)}.{verb}({n!r}{q}{maybe_bounds(g, n)}{price(g)})"


def q_histogram(g: Generator) -> str:
    n = g.column("number")
    bins = g.pick(
        ("[0, 1, 2, 3, 4, 5]", "5", "[0, 0.5, 1e308]", "range(0, 6)", "[-inf, 0, inf]", "[3, 1]")
    )
    return f"{asked(g)}.histogram({n!r}, {bins}{maybe_bounds(g, n)}{price(g)})"


def q_values(g: Generator) -> str:
    n = g.column(*GROUPED)
    more = g.pick(
        (
            "",
            "",
            "",
            ", sort=False",
            ", normalize=True",
            ", other='rest'",
            ", dropna=False",
            ", ascending=True",
        )
    )
    form = g.pick((f"{asked(g)}.value_counts({n!r}", f"{asked(g)}[{n!r}].value_counts("))
    return f"{form}{maybe_keys(g, n)}{more}{price(g)})".replace("(, ", "(")


def q_unique(g: Generator) -> str:
    if not g.delta and g.chance(0.95):
        raise Unfit
    names: Any = g.column(*GROUPED)
    if g.chance(0.15):
        names = g.some(
            [n for n, k in g.columns.items() if k.family in GROUPED] or [g.column(*GROUPED)], 2
        )
    return f"{asked(g)}.unique({names!r}{price(g)})"


def q_nunique(g: Generator) -> str:
    return f"{asked(g)}.nunique({g.column(*GROUPED)!r}{price(g)})"


def q_choice(g: Generator) -> str:
    n = g.column(*GROUPED)
    if g.chance(0.2):
        m = g.column(*GROUPED)
        verb = g.pick((f"argmax({m!r}", f"top({m!r}, {g.pick((1, 2, 9))}"))
        return f"{asked(g)}.groupby({n!r}{maybe_keys(g, n)}).{verb}{maybe_keys(g, m)}{price(g)})"
    if g.chance(0.5):
        return f"{asked(g)}.argmax({n!r}{maybe_keys(g, n)}{price(g)})"
    return f"{asked(g)}.top({n!r}, {g.pick((1, 2, 9))}{maybe_keys(g, n)}{price(g)})"


def q_choose(g: Generator) -> str:
    n = g.column(*NUMERIC)
    m = g.column(*NUMERIC)
    if g.chance(0.3):
        return f"{asked(g)}.choose([0, 1, 2.5], revenue({n!r}){price(g)})"
    if g.chance(0.5):
        return f"{asked(g)}.choose([0, 1, 2], distance({n!r}{maybe_bounds(g, n)}){price(g)})"
    word = g.pick(("", ", sensitivity=1, because='so'", ", sensitivity=5"))
    return f"{asked(g)}.choose([1, 2, 3], lambda q, c: -abs(q[{m!r}] - c){maybe_bounds(g, m)}{word}{price(g)})"


def groups(g: Generator) -> str:
    names = g.some(
        [n for n, k in g.columns.items() if k.family in GROUPED] or [g.column(*GROUPED)], 2
    )
    if len(names) > 1 and g.chance(0.5):
        names = names[:1]
    if len(names) == 1:
        keys = maybe_keys(g, names[0])
        by = repr(names[0])
    else:
        keys = (
            ", keys={" + ", ".join(f"{n!r}: {g.keys(g.kind(n))}" for n in names) + "}"
            if g.chance(0.3 if g.many else 0.9)
            else ""
        )
        by = repr(names)
    more = g.pick(
        ("", "", "", "", "", ", other='rest'", ", dropna=False", ", as_index=False", ", sort=False")
    )
    return f"{asked(g)}.groupby({by}{keys}{more})"


def q_grouped(g: Generator) -> str:
    verb = g.weighted(
        {
            "size": 5,
            "count": 2,
            "sum": 2,
            "mean": 4,
            "var": 1,
            "median": 1,
            "quantile": 1,
            "min": 1,
            "nunique": 1,
            "agg": 2,
            "describe": 1,
        }
    )
    base = groups(g)
    if verb == "size":
        return f"{base}.size({price(g).removeprefix(', ')})"
    n = g.column(*NUMERIC)
    if verb == "agg":
        m = g.column(*NUMERIC)
        return f"{base}.agg(rows=({n!r}, 'size'), x=({n!r}, {g.pick(('mean', 'sum', 'count', 'max', 'std'))!r}), y=({m!r}, {g.pick(('mean', 'sum', 'nunique', 'median'))!r}){maybe_bounds(g, n)}{price(g)})"
    if verb in ("count", "nunique"):
        return f"{base}[{n!r}].{verb}({price(g).removeprefix(', ')})"
    return f"{base}[{n!r}].{verb}({(maybe_bounds(g, n) + price(g)).removeprefix(', ')})"


def q_resample(g: Generator) -> str:
    t = g.column("time")
    n = g.column(*NUMERIC)
    rule = g.pick(("D", "ME", "W", "h", "YE", "MS", "QE", "1ns", "7D", "nonsense"))
    bounds = ", bounds=('2024-01-01', '2024-03-31')" if g.chance(0.5) else ""
    closed = g.pick(("", "", ", closed='right'", ", label='right'"))
    verb = g.pick(
        (
            f"size({price(g).removeprefix(', ')})",
            f"[{n!r}].mean({(maybe_bounds(g, n) + price(g)).removeprefix(', ')})",
            f"[{n!r}].sum({(maybe_bounds(g, n) + price(g)).removeprefix(', ')})",
        )
    )
    dot = "" if verb.startswith("[") else "."
    return f"{asked(g)}.resample({rule!r}, on={t!r}{bounds}{closed}){dot}{verb}"


def q_table(g: Generator) -> str:
    a, b, n = g.column(*GROUPED), g.column(*GROUPED), g.column(*NUMERIC)
    keys = (
        f", keys={{{a!r}: {g.keys(g.kind(a))}, {b!r}: {g.keys(g.kind(b))}}}"
        if g.chance(0.93)
        else ""
    )
    margins = g.pick(("", ", margins=True"))
    if g.chance(0.5):
        return f"{asked(g)}.crosstab({a!r}, {b!r}{keys}{margins}{g.pick(('', ', normalize=True', ', normalize=0'))}{price(g)})".replace(
            "normalize=0", "normalize='index'"
        )
    return f"{asked(g)}.pivot_table({n!r}, {a!r}, {b!r}, {g.pick(('mean', 'sum', 'count', 'size'))!r}{keys}{margins}{maybe_bounds(g, n)}{price(g)})"


def q_cov(g: Generator) -> str:
    names = g.some(
        [n for n, k in g.columns.items() if k.family in NUMERIC] or [g.column(*NUMERIC)], 3
    )
    return f"p[{names!r}].{g.pick(('cov', 'corr'))}({price(g).removeprefix(', ')})"


def q_agg(g: Generator) -> str:
    n, m = g.column(*NUMERIC), g.column(*NUMERIC)
    return g.pick(
        (
            f"{asked(g)}.agg({{{n!r}: ['mean', 'sum'], {m!r}: 'count'}}{maybe_bounds(g, n)}{price(g)})",
            f"{asked(g)}.agg(a=({n!r}, 'mean'), b=({m!r}, 'max'){price(g)})",
            f"{asked(g)}.counts({{'x': p[{n!r}] > 1, 'y': p[{m!r}].isna()}}{price(g)})",
            f"{asked(g)}.mean({price(g).removeprefix(', ')})",
            f"{asked(g)}.describe({price(g).removeprefix(', ')})",
        )
    )


def q_randomize(g: Generator) -> str:
    if g.relation != "replace-one" and g.chance(0.9):
        raise Unfit
    g.columns = dict(g.root)
    if g.chance(0.4):
        n = g.column("number")
        more = f", bounds={g.bounds(g.kind(n))}"
    else:
        n = g.column(*GROUPED)
        more = f"{maybe_keys(g, n)}{g.pick(('', '', ', other=' + repr('rest')))}"
    return (
        f"{asked(g)}.randomize({n!r}{more}{g.pick(('', '', '', ', public_index=True'))}{price(g)})"
    )


def q_fit(g: Generator) -> str:
    xs = g.some([n for n, k in g.columns.items() if k.family in NUMERIC] or [g.column(*NUMERIC)], 2)
    y = g.column("bool", "number", "label", "text")
    words = f"l2={g.pick((None, 1, 10))}, norm={g.pick((None, 1))}, max_iter={g.pick((2, 3))}, sample={g.pick((1.0, 0.5))}"
    bounds = (
        ", bounds={" + ", ".join(f"{n!r}: (0, 5)" for n in dict.fromkeys([*xs, y])) + "}"
        if g.chance(0.7)
        else ""
    )
    if g.chance(0.5):
        keys = g.pick(("None", "[0, 1]", "['a', 'b']", "[False, True]"))
        method = g.pick(("objective", "output", "gradient"))
        return f"p.fit(LogisticRegression({method!r}, {words}, classes={keys}), X={xs!r}, y={y!r}{bounds}{price(g)})"
    method = g.pick(("statistics", "output", "objective", "gradient"))
    return f"p.fit(LinearRegression({method!r}, {words}), X={xs!r}, y={y!r}{bounds}{price(g)})"


def q_suggest(g: Generator) -> str:
    if g.chance(0.6):
        return f"{asked(g)}.suggest_bounds({g.column(*NUMERIC)!r}{price(g)})"
    n = g.column(*GROUPED)
    by = g.pick(("", f"{n!r}{maybe_keys(g, n)}"))
    return f"{asked(g)}.suggest_limits({(by + price(g)).removeprefix(', ')})"


def q_batch(g: Generator) -> str:
    n = g.column(*NUMERIC)
    k = g.column(*GROUPED)
    return f"batch(p, lambda b: [b.count(epsilon=0.1), b.sum({n!r}{maybe_bounds(g, n)}), b.groupby({k!r}{maybe_keys(g, k)}).size()])"


def q_open(g: Generator) -> str:
    words = g.pick(
        (
            "max_rows=2",
            "max_rows=10, max_groups=3",
            "n=1000",
            "n=10**5",
            "queries=7",
            "bounds={'c0': (0, 4)}",
            "bounds={'c1': (0, 9)}",
            "keys={'c0': ['a', 'b']}",
            "keys={'c1': [1, 2, 3]}",
            "epsilon=1000",
            "epsilon=2",
            "neighbors='replace-one'",
            "max_groups=1",
        )
    )
    return g.pick((f"df.dp.open({words})", f"p.open({words})"))


def q_texts(g: Generator) -> str:
    n = g.column()
    return g.pick(
        (
            "p",
            "p.budget",
            "p.budget.report()",
            "p._repr_html_()",
            "p.declarations",
            "p.columns",
            "dir(p)",
            f"p[{n!r}]",
            f"p[{n!r}].dt",
            f"hasattr(p[{n!r}].dt, 'floor')",
            "list(p)",
            "len(p)",
            "p.shape",
            "bool(p)",
            f"p.groupby({n!r}, keys=[1])",
            "p.iloc[0]",
            "p.values",
            "p.to_csv()",
            f"p[{n!r}].apply(str)",
            f"p[[{n!r}]].value_counts()",
            "df.dp",
            "repr(df.dp)",
            "df.head().dp",
            "p[pd.Series([True])]",
            f"p.groupby({n!r}).size",
        )
    )


QUESTIONS: dict[Callable[[Generator], str], float] = {
    q_count: 6,
    q_number: 10,
    q_order: 4,
    q_histogram: 3,
    q_values: 7,
    q_unique: 4,
    q_nunique: 1.5,
    q_choice: 4,
    q_choose: 2,
    q_grouped: 11,
    q_resample: 3,
    q_table: 4,
    q_cov: 2,
    q_agg: 4,
    q_randomize: 5,
    q_fit: 1.5,
    q_suggest: 2,
    q_batch: 1.5,
    q_open: 2,
    q_texts: 1.5,
}
FOUND: dict[Callable[[Generator], str], float] = {
    q_unique: 12,
    q_values: 14,
    q_grouped: 16,
}  # where rows are many
