"""Every case of data/bad_inputs.json, and the rules at its top for each: what careful and careless users type."""

from __future__ import annotations

import copy
import datetime
import json
import os
import pickle
import shutil
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpframe
from dpframe.engines.pandas import PandasEngine
from dpframe.learn import LogisticRegression
from dpframe.mechanisms.noise import LaplaceNoise
from tests.internals import deaf_to_noise

LIST = json.loads((Path(__file__).parents[1] / "data" / "bad_inputs.json").read_text())
CASES = {case["id"]: case for case in LIST["cases"]}
NAMES = {m.__name__: m for m in (copy, datetime, pickle, uuid, Decimal, Fraction)} | {
    "np": np,
    "pd": pd,
    "pa": pa,
}
ERRORS = {"BudgetError": dpframe.BudgetError}

FILES = {"ledger15"}  # its helper needs a file: see the end


def plain_sum(budget):
    """The plain sum of epsilons, exact."""
    return budget.rule.pure_spent(budget.state)


class DP:
    """The list's accessor: our session, with the list's words for bounds and keys; `key=` shares a session."""

    def __init__(self, df, epsilon=10, delta=1e-4, key=None, **terms):
        self.frame = df
        self._p = dpframe.private(df) if "dpframe" in df.attrs and key is None else None
        if self._p is None:
            self._p = df.dp.open(epsilon, delta, **{"accountant": "pure", **terms})
        self._fresh = {} if key is None else {"fresh": True}

    def __getattr__(self, verb):
        def call(*args, **options):
            options = {
                {"categories": "keys", "range": "bounds"}.get(k, k): v for k, v in options.items()
            }
            # Of labels: value_counts, in the order of the keys.
            if verb == "histogram" and "keys" in options:
                return self._p.value_counts(*args, sort=False, **options)
            return getattr(self._p, verb)(*args, **options, **self._fresh)

        return call

    def logistic(self, y, X, epsilon, **model):
        """The list's word for logistic regression of features within (-1, 1)."""
        model = LogisticRegression(epsilon=epsilon, **model)
        self._p.fit(model, X=X, y=y, bounds={y: (0, 1), **dict.fromkeys(X, (-1, 1))}, **self._fresh)
        return pd.Series(model.coef_, index=model.feature_names_in_, name="coef")

    def __repr__(self):
        return repr(self._p)


def frame_of(setup):
    scope = dict(NAMES)
    exec(setup, scope)
    return scope["df"]


def spent(df):
    return plain_sum(dpframe.private(df).budget) if "dpframe" in df.attrs else Fraction(0)


def shape_of(answer):
    """All that may be told from an answer besides its numbers."""
    if isinstance(answer, list):
        return [shape_of(a) for a in answer]
    if isinstance(answer, pd.Series):
        return (
            type(answer),
            answer.name,
            answer.dtype,
            answer.index.dtype,
            list(map(str, answer.index)),
            (answer.index.names),
        )
    return type(answer)


def outcome(df, call):
    """What happened and what it cost: the exception with its whole chain, or the answer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deaf_to_noise()
        try:
            answer = eval(call, {**NAMES, "df": df, "DP": DP})
        except Exception as error:
            chain = []
            while error is not None:
                chain.append((type(error), str(error)))
                error = error.__cause__ or error.__context__
            return "error", chain, None, spent(df)
    assert not caught, "a warning could depend on the data"
    return "answer", shape_of(answer), answer, spent(df)


def neighbours(case):
    """The frame given, the listed neighbour, and two more whose cells differ but not their dtypes."""
    df = frame_of(case["setup"])
    yield frame_of(case["setup"])
    if "neighbour" in case:
        yield frame_of(case["neighbour"])
    if case["id"] != "groupby19":  # a million keys: once is enough
        yield df.iloc[:0]
        yield pd.concat([df, df])


@pytest.mark.parametrize(
    "case",
    [c for i, c in CASES.items() if c["expect"].startswith(("answer", "error")) and i not in FILES],
    ids=lambda c: c["id"],
)
def test_outcome_is_the_expected_one_whatever_the_cells_are(case):
    if case["id"] == "ledger13":  # its helper: a second budget for a charged frame
        case = {**case, "call": "(DP(df).count(epsilon=1), df.dp.open(epsilon=1))"}
    if case["id"] == "hist_quant_argmax24":  # with delta they would be looked for
        case = {**case, "call": "DP(df, delta=0).argmax('k', epsilon=0.5)"}
    allowed = case["expect"].split("|")
    classes = tuple(
        ERRORS.get(name) or getattr(__import__("builtins"), name)
        for name in (part.removeprefix("error:") for part in allowed)
        if name != "answer"
    )
    found = [outcome(df, case["call"]) for df in neighbours(case)]
    kind, detail, answer, cost = found[0]
    if kind == "error":
        assert classes
        assert issubclass(detail[0][0], classes), detail
        assert cost == (1 if case["id"] == "ledger13" else 0)
    else:
        assert "answer" in allowed
        assert 0 < cost <= 1
        numbers = answer if isinstance(answer, list) else [answer]
        for number in numbers:
            assert isinstance(number, str) or np.isfinite(np.asarray(number, dtype=float)).all()
    for other in found[1:]:
        assert (other[0], other[1], other[3]) == (kind, detail, cost)


def test_nothing_is_excused():
    checks = {i for i, c in CASES.items() if c["expect"].startswith("check")}
    assert checks == set(CHECKS)
    assert len(CASES) == LIST["meta"]["count"]


# The properties that the list asks to check ------------------------------------------------------------------


def copies_share_one_ledger(df):
    p = DP(df)
    assert p.frame.copy().dp.ledger.equals(df.dp.ledger)
    df.dp.count(epsilon=1)
    assert len(p.frame.copy().dp.ledger) == 1


def argument_errors_charge_nothing(df):
    with pytest.raises(KeyError):
        DP(df).sum("y", bounds=(0, 1), epsilon=0.5)
    assert spent(df) == 0


def an_interrupted_question_stays_charged(df):
    p = DP(df, delta=0)

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaplaceNoise, "release", interrupted)
        with pytest.raises(KeyboardInterrupt):
            p.count(epsilon=0.5)
    assert spent(df) == Fraction(1, 2)


def threads_share_the_budget_exactly(df):
    DP(df, epsilon=1, key="t")

    def ask(_):
        try:
            return DP(df, epsilon=1, key="t").count(epsilon=0.25)
        except dpframe.BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert sum(a is not None for a in answers) == 4
    assert spent(df) == 1


def forked_children_are_refused(df):
    """The issue wins over the list: a copy of the process has no budget of its own."""
    p = DP(df)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # about threads that other tests left
            child = os.fork()
        if child == 0:
            try:
                p.count(epsilon=0.25)
            except dpframe.SessionError:
                os._exit(17)
            finally:
                os._exit(18)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert spent(df) == 0


def clearing_attrs_loses_no_ledger(df):
    p = DP(df)
    p.count(epsilon=0.5)
    df.attrs.clear()
    with pytest.raises(dpframe.SessionError, match="has, or had, a session"):
        df.dp.open(epsilon=10, delta=1e-4)
    assert plain_sum(p._p.budget) == Fraction(1, 2)


def frame_repr_shows_no_cell(df):
    none = df.iloc[:0]
    assert repr(DP(df)) == repr(DP(none))


def groups_show_no_cell(df):
    none = df.iloc[:0]
    assert str(DP(df).groupby("k", keys=["a"])) == str(DP(none).groupby("k", keys=["a"]))


def an_estimate_holds_its_plan_and_noisy_integers_only(df):
    answer = DP(df, delta=0).count(epsilon=2**-10)
    assert set(vars(answer)) == {"_plan", "_raw"}
    assert vars(answer)["_raw"][0].tolist() == [
        [int(answer)]
    ]  # what was released, and nothing beside it


def a_pickle_holds_no_raw_data(df):
    secret = df.assign(x=[123456789.0, 987654321.0, 192837465.0], k="a-secret-cell")
    text = pickle.dumps(DP(secret).sum("x", bounds=(0, 1), epsilon=0.5))
    assert b"a-secret-cell" not in text
    assert not any(np.float64(x).tobytes() in text for x in secret["x"])


def a_count_is_an_int_always(df):
    for frame in (df, df.iloc[:0]):
        assert type(DP(frame).count(epsilon=0.5)).__mro__[-2:] == (int, object)


def a_repeated_question_is_one_answer_and_one_charge(df):
    first, second = [DP(df).count(epsilon=0.5) for _ in range(2)]
    assert first == second
    assert spent(df) == Fraction(1, 2)


CHECKS = {
    "ledger01": copies_share_one_ledger,
    "ledger06": argument_errors_charge_nothing,
    "ledger08": an_interrupted_question_stays_charged,
    "ledger10": threads_share_the_budget_exactly,
    "ledger12": forked_children_are_refused,
    "ledger19": clearing_attrs_loses_no_ledger,
    "output01": frame_repr_shows_no_cell,
    "output02": groups_show_no_cell,
    "output03": an_estimate_holds_its_plan_and_noisy_integers_only,
    "output04": a_pickle_holds_no_raw_data,
    "output08": a_count_is_an_int_always,
    "output10": a_repeated_question_is_one_answer_and_one_charge,
}


@pytest.mark.parametrize("name", CHECKS)
def test_property_of_ledgers_and_outputs(name):
    CHECKS[name](frame_of(CASES[name]["setup"]))


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("epsilon12", Fraction(1, 10)),
        ("epsilon17", Fraction(1, 10)),
        ("epsilon18", Fraction(float(np.float32(0.1)))),
        ("epsilon19", Fraction(1)),
        ("epsilon32", Fraction(1)),
        ("groupby34", Fraction(1, 2)),
        ("hist_quant_argmax26", Fraction(1, 2)),
    ],
)
def test_price_is_the_number_that_was_typed(name, price):
    assert outcome(frame_of(CASES[name]["setup"]), CASES[name]["call"])[3] == price


def test_eleventh_tenth_is_refused():
    df = frame_of(CASES["epsilon32"]["setup"])
    outcome(df, CASES["epsilon32"]["call"])
    with pytest.raises(dpframe.BudgetExceeded):
        DP(df, epsilon=1, key="same").sum("x", bounds=(0, 1), epsilon=0.1)


def test_keys_come_back_in_the_order_of_the_argument():
    df = frame_of(CASES["groupby02"]["setup"])
    assert list(DP(df).groupby("k", keys=["z", "b", "a"]).count(epsilon=0.5).index) == [
        "z",
        "b",
        "a",
    ]


def test_zero_width_bounds_are_noisy_all_the_same():
    df = frame_of(CASES["bounds02"]["setup"])
    assert df.dp.open(1).explain.sum("x", bounds=(1, 1), epsilon=0.5).sensitivity == 1


# A ledger file: "a short, corrupt, missing or rolled-back ledger closes the gate" -------------------------------

HARM = {
    "short": lambda path, old: os.truncate(path, os.path.getsize(path) // 2),
    "empty": lambda path, old: os.truncate(path, 0),
    "corrupt": lambda path, old: path.write_bytes(bytes(b ^ 1 for b in path.read_bytes())),
    "missing": lambda path, old: path.unlink(),
    "rolled back": lambda path, old: os.replace(old, path),
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", sorted(FILES))
def test_harmed_ledger_file_refuses_whatever_the_cells(tmp_path, monkeypatch, name, harm):
    case, told = CASES[name], set()
    assert case["expect"] == "error:LedgerError"
    for i, df in enumerate(neighbours(case)):
        path, old = tmp_path / str(i) / "budget.db", tmp_path / str(i) / "old.db"
        path.parent.mkdir()

        def opened(df, path=path, old=old):
            p = DP(df, ledger=path, population="people")
            shutil.copy(path, old)
            p.count(epsilon=0.25)
            return p

        def harmed_then(ask, path=path, old=old, **options):
            HARM[harm](path, old)
            with monkeypatch.context() as patch:
                patch.setattr(PandasEngine, "reduce", lambda *_: pytest.fail("the data was read"))
                return ask(**options)

        with pytest.raises(dpframe.LedgerError) as caught:
            eval(case["call"], {"df": df, "DP": opened, "truncate_ledger_file_then": harmed_then})
        told.add(str(caught.value).replace(str(path), "budget.db"))
    assert len(told) == 1
