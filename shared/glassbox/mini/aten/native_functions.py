"""The list of operators: native_functions.yaml read and registered (PyTorch: torchgen/gen.py).

An entry's `dispatch` names the kernel per key. `structured_delegate` lends the kernel of the out= variant; an entry
with neither is a composite, whose kernel is the function of that name in composites.py and calls other operators.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from ..c10.dispatch_key import parse as parse_key
from . import composite_outs
from .core import function_schema
from .core.dispatcher import OperatorHandle, dispatcher
from .core.function_schema import FunctionSchema
from .core.kernel_function import KernelFunction, place_of
from .native.structured import Structured

FILE = Path(__file__).with_name("native_functions.yaml")
KEYS = frozenset(
    ("func", "variants", "dispatch", "structured", "structured_delegate", "tags", "python_module", "autogen")
)


@dataclass(frozen=True)
class NativeFunction:
    """One entry of the list.

    dispatch             key name -> kernel name
    structured_delegate  the out= variant that lends its kernel; "" without
    variants             "function", "method" or both: where Python shows it
    python_module        "nn" for what belongs to nn.functional
    autogen_of           the op whose out= form this is, made by composite_outs; "" for what stands in the list
    """

    schema: FunctionSchema
    variants: tuple[str, ...] = ("function",)
    dispatch: dict[str, str] | None = None
    structured: bool = False
    structured_delegate: str = ""
    tags: tuple[str, ...] = ()
    python_module: str = ""
    autogen_of: str = ""


@functools.cache
def native_functions() -> dict[str, NativeFunction]:
    """Every entry by its base.overload name, in the file's order; ValueError names an entry that cannot be read."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, NativeFunction] = {}
    for entry in yaml.load(FILE.read_text(encoding="utf-8"), loader):
        unknown = set(entry) - KEYS
        if "func" not in entry or unknown:
            raise ValueError(f"{FILE.name}: the entry {entry} has no func or unknown fields {sorted(unknown)}")
        schema = function_schema.parse(entry["func"])
        if schema.key in found:
            raise ValueError(f"{FILE.name}: {schema.key} stands there twice")
        dispatch = {
            key.strip(): name
            for keys, name in (entry.get("dispatch") or {}).items()
            for key in keys.split(",")
        }
        found[schema.key] = NativeFunction(
            schema,
            _words(entry.get("variants", "function")),
            dispatch or None,
            bool(entry.get("structured")),
            entry.get("structured_delegate", ""),
            _words(entry.get("tags", "")),
            entry.get("python_module", ""),
        )
        for key in _words(entry.get("autogen", "")):
            dispatch = {"CompositeExplicitAutograd": ""}
            out = composite_outs.out_schema(schema, key)
            found[key] = NativeFunction(out, dispatch=dispatch, autogen_of=schema.key)
    return found


def _words(text: Any) -> tuple[str, ...]:
    items = text if isinstance(text, list) else str(text).split(",")
    return tuple(item.strip() for item in items if item.strip())


@functools.cache
def kernels() -> dict[str, Any]:
    """Every kernel of the modules of native/, by name; ValueError for two of a name.

    A kernel is a structured one, or a function whose first parameter is the key set.
    """
    from . import native

    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(native.__path__):
        module = importlib.import_module(f"{native.__name__}.{info.name}")
        for name, value in vars(module).items():
            if not _is_kernel(value, module):
                continue
            if name in found and found[name] is not value:
                raise ValueError(f"two kernels are called {name}: one is in {module.__name__}")
            found[name] = value
    return found


def _is_kernel(value: Any, module: ModuleType) -> bool:
    if isinstance(value, Structured):
        return True
    code = getattr(value, "__code__", None)
    return (
        getattr(value, "__module__", "") == module.__name__
        and code is not None
        and code.co_varnames[:1] in (("ks",), ("key_set",))
    )


def register_all(composites: tuple[ModuleType, ...]) -> None:
    """Define every operator of the list and register its kernels."""
    listed = native_functions()
    for native in listed.values():
        op = dispatcher.register_def(native.schema, native.tags)
        register(op, native, listed, composites)


def register(
    op: OperatorHandle,
    native: NativeFunction,
    listed: dict[str, NativeFunction],
    composites: tuple[ModuleType, ...],
) -> None:
    """The kernels of one operator; ValueError where the list names one that is not there."""
    key = native.schema.key
    if native.structured_delegate:
        lender = listed.get(native.structured_delegate)
        if lender is None or not lender.structured:
            raise ValueError(f"{FILE.name}: {key} delegates to {native.structured_delegate}, which is no structured op")
        dispatch = dict(lender.dispatch or {})
        if not native.schema.is_inplace:
            # For calls that no backend's tensor leads to one: cat of nothing is refused in cat's own words.
            dispatch["CompositeExplicitAutogradNonFunctional"] = dispatch["CPU"]
    elif native.dispatch is not None:
        dispatch = native.dispatch
    else:
        dispatch = {"CompositeImplicitAutograd": ""}
    for key_name, kernel_name in dispatch.items():
        function = _function(native, kernel_name, composites)
        dispatcher.register_impl(op, parse_key(key_name), KernelFunction(function, place_of(function)))


def _function(native: NativeFunction, name: str, composites: tuple[ModuleType, ...]) -> Callable[..., Any]:
    schema = native.schema
    if native.autogen_of:
        return composite_outs.out_kernel(native_functions()[native.autogen_of].schema)
    tried = [name] if name else [schema.key.replace(".", "_"), schema.base]
    for each in tried:
        found = kernels().get(each) if name else None
        if isinstance(found, Structured):
            form = "out" if schema.is_out else "inplace" if schema.is_inplace else "functional"
            found = getattr(found, form)
            if found is None:
                raise ValueError(f"{FILE.name}: {schema.key} needs the {form} form of {name!r}, which it has not")
        for module in composites:
            found = found or getattr(module, each, None)
        if found is not None:
            return found
    raise ValueError(
        f"{FILE.name}: {schema.key} has no kernel: write {' or '.join(tried)} in native/ or composites.py"
    )
