"""The surface: inheritance is for kinds, and a verb is written once for frames, groups and columns."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import sys

import pandas as pd

from dpframe import Plan, PrivateFrame
from dpframe._frame.columns.operators import OperatorMethods
from dpframe._frame.surface import FILLED, ORDERED, SELECTED, PrivateGroupBy
from dpframe._plans.order import ORDERS
from tests.internals import ACROSS, NAMED
from tests.source import is_for_types, list_modules, parse_modules


def surfaces():
    """The classes of frames, columns and groups as a user has them."""
    frame = pd.DataFrame({"x": [1, 2], "g": ["a", "b"]})
    p = frame.dp.open(1, delta=1e-6, bounds={"x": (0, 5)}, keys={"g": ["a", "b"]})
    found = p, p.explain, p.query("x > 1"), p["x"], p.groupby("g"), p.groupby("x"), frame.copy().dp
    return list(dict.fromkeys(map(type, found)))


def test_inheritance_is_for_kinds_and_not_for_pages_of_one_class():
    assert [kind for kind in surfaces() if len(kind.__mro__) > 8] == []


def test_nothing_of_the_surface_is_declared_for_type_checkers_alone():
    """What annotations name may be imported for them, and nothing else."""
    wrong = [
        f"{name}:{node.lineno}"
        for name, tree in parse_modules().items()
        if name.startswith("dpframe._frame")
        for node in filter(is_for_types, ast.walk(tree))
        if node.orelse
        or not all(isinstance(line, ast.Import | ast.ImportFrom) for line in node.body)
    ]
    assert wrong == []


def test_verbs_of_columns_and_groups_have_the_arguments_of_the_frame():
    for kind, skipped in ((type(pd.DataFrame({"x": [1]}).dp.open(1)["x"]), 1), (PrivateGroupBy, 0)):
        for name in ("nunique", "sum", "mean", "var", "std", "median", "min", "max"):
            of_frame = list(inspect.signature(getattr(PrivateFrame, name)).parameters.values())
            own = list(inspect.signature(getattr(kind, name)).parameters.values())
            assert [p.name for p in own] == [
                of_frame[0].name,
                *(p.name for p in of_frame[1 + skipped :]),
            ]
            assert [(p.kind, p.default) for p in own[2:]] == [
                (p.kind, p.default) for p in of_frame[2 + skipped :]
            ]


def test_signatures_show_no_variable_of_types():
    variables = ("Frame", "Column", "Self", "Whole")
    wrong = [
        f"{surface.__name__}.{name}"
        for surface in surfaces()
        for name in dir(surface)
        if not name.startswith("_")
        and inspect.isfunction(verb := getattr(surface, name))
        and inspect.signature(verb).return_annotation in variables
    ]
    assert wrong == []


def test_a_verb_of_frames_is_one_of_groups_without_a_line_of_its_own():
    """What is left out means what groups mean by it: the columns that are selected."""
    df = pd.DataFrame({"k": ["a", "b"] * 50, "x": range(100)})
    groups = df.dp.open(100, bounds={"x": (0, 100)}, keys={"k": ["a", "b"]}).groupby("k")["x"]
    verb = PrivateFrame.sem
    assert verb(groups, epsilon=5).equals(groups.sem(epsilon=5))


def test_lists_of_verbs_in_lower_rooms_name_the_aggregates_there_are():
    """The language of expressions refuses each aggregate as a look across rows."""
    ours = {*NAMED, *ORDERS, "quantile"}
    assert ours <= set(ACROSS)


def test_each_quantile_of_one_level_is_a_verb_of_frames_columns_and_groups():
    assert set(ORDERS) <= set(ORDERED) & set(FILLED) & set(SELECTED)


def test_each_class_of_operands_says_what_an_operator_makes():
    kinds = OperatorMethods.__subclasses__()
    assert len(kinds) >= 3
    assert [kind for kind in kinds if "_operate" not in vars(kind)] == []


def wrapped_classes():
    """Yield the classes of the package whose methods explain arguments that do not fit."""
    for name in list_modules():
        if name != "dpframe.__main__":
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("dpframe"):
                    raise
                continue  # an extra that is not installed
            for kind in [*vars(module).values()]:
                if isinstance(kind, type) and kind.__module__ == name and is_wrapped(kind):
                    yield kind


def is_wrapped(kind):
    """Return whether methods of a class explain arguments that do not fit."""
    return any(hasattr(method, "_checks_arguments") for method in vars(kind).values())


def is_own(kind, name):
    """Return whether a public method was written in the package, not inherited from another."""
    owners = [base for base in kind.__mro__ if name in vars(base)]
    return not name.startswith("_") and owners[0].__module__.startswith("dpframe")


def test_examples_of_wrapped_methods_are_what_they_show():
    """Doctest finds no example of a wrapped method: the wrapper is of another module."""
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    seen, failed = set(), []
    for kind in dict.fromkeys([*surfaces(), *wrapped_classes()]):
        for name in dir(kind):
            doc = getattr(getattr(kind, name), "__doc__", None) or ""
            if not is_own(kind, name) or ">>> " not in doc or doc in seen:
                continue
            seen.add(doc)
            names = {**vars(sys.modules[kind.__module__]), "pd": pd}
            test = doctest.DocTestParser().get_doctest(doc, names, f"{kind}.{name}", None, None)
            if runner.run(test).failed:
                failed.append(test.name)
    assert len(seen) > 60
    assert failed == []


def test_groups_that_explain_give_plans_and_cost_nothing():
    df = pd.DataFrame({"k": ["a", "b"], "x": [1, 2]})
    p = df.dp.open(1, bounds={"x": (0, 5)}, keys={"k": ["a", "b"]})
    for groups in (
        p.groupby("k").explain,
        p.groupby("k", as_index=False).explain,
        p.explain.groupby("k"),
    ):
        plans = groups.size(), groups["x"].mean(), groups.mean("x"), groups[["x"]].agg(["mean"])
        assert {type(plan) for plan in plans} == {Plan}
    assert p.groupby("k")["x"].explain.mean() == p.explain.groupby("k")["x"].mean()
    assert p.budget.spent == 0
