"""The parts of ``.str`` and ``.dt``, written by ``python -m tests.frame.parts_stub``: do not edit."""

import re
from typing import Any

from dpframe._frame.surface import PrivateColumn

class Texts:
    """The parts of a text."""

    def capitalize(self) -> PrivateColumn:
        """Return the text with its first letter in upper case."""
    def casefold(self) -> PrivateColumn:
        """Return the text without differences of case."""
    def cat(
        self,
        others: object = None,
        sep: str | None = None,
        na_rep: str | None = None,
        join: str = "left",
    ) -> PrivateColumn:
        """Return the text with that of another column behind it; null beyond 65,536 characters."""
    def center(self, width: int, fillchar: str = " ") -> PrivateColumn:
        """Return the text filled up on both sides."""
    def contains(
        self,
        pat: str | re.Pattern[str],
        case: bool = True,
        flags: int = 0,
        na: bool | None = None,
        regex: bool = True,
    ) -> PrivateColumn:
        """Return whether a pattern is found in the text, or with regex=False a plain text."""
    def count(self, pat: str | re.Pattern[str], flags: int = 0) -> PrivateColumn:
        """Return how often a pattern is found in the text."""
    def endswith(self, pat: str | tuple[str, ...], na: bool | None = None) -> PrivateColumn:
        """Return whether the text ends with another, or with one of a tuple."""
    def extract(self, pat: str | re.Pattern[str], flags: int = 0, expand: bool = True) -> Any:
        """Return the groups of a pattern: a frame, or with expand=False a column."""
    def find(self, sub: str, start: int = 0, end: int | None = None) -> PrivateColumn:
        """Return the place where another text first begins, or -1."""
    def fullmatch(
        self,
        pat: str | re.Pattern[str],
        case: bool = True,
        flags: int = 0,
        na: bool | None = None,
    ) -> PrivateColumn:
        """Return whether a pattern matches the whole text."""
    def get(self, i: int) -> PrivateColumn:
        """Return the character at a place."""
    def isalnum(self) -> PrivateColumn:
        """Return whether all characters are letters or digits."""
    def isalpha(self) -> PrivateColumn:
        """Return whether all characters are letters."""
    def isascii(self) -> PrivateColumn:
        """Return whether all characters are ASCII."""
    def isdecimal(self) -> PrivateColumn:
        """Return whether all characters are decimal digits."""
    def isdigit(self) -> PrivateColumn:
        """Return whether all characters are digits."""
    def islower(self) -> PrivateColumn:
        """Return whether all letters are in lower case."""
    def isnumeric(self) -> PrivateColumn:
        """Return whether all characters are numeric."""
    def isspace(self) -> PrivateColumn:
        """Return whether all characters are whitespace."""
    def istitle(self) -> PrivateColumn:
        """Return whether each word is in title case."""
    def isupper(self) -> PrivateColumn:
        """Return whether all letters are in upper case."""
    def len(self) -> PrivateColumn:
        """Return the number of characters."""
    def ljust(self, width: int, fillchar: str = " ") -> PrivateColumn:
        """Return the text filled up on its right."""
    def lower(self) -> PrivateColumn:
        """Return the text in lower case."""
    def lstrip(self, to_strip: str | None = None) -> PrivateColumn:
        """Return the text without blanks, or without some characters, at its start."""
    def match(
        self,
        pat: str | re.Pattern[str],
        case: bool = True,
        flags: int = 0,
        na: bool | None = None,
    ) -> PrivateColumn:
        """Return whether the text begins with a match of a pattern."""
    def pad(self, width: int, side: str = "left", fillchar: str = " ") -> PrivateColumn:
        """Return the text filled up to a width."""
    def partition(self, sep: str = " ", expand: bool = True) -> Any:
        """Return the text before the first separator, the separator, and the text behind it."""
    def removeprefix(self, prefix: str) -> PrivateColumn:
        """Return the text without its beginning, if that is the given one."""
    def removesuffix(self, suffix: str) -> PrivateColumn:
        """Return the text without its end, if that is the given one."""
    def repeat(self, repeats: int) -> PrivateColumn:
        """Return the text several times over; null beyond 65,536 characters."""
    def replace(
        self,
        pat: str | re.Pattern[str],
        repl: str,
        n: int = -1,
        case: bool | None = None,
        flags: int = 0,
        regex: bool = False,
    ) -> PrivateColumn:
        """Return the text with another one in place of a plain text, or of a pattern."""
    def rfind(self, sub: str, start: int = 0, end: int | None = None) -> PrivateColumn:
        """Return the place where another text last begins, or -1."""
    def rjust(self, width: int, fillchar: str = " ") -> PrivateColumn:
        """Return the text filled up on its left."""
    def rpartition(self, sep: str = " ", expand: bool = True) -> Any:
        """Return the text before the last separator, the separator, and the text behind it."""
    def rsplit(self, pat: str | None = None, n: int = -1, expand: bool = False) -> Any:
        """Return the pieces of the text between separators, counted from its end."""
    def rstrip(self, to_strip: str | None = None) -> PrivateColumn:
        """Return the text without blanks, or without some characters, at its end."""
    def slice(
        self,
        start: int | None = None,
        stop: int | None = None,
        step: int | None = None,
    ) -> PrivateColumn:
        """Return a slice of the text."""
    def slice_replace(
        self,
        start: int | None = None,
        stop: int | None = None,
        repl: str | None = None,
    ) -> PrivateColumn:
        """Return the text with another one in place of a slice."""
    def split(
        self,
        pat: str | None = None,
        n: int = -1,
        expand: bool = False,
        regex: bool | None = None,
    ) -> Any:
        """Return the pieces of the text between separators: .str[i] of it is one of them."""
    def startswith(self, pat: str | tuple[str, ...], na: bool | None = None) -> PrivateColumn:
        """Return whether the text begins with another, or with one of a tuple."""
    def strip(self, to_strip: str | None = None) -> PrivateColumn:
        """Return the text without blanks, or without some characters, at both ends."""
    def swapcase(self) -> PrivateColumn:
        """Return the text with upper and lower case exchanged."""
    def title(self) -> PrivateColumn:
        """Return the text with each word in title case."""
    def upper(self) -> PrivateColumn:
        """Return the text in upper case."""
    def zfill(self, width: int) -> PrivateColumn:
        """Return the text with zeros in front of it, behind a sign."""

class Times:
    """The parts of a time, and those of a duration."""

    def as_unit(self, unit: str, round_ok: bool = True) -> PrivateColumn:
        """Return the same moment: the unit that it is kept in changes nothing here."""
    def ceil(
        self,
        freq: object,
        ambiguous: str = "raise",
        nonexistent: str = "raise",
    ) -> PrivateColumn:
        """Return the time or duration, moved up to a whole step."""
    @property
    def date(self) -> PrivateColumn:
        """Return the day, without a zone."""
    @property
    def day(self) -> PrivateColumn:
        """Return the day of the month."""
    def day_name(self, locale: str | None = None) -> PrivateColumn:
        """Return the English name of the day of the week."""
    @property
    def day_of_week(self) -> PrivateColumn:
        """Return the day of the week: Monday is 0."""
    @property
    def day_of_year(self) -> PrivateColumn:
        """Return the day of the year."""
    @property
    def dayofweek(self) -> PrivateColumn:
        """Return the day of the week: Monday is 0."""
    @property
    def dayofyear(self) -> PrivateColumn:
        """Return the day of the year."""
    @property
    def days(self) -> PrivateColumn:
        """Return the number of whole days, rounded down."""
    @property
    def days_in_month(self) -> PrivateColumn:
        """Return the number of days of the month."""
    @property
    def daysinmonth(self) -> PrivateColumn:
        """Return the number of days of the month."""
    def floor(
        self,
        freq: object,
        ambiguous: str = "raise",
        nonexistent: str = "raise",
    ) -> PrivateColumn:
        """Return the time or duration, moved down to a whole step."""
    @property
    def hour(self) -> PrivateColumn:
        """Return the hour."""
    @property
    def is_leap_year(self) -> PrivateColumn:
        """Return whether the year has 366 days."""
    @property
    def is_month_end(self) -> PrivateColumn:
        """Return whether it is the last day of a month."""
    @property
    def is_month_start(self) -> PrivateColumn:
        """Return whether it is the first day of a month."""
    @property
    def is_quarter_end(self) -> PrivateColumn:
        """Return whether it is the last day of a quarter."""
    @property
    def is_quarter_start(self) -> PrivateColumn:
        """Return whether it is the first day of a quarter."""
    @property
    def is_year_end(self) -> PrivateColumn:
        """Return whether it is the last day of a year."""
    @property
    def is_year_start(self) -> PrivateColumn:
        """Return whether it is the first day of a year."""
    @property
    def microsecond(self) -> PrivateColumn:
        """Return the microsecond of the second."""
    @property
    def microseconds(self) -> PrivateColumn:
        """Return the whole microseconds beside the seconds."""
    @property
    def minute(self) -> PrivateColumn:
        """Return the minute."""
    @property
    def month(self) -> PrivateColumn:
        """Return the month, from 1 to 12."""
    def month_name(self, locale: str | None = None) -> PrivateColumn:
        """Return the English name of the month."""
    @property
    def nanosecond(self) -> PrivateColumn:
        """Return the nanosecond of the microsecond."""
    @property
    def nanoseconds(self) -> PrivateColumn:
        """Return the nanoseconds beside the microseconds."""
    def normalize(self) -> PrivateColumn:
        """Return the midnight that the day began with."""
    @property
    def quarter(self) -> PrivateColumn:
        """Return the quarter, from 1 to 4."""
    def round(
        self,
        freq: object,
        ambiguous: str = "raise",
        nonexistent: str = "raise",
    ) -> PrivateColumn:
        """Return the time or duration, rounded to a whole step."""
    @property
    def second(self) -> PrivateColumn:
        """Return the second."""
    @property
    def seconds(self) -> PrivateColumn:
        """Return the whole seconds beside the days."""
    def strftime(self, date_format: str) -> PrivateColumn:
        """Return a text by a format; null for years before 1000 or after 9999."""
    def to_period(self, freq: str | None = None) -> PrivateColumn:
        """Return the year, quarter, month, week, day or hour of a time."""
    def total_seconds(self) -> PrivateColumn:
        """Return the duration in seconds."""
    def tz_convert(self, tz: object) -> PrivateColumn:
        """Return the same moment in another time zone."""
    def tz_localize(
        self,
        tz: object,
        ambiguous: str = "raise",
        nonexistent: str = "raise",
    ) -> PrivateColumn:
        """Return the same wall time in a time zone, or without one; null if it is not one time."""
    @property
    def weekday(self) -> PrivateColumn:
        """Return the day of the week: Monday is 0."""
    @property
    def year(self) -> PrivateColumn:
        """Return the year."""
    def isocalendar(self) -> Weeks:
        """Return the parts of the calendar of weeks."""

class Weeks:
    """The parts of the calendar of weeks."""

    @property
    def day(self) -> PrivateColumn:
        """Return the day of the calendar of weeks."""
    @property
    def week(self) -> PrivateColumn:
        """Return the week of the calendar of weeks."""
    @property
    def year(self) -> PrivateColumn:
        """Return the year of the calendar of weeks."""
