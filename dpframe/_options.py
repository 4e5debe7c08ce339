"""Settings of the package for the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from dpframe import _pandas, _validate
from dpframe._errors import BadType, did_you_mean


class Options:
    """Settings of dpframe for this process, read and set as attributes.

    A call sets some of them for a block.

    >>> import dpframe
    >>> dpframe.options
    options: display='interval', extend_pandas=True
    >>> with dpframe.options(extend_pandas=False):
    ...     dpframe.options.extend_pandas
    False
    >>> dpframe.options.extend_pandas
    True
    """

    __slots__ = ()

    _display: ClassVar[str] = "interval"

    @property
    def display(self) -> str:
        """Choice of how answers are shown: ``"interval"``, as ``4751 ± 320``, or ``"plain"``.

        Half of the 95 % interval of the noise stands behind ±, and the digits are those that the
        noise leaves. ``"plain"`` shows the digits of pandas. Both mark noise.
        """
        return Options._display

    @display.setter
    def display(self, value: str) -> None:
        Options._display = _validate.choice(value, "display", ("interval", "plain"))

    @property
    def extend_pandas(self) -> bool:
        """Switch that lets ``pd.cut``, ``pd.to_datetime`` and others take tracked columns.

        ``import dpframe`` replaces 18 functions of pandas to this end, for the whole process. They
        do what they did with all other arguments. ``False`` puts the originals back.
        """
        return _pandas.are_functions_extended()

    @extend_pandas.setter
    def extend_pandas(self, value: bool) -> None:
        """Replace the functions of pandas, or put the originals back if the value is False."""
        if _validate.flag(value, "extend_pandas"):
            _pandas.extend_pandas()
        else:
            _pandas.restore_pandas()

    @contextmanager
    def __call__(self, **values: object) -> Iterator[None]:
        """Set options for a ``with`` block, and restore their former values at its end."""
        names = [name for name in vars(Options) if isinstance(vars(Options)[name], property)]
        for name in values:
            if name not in names:
                raise BadType(f"no option {name!r}.{did_you_mean(name, names, 'Options')}")
        former = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in former.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        return f"options: display={self.display!r}, extend_pandas={self.extend_pandas}"


options: Options = Options()
