"""Which statistics a question is released as: the arrangement that shares one person's reach between outputs."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe._errors import BadValue
from dpframe._expr import Expr
from dpframe._groups.keys import BinBy
from dpframe._groups.unit import LIMIT, Unit
from dpframe._plans.aggregates import AGGREGATES
from dpframe._plans.measured import Cell
from dpframe._plans.output import Output, Outputs
from dpframe._statistics.base import MAGNITUDE_BITS, SQUARE_BITS, VALUE_BITS, Grid, Statistic, on_grid
from dpframe._statistics.counts import PeopleAround, PeopleBy, PersonCount, Questions, RowCount, ValueCount
from dpframe._statistics.distinct import DistinctCount
from dpframe._statistics.moments import Centred, Simplex, Total
from dpframe._statistics.pairs import Pair
from dpframe._statistics.ranks import Ranks
from dpframe._statistics.scores import Revenue, Scores
from dpframe._statistics.tree import Tree
from dpframe._validate import Bounds

COUNTED = ("people by rows", "people by groups", "people by magnitude")  # people, each in one bin


def arrange(query: Outputs, unit: Unit, public_rows: int | None) -> list[tuple[Statistic, list[int]]]:
    """The statistics of one release, and the outputs that each serves.

    A column's count, sum and moments come from one vector whose sensitivity is that of a single number, and so
    do the rows of the group where the column may be null. ``docs/guarantees/statistics.md`` shows why that
    beats splitting the price, and when one of the other forms is better still.
    """
    if AGGREGATES[query.outputs[0].aggregate].selects:
        return [(_scores(query), list(range(len(query.outputs))))]
    columns: dict[tuple[Expr, Bounds | None], list[int]] = {}
    orders: dict[tuple[str, Expr, Bounds, float | None], list[int]] = {}
    distinct: dict[Expr, list[int]] = {}
    rows: list[int] = []
    questions: list[int] = []
    people: list[int] = []
    pairs: list[int] = []
    counted: list[int] = []
    bounded = {
        o.expr: (o.expr, o.bounds)
        for o in query.outputs
        if o.bounds is not None and o.expr is not None and o.other is None and o.level is None
    }
    for i, out in enumerate(query.outputs):
        if out.aggregate == "true":
            questions.append(i)
        elif out.aggregate == "people":
            people.append(i)
        elif out.aggregate in COUNTED:
            counted.append(i)
        elif out.aggregate == "nunique" and out.expr is not None:
            distinct.setdefault(out.expr, []).append(i)
        elif out.other is not None:
            pairs.append(i)
        elif out.level is not None and out.expr is not None and out.bounds is not None:
            orders.setdefault((out.aggregate, out.expr, out.bounds, out.resolution), []).append(i)
        elif out.expr is None or (
            out.aggregate == "count" and not out.expr.nullable and out.expr not in bounded
        ):
            rows.append(i)
        elif out.bounds is not None:
            columns.setdefault((out.expr, out.bounds), []).append(i)
        else:
            columns.setdefault(bounded.get(out.expr, (out.expr, None)), []).append(i)

    arranged: list[tuple[Statistic, list[int]]] = []
    for (expr, bounds), members in columns.items():
        statistic = _column_statistic(
            expr, bounds, [query.outputs[i] for i in members], query, unit, public_rows, bool(rows)
        )
        serves = list(members)
        if rows and isinstance(statistic, Simplex | ValueCount) and (statistic.nulls or not expr.nullable):
            serves, rows = serves + rows, []
        arranged.append((statistic, serves))
    if rows:
        arranged.append((RowCount(), rows))
    if people:
        arranged.append((PersonCount(), people))
    arranged += [(DistinctCount(expr), members) for expr, members in distinct.items()]
    if questions:
        exprs = tuple(e for e in (query.outputs[i].expr for i in questions) if e is not None)
        arranged.append((Questions(exprs), questions))
    for (how, expr, pair, resolution), members in orders.items():
        levels = [q for q in (query.outputs[i].level for i in members) if q is not None]
        groups = query.groups if query.by else 1
        if how == "tree":
            arranged.append((Tree.of(expr, pair, resolution, groups), members))
        else:
            arranged.append((Ranks.of(expr, pair, resolution, levels, groups), members))
    arranged += [(_people_in_bins(query.outputs[i], query.groups), [i]) for i in counted]
    return arranged + [(_pair_statistic(query.outputs[i]), [i]) for i in pairs]


def _people_in_bins(out: Output, groups: int) -> Statistic:
    if out.aggregate == "people by magnitude":
        assert out.expr is not None
        return PeopleAround(out.expr)
    if out.aggregate == "people by rows":
        return PeopleBy("rows", LIMIT.bit_length())
    return PeopleBy("groups", (groups - 1).bit_length() + 1)


def _pair_statistic(out: Output) -> Statistic:
    (one, bounds), (two, other) = out.clipped
    for expr, pair in out.clipped:
        if pair.upper - pair.lower > 2.0**500:
            raise BadValue(
                f"the bounds of {expr} are too wide for products to be doubles. Rescale the column."
            )
    return Pair(one, Grid.for_width(bounds, SQUARE_BITS), two, Grid.for_width(other, SQUARE_BITS))


def _scores(query: Outputs) -> Statistic:
    """What a selection chooses by: the rows of each group, or a score for each of its outputs."""
    first, exprs = query.outputs[0], tuple(o.expr for o in query.outputs if o.expr is not None)
    if first.aggregate == "revenue":
        assert isinstance(query.by[0], BinBy)
        prices = query.by[0].edges[:-1]
        grid = Grid.for_magnitude(
            Bounds(0.0, prices[-1]), MAGNITUDE_BITS, all(p.is_integer() for p in prices)
        )
        return Revenue(query.by[0].expr, tuple(on_grid(p, grid.exponent) for p in prices), grid)
    if first.bounds is not None:
        grid = Grid.for_width(first.bounds, VALUE_BITS)
        if grid.exponent > 0 and all(_whole(e, first.bounds) for e in exprs):
            grid = Grid(first.bounds, 0)
        return Scores(exprs, grid, first.moves)
    return Questions(exprs) if exprs else RowCount()


def _column_statistic(
    expr: Expr,
    bounds: Bounds | None,
    outputs: Sequence[Output],
    query: Outputs,
    unit: Unit,
    public_rows: int | None,
    with_rows: bool,
) -> Statistic:
    asked = {o.aggregate for o in outputs}
    nulls = with_rows and expr.nullable
    if bounds is None:
        return ValueCount(expr, nulls)
    if asked == {"sum"} and not with_rows:
        always = public_rows is not None and not expr.nullable
        return Total(expr, Grid.for_magnitude(bounds, MAGNITUDE_BITS, _whole(expr, bounds)), always)
    if asked == {"mean"} and not with_rows and unit.replaces and not query.by:
        return Centred(expr, Grid.for_width(bounds, VALUE_BITS), None if expr.nullable else public_rows)
    degree = max(AGGREGATES[a].degree for a in asked)
    if degree == 2 and bounds.upper - bounds.lower > 2.0**500:
        raise BadValue(f"the bounds of {expr} are too wide for squares to be doubles. Rescale the column.")
    return Simplex(expr, Grid.for_width(bounds, SQUARE_BITS if degree == 2 else VALUE_BITS), degree, nulls)


def _whole(expr: Expr, bounds: Bounds) -> bool:
    """Whether sums are whole numbers by dtype and bounds alone, and few enough bits to be answered as such."""
    small = max(abs(bounds.lower), abs(bounds.upper)) < 2**MAGNITUDE_BITS
    return expr.integral and small and bounds.lower.is_integer() and bounds.upper.is_integer()


def cells_of(outputs: Sequence[Output], part: int, statistic: Statistic) -> list[Cell]:
    """The outputs that one statistic serves, as the plan knows them; of a choice the first stands for all."""
    if AGGREGATES[outputs[0].aggregate].selects:
        return [_cell_of(outputs[0], part, statistic, 0, {})]
    functionals = statistic.functionals()
    return [_cell_of(out, part, statistic, place, functionals) for place, out in enumerate(outputs)]


def _cell_of(
    out: Output, part: int, statistic: Statistic, place: int, functionals: dict[str, tuple[float, ...]]
) -> Cell:
    selects = AGGREGATES[out.aggregate].selects
    constants = statistic.constants()
    if out.aggregate == "true":
        functionals = {f"true{place}": functionals[f"true{place}"]}
    elif isinstance(statistic, Ranks) and out.level is not None:
        constants = {**constants, "place": float(statistic.levels.index(out.level))}
    elif isinstance(statistic, Tree) and out.level is not None:
        constants = {**constants, "level": float(out.level)}
    elif not selects and getattr(statistic, "expr", out.expr) != out.expr:
        # Rows read off another column's vector: its own count would leave out that column's nulls.
        functionals = {"size": functionals.get("size", functionals["n"])}
    whole = (
        selects
        or out.aggregate in ("size", "count", "true", "people", "nunique", *COUNTED)
        or (
            out.aggregate == "sum"
            and out.expr is not None
            and out.bounds is not None
            and _whole(out.expr, out.bounds)
        )
    )
    lower, upper = out.bounds or (0.0, 1.0)
    if out.bounds is not None and out.other_bounds is not None:
        lower, upper = 0.0, (upper - lower) * (out.other_bounds.upper - out.other_bounds.lower)
    return Cell(out.name, out.aggregate, part, lower, upper, out.ddof, whole, functionals, constants)
