"""What makes a source unsteady, and what each kind of table does about it: one rule for all
engines.

*Formal guarantee.* Every kind of table answers every hazard, or its class cannot be made. A hazard
that is `REFUSED` raises when the table is opened. One that is `DECLARED` raises, too, unless
``because=`` says why it is right, and then the ledger keeps the sentence. One that is `WATCHED`
changes the version of the source, which is compared before each debit and after each read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from dpframe._errors import BadValue


class HazardAnswer(Enum):
    """Way in which a kind of table treats a hazard."""

    REFUSED = "refused"
    DECLARED = "declared"  # by because=
    WATCHED = "watched"  # before each debit and after each read
    ABSENT = "cannot be"
    UNSEEN = "not seen"  # which the page of limits states
    INHERITED = "as its source"


Answers = Mapping[str, HazardAnswer]


class Hazard(NamedTuple):
    """Way in which two scans of a source differ, or in which a row depends on several people."""

    title: str  # in the table of the docs
    problem: str  # of what is found in a query
    line: str  # to write instead


_KEEP = "Keep the rows first, in a table or in Parquet files, and open those."
_SAY = (
    "Where each row that is read is made of one person's own rows, and is the same each time, say so, and the ledger keeps it: "
    "dpframe.open(..., because='each row is made of one patient alone')."
)

HAZARDS: Mapping[str, Hazard] = {
    "chance": Hazard(
        "random numbers, samples, sequences",
        "gives other rows each time that this is read, and a question may read it more than once",
        _KEEP,
    ),
    "clock": Hazard(
        "the clock",
        "gives other rows each time that this is read, and a question may read it more than once",
        _KEEP,
    ),
    "first": Hazard(
        "rows chosen by which come first, ties, the order of threads and of hashes",
        "gives other rows each time that this is read, and a question may read it more than once",
        _KEEP,
    ),
    "sums": Hazard(
        "sums of doubles over rows",
        "adds doubles in whatever order threads come, so that their last bits are others each time that this is read",
        "Add whole numbers or decimals, sum(CAST(cost AS DECIMAL(18, 4))), or keep the rows first, in a table or in Parquet "
        "files, and open those.",
    ),
    "code": Hazard(
        "Python code, and functions that users wrote", "is code that dpframe does not see", _SAY
    ),
    "across": Hazard(
        "joins, windows, aggregations and other operations on several rows",
        "makes a row of several rows, which may be those of several people",
        _SAY,
    ),
    "transaction": Hazard(
        "a transaction that is open",
        "may be taken back by rollback(), with the rows that it wrote",
        "Call commit() or rollback() first, and open the table then.",
    ),
    "writes": Hazard("rows that are written, files that are replaced", "", ""),
    "in place": Hazard("files written in place, with their time put back", "", ""),
    "meaning": Hazard("names and settings that come to mean other rows", "", ""),
    "elsewhere": Hazard(
        "files on other machines",
        "is not on this machine, and nothing would tell that it has changed",
        "Open a pyarrow dataset of it, dpframe.open(dataset, ...), or a copy.",
    ),
}


class FoundHazard(NamedTuple):
    """Hazard that was found in a query, with the words of the query that show it."""

    hazard: str
    part: str


def make_refusal(found: FoundHazard) -> BadValue:
    """Return the error for a query that may not be opened because of a hazard.

    A hazard makes two scans differ, or makes a row depend on several people. The message names the
    words of the query, the problem, and what to write instead.
    """
    hazard = HAZARDS[found.hazard]
    return BadValue(f"{found.part} {hazard.problem}. {hazard.line}")


def judge(answers: Answers, found: Iterable[FoundHazard]) -> tuple[FoundHazard, ...]:
    """Return the hazards of a query that ``because=`` has to declare; raise at a refused one.

    A hazard makes two scans differ, or makes a row depend on several people. ``answers`` say what a
    kind of table does about each. ``found`` are the hazards of its query.
    """
    declared: dict[FoundHazard, None] = {}
    for one in found:
        if answers[one.hazard] is HazardAnswer.REFUSED:
            raise make_refusal(one)
        if answers[one.hazard] is HazardAnswer.DECLARED:
            declared[one] = None
    return tuple(declared)


def check_declared(declared: Iterable[FoundHazard], because: object) -> None:
    """Refuse to open a table with hazards that need a declaration, if ``because`` is None.

    A hazard makes two scans differ, or makes a row depend on several people. ``declared`` are those
    that `judge` returned for the table.
    """
    by_hazard: dict[str, list[str]] = {}
    for hazard, part in declared:
        by_hazard.setdefault(hazard, []).append(part)
    if because is None and by_hazard:
        hazard, parts = next(iter(by_hazard.items()))
        raise BadValue(
            f"{', '.join(parts)}: this {HAZARDS[hazard].problem}. {HAZARDS[hazard].line}"
        )


def check_answers(kind: str, answers: Answers) -> None:
    """Refuse a class of sources that does not answer each hazard, or answers an unknown one.

    ``kind`` is the name of the class, for the message.
    """
    odd = sorted({*HAZARDS} ^ {*answers})
    if odd:
        raise TypeError(
            f"{kind} must answer each hazard of dpframe.engines.steadiness: {', '.join(odd)}."
        )


# The answers of tables that are rows and no query.
NO_QUERY: dict[str, HazardAnswer] = dict.fromkeys(
    ("chance", "clock", "first", "sums", "code", "across", "transaction", "meaning"),
    HazardAnswer.ABSENT,
)
