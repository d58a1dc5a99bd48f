"""Files that the wheel carries: C++ headers, and the yaml files that the code generator reads (torchgen/packaged)."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from .access import missing


def version() -> str:
    """The installed torch: "2.14.1+cu130"."""
    import torch

    return str(torch.__version__)


@lru_cache(maxsize=8)
def header(name: str) -> str:
    """The text of a header of the installed torch, such as "c10/core/DispatchKey.h"."""
    import torch

    return _read(Path(torch.__file__).parent / "include" / name, f"header {name} in its package")


@lru_cache(maxsize=1)
def native_functions_yaml() -> str:
    """The text of native_functions.yaml: an entry per operator that the generator makes."""
    return _read(_packaged() / "ATen" / "native" / "native_functions.yaml", "native_functions.yaml in torchgen")


@lru_cache(maxsize=1)
def derivatives_yaml() -> str:
    """The text of derivatives.yaml: an entry per operator that has a derivative formula."""
    return _read(_packaged() / "autograd" / "derivatives.yaml", "derivatives.yaml in torchgen")


def _packaged() -> Path:
    found = importlib.util.find_spec("torchgen")
    if found is None or not found.submodule_search_locations:
        raise missing("torchgen package beside it")
    return Path(found.submodule_search_locations[0]) / "packaged"


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise missing(what) from None


@lru_cache(maxsize=1)
def generator_source() -> str:
    """The source of the generator of autograd kernels, which lists the operators that need no derivative."""
    return _read(_packaged() / "autograd" / "gen_variable_type.py", "gen_variable_type.py in torchgen")
