"""A report of a session: one page with its answers, their prices, and what they rest on."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import pandas as pd

from dpframe._answers.pages import (
    LIMITS,
    PERSON_LIMITS,
    Page,
    Section,
    describe_answer,
    find_answer,
    list_releases,
    sign_release,
    write_html,
    write_markdown,
)
from dpframe._errors import BadType, BadValue, DPError
from dpframe._frame.tracked import Tracked
from dpframe._session.planned import Planned
from dpframe._session.session import Session

_FORMATS = {".html": write_html, ".htm": write_html, ".md": write_markdown}


def report(
    self: Tracked,
    path: str | os.PathLike[str],
    answers: object = None,
    *,
    title: str = "Report",
) -> Path:
    """Write one page with answers, their intervals and pictures, and what they cost; return its
    path.

    Below the answers stand what was asked at which price, the budget and what it means, the
    declarations, and the limits of it all. A file of that name is replaced, once the whole page is
    written. Pictures need matplotlib.

    Formal guarantee: a function of released numbers and public facts. Nothing is read, so nothing
    is charged.

    Parameters
    ----------
    path
        A file: ``.html`` for a page of its own, ``.md`` for Markdown.
    answers
        An answer, a list of them, or a dict with headings: ``{"Visits by state": by_state}``. Without it, all numbers and
        tables that this process got from the session, the last thousand of them, but for those that were edited.
    title
        The title of the page.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> df = pd.DataFrame({"state": ["CA", "NY"] * 500})
    >>> p = df.dp.open(1, keys={"state": ["CA", "NY"]})
    >>> by_state = p.groupby("state").size(epsilon=0.5)
    >>> page = p.report(folder + "/visits.md", [by_state], title="Visits")
    >>> page.read_text().splitlines()[0]
    '# Visits'
    """
    session = self._session
    session.check_alive()
    if not isinstance(path, str | os.PathLike):
        raise BadType(f"report() writes to the path of a file, not {type(path).__name__}.")
    if not isinstance(title, str):
        raise BadType(f"title= must be a text, not {type(title).__name__}.")
    file = Path(path)
    write = _FORMATS.get(file.suffix.lower())
    if write is None:
        raise BadValue(
            f"report({os.fspath(path)!r}) would be a page of an unknown format. Write "
            f"p.report({os.fspath(file.with_suffix('.html'))!r}, ...), or a name that ends with .md."
        )
    sections = _list_sections(session, answers)
    _replace_file(file, write(_describe_session(session, sections, title)))
    return file


def _list_sections(session: Session, answers: object) -> list[Section]:
    """Return the answers of a page with their headings; refuse what is no answer of the session."""
    if answers is None:
        unchanged = filter(_is_unchanged, list(session.base.given))
        named: Iterable[tuple[Hashable, object]] = {
            repr((describe_answer_of(one), list_releases(one))): (None, one) for one in unchanged
        }.values()
    elif isinstance(answers, Mapping):
        named = answers.items()
    elif isinstance(answers, list | tuple):
        named = [(None, one) for one in answers]
    else:
        named = [(None, answers)]
    known = _sign_releases(session)
    return [_make_section(heading, one, known) for heading, one in named]


def _is_unchanged(value: object) -> bool:
    """Return whether a value is an answer whose numbers are still those of its release."""
    try:
        answer = find_answer(value)
        return answer is not None and bool(answer.table().size)
    except DPError:
        return False


def describe_answer_of(value: object) -> str:
    """Return the questions of an answer; empty for another value."""
    answer = find_answer(value)
    return "" if answer is None else describe_answer(answer)


def _make_section(heading: Hashable, given: object, known: set[tuple[str, ...]]) -> Section:
    """Return one answer of a page; refuse an answer of another session.

    ``known`` are the signatures of the releases of the session.
    """
    value = given.answer if isinstance(given, Planned) else given
    answer = find_answer(value)
    if answer is None:
        raise BadType(
            f"answers= takes numbers and tables as p released them, and this {type(value).__name__} "
            "has no receipt. Give the answer before it is reshaped, or leave answers= out."
        )
    if any(sign_release(raw) not in known for raw in list_releases(value)):
        raise BadValue(
            f"the answer to {describe_answer(answer)} is of another session, whose budget and "
            "declarations this report does not have. Write it into a report of its own: that "
            "session's p.report(...)."
        )
    return Section(describe_answer(answer) if heading is None else str(heading), answer)


def _sign_releases(session: Session) -> set[tuple[str, ...]]:
    """Return the signatures of all releases of a session, and of those in its ledger file."""
    released = [record.release.raw for _, record in list(session.base.answers.values())]
    return set(map(sign_release, [*released, *session.accountant.list_released_integers()]))


def _describe_session(session: Session, sections: list[Section], title: str) -> Page:
    """Return the content of a page: the answers, and the public facts of the session."""
    budget, ledger = session.budget, session.accountant.ledger
    registry = budget.registry()
    facts = {
        "unit": registry["unit"],
        "neighbouring relation": registry["neighboring_relation"],
        "epsilon": f"{budget.epsilon:.6g}",
        "delta": f"{budget.delta:.6g}",
        "accountant": budget.accountant,
        "used": f"{100 * budget.fraction:.3g} %",
        "mechanisms": ", ".join(registry["mechanisms"]),
        "questions": str(registry["questions"]),
    }
    debits = pd.DataFrame(
        {
            "question": ledger["question"],
            "mechanism": ledger["mechanism"],
            "epsilon": ledger["epsilon"].map("{:.4g}".format),
            "delta": ledger["delta"].map("{:.3g}".format),
            "budget used": ledger["used"].map(lambda used: f"{100 * used:.3g} %"),
            "when": ledger["when"].map(lambda when: f"{when:%Y-%m-%d %H:%M}"),
        }
    )
    return Page(
        title,
        f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC with {_name_software()}.",
        sections,
        str(budget.explain()).split("\n"),
        pd.DataFrame(facts.items(), columns=["fact", "value"]),
        debits,
        session.accountant.declarations[["what", "value", "where"]],
        (*LIMITS, PERSON_LIMITS) if session.unit.people else LIMITS,
    )


def _name_software() -> str:
    """Return the name and the version of this package, as far as it is installed."""
    try:
        return f"dpframe {metadata.version('dpframe')}"
    except metadata.PackageNotFoundError:
        return "dpframe"


def _replace_file(file: Path, text: str) -> None:
    """Write a text into a file, all of it or nothing.

    It is written beside the file first. A file that is there stays as it is if that fails.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as half:
            half.write(text)
            half.flush()
            os.fsync(half.fileno())
        os.replace(part, file)
    except OSError as problem:
        with suppress(OSError):
            part.unlink()
        raise BadValue(f"the report {str(file)!r} cannot be written: {problem.strerror}.") from None
