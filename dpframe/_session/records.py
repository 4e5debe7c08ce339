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
    """Release on record, with the identity of its question, and the question itself if this session
    asked it."""

    release: Release
    question_id: Identity
    question: Question | None

    def vector(self, place: int) -> RecordedVector:
        """Return one vector of the release."""
        noise = self.release.plan.parts[place].noise
        return RecordedVector(noise, self.release.raw[place], self.question_id)


class RecordedVector(NamedTuple):
    """Vector of noisy numbers from an earlier release: its noise, its integers, and the identity
    that orders their groups."""

    noise: Any
    integers: Any
    question_id: Identity


def find_vectors(
    plan: Plan, on_record: Sequence[RecordedVector | None]
) -> dict[int, RecordedVector]:
    """Return the recorded vectors that can be used again instead of buying new ones, by position.

    ``on_record`` has a recorded vector, or None, for each vector of the plan. A recorded one
    qualifies if its noise has the same mechanism and is no wider.
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
    """Return the question for those vectors that are not on record, and the fraction of the price
    that it pays.

    ``known`` has the recorded vectors by their positions in the plan.
    """
    assert isinstance(question, Query)
    new = tuple([place for place in range(len(plan.parts)) if place not in known])
    return replace(question, vectors=new), Fraction(len(new), len(plan.parts))


def assemble_plan(plan: Plan, known: Mapping[int, RecordedVector]) -> Plan:
    """Return the plan of a whole question with the actual noise of each vector that was released
    earlier.

    ``known`` has the recorded vectors by their positions in the plan.
    """
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
    """Return the recorded vectors of a plan together with those that were just bought, by position.

    ``bought`` is a release of all vectors that ``known`` lacks; None if no more were needed.
    """
    if bought is None:
        return dict(known)
    places = [place for place in range(len(plan.parts)) if place not in known]
    return {**known, **{place: bought.vector(i) for i, place in enumerate(places)}}


def assemble(
    plan: Plan, identity: Identity, known: Mapping[int, RecordedVector], bought: Record | None
) -> Release:
    """Return the release of a whole question, put together from vectors on record and newly bought
    ones.

    ``identity`` is that of the question, for the order of its groups. ``bought`` is a release of
    all vectors that ``known`` lacks; None if no more were needed.
    """
    vectors = add_vectors(plan, known, bought)
    raw = [
        rearrange_groups(vectors[i].integers, vectors[i].question_id, identity)
        for i in range(len(plan.parts))
    ]
    return Release(assemble_plan(plan, vectors), tuple(raw))
