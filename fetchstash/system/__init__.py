"""What every room needs of the machine and of Python: telemetry, processes, folders, imports."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562).

    ``modules`` has the names of each of its modules, with blanks between them.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
