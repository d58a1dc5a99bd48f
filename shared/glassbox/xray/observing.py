"""Observe: what goes into a module and comes out of it, while a program runs (torch/nn/modules/module.py, hooks).

A module is watched through PyTorch's global hooks: hooks on the module itself would keep nn.TransformerEncoderLayer,
which asks for them, off its fast path, and so change what is observed.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from ..records import ModuleCall, Observation, TensorStats
from ._looking import in_short, is_freed, is_tensor_type


def observe(module: Any, fn: Callable[..., Any], *args: Any, inside: bool | str = False, **kwargs: Any) -> Observation:
    """Runs fn(*args, **kwargs) once and says what went through `module`: shapes, dtypes, mean, std, min, max, NaN, Inf.

    module   a torch.nn.Module, or a module of the mini-framework
    fn       what runs it: the whole model (`observe(model.layer1, model, x)`), or a function that also goes backward
    inside   True: its submodules too, each with rows of its own; a pattern such as "layer1.*": those whose path fits,
             be it as in named_modules() or as the record has it, with the class before it ("ResNet.layer1.*")

    What fn returned is the record's `result`. Inputs are looked at before forward runs, so that one that works in place
    does not hide them. Nothing is changed: not the results, the random numbers, the autograd graph; no dispatch mode
    sees the looking, and no hook is left, whatever fn raises. On a GPU each look waits for the device.

    A module that fn does not call is no error: the record has no calls and says so. Inside of a function that
    torch.compile made no hook runs.

    TypeError for a module that is none, or a fn that cannot be called.
    """
    of_torch = _of_torch(module)
    if not of_torch and not _of_mini(module):
        raise TypeError(
            f"observe: {type(module).__name__} is no module; give a torch.nn.Module (or one of glassbox.mini.nn), "
            f"and then the function that runs it."
        )
    if not callable(fn):
        raise TypeError(f"observe: {type(fn).__name__} cannot be called; give the function that runs the module.")
    if not isinstance(inside, (bool, str)):
        raise TypeError(f'observe: inside is a {type(inside).__name__}; give True, False or a pattern like "layer1.*".')
    name = type(module).__name__
    watch = _Watch(_watched(module, name, inside), _torch_numbers if of_torch else _mini_numbers)
    hooked = _torch_hooks(watch) if of_torch else _mini_hooks(watch)
    with hooked:
        result = fn(*args, **kwargs)
    note = ""
    if not watch.calls and of_torch:
        from ._torch_internals.modes import is_compiled

        note = "a function of torch.compile runs no hooks" if is_compiled(fn) else ""
    return Observation(name, tuple(watch.records()), result, note)


def _of_torch(module: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(module, torch.nn.Module)


def _of_mini(module: Any) -> bool:
    return type(module).__module__.startswith("glassbox.mini") or any(
        base.__module__.startswith("glassbox.mini") for base in type(module).__mro__
    )


def _watched(module: Any, name: str, inside: bool | str) -> dict[int, tuple[Any, str]]:
    """id -> (module, what it is called), for those to be watched."""
    if inside is False:
        return {id(module): (module, name)}
    found: dict[int, tuple[Any, str]] = {}
    for path, each in module.named_modules():
        whole = f"{name}.{path}" if path else name
        if inside is True or _fits(path, whole, inside):
            found.setdefault(id(each), (each, whole))
    return found


def _fits(path: str, whole: str, pattern: str) -> bool:
    """Whether a pattern means a module; "*" and its like are for the paths below the module alone."""
    by_class = pattern.startswith(whole.partition(".")[0]) and fnmatchcase(whole, pattern)
    return by_class or bool(path) and fnmatchcase(path, pattern)


class _Watch:
    """The calls of some modules, as their hooks report them."""

    def __init__(self, watched: dict[int, tuple[Any, str]], numbers: Callable[[Any], dict[str, Any]]) -> None:
        self.watched = watched
        self.numbers = numbers
        self.calls: list[dict[str, Any]] = []
        self._running: list[tuple[int, dict[str, Any]]] = []
        self._counts: dict[int, int] = {}

    def before(self, module: Any, args: Any) -> None:
        key = id(module)
        if key not in self.watched:
            return
        self._counts[key] = self._counts.get(key, 0) + 1
        call = {
            "module": self.watched[key][1],
            "nr": self._counts[key],
            "inputs": tuple(self._stats("input", args[0] if len(args) == 1 else args)[0]),
            "outputs": (),
            "raised": True,
        }
        self.calls.append(call)
        self._running.append((key, call))

    def after(self, module: Any, kwargs: Any, output: Any) -> None:
        key = id(module)
        while key in self.watched and self._running:
            begun, call = self._running.pop()
            if begun != key:
                continue
            if kwargs:
                named = self._stats("input", kwargs)[0]
                call["inputs"] = (*call["inputs"], *named)
            outputs, others = self._stats("output", output)
            call |= {"outputs": tuple(outputs), "others": tuple(others), "raised": False}
            return

    def records(self) -> Iterator[ModuleCall]:
        return (ModuleCall(**call) for call in self.calls)

    def _stats(self, name: str, value: Any) -> tuple[list[TensorStats], list[str]]:
        """The tensors of a value, and words for what else it holds."""
        if is_tensor_type(type(value)):
            return [self._look(name, value)], []
        if isinstance(value, dict):
            parts = [(f"{name}[{key!r}]", each) for key, each in value.items()]
        elif isinstance(value, (tuple, list)):
            fields = getattr(value, "_fields", None)
            keys = [f".{key}" for key in fields] if fields else [f"[{k}]" for k in range(len(value))]
            parts = [(f"{name}{key}", each) for key, each in zip(keys, value, strict=True)]
        elif hasattr(value, "__dataclass_fields__"):
            parts = [(f"{name}.{key}", getattr(value, key)) for key in value.__dataclass_fields__]
        elif hasattr(value, "data") and is_tensor_type(type(value.data)):
            parts = [(f"{name}.data", value.data)]
        else:
            return [], ["None" if value is None else type(value).__name__]
        tensors: list[TensorStats] = []
        others: list[str] = []
        for part, each in parts:
            found, words = self._stats(part, each)
            tensors += found
            others += words
        return tensors, others

    def _look(self, name: str, tensor: Any) -> TensorStats:
        try:
            numbers = self.numbers(tensor)
        except Exception as error:
            numbers = {"note": in_short(error)}
        try:
            shape = tuple(n if type(n) is int else str(n) for n in tensor.shape)
        except RuntimeError:
            shape = ("*",)
        dtype, device = str(tensor.dtype).rpartition(".")[2], str(tensor.device)
        return TensorStats(name, shape, dtype, device, **numbers)


@contextlib.contextmanager
def _torch_hooks(watch: _Watch) -> Iterator[None]:
    import torch
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    from ._torch_internals.modes import forget_hook

    def before(module: Any, args: Any) -> None:
        # The compiler would take the looking into the graph.
        if not torch.compiler.is_compiling():
            watch.before(module, args)

    def after(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        if not torch.compiler.is_compiling():
            watch.after(module, kwargs, output)

    handles: list[Any] = []
    try:
        handles.append(register_module_forward_pre_hook(before))
        handles.append(register_module_forward_hook(after, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            forget_hook(handle)


@contextlib.contextmanager
def _mini_hooks(watch: _Watch) -> Iterator[None]:
    handles: list[Any] = []
    try:
        for module, _ in watch.watched.values():
            handles.append(module.register_forward_pre_hook(watch.before))
            handles.append(
                module.register_forward_hook(lambda m, args, kwargs, out: watch.after(m, kwargs, out), with_kwargs=True)
            )
        yield
    finally:
        for handle in handles:
            handle.remove()


def _torch_numbers(tensor: Any) -> dict[str, Any]:
    import torch

    from ._torch_internals import is_fake
    from ._torch_internals.modes import unheard

    if is_fake(tensor) or tensor.device.type == "meta" or is_freed(tensor):
        return {"note": "no data"}
    if torch.jit.is_tracing():
        return {"note": "not looked at while torch.jit traces"}
    with unheard():
        values, note = tensor.detach(), ""
        if values.is_nested:
            values, note = torch.cat([each.reshape(-1) for each in values.unbind()]), "nested: of all its tensors"
        elif values.layout == torch.sparse_coo:
            values, note = values.coalesce().values(), "sparse: of the values that it holds"
        elif values.layout != torch.strided:
            values, note = values.to_dense(), str(values.layout).removeprefix("torch.")
        if values.is_quantized:
            values, note = values.dequantize(), "quantized"
        if values.is_complex():
            values, note = values.abs(), note or "complex: of the magnitudes"
        count = values.numel()
        if not count:
            return {"nan": 0, "inf": 0, "note": note or "empty"}
        # Half precision overflows in a sum, float32 loses digits in one; some devices have no float64.
        values = values.to(torch.float32 if values.device.type == "mps" else torch.float64)
        nan, inf, zeros = int(values.isnan().sum()), int(values.isinf().sum()), int((values == 0).sum())
        finite = values if not nan and not inf else values[values.isfinite()]
        if not finite.numel():
            return {"nan": nan, "inf": inf, "zeros": zeros / count, "note": note}
        low, high = finite.aminmax()
        return {
            "mean": float(finite.mean()),
            "std": float(finite.std(correction=0)),
            "min": float(low),
            "max": float(high),
            "nan": nan,
            "inf": inf,
            "zeros": zeros / count,
            "note": note,
        }


def _mini_numbers(tensor: Any) -> dict[str, Any]:
    import numpy as np

    values = np.asarray(tensor.strided_array())
    if str(tensor.dtype).endswith("bfloat16"):
        values = (values.astype(np.uint32) << 16).view(np.float32)
    note = ""
    if values.dtype.kind == "c":
        values, note = np.abs(values), "complex: of the magnitudes"
    values = values.astype(np.float64)
    if not values.size:
        return {"nan": 0, "inf": 0, "note": "empty"}
    nan, inf, zeros = int(np.isnan(values).sum()), int(np.isinf(values).sum()), float((values == 0).mean())
    finite = values[np.isfinite(values)]
    found: dict[str, Any] = {"nan": nan, "inf": inf, "zeros": zeros, "note": note}
    if finite.size:
        found |= {"mean": float(finite.mean()), "std": float(finite.std())}
        found |= {"min": float(finite.min()), "max": float(finite.max())}
    return {key: value for key, value in found.items() if not isinstance(value, float) or math.isfinite(value)}
