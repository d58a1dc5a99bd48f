"""Variables: the names by which a program knows its tensors, found in the caller's scope (PyTorch keeps none).

A leaf is recognised by itself, a result by the node and output that made it, so both are found again in a graph. A
parameter is called as in `named_parameters()` of the model that holds it.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType, ModuleType
from typing import Any

from . import _torch_internals as internals
from ._looking import is_tensor_type

_PACKAGE = __name__.rsplit(".", 1)[0]
# IPython's own names for what was typed and shown.
_SHELL = {"In", "Out", "exit", "quit", "get_ipython"}
_DEPTH = 2
_ITEMS = 1_000
_VISITS = 20_000
# the frame's, ours in two functions, and the call's itself
_OWN_REFERENCES = 4
_PLAIN = (int, float, str, bytes, bool, complex, type(None), type, ModuleType)


class Names:
    """Names of tensors by identity, valid while the tensors live.

    of(tensor)        the name of a leaf, or of any tensor object that a variable holds; "" if none is known
    of_outputs(node)  (output_nr, name) of the variables that hold a node's outputs
    held(kind)        (name, tensor) of every tensor of a class that was named as an object
    held_outputs(n)   the tensors themselves that those names stand for
    owner_of(tensor)  the path of the module that has the tensor as a parameter; None where none is known to
    """

    def __init__(self) -> None:
        self._of: dict[int, str] = {}
        self._outputs: dict[int, dict[int, str]] = {}
        self._held: dict[int, dict[int, Any]] = {}
        self._owner: dict[int, str] = {}
        # What a property made on the way, such as a list's copy, must outlive the names that its address stands for.
        self._kept: list[Any] = []
        self._objects: list[tuple[str, Any]] = []

    def of(self, tensor: Any) -> str:
        return self._of.get(id(tensor), "")

    def of_outputs(self, node: Any) -> tuple[tuple[int, str], ...]:
        return tuple(sorted(self._outputs.get(id(node), {}).items()))

    def held(self, kind: type) -> list[tuple[str, Any]]:
        return [(name, tensor) for name, tensor in self._objects if isinstance(tensor, kind)]

    def held_outputs(self, node: Any) -> list[Any]:
        return [tensor for _, tensor in sorted(self._held.get(id(node), {}).items())]

    def owner_of(self, tensor: Any) -> str | None:
        return self._owner.get(id(tensor))

    def add(self, name: str, tensor: Any) -> None:
        """The first name given to a tensor stays."""
        if id(tensor) not in self._of:
            self._of[id(tensor)] = name
            self._kept.append(tensor)
            self._objects.append((name, tensor))
        node = _node_of(tensor)
        if node is not None:
            self._outputs.setdefault(id(node), {}).setdefault(int(tensor.output_nr), name)
            self._held.setdefault(id(node), {}).setdefault(int(tensor.output_nr), tensor)
            self._kept.append(node)

    def add_model(self, model: Any, prefix: str = "") -> None:
        """All parameters and buffers of a module of either framework, by their paths in it. What torch.compile wraps is
        called as if it had not.
        """
        for path, module in model.named_modules():
            owner = ".".join(part for part in (prefix, *path.split(".")) if part not in ("", "_orig_mod"))
            own = itertools.chain(getattr(module, "_parameters", {}).items(), getattr(module, "_buffers", {}).items())
            for name, tensor in own:
                if tensor is not None:
                    self.add(f"{owner}.{name}" if owner else name, tensor)
                    self._owner.setdefault(id(tensor), owner)


def caller() -> FrameType:
    """The innermost frame that runs no code of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame = frame.f_back
    assert frame is not None
    return frame


def names_in_scope(
    frame: FrameType,
    given: Iterable[tuple[str, Any]] = (),
    model: Any = None,
    wanted: Callable[[Any], bool] = lambda parameter: True,
) -> Names:
    """Names from, in this order: what is given, the model's parameters, the variables that the frame sees.

    Without a model every module among the variables is one, if `wanted` says so of one of its parameters; of several
    each one's parameters are called by its variable too: "encoder.0.weight".
    """
    names = Names()
    for name, tensor in given:
        names.add(name, tensor)
    scope = _scope(frame)
    if model is not None:
        names.add_model(model)
    else:
        models = {id(m): (n, m) for n, m in _modules(scope) if any(map(wanted, m.parameters()))}
        outer = _outermost(models)
        for name, module in outer:
            names.add_model(module, name if len(outer) > 1 else "")
    _walk(names, scope)
    return names


def _scope(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame, locals before globals, in a dict of our own.

    Up to Python 3.12 asking a function's frame for its variables leaves a dict in it that keeps them alive until the
    function returns; it is emptied again unless somebody else holds it.
    """
    local = frame.f_locals
    found = {name: value for name, value in dict(local).items() if not _hidden(name)}
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        _forget(frame, local)
        found |= {n: v for n, v in list(frame.f_globals.items()) if n not in found and not _hidden(n)}
    return found


def held_names(frame: FrameType, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """(name, tensor) of those among the values that a variable of this very frame holds."""
    wanted = {id(value): value for value in values if is_tensor_type(type(value))}
    if not wanted:
        return []
    local = frame.f_locals
    found: dict[int, tuple[str, Any]] = {}
    for name, value in list(local.items()):
        if id(value) in wanted and not _hidden(name):
            found.setdefault(id(value), (name, value))
    _forget(frame, local)
    return list(found.values())


def _forget(frame: FrameType, local: Any) -> None:
    """Empty the dict of its variables that a function's frame keeps when asked for them, unless others hold it."""
    function = frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(local) is dict
    if function and sys.getrefcount(local) <= _OWN_REFERENCES:
        local.clear()


def _hidden(name: str) -> bool:
    return name.startswith("_") or name.startswith("@") or name in _SHELL


def _modules(scope: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found = []
    for name, value in scope.items():
        for framework in ("torch.nn", "glassbox.mini.nn"):
            kind = getattr(sys.modules.get(framework), "Module", None)
            if isinstance(kind, type) and issubclass(type(value), kind):
                found.append((name, value))
    return found


def _outermost(models: dict[int, tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Those modules that are no part of another one of them."""
    inside = {
        id(child)
        for _, model in models.values()
        for path, child in model.named_modules()
        if path and id(child) in models
    }
    return [pair for key, pair in models.items() if key not in inside]


def _walk(names: Names, scope: Mapping[str, Any]) -> None:
    """Tensors held by variables, then those in lists, dicts and plain objects, two levels deep."""
    level: list[tuple[str, Any]] = list(scope.items())
    seen: set[int] = set()
    visits = 0
    for depth in range(_DEPTH + 1):
        inner: list[tuple[str, Any]] = []
        for name, value in level:
            visits += 1
            if visits > _VISITS:
                return
            if is_tensor_type(type(value)):
                names.add(name, value)
            elif depth < _DEPTH and not isinstance(value, _PLAIN) and id(value) not in seen:
                seen.add(id(value))
                inner += _members(name, value)
        level = inner


def _members(name: str, value: Any) -> list[tuple[str, Any]]:
    if type(value) in (list, tuple):
        return [(f"{name}[{nr}]", each) for nr, each in enumerate(value[:_ITEMS])]
    if type(value) is dict:
        return [(f"{name}[{key!r}]", each) for key, each in itertools.islice(list(value.items()), _ITEMS)]
    if _modules({name: value}) or callable(value):
        return []
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(f"{name}.{key}", each) for key, each in itertools.islice(list(attributes.items()), _ITEMS)]


def _node_of(tensor: Any) -> Any:
    """The tensor's grad_fn, unless asking could make a new one, as for a view whose base was written to; even is_leaf
    asks for it.
    """
    if internals.is_view(tensor) and internals.version_of(tensor):
        return None
    return None if tensor.is_leaf else tensor.grad_fn
