"""The golden files: what each line answered, with the ledger file that knows it. Written by one version, read by all later ones.

``python -m tests.golden.make FOLDER`` asks every line and writes a ledger file, what was answered, and every plan. A later
version that opens a copy of that ledger finds each answer again, for nothing (`test_golden`).
"""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import dpframe
from dpframe import learn
from tests.golden.lines import REGIONS, SESSIONS, frame, lines, refused

# Classes that only show an answer in another way.
PLAIN = {"AnswerSeries": "Series", "AnswerFrame": "DataFrame"}


def shown(answer: Any) -> Any:
    """An answer as JSON: its type, its index, its cells to the last digit, and the question of its plan."""
    if isinstance(answer, pd.Series | pd.DataFrame):
        cells = answer.reset_index(drop=True)
        return {
            "type": PLAIN.get(type(answer).__name__, type(answer).__name__),
            "index": [repr(label) for label in answer.index],
            "names": [repr(name) for name in answer.index.names],
            "columns": [repr(c) for c in answer.columns]
            if isinstance(answer, pd.DataFrame)
            else repr(answer.name),
            "dtypes": str(cells.dtypes if isinstance(answer, pd.Series) else list(cells.dtypes)),
            "cells": [repr(row) for row in cells.to_numpy().tolist()],
        }
    if isinstance(answer, learn.LinearRegression | learn.LogisticRegression):
        return {
            "type": type(answer).__name__,
            "cells": [repr(answer.coef_.tolist()), repr(answer.intercept_)],
        }
    if isinstance(answer, pd.Index):
        return {"type": "Index", "cells": [repr(label) for label in answer]}
    if isinstance(answer, dpframe.Plan):
        return {"type": "Plan", "text": answer.question}
    if isinstance(answer, dpframe.Estimate):
        number = int(answer) if isinstance(answer, int) else float(answer)
        return {
            "type": type(answer).__name__,
            "cells": [repr(number)],
            "interval": _interval(answer),
        }
    return {"type": type(answer).__name__, "cells": [repr(answer)]}


def _interval(answer: Any) -> str:
    try:
        return repr(answer.interval())
    except dpframe.NotOffered:
        return "none"


def asked(p: Any, line: str) -> Any:
    """What a line answers, or the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(line, {"p": p, "REGIONS": REGIONS, "learn": learn, "pd": pd})
        except Exception as problem:
            return problem


def opened(session: str, ledger: Path) -> Any:
    return frame().dp.open(
        **SESSIONS[session],
        ledger=ledger,
        population=session,
        because="the table of the tests is nobody's",
    )


def written(problem: Exception) -> dict[str, str]:
    return {"type": type(problem).__name__, "text": str(problem)}


def refusal(problem: Any) -> Any:
    """What a line says that is refused in most sessions; where keys may be found, two of them find none."""
    return written(problem) if isinstance(problem, Exception) else shown(problem)


def planned(session: str) -> dict[str, str]:
    """The plan of each line as JSON, in a session that was asked nothing; or why there is none."""
    p, plans = frame().dp.open(**SESSIONS[session]), {}
    for line in lines(session):
        plan = asked(p.explain, line)
        said = f"{type(plan).__name__}: {plan if isinstance(plan, Exception) else ''}"
        plans[line] = plan.text if isinstance(plan, dpframe.Plan) else said
    return plans


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    answers: dict[str, dict[str, Any]] = {}
    plans: dict[str, dict[str, str]] = {}
    receipts: dict[str, Any] = {}
    wrong: list[str] = []
    for session in SESSIONS:
        p = opened(session, folder / "ledger.db")
        answers[session] = {}
        for line in lines(session):
            answer = asked(p, line)
            if isinstance(answer, Exception):
                wrong.append(f"{session}: {line}: {type(answer).__name__}: {answer}")
                continue
            answers[session][line] = shown(answer)
            if session == "people" and not isinstance(answer, dpframe.Plan):
                receipts[line] = answer
        for line in refused():
            answers[session][line] = refusal(asked(p, line))
        plans[session] = planned(session)
    if wrong:
        raise SystemExit("\n".join(wrong))
    (folder / "answers.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    (folder / "plans.json").write_text(json.dumps(plans, indent=1, ensure_ascii=False) + "\n")
    (folder / "receipts.pickle").write_bytes(pickle.dumps(receipts, protocol=4))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
