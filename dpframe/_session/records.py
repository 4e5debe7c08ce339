"""Releases on record, vector by vector: a question that shares vectors with an earlier one pays for
the others only.

*Formal guarantee.* A vector on record is a released fact, so to use it again is post-processing.
The vectors that are new have the noise that the whole question would buy, and a debit of their own
(docs/guarantees/identity.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpframe._plans.plan import Plan
from dpframe._questions.identity import Identity, rearrange_groups
from dpframe._questions.question import Query, Question, Release
from dpframe.mechanisms._base import loss_of


class Record(NamedTuple):
    """A release, the identity of its question, and the question itself where this session asked
    it."""

    release: Release
    question_id: Identity
    question: Question | None

    def vector(self, place: int) -> RecordedVector:
        """Return one vector of the release."""
        noise = self.release.plan.parts[place].noise
        return RecordedVector(noise, self.release.raw[place], self.question_id)


class RecordedVector(NamedTuple):
    """One vector of a release: its noise, its noisy integers, and the identity that has the order
    of their groups."""

    noise: Any
    integers: Any
    question_id: Identity


def find_vectors(
    plan: Plan, on_record: Sequence[RecordedVector | None]
) -> dict[int, RecordedVector]:
    """Return the vectors on record that are as good as those that the plan would buy, by their
    places.

    Good enough is noise of the same mechanism that is no wider.
    """
    found: dict[int, RecordedVector] = {}
    for place, (part, vector) in enumerate(zip(plan.parts, on_record, strict=True)):
        alike = vector is not None and type(vector.noise) is type(part.noise)
        if vector is not None and alike and vector.noise.deviation <= part.noise.deviation:
            found[place] = vector
    return found


def reduce_question(
    question: Question, plan: Plan, known: Mapping[int, RecordedVector]
) -> tuple[Query, Fraction]:
    """Return the question for the vectors that are new, and their part of its price."""
    assert isinstance(question, Query)
    new = tuple([place for place in range(len(plan.parts)) if place not in known])
    return replace(question, vectors=new), Fraction(len(new), len(plan.parts))


def assemble_plan(plan: Plan, known: Mapping[int, RecordedVector]) -> Plan:
    """Return the plan of a whole question, with the noise of the vectors that are on record."""
    parts = tuple(
        [
            replace(part, noise=known[i].noise) if i in known else part
            for i, part in enumerate(plan.parts)
        ]
    )
    moved = [
        (part.noise, part.noise.norm.choose_distance(part.l1, part.l2_squared)) for part in parts
    ]
    return replace(plan, parts=parts, loss=loss_of(moved) or plan.loss)


def add_vectors(
    plan: Plan, known: Mapping[int, RecordedVector], bought: Record | None
) -> dict[int, RecordedVector]:
    """Return the vectors on record, and those of a release of all the others."""
    if bought is None:
        return dict(known)
    places = [place for place in range(len(plan.parts)) if place not in known]
    return {**known, **{place: bought.vector(i) for i, place in enumerate(places)}}


def assemble(
    plan: Plan, identity: Identity, known: Mapping[int, RecordedVector], bought: Record | None
) -> Release:
    """Return the release of a whole question, of vectors on record and of those that were bought
    just now."""
    vectors = add_vectors(plan, known, bought)
    raw = [
        rearrange_groups(vectors[i].integers, vectors[i].question_id, identity)
        for i in range(len(plan.parts))
    ]
    return Release(assemble_plan(plan, vectors), tuple(raw))
