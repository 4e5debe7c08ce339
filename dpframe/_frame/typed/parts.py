"""The parts of ``.str`` and ``.dt`` that type checkers see.

`parts.pyi` beside this file lists them. ``python -m tests.frame.parts_stub`` writes it from the
catalogue of functions, and a test compares the two. At run time a part is made when it is
asked for.
"""


class Texts:
    """The parts of a text."""


class Times:
    """The parts of a time, and those of a duration."""


class Weeks:
    """The parts of the calendar of weeks."""
