"""Sizes at which code changes its way: rows of a block, of a batch, of a thread, of a kernel;
values in a table.

*Formal guarantee.* No answer depends on a size, only the time and the memory that it takes. Tests
set all of them to a few rows with `set_sizes`, so that a small table has every seam of a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class TuningSizes:
    """Every size, as measured to be fast. Each is read where it is used, at the time of use."""

    # Threads and kernels
    threads: int = 0  # that run at once; 0 for as many as the machine has processors
    thread_rows: int = 2**20  # that a thread is worth, where little is done with each
    thread_texts: int = 2**18  # that are numbered by several threads
    thread_sums: int = 2**18  # that each thread may have for itself
    kernel_rows: int = 2**18  # of fewer rows a kernel saves less than it takes to load it
    # Rows of one block
    block: int = 2**16  # rows that stay in the processor's cache
    sum_block: int = 2**21  # rows of the largest block whose sums are exact in doubles
    pair_block: int = 2**18  # rows of small groups, from which on two are counted at once
    key_block: int = 2**18  # rows whose keys are looked up at a time
    hash_block: int = 2**14  # numbers that are hashed at a time
    text_sample: int = 2**12  # texts that tell whether many are equal
    # People and their groups
    people_rows: int = 2**14  # rows of one part of the people, about
    people_parts: int = 2**10  # parts into which rows are sorted at once
    people_thread_rows: int = (
        2**17
    )  # rows that are worth a thread, where each is sorted by its person
    people_cells: int = 2**22  # cells of a table of people by groups
    people_pairs: int = 2**19  # pairs of people and groups that are added up at once, at most
    people_cached: int = 2**15  # pairs whose sums stay in the processor's cache
    people_drawn: int = 2**13  # pairs that are drawn for at once
    people_strip: int = 2**15  # people whose rows are gone through together, place by place
    people_few: int = (
        2**8
    )  # people who have more rows than the others, whose rows are gone through by themselves
    person_values: int = (
        32  # values of a person, up to which people of just as many are taken together
    )
    # Values that are looked up in a table
    listed_compared: int = (
        4  # so many listed values are compared one after the other before there is a table
    )
    listed_bisected: int = 128  # more listed values than this are bisected
    table_numbers: int = 2**20  # whole numbers within a range of this size are looked up directly
    table_codes: int = 2**22  # codes within a range of this size are looked up directly
    table_spare: int = 2**16  # entries that a table of codes may have more than there are rows
    encoded_values: int = 12  # values below which a loop encodes them faster
    # Sources
    batch: int = 2**19  # rows of a batch, about: small pieces are put together, and large ones cut
    fetch: int = 2**16  # rows of a database that are under way at a time
    memory: int = 2**30  # bytes, about, that one pass over the people of a source may take
    set_pairs: int = 2**16  # pairs of sets that are joined, which always fit
    set_shares: int = 2**12  # shares into which such sets are cut, at most
    statement: int = 60_000  # characters of a term of SQL; of a longer one the rows are read
    statement_bins: int = 256  # bins that are written into a statement
    # Mechanisms
    coins: int = 2**18  # that are thrown at a time
    draws: int = 2**14  # of an array operation
    draws_few: int = 12  # up to which a loop in Python is faster
    tries: int = 2**14  # to choose a place, of an array operation
    tries_few: int = 16  # at least
    reports: int = 2**15  # numbers that are randomized at a time
    # Fits
    fit_rows: int = 2**12  # whose columns are read one after the other
    fit_products: int = 2**16  # rows whose products below 2**30 add up exactly in doubles
    solver_terms: int = (
        1024  # rows whose terms are added in whatever order; the blocks are added exactly
    )
    solver_rows: int = 2**15  # of a block of the Hessian
    solver_sample: int = 2**16  # rows that show the curvature of all


SIZES = TuningSizes()


@contextmanager
def set_sizes(**sizes: int) -> Iterator[TuningSizes]:
    """Set some sizes inside a with block, for all threads."""
    before = {name: getattr(SIZES, name) for name in sizes}
    try:
        for name, size in sizes.items():
            setattr(SIZES, name, size)
        yield SIZES
    finally:
        for name, size in before.items():
            setattr(SIZES, name, size)
