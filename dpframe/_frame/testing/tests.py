"""Tests of hypotheses, ``p.test``: each asks an ordinary release, and what it says against the
hypothesis is made of that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NoReturn, Unpack, cast

from dpframe import _validate
from dpframe._answers.estimate import correlation as correlation_of
from dpframe._answers.hypotheses import (
    CELLS,
    HypothesisTest,
    make_correlation_test,
    make_independence_test,
    make_means_test,
    make_shares_test,
)
from dpframe._errors import BadType, BadValue, MissingKeys, NotOffered
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.selection import (
    Selection,
    ask_question,
    check_condition,
    selection_of,
    session_of_frame,
)
from dpframe._frame.signatures import verb
from dpframe._frame.tracked import Tracked, use_own_names
from dpframe._frame.verbs.groupings import groupby
from dpframe._frame.verbs.measure import ask_outputs
from dpframe._frame.verbs.steps import dropna
from dpframe._frame.verbs.summaries import check_correlation, pairs_of
from dpframe._groups.combinations import Sought
from dpframe._groups.keys import By, combined_index, groups_of
from dpframe._plans.price import Payment
from dpframe._questions.question import COUNT, Query, Release
from dpframe._refusals import Unprinted


class Tests(Unprinted):
    """``p.test``: whether two means or two shares differ, whether two columns are independent, or
    correlated.

    Every test pays for one release and answers with a p-value, an estimate and its interval.
    ``p.explain.test`` shows the plan. People are the sample, so in sessions with ``unit=`` each
    counts with one row.
    """

    def __init__(self, frame: Tracked):
        self._frame = frame

    def __repr__(self) -> str:
        """Show the tests that there are, and a line in the names of the frame."""
        return use_own_names(
            "tests of hypotheses, each for a price: .means(column, by), .shares(condition, by), "
            ".independence(a, b) and "
            ".correlation(a, b), such as p.test.means('x', by='group')",
            selection_of(self._frame),
        )

    @verb
    def means(
        self,
        column: object,
        by: object,
        *,
        keys: object = None,
        bounds: object = None,
        level: float = 0.95,
        **payment: Unpack[Payment],
    ) -> HypothesisTest:
        """Test whether a column has the same mean in two groups: where pandas users write
        ``scipy.stats.ttest_ind``.

        ``by`` has two keys, declared or listed by ``keys=``. It is the release of
        ``groupby(by)[column].agg(["mean", "std"])``, and the p-value the least risk at which the
        interval of the difference leaves out zero. Nothing is assumed of the values but their
        bounds, neither a normal law nor equal variances (docs/guarantees/tests.md#two-means).

        Formal guarantee: epsilon-DP for its price; what follows the release is post-processing.

        >>> import numpy as np
        >>> import pandas as pd
        >>> df = pd.DataFrame({"dose": ["low", "high"] * 2000, "score": np.tile([4.0, 6.0, 5.0, 7.0], 1000)})
        >>> p = df.dp.open(10, bounds={"score": (0, 10)}, keys={"dose": ["high", "low"]})
        >>> found = p.test.means("score", by="dose", epsilon=5)
        >>> found.pvalue < 0.001, round(found.estimate), found.interval[0] > 1
        (True, 2, True)
        """
        return self._compared(
            column,
            by,
            keys,
            bounds,
            level,
            ("mean", "std"),
            payment,
            lambda release, labels: make_means_test(release, labels, level),
        )

    @verb
    def shares(
        self,
        column: object,
        by: object,
        *,
        keys: object = None,
        level: float = 0.95,
        **payment: Unpack[Payment],
    ) -> HypothesisTest:
        """Test whether a yes-no column has the same share in two groups; ``column`` may also be a
        condition, ``p["age"] > 65``.

        It is the release of ``groupby(by)[column].mean()``, and a test of two proportions that
        counts the noise. The p-value is by samples drawn as if the shares were equal, with noise of
        the same law; the interval never contradicts it (docs/guarantees/tests.md#two-shares). The
        same release has the same p-value.

        Formal guarantee: epsilon-DP for its price; what follows the release is post-processing.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"arm": ["a", "b"] * 2000, "well": [True, False, True, True] * 1000})
        >>> p = df.dp.open(10, keys={"arm": ["a", "b"]})
        >>> found = p.test.shares("well", by="arm", epsilon=5)
        >>> found.pvalue < 0.001, round(found.estimate, 1)
        (True, 0.5)
        """
        check_condition(selection_of(self._frame).find_column(column)[0])
        return self._compared(
            column,
            by,
            keys,
            None,
            level,
            ("mean",),
            payment,
            lambda release, labels: make_shares_test(release, labels, level),
        )

    @verb
    def independence(
        self, index: object, columns: object, *, keys: object = None, **payment: Unpack[Payment]
    ) -> HypothesisTest:
        """Test whether two columns of keys are independent: where pandas users write
        ``scipy.stats.chi2_contingency``.

        It is the release of ``crosstab(index, columns)``. The statistic is a chi-square in which
        the noise has its place, and the p-value is by tables drawn as if the columns were
        independent, with noise of the same law; the same release has the same p-value
        (docs/guarantees/tests.md#independence). ``keys`` are by column, ``{"a": [...], "b":
        [...]}``.

        Formal guarantee: epsilon-DP for its price; what follows the release is post-processing.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"a": ["x", "x", "y", "y"] * 500, "b": ["u", "u", "u", "v"] * 500})
        >>> p = df.dp.open(10, keys={"a": ["x", "y"], "b": ["u", "v"]})
        >>> found = p.test.independence("a", "b", epsilon=5)
        >>> found.pvalue < 0.01, p.test.independence("a", "b", epsilon=5).pvalue == found.pvalue
        (True, True)
        """
        levels = self._levels([index, columns], keys)
        rows, across = (groups_of((one,)) for one in levels)
        if rows < 2 or across < 2:
            raise BadValue("independence needs two keys or more of each column.")
        if rows * across > CELLS:
            raise BadValue(
                f"independence draws thousands of tables, and this one has {rows * across} cells. At most {CELLS} fit: "
                "list fewer keys, or cut numbers into fewer bins."
            )
        index_of = cast(Any, combined_index(levels))
        names = index_of.names[0], index_of.names[1]
        query = Query((COUNT,), selection_of(self._frame).where, levels)
        found = ask_question(
            self._frame,
            query,
            lambda r: make_independence_test(r, rows, names),
            self._of_people(payment),
        )
        return cast(HypothesisTest, found)

    @verb
    def correlation(
        self,
        column: object,
        other: object,
        *,
        bounds: object = None,
        level: float = 0.95,
        **payment: Unpack[Payment],
    ) -> HypothesisTest:
        """Test whether two columns of numbers are independent, by their correlation: for
        ``scipy.stats.pearsonr``.

        It is the release of ``p[column].corr(p[other])`` over the rows where neither is null.
        Nothing is assumed of the values but their bounds (docs/guarantees/tests.md#a-correlation).
        ``bounds`` are by column, ``{"age": (0, 110)}``.

        Formal guarantee: epsilon-DP for its price; what follows the release is post-processing.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 1000, "b": [6.0, 4.0, 2.0] * 1000})
        >>> p = df.dp.open(10, bounds={"a": (0, 4), "b": (0, 8)})
        >>> found = p.test.correlation("a", "b", epsilon=5)
        >>> found.pvalue < 0.001, round(found.estimate)
        (True, -1)
        """
        _validate.level(level)
        check_correlation("pearson", payment)
        names = (
            selection_of(self._frame).find_column(column)[1],
            selection_of(self._frame).find_column(other)[1],
        )
        if names[0] == names[1]:
            raise BadValue("correlation needs two columns, and both have the same name.")
        frame = dropna(self._frame, subset=list(names))
        outs, _ = pairs_of(selection_of(frame), list(names), None, 1, bounds)
        found = ask_outputs(
            frame,
            outs,
            self._of_people(payment),
            lambda r, _: make_correlation_test(r, names, correlation_of(r), level),
        )
        return cast(HypothesisTest, found)

    # What they share ------------------------------------------------------------------------------------------

    def _compared(
        self,
        column: object,
        by: object,
        keys: object,
        bounds: object,
        level: float,
        aggregates: tuple[str, ...],
        payment: Mapping[str, object],
        finish: Callable[[Release, tuple[Hashable, Hashable]], HypothesisTest],
    ) -> HypothesisTest:
        """Release what two groups have of a column, and test whether it differs.

        ``by`` and ``keys`` make the two groups. ``level`` is the confidence of the interval.
        ``aggregates`` are measured of each group, and ``finish`` makes the test of the release and
        of the keys of the two groups.
        """
        _validate.level(level)
        levels = self._levels([by], keys)
        index = cast(Any, combined_index(levels))
        if len(index) != 2:
            raise BadValue(
                f"two groups are compared, and {index.name!r} has {len(index)} keys. Name two: keys=['a', 'b'] here; "
                "of more than two, p.test.independence compares shares."
            )
        selection: Selection = selection_of(self._frame)
        outs = tuple(selection.output(name, column, bounds, name=name) for name in aggregates)
        labels: tuple[Hashable, Hashable] = index[0], index[1]
        query = Query(outs, selection.where, levels)
        found = ask_question(
            self._frame,
            query,
            lambda release: finish(release, labels),
            self._of_people(payment),
        )
        return cast(HypothesisTest, found)

    def _levels(self, columns: list[Any], keys: object) -> tuple[By, ...]:
        """Return the groupings of a test by some columns, with keys that were listed or declared.

        Keys that were found in the data are refused where they would bias the test.
        """
        groups = groupby(self._frame, columns if len(columns) > 1 else columns[0], keys=keys)
        if not isinstance(groups, PrivateGroupBy):
            raise BadType(
                "the column that names a person has a group for each of them: name another one."
            )
        levels = selection_of(groups).by
        if any(isinstance(level, Sought) for level in levels):
            raise MissingKeys(
                "a test needs keys that are listed: those that are found have more rows than chance gives them. Write "
                "keys=['a', 'b'], by column keys={'x': [...], 'y': [...]}, or open(..., keys={...}) once."
            )
        if len(levels) != len(columns):
            raise BadType(
                "a test takes columns with keys of their own, not a list of combinations."
            )
        known = cast("tuple[By, ...]", levels)
        selected = session_of_frame(self._frame).find_selected(
            known, selection_of(self._frame).where
        )
        if selected is not None and selected.elsewhere:
            raise NotOffered(
                f"keys of {selected.column} were found among other rows than these, perhaps by what is tested. Find them without "
                f"a condition, p.unique({selected.column!r}), or declare them from a public list, open(..., keys={{...}})."
            )
        return known

    def _of_people(self, payment: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments of the price, with limits under which each person counts with one
        row.

        A test takes people for a sample, so other limits are refused.
        """
        if not session_of_frame(self._frame).unit.people:
            return dict(payment)
        for word in ("max_rows", "max_groups"):
            if payment.get(word) not in (None, 1):
                raise BadValue(
                    f"in a test each person is one draw of the population, with one row: leave {word}= out."
                )
        return {**payment, "max_rows": 1, "max_groups": 1}

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse a test that is not offered, and name those that are."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered(
            f"there is no test {name!r}: means, shares, independence and correlation are there."
        )

    def __dir__(self) -> Iterable[str]:
        return ["correlation", "independence", "means", "shares"]
