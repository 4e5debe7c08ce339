"""Names of types that signatures share."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Series: TypeAlias = "pd.Series[Any]"
Index: TypeAlias = "pd.Index[Any]"
PandasAnswer: TypeAlias = "pd.Series[Any] | pd.DataFrame"
PandasType = TypeVar("PandasType", bound="pd.Series[Any] | pd.DataFrame")

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]

Raw: TypeAlias = tuple[Any, ...]  # the arrays of noisy integers, or of texts, that left the door
Json: TypeAlias = dict[str, Any]  # an object of JSON, as receipts, records and cards hold it
Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]  # the lower and the upper ends of intervals
Values: TypeAlias = tuple[Any, ...]  # that the cells of an expression can take
Arguments: TypeAlias = tuple[Any, ...]  # of a call, by position
