"""The faults: each module of this package holds some, with their injection and two probes.

``FAULTS`` has them by name. A new module is found by itself.
"""

import pkgutil
from importlib import import_module

from chaos.faults.fault import FAULTS, Fault, Injection

__all__ = ["FAULTS", "Fault", "Injection"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
for _name in sorted(FAULTS):  # whatever module holds it, a seed draws the same
    FAULTS[_name] = FAULTS.pop(_name)
