"""The formats that come in: each module is one, and is registered when this package is imported.

A module whose name begins with an underscore holds what several importers share.
"""

import importlib
import pkgutil

for _module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    if not _module.startswith("_"):
        importlib.import_module(f"{__name__}.{_module}")
