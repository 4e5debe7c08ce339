"""Kinds of tables beside pandas frames: every module here may put entries into the catalogue."""

from importlib import import_module
from pkgutil import iter_modules

from dpframe.engines.tables.kinds import KINDS, list_connections, list_tables, make_source

__all__ = ["KINDS", "list_connections", "list_tables", "make_source"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
