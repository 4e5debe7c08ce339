"""Every private name that a test uses, in one place: when a module moves, this file moves with it and no test does."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, NamedTuple

from dpframe import _expr as expr_module
from dpframe import _ledger as stores_module
from dpframe import mechanisms
from dpframe import plot as drawing_module
from dpframe._answers import hypotheses as hypotheses_module
from dpframe._answers import reports as unbiased_module
from dpframe._answers.accessor import Answer
from dpframe._answers.arithmetic import OPERATIONS, start_from_leaf, start_from_number
from dpframe._answers.estimate import FloatEstimate, IntEstimate
from dpframe._answers.foundkeys import read_keys
from dpframe._answers.layout import SummedNoise
from dpframe._answers.matching import Excerpt, ReleasedTable
from dpframe._answers.reports import Estimated, ReportEstimates, ReportKind, Reports, make_reports
from dpframe._cells import columns as engines_columns_module
from dpframe._cells import encoding as encoding_module
from dpframe._cells import threads as threads_module
from dpframe._cells.codec import finder
from dpframe._cells.columns import UNMATCHED, Vector, plain, prepare
from dpframe._cells.encoding import encode, encoded_fields
from dpframe._cells.texts import key_of, order_of, text_of
from dpframe._errors import PrivacyWarning, progress
from dpframe._expr import Column, Expr, Key, compare, constant, kind_of, logical_not
from dpframe._expr._parse import _ACROSS, MAX_LENGTH, Parsed, parse
from dpframe._expr._ranges import outward
from dpframe._expr._within import Key as WithinKey
from dpframe._expr._within import within
from dpframe._frame import suggestions as suggestions_module
from dpframe._frame import surface
from dpframe._frame.accessor import Unopened
from dpframe._frame.columns.hooks import PANDAS_FUNCTIONS
from dpframe._frame.columns.numpy import _FUNCTIONS as NUMPY_FUNCTIONS
from dpframe._frame.columns.numpy import find_ufunc, list_ufuncs
from dpframe._frame.columns.operators import OPERATORS, OperatorMethods, find_operator
from dpframe._frame.columns.parts import CategoryParts
from dpframe._frame.columns.traced import _KNOWN as TRACED
from dpframe._frame.columns.traced import list_text_methods
from dpframe._frame.completion import let_complete
from dpframe._frame.people.groups import PersonGroupBy
from dpframe._frame.people.windows import Window
from dpframe._frame.randomize import Randomize
from dpframe._frame.signatures import PRICE as PRICE_PARAMETERS
from dpframe._frame.sources import bytes_of, free, recognise_source
from dpframe._frame.suggestions import bounds_of, limit_of
from dpframe._frame.surface import PrivateColumn, PrivateFrame, PrivateGroupBy
from dpframe._groups import periods as times_module
from dpframe._groups.combinations import RestBy, TupleBy, Tuples
from dpframe._groups.forms import form_of_grouping, form_of_groups
from dpframe._groups.keys import ROW_CEILING, BinBy, KeyBy, Keys, keys_for
from dpframe._groups.periods import Periods, TimeBy
from dpframe._groups.premises import UNPROVEN, Names, Premises, least_of, premises_of_root
from dpframe._groups.unit import Limit, Unit
from dpframe._identity import give_tag
from dpframe._ledger import MEMORY, STORES, open_store, place_of
from dpframe._ledger import accountant as ledger_module
from dpframe._ledger import server as server_module
from dpframe._ledger import sqlite as store_module
from dpframe._ledger import store as entries_module
from dpframe._ledger.accountant import Budget
from dpframe._ledger.server import ServerStore
from dpframe._ledger.sqlite import FileStore
from dpframe._ledger.store import MemoryStore, alike, unpack
from dpframe._pandas import EXTENDED
from dpframe._plans import durations as durations_module
from dpframe._plans import plan as plan_module
from dpframe._plans import sampling as sampling_module
from dpframe._plans.aggregates import (
    AGGREGATES,
    Cell,
    Measured,
    fieller,
    list_agg_names,
    list_verbs,
)
from dpframe._plans.aggregates import Output as query_Output
from dpframe._plans.budget import DEFAULT_QUERIES
from dpframe._plans.order import ORDERS
from dpframe._plans.plan import (
    Part,
    Plan,
    arrange,
    get_noisy_sums,
    make_draft,
    note_reduced_epsilon,
)
from dpframe._plans.price import WORDS, buy_choice
from dpframe._plans.price import _rank_cost as cost_of_price
from dpframe._questions import entries as engines_rows_module
from dpframe._questions.conditions import code_of_condition
from dpframe._questions.entries import take_rows_of_people
from dpframe._questions.identity import rearrange
from dpframe._questions.keysearch import Finding, KeySearch, Roomy
from dpframe._questions.question import Query, Question, Release, enclose_output
from dpframe._questions.reports import pack_reports, unpack_reports
from dpframe._refusals import ADVICE
from dpframe._session import door as door_module
from dpframe._session import opening as opening_module
from dpframe._session import session as session_module
from dpframe._session.data import leaves_of, sessions
from dpframe._session.opening import open_again
from dpframe._session.planned import Planned as PlannedAnswer
from dpframe._session.session import Session
from dpframe._sizes import SIZES, set_sizes
from dpframe._statistics import base as stats_module
from dpframe._statistics import counts as counts_module
from dpframe._statistics import scores as scores_module
from dpframe._statistics.base import (
    MAGNITUDE_BITS,
    MAGNITUDES,
    SQUARE_BITS,
    VALUE_BITS,
    Bids,
    Centred,
    Distincts,
    Grid,
    Leaves,
    Magnitudes,
    Pair,
    Persons,
    Powers,
    Primitive,
    Products,
    Sensitivity,
    Simplex,
    Spread,
    Statistic,
    Total,
    Trues,
)
from dpframe._statistics.base import Rows as stats_Rows
from dpframe._statistics.counts import (
    DistinctCount,
    PeopleAround,
    PeopleBy,
    Questions,
    RowCount,
    ValueCount,
)
from dpframe._statistics.engine import PEOPLE, RowSlice, Scope, Sketches
from dpframe._statistics.order import (
    LEAF_CEILING,
    Ranks,
    Tree,
    deviations,
    distribution,
    list_level_sizes,
    read_quantile,
)
from dpframe._statistics.scores import Revenue, Scores, Votes
from dpframe._validate import Bounds
from dpframe.accounting import _gaussian as accounting_gaussian_module
from dpframe.accounting import _pairs as accounting_pairs_module
from dpframe.accounting import _pld_bounds as accounting_pld_ranges_module
from dpframe.accounting import _search as search_module
from dpframe.accounting import pld as accounting_pld_module
from dpframe.accounting import residue as accounting_residue_module
from dpframe.accounting._additive import Rdp, zcdp_delta, zcdp_epsilon, zcdp_rho
from dpframe.accounting._filter import Charge, Filter, Limits, Price, pure_sum, stated_gaussian
from dpframe.accounting._filter import register as register_rule
from dpframe.accounting._gaussian import delta, delta_at, mu_for, pure_mu, shift_mu
from dpframe.accounting._search import first_where, last_where
from dpframe.accounting._tight import largest
from dpframe.accounting.residue import (
    after,
    after_curve,
    after_exponential,
    after_laplace,
    after_pure,
)
from dpframe.audit import _events as events_module
from dpframe.audit._replay import Recorder
from dpframe.engines import ENGINES, engine_for
from dpframe.engines import compiled as compiled_module
from dpframe.engines import derived as derived_sources_module
from dpframe.engines import fingerprints as sketch_module
from dpframe.engines import groups as engines_groups_module
from dpframe.engines import keys as engines_keys_module
from dpframe.engines import limits as engines_people_module
from dpframe.engines import pandas as engines_pandas_module
from dpframe.engines import parts as engines_parts_module
from dpframe.engines import person_sums as person_sums_module
from dpframe.engines import reading as reading_module
from dpframe.engines import row_sums as row_sums_module
from dpframe.engines import rows as derive_module
from dpframe.engines import sources as sources_module
from dpframe.engines import tables as tables_module
from dpframe.engines.expressions import _NODES as NODES
from dpframe.engines.expressions import evaluate, predicate
from dpframe.engines.functions import numbers as numbers_module
from dpframe.engines.functions.times import KERNELS as TIME_KERNELS
from dpframe.engines.keys import Occurring, combine_keys, number_keys
from dpframe.engines.limits import at_points
from dpframe.engines.pandas import PandasEngine
from dpframe.engines.parts import PartsEngine
from dpframe.engines.people import Draw, number_of, numbers_of, pairs_of, people_of
from dpframe.engines.reading import FrameReader
from dpframe.engines.rows import FrameRows as engine_Rows
from dpframe.engines.rows import people_labels
from dpframe.engines.sources import PeoplePart as SourcePart
from dpframe.engines.sources import Source, differ_without_case
from dpframe.engines.sql import SqlEngine
from dpframe.engines.sql import dialects as sql_dialects_module
from dpframe.engines.sql.databases import (
    DuckDatabase,
    PostgresDatabase,
    RelatedDatabase,
    SparkDatabase,
    SqliteDatabase,
)
from dpframe.engines.sql.expressions import Compiler, Unwritten, held_as
from dpframe.engines.tables import KINDS
from dpframe.engines.tables.arrow import ParquetSource, TableSource
from dpframe.engines.tables.dask import DaskSource
from dpframe.engines.tables.ibis import BACKENDS
from dpframe.engines.tables.parquet import FilesDatabase, plain_columns
from dpframe.engines.tables.queries import check_sql, check_steady, files_read, find_sums
from dpframe.learn import _descent as learn_descent_module
from dpframe.learn import _fits as learn_fits_module
from dpframe.learn import _models as learn_models_module
from dpframe.learn import _solve as learn_solve_module
from dpframe.learn._descent import (
    CLIP,
    SIZE_STEPS,
    Descent,
    Path,
    Sizes,
    clip_gradients,
    first_sigma,
    sampled_sigma,
    scores,
)
from dpframe.learn._design import UNIT, Design, Target, shrunk
from dpframe.learn._design import DesignRows as design_Rows
from dpframe.learn._fits import OutputFit
from dpframe.learn._objective import Objective, largest_mu
from dpframe.learn._solve import LOGISTIC, Problem, ScoreLoss, minimise, newton
from dpframe.learn._statistics import Statistics, ridge
from dpframe.mechanisms import _coins as mechanisms_coins_module
from dpframe.mechanisms import _sampling as mechanisms_sampling_module
from dpframe.mechanisms import noise as noise_module
from dpframe.mechanisms import selection as choices_module
from dpframe.mechanisms._base import MECHANISMS, Form, check, loss_of, mechanism_from, register
from dpframe.mechanisms._base import names as mechanism_names
from dpframe.mechanisms._coins import rate_of
from dpframe.mechanisms._coins import thrown as coins
from dpframe.mechanisms._sampling import exp_interval
from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise
from dpframe.mechanisms.response import Response, points_for, round_to_points, spread, worst_spread
from dpframe.mechanisms.selection import ExponentialChoice, NoisyMax, NoisyTop, _uniform
from dpframe.mechanisms.threshold import (
    Bar,
    GaussianThreshold,
    LaplaceThreshold,
    Threshold,
    TruncatedThreshold,
    TruncatedVector,
    each_of,
    gaussian_tail,
    laplace_tail,
)

NAMED = list_agg_names()
ACROSS = sorted(_ACROSS)


class Planned(NamedTuple):
    """A plan, and the statistics that it measures."""

    plan: Plan
    statistics: tuple[Statistic, ...]


def make_plan(
    question: Question,
    unit: Unit,
    price: Price,
    public_rows: int | None = None,
    declared: tuple[Any, ...] = (),
) -> Planned:
    """The plan of a question at a price, as a session makes it."""
    plan = note_reduced_epsilon(question.plan(unit, price, public_rows, declared), price)
    return Planned(plan, () if plan._draft is None else plan._draft.statistics)


def noise_of(plan: Plan) -> Any:
    """The noise that a session hands to a question."""
    return partial(Session._noise, object.__new__(Session), plan)


def fits(form: Form, array: Any) -> bool:
    """Whether an array is what a form declares, as the door checks it."""
    try:
        check([form], [array])
    except AssertionError:
        return False
    return True


levels = Threshold.levels


def forget_drafts() -> None:
    """Has plans made anew of questions that were asked before."""
    plan_module._DRAFTS.clear()


__all__ = [
    "ACROSS",
    "ADVICE",
    "AGGREGATES",
    "BACKENDS",
    "CLIP",
    "DEFAULT_QUERIES",
    "ENGINES",
    "EXTENDED",
    "KINDS",
    "LEAF_CEILING",
    "LOGISTIC",
    "MAGNITUDES",
    "MAGNITUDE_BITS",
    "MAX_LENGTH",
    "MECHANISMS",
    "MEMORY",
    "NAMED",
    "NODES",
    "NUMPY_FUNCTIONS",
    "OPERATIONS",
    "OPERATORS",
    "ORDERS",
    "PANDAS_FUNCTIONS",
    "PEOPLE",
    "PRICE_PARAMETERS",
    "ROW_CEILING",
    "SIZES",
    "SIZE_STEPS",
    "SQUARE_BITS",
    "STORES",
    "TIME_KERNELS",
    "TRACED",
    "UNIT",
    "UNMATCHED",
    "UNPROVEN",
    "VALUE_BITS",
    "WORDS",
    "Answer",
    "Bar",
    "Bids",
    "BinBy",
    "Bounds",
    "Budget",
    "CategoryParts",
    "Cell",
    "Centred",
    "Charge",
    "Column",
    "Compiler",
    "DaskSource",
    "Descent",
    "Design",
    "DistinctCount",
    "Distincts",
    "Draw",
    "DuckDatabase",
    "Estimated",
    "Excerpt",
    "ExponentialChoice",
    "Expr",
    "FileStore",
    "FilesDatabase",
    "Filter",
    "Finding",
    "FloatEstimate",
    "Form",
    "FrameReader",
    "GaussianNoise",
    "GaussianThreshold",
    "Grid",
    "IntEstimate",
    "Key",
    "KeyBy",
    "KeySearch",
    "Keys",
    "LaplaceNoise",
    "LaplaceThreshold",
    "Leaves",
    "Limit",
    "Limits",
    "Magnitudes",
    "Measured",
    "MemoryStore",
    "Names",
    "NoisyMax",
    "NoisyTop",
    "Objective",
    "Occurring",
    "OperatorMethods",
    "OutputFit",
    "Pair",
    "PandasEngine",
    "ParquetSource",
    "Parsed",
    "Part",
    "PartsEngine",
    "Path",
    "PeopleAround",
    "PeopleBy",
    "Periods",
    "PersonGroupBy",
    "Persons",
    "Planned",
    "PlannedAnswer",
    "PostgresDatabase",
    "Powers",
    "Premises",
    "Price",
    "Primitive",
    "PrivateColumn",
    "PrivateFrame",
    "PrivateGroupBy",
    "Problem",
    "Products",
    "Query",
    "Question",
    "Questions",
    "Randomize",
    "Ranks",
    "Rdp",
    "Recorder",
    "RelatedDatabase",
    "Release",
    "ReleasedTable",
    "ReportEstimates",
    "ReportKind",
    "Reports",
    "Response",
    "RestBy",
    "Revenue",
    "Roomy",
    "RowCount",
    "RowSlice",
    "Scope",
    "ScoreLoss",
    "Scores",
    "Sensitivity",
    "ServerStore",
    "Session",
    "Simplex",
    "Sizes",
    "Sketches",
    "Source",
    "SourcePart",
    "SparkDatabase",
    "Spread",
    "SqlEngine",
    "SqliteDatabase",
    "Statistic",
    "Statistics",
    "SummedNoise",
    "TableSource",
    "Target",
    "TimeBy",
    "Total",
    "Tree",
    "Trues",
    "TruncatedThreshold",
    "TruncatedVector",
    "TupleBy",
    "Tuples",
    "Unit",
    "Unopened",
    "Unwritten",
    "ValueCount",
    "Vector",
    "Votes",
    "Window",
    "WithinKey",
    "_uniform",
    "accounting_gaussian_module",
    "accounting_pairs_module",
    "accounting_pld_module",
    "accounting_pld_ranges_module",
    "accounting_residue_module",
    "after",
    "after_curve",
    "after_exponential",
    "after_laplace",
    "after_pure",
    "alike",
    "arrange",
    "at_points",
    "bounds_of",
    "buy_choice",
    "bytes_of",
    "check",
    "check_sql",
    "check_steady",
    "choices_module",
    "clip_gradients",
    "code_of_condition",
    "coins",
    "combine_keys",
    "compare",
    "compiled_module",
    "constant",
    "cost_of_price",
    "counts_module",
    "delta",
    "delta_at",
    "derive_module",
    "derived_sources_module",
    "design_Rows",
    "deviations",
    "differ_without_case",
    "distribution",
    "door_module",
    "drawing_module",
    "durations_module",
    "each_of",
    "enclose_output",
    "encode",
    "encoded_fields",
    "encoding_module",
    "engine_Rows",
    "engine_for",
    "engines_columns_module",
    "engines_groups_module",
    "engines_keys_module",
    "engines_pandas_module",
    "engines_parts_module",
    "engines_people_module",
    "engines_rows_module",
    "entries_module",
    "evaluate",
    "events_module",
    "exp_interval",
    "expr_module",
    "fieller",
    "files_read",
    "find_operator",
    "find_sums",
    "find_ufunc",
    "finder",
    "first_sigma",
    "first_where",
    "fits",
    "form_of_grouping",
    "form_of_groups",
    "free",
    "gaussian_tail",
    "get_noisy_sums",
    "give_tag",
    "held_as",
    "hypotheses_module",
    "key_of",
    "keys_for",
    "kind_of",
    "laplace_tail",
    "largest",
    "largest_mu",
    "last_where",
    "learn_descent_module",
    "learn_fits_module",
    "learn_models_module",
    "learn_solve_module",
    "least_of",
    "leaves_of",
    "ledger_module",
    "let_complete",
    "levels",
    "limit_of",
    "list_agg_names",
    "list_level_sizes",
    "list_text_methods",
    "list_ufuncs",
    "list_verbs",
    "logical_not",
    "loss_of",
    "make_draft",
    "make_plan",
    "make_reports",
    "mechanism_from",
    "mechanism_names",
    "mechanisms",
    "mechanisms_coins_module",
    "mechanisms_sampling_module",
    "minimise",
    "mu_for",
    "newton",
    "noise_module",
    "noise_of",
    "number_keys",
    "number_of",
    "numbers_module",
    "numbers_of",
    "open_again",
    "open_store",
    "opening_module",
    "order_of",
    "outward",
    "pack_reports",
    "pairs_of",
    "parse",
    "people_labels",
    "people_of",
    "person_sums_module",
    "place_of",
    "plain",
    "plain_columns",
    "plan_module",
    "points_for",
    "predicate",
    "premises_of_root",
    "prepare",
    "progress",
    "pure_mu",
    "pure_sum",
    "query_Output",
    "rate_of",
    "read_keys",
    "read_quantile",
    "reading_module",
    "rearrange",
    "recognise_source",
    "register",
    "register_rule",
    "ridge",
    "round_to_points",
    "row_sums_module",
    "sampled_sigma",
    "sampling_module",
    "scores",
    "scores_module",
    "search_module",
    "server_module",
    "session_module",
    "sessions",
    "set_sizes",
    "shift_mu",
    "shrunk",
    "sketch_module",
    "sources_module",
    "spread",
    "sql_dialects_module",
    "start_from_leaf",
    "start_from_number",
    "stated_gaussian",
    "stats_Rows",
    "stats_module",
    "store_module",
    "stores_module",
    "suggestions_module",
    "surface",
    "tables_module",
    "take_rows_of_people",
    "text_of",
    "threads_module",
    "times_module",
    "unbiased_module",
    "unpack",
    "unpack_reports",
    "within",
    "worst_spread",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

# What answers say of numbers that are noise, which follows from what was released; `tests/answers/test_worth.py` listens to it.
NOISE = "this number is noise|numbers of this answer that|this will say nothing|no value of .* was found"

# The same as PYTHONWARNINGS, for programs that ask small questions and must print nothing else.
QUIET = "ignore:this number is noise,ignore:numbers of this answer that"


def deaf_to_noise() -> None:
    """Adds a filter for the warning of a number that is noise, after those that hear everything."""
    warnings.filterwarnings("ignore", NOISE, PrivacyWarning)
