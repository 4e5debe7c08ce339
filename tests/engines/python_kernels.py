"""The kernels of people as Python runs them, whether numba is installed or not."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from unittest.mock import patch


@cache
def load_python_kernels() -> ModuleType:
    """Return a copy of the module of kernels, imported as if numba were not installed."""
    spec = find_spec("dpframe.engines.people_kernels")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with patch.dict(sys.modules, {"numba": None}):
        spec.loader.exec_module(module)
    return module
