"""The progress bar: one line in a terminal, one output in a notebook, silence elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.internals import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(total: int) -> None:
    with progress(total, "epochs") as bar:
        for _ in range(total):
            bar.step()


def test_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    work(50)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_one_line_that_ends_full(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    work(50)
    text = screen.getvalue()
    assert text.startswith("\repochs ")
    assert text.endswith(f"epochs {'█' * 20} 50/50\n")
    assert text.count("\n") == 1


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(data: dict[str, str], **options: Any) -> Any:
        assert options["display_id"] is True
        shown.append(data["text/plain"])
        return SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    work(3)
    assert shown[0].endswith("1/3")
    assert shown[-1].endswith("3/3")


def test_no_step_more_than_there_are_and_none_at_all() -> None:
    bar = progress(3, "steps")
    with bar:
        bar.step(7)
    assert str(bar).endswith("3/3")
    with progress(0, "nothing") as none:
        pass
    assert str(none).endswith("0/0")


def test_work_that_fails_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), progress(3, "steps"):
        _ = 1 / 0
