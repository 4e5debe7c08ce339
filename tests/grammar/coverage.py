"""The page that tells what of pandas there is: `docs/reference/pandas.md`, written by asking tracked objects for every name.

    python -m tests.grammar.coverage     # writes the tables of the page anew

The calls are those in a million public notebooks (Rule, Tabard and Hollan 2018, as counted by method in Ponder's analysis of
2022, `tests/data/pandas_calls.csv`); a name that was not counted has none.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

import dpframe

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "reference" / "pandas.md"
BEGIN, END = "<!-- the tables: python -m tests.grammar.coverage -->", "<!-- their end -->"
# What only looks at rows or writes them to files: no private library can have it, so a second share leaves it out.
LOOKS = {
    "append",
    "head",
    "tail",
    "iloc",
    "ix",
    "iterrows",
    "items",
    "iteritems",
    "itertuples",
    "tolist",
    "values",
    "sample",
}


class Row(NamedTuple):
    name: str
    calls: int
    has: bool
    says: str


def counted() -> dict[str, int]:
    with (ROOT / "tests" / "data" / "pandas_calls.csv").open() as file:
        return {row["name"]: int(row["calls"]) for row in csv.DictReader(file)}


def objects() -> dict[str, tuple[Any, Any]]:
    """A tracked object of each kind, and what it stands for."""
    df = pd.DataFrame(
        {
            "patient_id": [1, 1, 2],
            "x": [1.0, 2.0, 3.0],
            "t": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-01"]),
            "k": pd.Series(["a", "b", "a"], dtype="str"),
            "c": pd.Categorical(["a", "b", "a"]),
        }
    )
    p = df.copy().dp.open(
        1,
        unit="patient_id",
        max_rows=2,
        bounds={"x": (0, 9), "t": ("2024-01-01", "2024-12-31")},
        keys={"k": ["a"]},
    )
    return {
        "DataFrame": (p, df),
        "Series": (p["x"], df["x"]),
        "Groups": (p.groupby("k"), df.groupby("k")),
        "Groups of a column": (p.groupby("k")["x"], df.groupby("k")["x"]),
        "Resampled": (p.resample("ME", on="t"), df.resample("ME", on="t")),
        "Groups of a person": (p.groupby("patient_id")["x"], df.groupby("patient_id")["x"]),
        ".str": (p["k"].str, df["k"].str),
        ".dt": (p["t"].dt, df["t"].dt),
        ".cat": (p["c"].cat, df["c"].cat),
    }


def rows(tracked: Any, plain: Any) -> Iterator[Row]:
    """A row a public name of pandas, the most called first."""
    calls = counted()
    names = [
        n
        for n in dir(plain)
        if (not n.startswith("_") and not isinstance(plain, pd.DataFrame)) or n in dir(pd.DataFrame)
    ]
    names = sorted(
        {n for n in names if not n.startswith("_") and n not in ("patient_id", "x", "t", "k", "c")}
    )
    for name in sorted(names, key=lambda n: (-calls.get(n, 0), n)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(tracked, name)
            yield Row(name, calls.get(name, 0), True, "")
        except dpframe.DPError as error:
            yield Row(name, calls.get(name, 0), False, str(error).replace("|", "\\|"))


def tables() -> str:
    """The tables of the page."""
    text = []
    for title, (tracked, plain) in objects().items():
        of_kind = list(rows(tracked, plain))
        there = [row for row in of_kind if row.has]
        total = sum(row.calls for row in of_kind)
        weight = (
            f"{sum(row.calls for row in there) / total:.0%} of the calls"
            if total
            else "no calls were counted"
        )
        looking = sum(row.calls for row in of_kind if row.name not in LOOKS)
        rest = sum(row.calls for row in there if row.name not in LOOKS)
        if total and looking < total:
            weight += f", {rest / looking:.0%} without those that look at rows"
        text.append(f"## {title}\n\n{len(there)} of {len(of_kind)} names; {weight}.\n")
        text.append("There: " + ", ".join(f"`{row.name}`" for row in there) + ".\n")
        others = [row for row in of_kind if not row.has]
        if others:
            text.append("| name | calls | what it says |\n|---|---|---|")
            text.extend(f"| `{row.name}` | {row.calls or ''} | {row.says} |" for row in others)
            text.append("")
    return "\n".join(text)


def page() -> str:
    """The page with its tables as they are now."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
