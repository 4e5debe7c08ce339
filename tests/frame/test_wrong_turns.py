"""Lines that people type from memory: the message names the line to write, and that line runs."""

from __future__ import annotations

import pickle
import types
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpframe
from dpframe import BadType, BadValue, DPError, MissingBounds, MissingKeys, NotOffered, Refused
from dpframe._errors import did_you_mean, find_close_name
from dpframe.datasets import BOUNDS, KEYS, patient_visits, visits
from dpframe.learn import LinearRegression
from tests.advice import pieces


@pytest.fixture
def p() -> Any:
    return visits(400).dp.open(1000, queries=1000, bounds=BOUNDS, keys=KEYS, because="wrong turns")


@pytest.fixture
def people() -> Any:
    df = patient_visits(150).assign(note="Sore throat")
    bounds = {"age": (0, 110), "cost": (0, 50_000)}
    limits = {"unit": "patient_id", "max_rows": 8, "max_groups": 4}
    return df.dp.open(1000, delta=1e-4, bounds=bounds, because="wrong turns", **limits)


def refusal(line: str, **names: Any) -> str:
    """Type a line, and return the message of its refusal. Nothing may be charged."""
    p = names["p"]
    before = p.budget.fraction
    with pytest.raises((DPError, AttributeError)) as refused:
        eval(line, {"pd": pd, "np": np, **names})
    assert p.budget.fraction == before
    return str(refused.value)


def run(line: str, p: Any) -> Any:
    """Run a suggested line as it stands."""
    names = {"p": p, "pd": pd, "np": np, "LinearRegression": LinearRegression}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(line, names)


def runs_all(message: str, p: Any) -> list[str]:
    """Run every line of a message, and return them."""
    lines = [*pieces(message)]
    for line in lines:
        assert run(line, p) is not None, line
    return lines


# The line, what the message must name, and a line of it that is run ------------------------------

LINES = {
    "p[p.age>65 & p.smoker]": "p[(p['age'] > 65) & p['smoker']]",
    "p[p.age>65 | p.smoker]": "p[(p['age'] > 65) | p['smoker']]",
    "p[p.state=='CA' & p.smoker]": "p[(p['state'] == 'CA') & p['smoker']]",
    "p[p.smoker & p.age > 65]": "p[p['smoker'] & (p['age'] > 1)]",
    "p[p.smoker & p.state == 'CA']": "p[p['smoker'] & (p['state'] == 'a')]",
    "p[p.smoker & p.admitted]": "p[p['smoker'] & (p['admitted'] > pd.Timestamp('2024-01-01'))]",
    "p.corr()": "p[['age', 'days']].corr()",
    "p.cov()": "p[['age', 'days']].cov()",
    "p.mean()": "p[['age', 'days']].mean()",
    "np.nanmean(p['age'])": "p.mean('age')",
    "np.array(p['cost'])": "p.mean('cost')",
    "list(p)": "p.groupby('state').size()",
    "p['age'][0]": "p['age'][p['age'] > 30]",
    "p['cost'][:5]": "p['cost'][p['cost'] > 30]",
    "p[:5]": "p[p['age'] > 30]",
    "list(p.groupby('state'))": "p.groupby('state')['age'].mean()",
    "pd.qcut(p['age'], 4)": (
        "pd.cut(p['age'], sorted({0, *p['age'].quantile([0.25, 0.5, 0.75]), 110}))"
    ),
    "pd.qcut(p['cost'], [0, .5, 1])": (
        "pd.cut(p['cost'], sorted({0, *p['cost'].quantile([0.25, 0.5, 0.75]), 50000}))"
    ),
    "pd.cut(p['age'], 4)": "p['age'].cut([0.0, 27.5, 55.0, 82.5, 110.0])",
    "p['age'].cut(4)": "p['age'].hist(bins=4)",
    "p.cut('age', 4)": "p['age'].cut([0.0, 27.5, 55.0, 82.5, 110.0])",
    "pd.cut(p['age'] * 2, 2)": "p.eval('age * 2').cut([0.0, 110.0, 220.0])",
    "p['state'].nlargest(3)": "p['state'].value_counts().head(10)",
    "p['state'].nsmallest(3)": "p['state'].value_counts().tail(10)",
    "p['state'].str.split('A').explode()": "p.assign(w=p['state'].str.split('A')).explode('w')",
    "p['state'].explode()": "p.assign(w=p['state'].str.split()).explode('w')",
    "pd.merge_asof(p, pd.DataFrame({'age': [1]}))": "p.assign(band=p['age'].cut([0, 10, 20]))",
    "pd.cut(p, [0, 50])": "pd.cut(p['age'], ...)",
    "pd.get_dummies(p)": "pd.get_dummies(p['state'], ...)",
    "p.mean(['age', 'cost'], bounds=(0, 9))": "p[['age', 'cost']].mean()",
    "p.choose([1, 2], lambda c: 0)": "p.choose([1, 2], lambda d, c: -(d['age'] - c).abs())",
    "p.budget.left": "p.budget.remaining",
    "p.budget.reset()": "p.budget.remaining",
    "p.budget.total": "p.budget.epsilon",
    "p.budget.used": "p.budget.spent",
}


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_turn_names_a_line_that_runs(p, line):
    message, wanted = refusal(line, p=p), LINES[line]
    assert wanted.removeprefix("p.choose([1, 2], ").removesuffix(")") in message
    if "..." not in wanted:
        assert run(wanted, p) is not None


def test_a_line_of_columns_is_of_this_table(people):
    message = refusal("p.corr()", p=people)
    assert "only numbers have a corr" in message
    assert "p[['age', 'cost']].corr()" in message
    assert runs_all(message, people)


def test_the_largest_counts_of_a_text_are_found_where_nobody_listed_it(people):
    message = refusal("p['note'].str.lower().nlargest(10)", p=people)
    line = "p['note'].str.lower().value_counts().head(10)"
    assert line in message
    assert run(line, people).index.tolist() in ([], ["sore throat"])


@pytest.mark.parametrize("by", ["'state'", "['state', 'smoker']"])
def test_iterating_groups_says_how_to_choose_the_rows_of_each(p, by):
    message = refusal(f"[g for _, g in p.groupby({by})]", p=p)
    line = message[message.index("[p[") :].removesuffix(".")
    frames = run(line, p)
    assert len(frames) == len(p.groupby(eval(by)))
    total = sum(int(frame.count(epsilon=10)) for frame in frames)
    assert abs(total - 400) < 20


def test_many_groups_are_not_listed_in_a_message(p):
    message = refusal("list(p.groupby(p['age'] // 1, keys=range(100)))", p=p)
    assert "[p[p['state'] == s] for s in keys]" in message


# What other libraries are handed -----------------------------------------------------------------


def call_from(library: str, code: str, **names: Any) -> str:
    """Run code as a function of a library, and return the message of the refusal."""
    module = types.ModuleType(f"{library}.inner")
    exec(f"import numpy as np\ndef call(x):\n    return {code}", vars(module))
    with pytest.raises(Refused) as refused:
        module.call(**names)
    return str(refused.value)


@pytest.mark.parametrize(
    "code", ["len(x)", "np.asarray(x)", "list(x)", "np.histogram_bin_edges(x)"]
)
@pytest.mark.parametrize(
    ("library", "line"),
    [
        ("seaborn", "p['cost'].hist(bins=30)"),
        ("matplotlib", "p['cost'].hist(bins=30)"),
        ("sklearn", "p.fit(LinearRegression(epsilon=1), X=['cost'], y='age')"),
        ("statsmodels", "p.fit(LinearRegression(epsilon=1), X=['cost'], y='age')"),
        ("scipy", "p.test.means('cost', by='smoker')"),
    ],
)
def test_a_library_that_takes_a_column_is_told_the_private_line(p, library, line, code):
    message = call_from(library, code, x=p["cost"])
    assert line in message
    assert line in runs_all(message, p)
    assert "__name__" not in message


@pytest.mark.parametrize("code", ["len(x)", "hasattr(x, '__dataframe__')", "x.__dataframe__()"])
def test_a_library_that_takes_a_frame_is_told_the_private_line(p, code):
    assert "p['age'].hist(bins=30)" in call_from("seaborn", code, x=p)


def test_a_picture_of_a_text_column_is_of_its_counts(p):
    message = call_from("seaborn", "len(x)", x=p["state"])
    assert "p['state'].value_counts().dp.plot()" in message
    assert runs_all(message, p)


def test_matplotlib_and_scipy_say_the_private_line(p):
    plt = pytest.importorskip("matplotlib.pyplot", reason="plots are an extra")
    for draw in (plt.hist, plt.boxplot, plt.plot):
        with pytest.raises(Refused, match=r"p\['age'\]\.hist\(bins=30\)"):
            draw(p["age"])
    stats = pytest.importorskip("scipy.stats", reason="scipy is an extra of the tests")
    with pytest.raises(Refused, match=r"p\.test\.correlation\('cost', 'age'\)"):
        stats.pearsonr(p["cost"], p["age"])


def test_a_user_of_no_library_is_told_of_releases(p):
    assert "p.count()" in call_from("my_project", "np.asarray(x)", x=p["age"])


# Keys that are listed are no question ------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("p.state.unique()", KEYS["state"]),
        ("np.unique(p['state'])", KEYS["state"]),
        ("pd.unique(p['state'])", KEYS["state"]),
        ("p.unique('diagnosis')", KEYS["diagnosis"]),
        ("p['smoker'].unique()", [False, True]),
        ("p['state'].map({'CA': 'west'}).unique()", ["west"]),
        ("p[p['age'] > 200]['state'].unique()", KEYS["state"]),
        ("p['admitted'].dt.month.unique()", list(range(1, 13))),
    ],
)
def test_declared_keys_are_listed_free(p, line, values):
    assert run(line, p).tolist() == values
    assert p.budget.spent == 0


def test_declared_keys_do_not_depend_on_the_cells():
    whole, none = visits(300), visits(300).assign(state="nowhere")
    listed = [
        df.dp.open(1, delta=1e-6, keys={"state": ["CA", None, "NY"]}, because="cells")["state"]
        for df in (whole, none)
    ]
    assert [column.unique().tolist() for column in listed] == [["CA", "NY"]] * 2


def test_unique_at_a_price_still_searches():
    df = visits(2000)
    p = df.dp.open(
        100, delta=1e-6, accountant="zcdp", keys={"state": ["CA", "nowhere"]}, because="search"
    )
    found = p.unique("state", epsilon=20)
    assert "nowhere" not in found
    assert p.budget.fraction > 0
    assert p["age"].unique(epsilon=20) is not None
    with pytest.raises(dpframe.BudgetError, match="delta"):
        visits(50).dp.open(1, bounds=BOUNDS)["age"].unique()  # bounds list no values


def test_filled_values_of_a_dict_are_keys(p):
    groups = p["diagnosis"].map({"flu": "lungs", "asthma": "lungs"}).fillna("other")
    counts = groups.value_counts(epsilon=500)
    assert set(counts.index) == {"lungs", "other"}
    df = visits(400)
    assert counts["lungs"] == df["diagnosis"].isin(["flu", "asthma"]).sum()
    bare = df.dp.open(1000, because="no keys")
    counts = bare["diagnosis"].map({"flu": "lungs"}).fillna("other").value_counts(epsilon=500)
    assert counts["lungs"] == (df["diagnosis"] == "flu").sum()
    assert bare["diagnosis"].map({"flu": 1}).fillna(0).value_counts(epsilon=50).index.size == 2


# Bounds, keys and limits that are missing ---------------------------------------------------------


def test_correlations_leave_out_who_a_person_is_and_what_has_no_bounds(people):
    found = people.corr(numeric_only=True, epsilon=50)
    assert [*found.columns] == ["age", "smoker", "cost"]
    assert [*people.cov(numeric_only=True, epsilon=50).columns] == ["age", "smoker", "cost"]
    groups = people.groupby("sex", keys=["F", "M"])
    assert [*groups.corr(numeric_only=True, epsilon=50).columns] == ["age", "smoker", "cost"]
    with pytest.raises(MissingBounds, match="'patient_id'"):
        people[["patient_id", "age"]].corr(numeric_only=True)


@pytest.mark.parametrize("line", ["p.describe()", "p.corr(numeric_only=True)"])
def test_a_summary_without_bounds_names_a_column_of_the_table(line):
    p = pd.DataFrame({"who": [1, 2], "fare": [1.0, 2.0]}).dp.open(1000, unit="who", max_rows=2)
    message = refusal(line, p=p)
    assert "bounds={'fare': (lower, upper)}" in message
    assert "age" not in message
    assert run(line.replace(")", ", bounds={'fare': (0, 9)})").replace("(, ", "("), p) is not None


@pytest.mark.parametrize(
    "line",
    [
        "p['admitted'].dt.to_period('M').value_counts()",
        "p.groupby(p['admitted'].dt.to_period('M')).size()",
        "p.crosstab(p['admitted'].dt.year, 'smoker')",
    ],
)
def test_periods_without_bounds_ask_for_those_of_the_time(line):
    df = visits(400)
    p = df.dp.open(1000, keys=KEYS, because="periods")
    message = refusal(line, p=p)
    bounds = message[message.index("bounds=") :].removesuffix(").")
    assert bounds == "bounds={'admitted': ('2024-01-01', '2024-12-31')}"
    assert len(run(line, run(f"p.open({bounds})", p))) >= 1


def test_columns_without_keys_still_ask_for_keys(p):
    with pytest.raises(MissingKeys, match=r"needs keys=\[\.\.\.\]"):
        p["age"].value_counts()
    with pytest.raises(MissingKeys, match=r"needs keys=\[\.\.\.\]"):
        p["admitted"].value_counts()


def test_each_limit_has_a_sentence_of_its_own():
    df = patient_visits(50)
    rows = df.dp.open(1, unit="patient_id", keys={"sex": ["F", "M"]}, because="rows")
    with pytest.raises(BadValue, match="max_rows= is not known: the most rows that one person may"):
        rows.count()
    groups = df.copy().dp.open(
        1, unit="patient_id", max_rows=3, keys={"sex": ["F", "M"]}, because="groups"
    )
    with pytest.raises(BadValue, match="max_groups= is not known: the most groups that one") as it:
        groups.groupby("sex").size()
    assert "max_rows" not in str(it.value)


def test_open_says_all_that_is_wrong_at_once():
    df = visits(10)
    with pytest.raises(BadValue) as refused:
        df.dp.open(
            1,
            bounds={"age": (1, 0), "cst": (0, 1), "state": (1, 2), "cost": (0, 1)},
            keys={"stat": ["a"], "state": ["CA", "CA"]},
        )
    lines = str(refused.value).splitlines()
    assert lines[0] == "5 declarations are wrong:"
    for line, words in zip(
        lines[1:], ("'age'", "'cost'", "text", "'state'", "distinct"), strict=True
    ):
        assert words in line
    with pytest.raises(dpframe.UnknownColumn, match=r"^no column 'cst'"):
        df.dp.open(1, bounds={"cst": (0, 1)})
    assert df.dp.open(1, bounds={"age": (0, 1)}).budget.epsilon == 1


def test_a_budget_that_is_gone_says_that_nothing_is_left():
    p = visits(300).dp.open(1, delta=1e-6, bounds=BOUNDS)
    while p.budget.remaining > 1e-9:
        p.count(epsilon=p.budget.remaining, fresh=True)
    with pytest.raises(dpframe.BudgetExceeded) as refused:
        p.mean("age", epsilon=0.5)
    assert "nothing is left of it" in str(refused.value) or "No epsilon is left" in str(
        refused.value
    )
    assert "e-0" not in str(refused.value)


# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report_all", "continual", "append", "nothing"])
def test_a_poor_guess_is_not_made(p, name):
    for line in (f"p.{name}", f"p['age'].{name}", f"p.groupby('state').{name}"):
        assert "Did you mean" not in refusal(line, p=p)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("agee", "age"), ("Age", "age"), ("aeg", "age"), ("cst", "cost"), ("cots", "cost")),
        *(("smokers", "smoker"), ("addmited", "admitted"), ("report", None), ("x", None)),
        *(("continual", None), ("append", None)),
    ],
)
def test_a_close_name_is_offered_and_no_other(typed, meant):
    known = ["age", "cost", "smoker", "admitted", "plot", "notnull", "pipe"]
    assert find_close_name(typed, known) == meant
    assert ("Did you mean" in did_you_mean(typed, known)) == (meant is not None)


def test_made_up_rows_are_named_for_synthetic_ones(p):
    for name in ("synthetic", "synthesise", "synth"):
        if not hasattr(p, name):
            assert "dpframe.dummy(p)" in refusal(f"p.{name}(100)", p=p)
    assert len(dpframe.dummy(p, 5)) == 5


def test_a_fitted_model_says_what_it_has(p):
    model = p.fit(LinearRegression(epsilon=5), X=["age"], y="cost")
    with pytest.raises(AttributeError, match="no standard errors of its coefficients"):
        model.interval  # noqa: B018  (looking it up is the test)
    with pytest.raises(AttributeError, match=r"Write model\.plan_"):
        model.plan  # noqa: B018
    assert model.plan_ is not None


def test_tests_and_pictures_have_a_repr(p):
    shown = repr(p.test)
    assert "p.test.means('age', by='smoker')" in shown
    assert runs_all(shown, p) == ["p.test.means('age', by='smoker')"]
    assert ".plot.hist" in repr(p.plot)


def test_articles_go_with_the_word(p):
    with pytest.raises(Refused, match="by an int"):
        p["age"][0]
    with pytest.raises(Refused, match="an ndarray"):
        p[np.array([True])]
    with pytest.raises(BadType, match="a key of 'state' is an int"):
        p.groupby("state", keys=[1])


# Where errors live --------------------------------------------------------------------------------


def test_errors_have_the_module_that_users_import_them_from():
    for name in dpframe.__all__:
        kind = getattr(dpframe, name)
        if isinstance(kind, type) and issubclass(kind, (DPError, Warning)):
            assert kind.__module__ == "dpframe"
            assert pickle.loads(pickle.dumps(kind)) is kind
            error = pickle.loads(pickle.dumps(kind("why")))
            assert type(error) is kind
            assert error.args == ("why",)
    with pytest.raises(NotOffered) as refused:
        visits(5).dp.open(1).iloc_  # noqa: B018
    assert pickle.loads(pickle.dumps(refused.value)).args == refused.value.args


# Nulls of columns that have none ------------------------------------------------------------------


def test_nulls_of_columns_that_have_none_are_free(p):
    assert p["age"].isna().sum() == 0
    assert p["smoker"].isna().mean() == 0
    assert p[["age", "smoker", "days"]].isna().sum().to_dict() == dict.fromkeys(
        ["age", "smoker", "days"], 0
    )
    assert pd.isna(p[["age"]]).mean().tolist() == [0.0]
    assert p.budget.spent == 0
    with pytest.raises(TypeError):
        p["age"].isna().sum(epsilom=1)
    with pytest.raises(DPError):
        p["age"].isna().sum(epsilon=-1)


def test_other_columns_of_a_table_of_nulls_pay_alone():
    df = visits(500)
    df.loc[:40, "state"] = None
    p = df.dp.open(1000, because="nulls")
    nulls = p.isna().sum(epsilon=300)
    assert [*nulls.index] == [*df.columns]
    assert nulls.to_dict() == df.isna().sum().to_dict()
    assert p.budget.spent == 300
    assert len(p.explain.isna().sum(epsilon=300).cells) == df.isna().sum().size - 3
    low, high = nulls.dp.interval()["lower"], nulls.dp.interval()["upper"]
    assert (low <= nulls).all()
    assert (nulls <= high).all()
    assert low["age"] == high["age"] == 0
    assert nulls.dp.reliable["age"]
    assert "?" not in repr(nulls).split("age")[1].split("\n")[0]
    assert nulls["state"] == 41
    assert p.isna().sum(epsilon=300).equals(nulls)  # the same question is free
    assert p.budget.spent == 300
    assert repr(nulls.head(3))
    assert nulls.dp.table() is not None
    shares = p.isna().mean(epsilon=300)
    assert shares["age"] == 0
    assert abs(shares["state"] - 41 / 500) < 0.01


def test_a_free_zero_does_not_depend_on_the_cells():
    for df in (
        pd.DataFrame({"n": [1, 2], "b": [True, False]}),
        pd.DataFrame({"n": [5], "b": True}),
    ):
        p = df.dp.open(1, because="dtypes")
        assert p.isna().sum().to_dict() == {"n": 0, "b": 0}
    p = pd.DataFrame({"x": [1.0, 2.0]}).dp.open(1, because="floats")
    p["x"].isna().sum()
    assert p.budget.spent > 0
