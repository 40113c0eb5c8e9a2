"""The faults: each module of this package holds some, with their injection and two probes.

``FAULTS`` has them by name. A new module with a ``FAULTS`` of its own is found by itself.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from chaos.faults.fault import Fault, Injection, by_name

__all__ = ["FAULTS", "Fault", "Injection"]


def _found() -> list[Fault]:
    modules = (import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__))
    return [fault for module in modules for fault in getattr(module, "FAULTS", ())]


FAULTS: Mapping[str, Fault] = by_name(_found())
