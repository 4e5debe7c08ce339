"""What help says of the arguments of verbs."""

from __future__ import annotations

import inspect
import re

import pytest

from dpframe import PrivateFrame
from dpframe._arguments import public_functions
from dpframe._frame.column import PrivateColumn
from dpframe._frame.groups import PrivateGroupBy
from dpframe._frame.help import ARGUMENT_HELP, PRICE_HELP, explain_parameters
from dpframe._plans.price import WORDS


@pytest.mark.parametrize("kind", [PrivateFrame, PrivateColumn, PrivateGroupBy])
def test_help_of_every_question_explains_each_of_its_arguments_once(kind: type) -> None:
    asking = [
        one for one in public_functions(kind) if "within" in inspect.signature(one).parameters
    ]
    assert len(asking) > 15
    for function in asking:
        shown = inspect.getdoc(function) or ""
        section = shown.partition("\nParameters\n----------\n")[2]
        named = re.findall(r"^(\w+)$", section, flags=re.MULTILINE)
        assert named == list(inspect.signature(function).parameters)[1:], function.__qualname__


def test_help_of_the_price_names_its_arguments_and_no_text_is_unused() -> None:
    assert tuple(PRICE_HELP) == WORDS
    used = {
        name
        for kind in (PrivateFrame, PrivateColumn, PrivateGroupBy)
        for function in public_functions(kind)
        for name in inspect.signature(function).parameters
    }
    assert set(ARGUMENT_HELP) <= used


def test_help_of_an_argument_without_a_text_is_an_error() -> None:
    class Kind:
        def ask(self, unheard_of: int, within: float) -> None:
            """Ask."""

    with pytest.raises(KeyError, match="unheard_of"):
        explain_parameters(Kind)
