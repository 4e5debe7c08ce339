"""Sizes at which code changes its way stand in one place, so that tests can set each of them to a few rows."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

import dpframe
from dpframe._sizes import SIZES, set_sizes

pytestmark = pytest.mark.kept  # what it reads is the whole tree, and is read once

PACKAGE = Path(dpframe.__file__).parent
ROOMS = (
    "engines",
    "_cells",
    "_frame",
    "_groups",
    "_statistics",
    "_questions",
    "mechanisms",
    "learn",
)
# From here on a power of two says what numbers can hold. Below, it may be a size.
NUMBERS = 30
# What a power of two below that is, where it is no size: (file, line of code without its comment) -> what it limits.
LIMITS = {
    "_frame/sources.py": {
        '"KIB": 2**10': "a unit",
        '"MIB": 2**20': "a unit",
        "_LEAST = 2**20": "the least memory= that somebody may ask for",
    },
    "_frame/verbs/choose.py": {"CANDIDATES: Final = 2**14": "more candidates are refused"},
    "_frame/verbs/looking.py": {"_DRAWN = 2**12": "rows that are made up"},
    "_frame/verbs/merge.py": {"_KEYS = 2**12": "more values are no declared keys"},
    "_groups/keys.py": {"GROUP_CEILING = 2**26": "more groups are refused"},
    "_expr/_patterns.py": {
        "LONGEST_TEXT = 2**16": "a longer text is null",
        "_REPLACED = 2**26": "a text that would grow to more is null",
    },
    "_groups/unit.py": {"LIMIT = 2**20": "larger limits are refused"},
    "_statistics/order.py": {"LEAF_CEILING = 2**24": "finer grids are refused"},
    "_groups/forms.py": {
        "_MOST_FORMS, _LONGEST = 256, 2**16": "longer orders of keys are not remembered"
    },
    "engines/functions/numbers.py": {
        "LENGTH = 2**10": "every row is computed in a call of this length"
    },
    "engines/groups.py": {"np.zeros(2**16": "the pairs of two bytes"},
    "engines/reading.py": {"LEAST_ROOM = 2**16": "bytes of an engine, as the least of its room"},
    "engines/sql/dialects.py": {"listed: ClassVar[int] = 2**20": "keys that a database takes"},
    "engines/tables/parquet.py": {"_LEAST = 2**28": "bytes without which duckdb does not start"},
    "learn/_descent.py": {
        "CLIP = 2**20": "the scale of a released number",
        "SIZE_STEPS = 2**16": "the scale of a released number",
        "EVERYBODY = 2**16": "the scale of a rate",
    },
    "learn/_design.py": {"UNIT = 2**15": "the scale of a released number"},
    "learn/_models.py": {
        "MOST_FEATURES = 2**12": "more features are refused",
        "MOST_STEPS = 2**16": "more steps are refused",
    },
    "mechanisms/_coins.py": {"below <= 2**8": "what fits into 16 bits"},
    "mechanisms/_sampling.py": {
        "_SPLIT_SCALE: Final = 2**24": "a scale of noise, where the proof changes"
    },
    "mechanisms/noise.py": {"2**14) + 1": "terms of a quantile that is shown"},
    "mechanisms/response.py": {
        "MOST: Final = 2**16": "more values are refused",
        "POINTS: Final = 2**8": "the grid of a released number",
        "self.k <= 2**8": "what fits into a byte",
    },
    "mechanisms/threshold.py": {"self.cut < 2**20": "terms of a quantile that is shown"},
}


def powers(tree: ast.AST) -> list[tuple[int, int]]:
    """The powers of two that code writes, ``2**16`` and ``1 << 16``, with their lines."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            base = node.left.value if isinstance(node.left, ast.Constant) else None
            power = isinstance(node.op, ast.Pow) and type(base) is int and base == 2
            shift = isinstance(node.op, ast.LShift) and base == 1
            if (power or shift) and type(node.right.value) is int:
                found.append((node.lineno, node.right.value))
    return found


def rounded(tree: ast.AST) -> list[tuple[int, int]]:
    """Constants of modules and classes that are whole numbers of at least 1000, which may be sizes too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            if type(value) is int and value >= 1000:
                found.append((node.lineno, value))
    return found


def unexplained(path: Path) -> list[str]:
    text, known = path.read_text(), LIMITS.get(path.relative_to(PACKAGE).as_posix(), {})
    lines = text.split("\n")
    small = [
        lines[at - 1].strip() for at, exponent in powers(ast.parse(text)) if 8 <= exponent < NUMBERS
    ]
    return [line for line in small if not any(one in line for one in known)]


def files_of_rooms() -> list[Path]:
    """Return the files in which a number may be a size."""
    return [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]


def test_no_size_stands_anywhere_else():
    found = {path.relative_to(PACKAGE).as_posix(): unexplained(path) for path in files_of_rooms()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_every_limit_that_is_explained_is_there():
    for name, known in LIMITS.items():
        text = (PACKAGE / name).read_text()
        assert [one for one in known if one not in text] == []


def test_the_check_of_sizes_sees_one(tmp_path):
    assert powers(
        ast.parse("for start in range(0, n, 2**16): some = a[start : start + (1 << 16)]")
    ) == [
        (1, 16),
        (1, 16),
    ]
    assert rounded(ast.parse("_FETCH = 10_000\nclass A:\n    listed: int = 2000\nn = 3")) == [
        (1, 10_000),
        (3, 2000),
    ]


ROUND = {
    "_cells/encoding.py": {1000: "bytes of an encoding that is kept"},
    "_frame/selection.py": {10_000: "more images of keys are not listed"},
    "engines/fingerprints.py": {100_000: "nodes that are read of one cell"},
    "engines/people.py": {314_159: "the code of an infinity"},
    "engines/tables/databases.py": {32_766: "parameters that SQLite takes"},
    "mechanisms/_sampling.py": {1022: "the exponent of a half"},
    "engines/sql/dialects.py": {10_000: "keys that SQLite takes"},
}


def test_no_round_number_is_a_size():
    found = [
        (path.relative_to(PACKAGE).as_posix(), value)
        for path in files_of_rooms()
        for _, value in rounded(ast.parse(path.read_text()))
        if value < 2**20
    ]
    assert [(name, value) for name, value in found if value not in ROUND.get(name, {})] == []


def test_every_size_is_read_somewhere():
    texts = [path.read_text() for path in PACKAGE.rglob("*.py")]
    unread = [
        f.name for f in dataclasses.fields(SIZES) if not any(f"SIZES.{f.name}" in t for t in texts)
    ]
    assert unread == []


def test_sizes_are_set_for_a_while_and_after_an_error_too():
    before = dataclasses.asdict(SIZES)
    with set_sizes(block=3, threads=2) as sizes:
        assert (sizes.block, SIZES.threads) == (3, 2)
    assert dataclasses.asdict(SIZES) == before
    with pytest.raises(ZeroDivisionError), set_sizes(block=3, threads=2):
        1 // 0  # noqa: B018
    assert dataclasses.asdict(SIZES) == before
    with pytest.raises(AttributeError), set_sizes(nothing=1):
        pass
