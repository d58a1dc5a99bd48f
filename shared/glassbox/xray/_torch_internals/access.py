"""Access: how the instruments reach into PyTorch's private parts, and what they say where one is missing."""

from __future__ import annotations

import importlib
import sys
from typing import Any

TRIED = "2.13 and 2.14"


class TorchInternalsError(RuntimeError):
    """The installed PyTorch has no such internal; the message names it and the versions it was relied on with."""


def missing(what: str) -> TorchInternalsError:
    """The error to raise where the installed torch has no `what`."""
    version = getattr(sys.modules.get("torch"), "__version__", "unknown")
    return TorchInternalsError(
        f"PyTorch {version} has no {what}, which this instrument reads; it was tried with torch {TRIED}."
    )


def private(path: str) -> Any:
    """What lies at a private place of torch, such as "torch._C._dispatch_keys".

    Modules on the way are imported. TorchInternalsError where the installed torch has no such place.
    """
    found: Any = None
    names = path.split(".")
    for nr, name in enumerate(names):
        try:
            found = importlib.import_module(name) if nr == 0 else getattr(found, name)
        except (ImportError, AttributeError):
            try:
                found = importlib.import_module(".".join(names[: nr + 1]))
            except ImportError:
                raise missing(path) from None
    return found
