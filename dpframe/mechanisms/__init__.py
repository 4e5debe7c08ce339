"""Mechanisms. Each module here without an underscore registers its kinds in
`dpframe.mechanisms._base`."""

from importlib import import_module as _import
from pkgutil import iter_modules as _modules

for _module in _modules(__path__):
    if not _module.name.startswith("_"):
        _import(f"{__name__}.{_module.name}")
