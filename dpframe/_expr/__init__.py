"""Row-wise expressions: what a cell becomes, given the other cells of its own row and nothing else.

An expression is a frozen tree. It knows its kind, whether it can be null, whether it is integer-valued and
how bounds travel through it, all from dtypes and constants: no method here ever sees a value of the frame.
The constructor functions (`compare`, `arithmetic`, `is_in`, ...) check the kinds; engines evaluate what they
return.

*Formal guarantee.* Every node is a function of one row. A filter or a new column made of such nodes changes,
when a person is added or removed, that person's rows only.
"""

from dpframe._expr._base import MAX_DEPTH, Column, Constant, Expr
from dpframe._expr._build import (
    COLLECTIONS,
    absolute,
    arithmetic,
    between,
    cast,
    clip,
    compare,
    constant,
    cut,
    date_part,
    fill,
    is_in,
    is_null,
    logical_and,
    logical_not,
    logical_or,
    map_dict,
    negate,
    not_null,
    round_to,
    str_part,
)
from dpframe._expr._kinds import Kind, kind_of
from dpframe._expr._nodes import (
    And,
    Arithmetic,
    Cast,
    Clip,
    Compare,
    Cut,
    DatePart,
    Fill,
    IsIn,
    IsNull,
    MapDict,
    Not,
    Or,
    Round,
    StrPart,
    Unary,
)
from dpframe._expr._parts import DATE_NAMES, DATES, TEXT
from dpframe._expr._ranges import ARITHMETIC

__all__ = [
    "ARITHMETIC",
    "COLLECTIONS",
    "DATES",
    "DATE_NAMES",
    "MAX_DEPTH",
    "TEXT",
    "And",
    "Arithmetic",
    "Cast",
    "Clip",
    "Column",
    "Compare",
    "Constant",
    "Cut",
    "DatePart",
    "Expr",
    "Fill",
    "IsIn",
    "IsNull",
    "Kind",
    "MapDict",
    "Not",
    "Or",
    "Round",
    "StrPart",
    "Unary",
    "absolute",
    "arithmetic",
    "between",
    "cast",
    "clip",
    "compare",
    "constant",
    "cut",
    "date_part",
    "fill",
    "is_in",
    "is_null",
    "kind_of",
    "logical_and",
    "logical_not",
    "logical_or",
    "map_dict",
    "negate",
    "not_null",
    "round_to",
    "str_part",
]
