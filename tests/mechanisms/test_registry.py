"""One list of mechanisms: nobody outside it tells kinds apart, and whatever is on it can be asked, written down and read back."""

from __future__ import annotations

import ast

import pytest

from dpframe.mechanisms._base import MECHANISMS, mechanism_from, register
from dpframe.mechanisms._base import names as mechanism_names
from dpframe.mechanisms.noise import LaplaceNoise
from tests.source import parse_modules

WORDS = {name for name, kind in MECHANISMS.items() if kind.named} | set(MECHANISMS)


def outside() -> dict[str, ast.Module]:
    """Return the modules that are not about mechanisms."""
    return {
        name: tree
        for name, tree in parse_modules().items()
        if not name.startswith("dpframe.mechanisms")
    }


def imported(tree: ast.Module) -> set[str]:
    """The names that a module has from the room of mechanisms, but for its tools."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "dpframe.mechanisms"
        ):
            found |= {alias.asname or alias.name for alias in node.names}
    return {name for name in found if name[0].isupper() and not name.isupper()}


def words(node: ast.expr) -> set[object]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}


def named(node: ast.expr, kinds: set[str]) -> bool:
    """Whether it is a kind or an attribute of one, or a union or a tuple with one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.BinOp):
        return named(node.left, kinds) or named(node.right, kinds)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(named(one, kinds) for one in node.elts)
    return isinstance(node, ast.Name) and node.id in kinds


def told_apart(tree: ast.Module) -> set[str]:
    """Every test of which mechanism it is: by its class, or by its name."""
    kinds, found = imported(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            asks = getattr(node.func, "id", "") in ("isinstance", "issubclass")
            if asks and named(node.args[1], kinds):
                found.add(ast.unparse(node))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(named(side, kinds) or words(side) & WORDS for side in sides):
                found.add(ast.unparse(node))
        elif isinstance(node, ast.match_case) and (words(node.pattern) & WORDS):  # type: ignore[arg-type]
            found.add(ast.unparse(node.pattern))
    return found


def test_nobody_else_tells_mechanisms_apart():
    found = {name: told_apart(tree) for name, tree in outside().items()}
    assert {name: some for name, some in found.items() if some} == {}


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(noise, LaplaceNoise | GaussianNoise)",
        "isinstance(noise, (LaplaceNoise, int))",
        "type(noise) is LaplaceNoise",
        "noise.name == 'laplace'",
        "word in ('auto', 'gaussian')",
        "noise.name != LaplaceNoise.name",
    ],
)
def test_the_check_sees_a_ladder(line):
    head = "from dpframe.mechanisms.noise import GaussianNoise, LaplaceNoise\n"
    assert told_apart(ast.parse(head + line)) == {ast.unparse(ast.parse(line))}


def test_two_kinds_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two mechanisms have the name 'laplace'"):
        register(type("Other", (), {"name": "laplace"}))
    assert MECHANISMS["laplace"] is LaplaceNoise


def test_a_record_of_an_unknown_mechanism_is_not_read():
    with pytest.raises(KeyError):
        mechanism_from({"mechanism": "nobody's", "scale": "1"})


def test_mechanism_says_what_may_be_asked_for():
    assert mechanism_names() == ("auto", *(name for name, kind in MECHANISMS.items() if kind.named))
    assert not any(
        kind.named for kind in MECHANISMS.values() if not (kind.measures or kind.chooses)
    )
