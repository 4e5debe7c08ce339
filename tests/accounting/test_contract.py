"""Every accountant of the registry keeps the contract, and a rule that spends too little does not."""

from __future__ import annotations

from typing import Any

import pytest

from dpframe.accounting import ACCOUNTANTS
from dpframe.accounting._filter import Charge
from tests.accounting.contract import FilterContract

for _kind in ACCOUNTANTS.values():
    globals()[f"Test{_kind.__name__}"] = type(
        f"Test{_kind.__name__}", (FilterContract,), {"kind": _kind}
    )


class _Cheap(ACCOUNTANTS["pure"]):  # type: ignore[misc]
    """A plain sum that takes half of what a release costs."""

    def after(self, state: Any, charge: Charge) -> Any:
        return super().after(
            state, Charge(tuple((loss, (n + 1) // 2) for loss, n in charge.losses))
        )


class _Forgetful(ACCOUNTANTS["pure"]):  # type: ignore[misc]
    """A plain sum that starts anew once it was full."""

    def after(self, state: Any, charge: Charge) -> Any:
        return super().after(self.start() if self.spent(state) > 0.8 else state, charge)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (_Cheap, "test_what_is_admitted_keeps_the_budget_as_a_fixed_list"),
        (_Forgetful, "test_what_was_refused_once_would_be_refused_later"),
    ],
)
def test_the_contract_sees_a_rule_that_is_wrong(kind: Any, test: str) -> None:
    wrong = FilterContract()
    wrong.kind = kind
    with pytest.raises(AssertionError):
        getattr(wrong, test)()
