"""state_dict: a tree of modules as one dict of tensors, and back (PyTorch: torch/nn/modules/module.py)."""

from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...aten import ops as at
from ...c10.dtype import bfloat16
from ...c10.grad_mode import grad_enabled
from ...c10.tensor_impl import TensorImpl
from ...factories import tensor
from ..parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns: the names that it looked for in vain, and those that it had no place for."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _StateDict(OrderedDict[str, Any]):
    """names -> tensors; _metadata: the path of each module -> {"version": how it writes its state}."""

    _metadata: dict[str, dict[str, Any]]


def state_dict(module: "Module", destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Adds the state of a module and of all below it to `destination`: parameters, then buffers, then children."""
    if destination is None:
        destination = _StateDict()
        destination._metadata = OrderedDict()
    metadata = getattr(destination, "_metadata", None)
    for path, each in _everywhere(module, prefix):
        if metadata is not None:
            metadata[path[:-1]] = {"version": each._version}
        for name, value in _own_state(each):
            destination[path + name] = value if keep_vars else value.detach()
    return destination


def _everywhere(module: "Module", prefix: str) -> Iterator[tuple[str, "Module"]]:
    """The tree with a module as often as it stands there, for names that must all be found again."""
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _everywhere(child, f"{prefix}{name}.")


def _own_state(module: "Module") -> Iterator[tuple[str, Any]]:
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        if value is not None and name not in module._non_persistent_buffers_set:
            yield name, value


def load_state_dict(module: "Module", given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Copies values into the parameters and buffers of the same names.

    Everything is looked at before anything is written, so that a state_dict that does not fit changes nothing; PyTorch
    copies what does fit before it raises.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(given)}.")
    metadata = getattr(given, "_metadata", {})
    values = dict(given)
    places: dict[str, tuple[Module, str, Any]] = {}
    for path, each in _everywhere(module, ""):
        each._upgrade_state_dict(values, path, metadata.get(path[:-1], {}).get("version"))
        places |= {path + name: (each, name, value) for name, value in _own_state(each)}
    missing = [name for name in places if name not in values]
    unexpected = [name for name in values if name not in places]
    problems = []
    if strict and missing:
        problems.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    found = {}
    for name, (_, _, own) in places.items():
        if name not in values:
            continue
        try:
            found[name] = _fitting(name, values[name], own)
        except ValueError as problem:
            problems.append(str(problem))
    if problems:
        raise RuntimeError(f"Error(s) in loading state_dict for {module._get_name()}:\n\t" + "\n\t".join(problems))
    for name, value in found.items():
        owner, attribute, own = places[name]
        _put(owner, attribute, own, value, assign)
    return IncompatibleKeys(missing, unexpected)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _fitting(name: str, value: Any, own: Any) -> Any:
    """The value as a tensor of the place's shape; ValueError that says what is wrong."""
    given = as_tensor(value)
    if given is None:
        raise ValueError(
            f'While copying the parameter named "{name}", expected a Tensor or something like a Tensor from checkpoint '
            f"but received {type(value)}"
        )
    if not own._shape and len(given._shape) == 1:
        # As state was written before there were 0-d tensors.
        given = given[0]
    if given._shape != own._shape:
        raise ValueError(
            f"size mismatch for {name}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {own.shape}."
        )
    return given


def _put(owner: "Module", attribute: str, own: Any, value: Any, assign: bool) -> None:
    if assign:
        wanted, is_parameter = own._requires_grad, isinstance(own, Parameter)
        if is_parameter and not isinstance(value, Parameter):
            value = Parameter(value, wanted)
        elif is_parameter:
            value.requires_grad_(wanted)
        setattr(owner, attribute, value)
        return
    token = grad_enabled.set(False)
    try:
        at.copy_(own, value, False)
    finally:
        grad_enabled.reset(token)


def as_tensor(value: Any) -> Any:
    """A tensor of ours from one of ours, an array, or another framework's tensor that NumPy can take; else None."""
    if isinstance(value, TensorImpl):
        return value
    if str(getattr(value, "dtype", "")).endswith("bfloat16") and hasattr(value, "float"):
        # NumPy has none; float32 holds the same numbers.
        return tensor(value.float().numpy(force=True), dtype=bfloat16)
    if hasattr(value, "numpy"):
        return tensor(value.numpy(force=True))
    return tensor(value) if isinstance(value, np.ndarray) else None
