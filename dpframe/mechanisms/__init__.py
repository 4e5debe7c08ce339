"""Mechanisms: all modules here without an underscore, each of which puts its kinds on the list in `dpframe.mechanisms._base`."""

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__):
    if not _found.name.startswith("_"):
        import_module(f"{__name__}.{_found.name}")
