"""Twenty pieces of ordinary work: the line of pandas beside the private line, and what is shown.

Each piece asks both for the same, looks at the text and the HTML of the answer, and compares it:
intervals hold the truth, numbers far from it are marked, and what a limit or a clip has shaped says
so. The tables are synthetic: visits of the package, and flights and penguins drawn here from a seed.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2_contingency

import dpframe
from dpframe import DPError, Estimate, PrivacyWarning
from dpframe.datasets import BOUNDS, KEYS, STATES, patient_visits, visits
from dpframe.learn import LinearRegression
from tests.advice import pieces
from tests.internals import deaf_to_noise

plt = pytest.importorskip("matplotlib.pyplot")

CARRIERS = ["AA", "B6", "DL", "EV", "UA", "WN"]
ORIGINS = ["EWR", "JFK", "LGA"]
DAYS = ("2013-01-01", "2013-12-31")
AGES = {"bins": [0, 40, 65, 110], "labels": ["<40", "40-65", "65+"], "right": False}


@cache
def flights(size=6000, planes=250):
    """Return flights: a plane flies in most months, and delays have both signs."""
    rng = np.random.default_rng(13)
    day = pd.Timestamp(DAYS[0]) + pd.to_timedelta(rng.integers(0, 365, size), unit="D")
    delay = np.round(rng.exponential(25, size) - 12)
    delay[rng.random(size) < 0.025] = np.nan
    return pd.DataFrame(
        {
            "plane": rng.integers(0, planes, size),
            "day": day,
            "month": day.month,
            "origin": rng.choice(ORIGINS, size, p=[0.4, 0.3, 0.3]),
            "carrier": rng.choice(CARRIERS, size),
            "delay": np.clip(delay, -30, 180),
            "distance": rng.integers(100, 2600, size).astype(float),
        }
    )


@cache
def penguins(size=344):
    """Return penguins: three species of different mass, and some of unknown sex."""
    rng = np.random.default_rng(7)
    kind = rng.choice(3, size, p=[0.44, 0.2, 0.36])
    male = rng.random(size) < 0.5
    mass = np.array([3500, 3550, 4800])[kind] + 550 * male + rng.normal(0, 250, size)
    return pd.DataFrame(
        {
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
            "sex": np.where(rng.random(size) < 0.03, None, np.where(male, "male", "female")),
            "body_mass_g": np.round(mass),
            "flipper_length_mm": np.round(150 + mass / 80 + rng.normal(0, 5, size)),
        }
    )


@cache
def patients(people=1200):
    """Return visits of patients, with a complaint in free text that is sometimes a rare one."""
    df = patient_visits(people)
    rng = np.random.default_rng(5)
    common = np.array(["back pain", "Back Pain", "headache", "fever", "Cough", "cough", "rash"])
    said = common[np.minimum(rng.geometric(0.3, len(df)) - 1, 6)].astype(object)
    said[::200] = [f"rare {i}" for i in range(len(said[::200]))]
    return df.assign(complaint=said)


def open_flights(**terms):
    bounds = {"delay": (-30, 180), "distance": (0, 5000), "day": DAYS}
    keys = {"origin": ORIGINS, "month": range(1, 13)}
    return flights().copy().dp.open(1000, bounds=bounds, keys=keys, because="pieces", **terms)


def open_penguins():
    df = penguins()
    bounds = {"body_mass_g": (2000, 7000), "flipper_length_mm": (150, 250)}
    keys = {"species": ["Adelie", "Chinstrap", "Gentoo"], "sex": ["female", "male"]}
    return df, df.copy().dp.open(1000, bounds=bounds, keys=keys, because="pieces")


def open_visits(rows=4000):
    df = visits(rows)
    bounds = {**BOUNDS, "admitted": ("2025-01-01", "2025-12-31")}
    return df, df.dp.open(1000, bounds=bounds, keys=KEYS, because="pieces")


def open_patients(**terms):
    df = patients().copy()
    limits = {"unit": "patient_id", "max_rows": 8, "max_groups": 4, **terms}
    bounds = {"cost": (0, 20_000), "age": (0, 110), "date": ("2025-01-01", "2025-12-31")}
    keys = {"state": STATES, "sex": ["F", "M"]}
    return df, df.dp.open(
        1000, delta=1e-5, queries=1000, bounds=bounds, keys=keys, because="pieces", **limits
    )


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        deaf_to_noise()
        yield
    plt.close("all")


def look(answer):
    """Show an answer as text and as HTML, and return the text."""
    text = repr(answer)
    html = (answer.to_frame("v") if isinstance(answer, pd.Series) else answer)._repr_html_()
    assert "±" in html or "±" not in text
    assert isinstance(answer.head(3).to_string(), str)
    return text


def read_ends(answer):
    """Return both ends of the intervals of an answer, in its own shape."""
    ends = answer.dp.interval()
    if answer.ndim == 1:
        return ends["lower"].to_numpy(float), ends["upper"].to_numpy(float)
    return tuple(
        ends.xs(end, axis=1, level=-1).reindex(columns=answer.columns).to_numpy(float)
        for end in ("lower", "upper")
    )


def compare(answer, truth):
    """Check an answer against pandas, and return its text.

    The intervals hold the truth as often as their level of 0.95 says. A number that is not marked
    is off by at most four times half its interval. The marks are counted in the text.
    """
    text = look(answer)
    assert "±" in text
    truth = truth.reindex(answer.index) if answer.ndim == 1 else truth.reindex_like(answer)
    values, right = answer.to_numpy(float), truth.to_numpy(float)
    low, high = read_ends(answer)
    known = ~np.isnan(values) & ~np.isnan(right)
    assert known.any()
    inside = (low <= right + 1e-9) & (right <= high + 1e-9)
    assert (~inside[known]).sum() <= binom.isf(1e-4, known.sum(), 0.05), answer.dp.table()
    good = np.asarray(answer.dp.reliable, dtype=bool)
    far = np.abs(values - right) > 2 * (high - low) + 1e-9
    assert not (far & good & known).any()
    if not good.all():
        assert f"? noise, {(~good).sum()} of {good.size} numbers" in text
    return text


def warned(ask):
    """Ask, and return the answer and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        answer = ask()
    return answer, [str(w.message) for w in heard if issubclass(w.category, PrivacyWarning)]


# Looking ------------------------------------------------------------------------------------------


def test_piece_1_first_look():
    df, p = flights(), open_flights()
    assert list(p.columns) == list(df.columns)
    assert p.dtypes.equals(df.dtypes)
    assert p.head(3).shape == (3, df.shape[1])
    assert p.shape[1] == df.shape[1]
    p.info()
    assert p.budget.spent == 0
    columns = ["delay", "distance"]
    known = df[columns].describe()
    known.loc[["min", "max"]] = df[columns].quantile([0.01, 0.99]).to_numpy()
    text = compare(p[columns].describe(epsilon=5), known)
    assert "quantiles: off by at most" in text
    assert "min is the quantile 0.01, max is the quantile 0.99" in text
    greatest = p["delay"].max(epsilon=20)
    assert greatest < df["delay"].max() - 10
    assert "max is the quantile 0.99" in repr(greatest)
    missing = p.isna().sum(epsilon=5)
    compare(missing, df.isna().sum())
    assert missing.dp.reliable["delay"]
    assert missing.dp.interval().loc["plane"].tolist() == [0, 0]


def test_piece_2_tables_with_shares():
    df, p = open_visits()
    shares = p.crosstab("state", "smoker", normalize="index", epsilon=5)
    compare(shares, pd.crosstab(df["state"], df["smoker"], normalize="index"))
    totals = pd.crosstab(p["state"], p["smoker"], margins=True, epsilon=5)
    compare(totals, pd.crosstab(df["state"], df["smoker"], margins=True))
    compare(
        p["state"].value_counts(normalize=True, epsilon=5),
        df["state"].value_counts(normalize=True),
    )
    spent = p.budget.spent
    again = p.groupby(["state", "smoker"]).size(epsilon=5).unstack()
    assert np.array_equal(again, totals.iloc[:-1, :-1])
    assert p.budget.spent == spent


def test_piece_2_tables_of_months_with_a_unit_say_who_is_left_out():
    p = open_flights(unit="plane", max_rows=40, max_groups=3)
    totals, said = warned(lambda: p.crosstab("origin", "month", margins=True, epsilon=20))
    truth = pd.crosstab(flights()["origin"], flights()["month"], margins=True)
    assert totals.loc["All", "All"] < truth.loc["All", "All"] / 2
    assert "in at most 3 groups" in look(totals)
    left_out = next(one for one in said if "in at most 3 of 36 groups" in one)
    (line,) = pieces(left_out)
    over = eval(line.removesuffix(")") + ", epsilon=20)", {"p": p})
    share = over.loc["All", True] / over.loc["All", "All"]
    months = flights().groupby("plane")[["origin", "month"]].value_counts().groupby("plane").size()
    assert abs(share - (months > 3).mean()) < 0.1
    plan = repr(p.explain.crosstab("origin", "month"))
    assert "left out" in plan


def test_piece_3_histogram():
    df, p = flights(), open_flights()
    axes = p["distance"].hist(bins=10, epsilon=5)
    drawn = np.array([bar.get_height() for bar in axes.patches[:10]])
    counted = np.histogram(df["distance"], bins=10, range=(0, 5000))[0]
    assert np.abs(drawn - counted).max() < 15
    counts = p["distance"].histogram(bins=10, epsilon=5)
    assert "± " in look(counts)
    assert np.array_equal(counts.to_numpy(), drawn)


def test_piece_4_group_means_with_error_bars():
    df, p = open_penguins()
    means = p.groupby("species")["body_mass_g"].mean(epsilon=2)
    compare(means, df.groupby("species")["body_mass_g"].mean())
    axes = means.dp.plot()
    assert len(axes.containers) > 0
    by_sex = p.groupby(["species", "sex"])["body_mass_g"].mean(epsilon=0.05)
    wide = by_sex.unstack()
    assert (~wide.dp.reliable).sum().sum() == (~by_sex.dp.reliable).sum() > 0
    compare(wide, df.groupby(["species", "sex"])["body_mass_g"].mean().unstack())


def test_piece_5_time_series():
    df, p = flights(), open_flights()
    weekly = p.resample("W", on="day")["delay"].mean(epsilon=20)
    known = df.resample("W", on="day")["delay"].mean()
    compare(weekly, known)
    smooth = weekly.rolling(4).mean()
    compare(smooth, known.rolling(4).mean())
    assert smooth.dp.plot() is not None
    daily = p.resample("D", on="day")["delay"].mean(epsilon=0.2).rolling(7).mean()
    assert np.isinf(read_ends(daily)[0][6:]).all()
    cells = [line.split()[1:] for line in look(daily).splitlines()[7:11]]
    assert all(cell[1] == "?" and len(cell[0].strip("-.0")) <= 3 for cell in cells)
    both = p.resample("ME", on="day").agg(n=("delay", "size"), m=("delay", "mean"), epsilon=1)
    wanted = df.resample("ME", on="day").agg(n=("delay", "size"), m=("delay", "mean"))
    compare(both, wanted)
    for shown in (both.T, both.iloc[::-1], both.reset_index()):
        assert "±" in repr(shown)
    monthly = p.groupby(p["day"].dt.to_period("M")).size(epsilon=5)
    compare(monthly.cumsum(), df.groupby(df["day"].dt.to_period("M")).size().cumsum())


# Groups and people --------------------------------------------------------------------------------


def test_piece_6_top_ten_of_free_text():
    df, p = open_patients()
    top = p["complaint"].str.lower().value_counts(epsilon=20).head(10)
    known = df["complaint"].str.lower().value_counts()
    text = look(top)
    assert top.index.tolist()[:2] == known.index.tolist()[:2]
    assert not any(name.startswith("rare") for name in top.index)
    assert "rare groups are left out" in text
    assert "of at most 8 rows a person, in at most 4 groups" in text
    assert "have is as likely as not to be found" in repr(top.dp.plan)


@pytest.mark.parametrize("epsilon", [0.25, 50])
def test_piece_7_quantiles_by_group(epsilon):
    df, p = open_visits()
    ask = {"q": [0.25, 0.5, 0.75]}
    found = p.groupby("state")["cost"].quantile(**ask, epsilon=epsilon)
    text = compare(found, df.groupby("state")["cost"].quantile(**ask))
    assert (found.dp.reliable.mean() > 0.5) == (epsilon > 1)
    assert ("quantiles: off by at most" in text) == (epsilon < 1)
    assert ("quantiles: off by at most" in look(found.unstack())) == (epsilon < 1)
    boxes = p.boxplot("cost", by="state", epsilon=epsilon)
    hatched = [patch for patch in boxes.patches if patch.get_hatch()]
    assert bool(hatched) == (epsilon < 1)


def test_piece_8_correlation_as_a_picture():
    df, p = open_penguins()
    columns = ["body_mass_g", "flipper_length_mm"]
    table = p.corr(numeric_only=True, epsilon=100)
    compare(table, df[columns].corr())
    assert plt.imshow(table) is not None
    with pytest.raises(DPError, match=r"p\['body_mass_g'\]\.hist"):
        plt.scatter(p["body_mass_g"], p["flipper_length_mm"])
    noise = p[columns].corr(epsilon=0.2)
    assert "?" in look(noise) or noise.isna().any().any()


def test_piece_9_regression_with_a_dummy():
    df, p = open_visits()
    table = p[["age", "days"]].assign(smoker=p["smoker"])
    model = LinearRegression().fit(table, p["cost"], epsilon=200, bounds={"cost": (0, 50_000)})
    known = df.dropna()
    columns = [known["age"], known["days"], known["smoker"], np.ones(len(known))]
    wanted = np.linalg.lstsq(np.column_stack(columns).astype(float), known["cost"], rcond=None)[0]
    assert np.abs(model.coef_[:2] - wanted[:2]).max() < 0.2 * np.abs(wanted[:2]).max()
    spent = p.budget.spent
    with pytest.raises(DPError):
        np.asarray(p[["age"]])
    assert p.budget.spent == spent


def test_piece_10_join_with_a_public_table():
    df, p = open_visits()
    names = pd.DataFrame({"state": STATES, "region": ["west", "east"] * 4})
    known = df.merge(names, on="state").groupby("region")["cost"].mean()
    for joined in (p.merge(names, on="state"), pd.merge(p, names, on="state")):
        compare(joined.groupby("region")["cost"].mean(epsilon=5), known)


def test_piece_11_per_person():
    df, p = open_patients()
    sizes = p.groupby("patient_id").size().mean(epsilon=5)
    assert sizes < df.groupby("patient_id").size().mean() - 0.2
    assert "sizes cut at 8 rows a person" in repr(sizes)
    totals = p.groupby("patient_id")["cost"].sum().mean(bounds=(0, 20_000), epsilon=5)
    assert totals < df.groupby("patient_id")["cost"].sum().mean() - 2000
    assert "values clipped to 0 to 20,000" in repr(totals)
    p["gap"] = p.groupby("patient_id")["date"].diff()
    soon = (p["gap"] <= pd.Timedelta("30D")).mean(epsilon=5)
    assert "of at most 8 rows a person" in repr(soon)
    monthly, said = warned(lambda: p.resample("ME", on="date").size(epsilon=5))
    assert "of at most 8 rows a person, in at most 4 groups" in look(monthly)
    left_out = next(one for one in said if "in at most 4 of 12 groups" in one)
    assert all(eval(line, {"p": p}) is not None for line in pieces(left_out))
    assert "in at most 4 groups" in look(pd.DataFrame(monthly)) or "±" not in repr(
        pd.DataFrame(monthly)
    )


def test_piece_12_cohorts():
    df, p = open_patients()
    for table in (df, p):
        first = table.groupby("patient_id")["date"].transform("min")
        table["cohort"] = first.dt.quarter
        table["k"] = (table["date"].dt.quarter - first.dt.quarter).clip(0, 3)
    counts = p.pivot_table("patient_id", "cohort", "k", aggfunc="nunique", epsilon=4)
    known = df.pivot_table("patient_id", "cohort", "k", aggfunc="nunique")
    assert "of at most 4 groups a person" in compare(counts, known)
    beyond = known.reindex_like(counts).isna()
    assert not counts.dp.reliable.where(beyond, False).any().any()
    pairs = [(c, k) for c in range(1, 5) for k in range(5 - c)]
    listed = p.groupby(["cohort", "k"], keys=pairs)["patient_id"].nunique(epsilon=4)
    wide = listed.dp.unstack()
    compare(wide, known)
    stays = listed.dp / wide[0]
    compare(stays.dp.unstack(), known.div(known[0], axis=0))
    with pytest.raises(DPError, match="numbers of months") as refused:
        p["date"].dt.to_period("Q") - p["date"].dt.to_period("Q")
    line = str(refused.value).partition("such as ")[2].removesuffix(".")
    assert 24_000 < eval(line, {"p": p}).mean(epsilon=5) < 25_000


def test_piece_13_ratios_and_standardised_rates():
    df, p = open_patients(max_rows=80)
    ratio = p.sum("cost", epsilon=20) / p.nunique("patient_id", epsilon=20)
    low, high = ratio.interval()
    known = df["cost"].clip(0, 20_000).sum() / df["patient_id"].nunique()
    assert low - (high - low) <= known <= high + (high - low)
    p["band"] = pd.cut(p["age"], **AGES)
    rate = p.groupby("band")["smoker"].mean(epsilon=20)
    by_band = df.groupby(pd.cut(df["age"], **AGES), observed=False)["smoker"].mean()
    compare(rate, by_band.set_axis(rate.index))
    weights = pd.Series({"<40": 0.5, "40-65": 0.3, "65+": 0.2})
    standard = (rate.dp * weights).sum()
    assert isinstance(standard, Estimate)
    assert "±" in repr(standard)
    wanted = float((by_band.to_numpy() * weights.to_numpy()).sum())
    low, high = standard.interval()
    assert low - (high - low) <= wanted <= high + (high - low)
    plain = (rate * weights).sum()
    assert not isinstance(plain, Estimate)
    assert float(plain) == pytest.approx(float(standard))
    assert "±" in repr(rate.dp["<40"])


# Comparisons, survival, reports -------------------------------------------------------------------


def test_piece_14_an_experiment_of_two_arms():
    rng = np.random.default_rng(0)
    arm = rng.choice(["A", "B"], 8000)
    df = pd.DataFrame({"arm": arm, "conv": rng.random(8000) < np.where(arm == "B", 0.225, 0.2)})
    p = df.dp.open(1000, keys={"arm": ["A", "B"]}, because="pieces")
    rates = p.groupby("arm")["conv"].mean(epsilon=5)
    compare(rates, df.groupby("arm")["conv"].mean())
    assert "noise only; of='population' for a test" in repr(rates.dp.difference("B", "A"))
    drawn = rates.dp.difference("B", "A", of="population")
    assert "noise and sampling" in repr(drawn)
    plain = chi2_contingency(pd.crosstab(df["arm"], df["conv"])).pvalue
    shares = p.test.shares("conv", by="arm", epsilon=5).pvalue
    tables = p.test.independence("arm", "conv", epsilon=5).pvalue
    assert plain / 10 < min(shares, tables) <= max(shares, tables) < 10 * plain + 0.01


def test_piece_15_survival():
    rng = np.random.default_rng(4)
    month = np.minimum(rng.geometric(0.03, 3000), 9)
    df, months = pd.DataFrame({"month": month, "arrest": month < 9}), range(1, 10)
    p = df.dp.open(1000, keys={"month": months}, because="pieces")
    deaths = p[p["arrest"]].groupby("month").size(epsilon=0.5)
    leaving = p.groupby("month").size(epsilon=0.5)
    at_risk = leaving.iloc[::-1].dp.cumsum().iloc[::-1]
    survival = (1 - deaths.dp / at_risk).dp.cumprod()
    gone = df.groupby("month").size().reindex(months, fill_value=0)
    died = df[df["arrest"]].groupby("month").size().reindex(months, fill_value=0)
    known = (1 - died / gone.iloc[::-1].cumsum().iloc[::-1]).cumprod()
    compare(survival, known)
    low, high = read_ends(survival)
    assert (high - low).max() < 0.1
    again = (1 - deaths / leaving[::-1].cumsum()[::-1]).cumprod()
    pd.testing.assert_frame_equal(again.dp.interval(), survival.dp.interval())
    assert survival.dp.plot() is not None


def test_piece_16_a_table_for_a_report(tmp_path):
    df, p = open_visits()
    means = p.groupby("state")["cost"].mean(epsilon=5)
    table = means.dp.table()
    assert {"state", "value", "lower", "upper"} <= {*table.columns}
    assert table["value"].tolist() == means.tolist()
    assert (table["lower"] <= table["value"]).all()
    for text in (table.to_csv(index=False), table.to_html(), means.dp.to_markdown()):
        assert "Unnamed" not in text
        assert "lower" in text
    line = means.dp.to_csv().splitlines()[1].split(",")
    assert float(line[2]) == round(means["CA"])
    page = p.report(tmp_path / "visits.html", [means])
    assert "lower" in page.read_text(encoding="utf-8") or "±" in page.read_text(encoding="utf-8")
    assert p.budget.registry()["epsilon"] == 1000
    compare(means, df.groupby("state")["cost"].mean())


def test_piece_17_two_notebooks_on_one_ledger(tmp_path):
    ledger = str(tmp_path / "budget.db")

    terms = {"bounds": BOUNDS, "keys": KEYS, "ledger": ledger, "population": "patients"}
    df, same = visits(4000), visits(4000)
    first = df.dp.open(5, **terms)
    means = first.groupby("state")["cost"].mean(epsilon=0.5)
    with pytest.raises(DPError, match="go on with that session, or close"):
        same.dp.open(5, **terms)
    first.close()
    second = same.dp.open(5, **terms)
    again = second.groupby("state")["cost"].mean(epsilon=0.5)
    assert again.equals(means)
    assert second.budget.spent == 0.5
    compare(again, df.groupby("state")["cost"].mean())


# What there is no verb for ------------------------------------------------------------------------


def test_piece_18_totals_of_a_hierarchy():
    rng = np.random.default_rng(2)
    pairs = [(state, f"{state}-{i}") for state in STATES[:3] for i in range(4)]
    df = pd.DataFrame([pairs[i] for i in rng.integers(0, 12, 4000)], columns=["state", "county"])
    keys = {"state": STATES[:3], "county": [county for _, county in pairs]}
    p = df.dp.open(1000, keys=keys, because="pieces")
    every = p.groupby(["state", "county"]).size(epsilon=0.5)
    assert "? noise, 2" in look(every)
    assert 20 <= (~every.dp.reliable).sum() <= 24
    known = df.groupby(["state", "county"]).size()
    counties = p.groupby(["state", "county"], keys=pairs).size(epsilon=1)
    compare(counties, known)
    states = counties.dp.groupby(level="state").sum()
    compare(states, known.groupby(level="state").sum())
    assert states.to_numpy().tolist() == counties.groupby(level="state").sum().tolist()


def test_piece_19_there_is_no_synthetic_table():
    _, p = open_visits()
    for ask in (lambda: p.synthetic(1000), lambda: p.synthesize(rows=1000)):
        with pytest.raises(DPError, match=r"dpframe\.dummy\(p\).*say nothing about the people"):
            ask()
    rows = dpframe.dummy(p)
    assert "made-up rows" in repr(rows.head(3))
    assert p.budget.spent == 0


def test_piece_20_a_daily_publication(tmp_path):
    ledger = str(tmp_path / "budget.db")
    days = [f"2026-03-0{i}" for i in range(1, 5)]
    whole = visits(3000).assign(day=np.array(days)[np.arange(3000) % 4])

    def open_day(day):
        table = whole[whole["day"] <= day].reset_index(drop=True)
        terms = {"ledger": ledger, "population": "daily", "version": day}
        return table.dp.open(4, bounds=BOUNDS, keys={"day": days}, **terms)

    for day in days[:3]:
        daily = open_day(day).groupby("day").size(epsilon=1)
        known = whole[whole["day"] <= day].groupby("day").size().reindex(days, fill_value=0)
        compare(daily, known)
        compare(daily.dp.cumsum(), known.cumsum())
    assert open_day(days[0]).budget.spent == 3
