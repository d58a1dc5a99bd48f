"""Portraits and saved memory of the mini-framework, from its own recorder (mini/modes/recorder.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import mini
from ..mini.autograd.graph import nodes
from ..mini.c10.generator import default_generator
from ..records import KeptValue, OpCall, Portrait, PortraitPart, SavedMemory

_ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty"}


def portrait_of_mini(
    model: Any,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    loss: Callable[[Any], Any] | None,
    backward: bool | None,
) -> Portrait:
    """As xray.profile says; one run, counted."""
    module = model if isinstance(model, mini.nn.Module) else None
    wanted = backward if backward is not None else loss is not None or bool(module is not None and module.training)
    found: dict[tuple[str, str], list[OpCall]] = {}
    with _as_it_was(model, inputs, kwargs):
        with mini.record() as recorder:
            roots = _roots(model(*inputs, **kwargs), loss)
        _add(found, recorder.ops, "forward")
        if backward and not roots:
            raise ValueError("profile: backward=True, but nothing that came out requires a gradient.")
        if wanted and roots:
            with mini.record() as recorder:
                for nr, root in enumerate(roots):
                    root.backward(mini.ones_like(root), retain_graph=nr + 1 < len(roots))
            _add(found, recorder.ops, "backward")
    parts = [_part(op, phase, calls) for (op, phase), calls in found.items()]
    tensors = list(_tensors((inputs, dict(kwargs))))
    devices = dict.fromkeys(
        meta.device for calls in found.values() for call in calls for meta in (*call.inputs, *call.outputs)
    )
    return Portrait(
        _name(model),
        _mode(module),
        tuple(_kind(each) for each in tensors),
        tuple(devices),
        1,
        "glassbox.mini",
        _seen(),
        tuple(parts),
        notes=("The mini-framework's operators are counted, neither their FLOPs nor their time.",),
    )


def saved_memory_of_mini(
    fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], loss: Callable[[Any], Any] | None
) -> SavedMemory:
    """As xray.saved_memory says; the forward pass alone."""
    with _as_it_was(fn, args, kwargs):
        with mini.record() as recorder:
            roots = _roots(fn(*args, **kwargs), loss)
        made = {out.storage for call in recorder.ops for out in call.outputs if call.effect not in ("view", "write")}
        graph = Counter(
            (node.name, saved.name, saved.shape, saved.nbytes) for node in nodes(*roots) for saved in node.saved
        )
    values = []
    for node, saved in recorder.saved:
        key = (node, saved.name, saved.shape, saved.nbytes)
        if graph[key] > 0:
            graph[key] -= 1
            kind = "activation" if saved.storage in made else "other"
            values.append(
                KeptValue(node, saved.name, "", "", saved.shape, saved.dtype, saved.storage, saved.nbytes, kind)
            )
    module = fn if isinstance(fn, mini.nn.Module) else None
    notes = () if roots else ("Nothing that came out requires a gradient, so there is no graph to keep anything.",)
    return SavedMemory(f"{_name(fn)}, {_mode(module)}", tuple(values), notes=notes)


def _roots(output: Any, loss: Callable[[Any], Any] | None) -> list[Any]:
    output = loss(output) if loss is not None else output
    return [each for each in _tensors(output) if each.requires_grad]


def _add(found: dict[tuple[str, str], list[OpCall]], calls: Any, phase: str) -> None:
    for call in calls:
        found.setdefault((call.name, phase), []).append(call)


def _part(op: str, phase: str, calls: list[OpCall]) -> PortraitPart:
    shapes = Counter(", ".join(meta.type() for meta in call.inputs) for call in calls)
    return PortraitPart(op, phase, "", len(calls), tuple(shapes.most_common()), None, sum(map(_bytes, calls)), None)


def _bytes(call: OpCall) -> int:
    """Read and written by one call; a view and an allocation move nothing."""
    if call.effect == "view" or call.name.split(".")[1] in _ALLOCATE:
        return 0
    return sum({meta.id: meta.nbytes for meta in call.inputs}.values()) + sum(meta.nbytes for meta in call.outputs)


@contextmanager
def _as_it_was(model: Any, args: Any, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Random numbers, buffers, inputs and gradients are afterwards as they were."""
    random = default_generator.get_state()
    modules = [model] if isinstance(model, mini.nn.Module) else []
    buffers = [each for module in modules for each in module.buffers()]
    contents = [(each, each.detach().clone()) for each in (*buffers, *_tensors((args, dict(kwargs))))]
    leaves = [each for module in modules for each in module.parameters()]
    leaves += [each for each in _tensors((args, dict(kwargs))) if each.is_leaf and each.requires_grad]
    grads = [(each, each.grad) for each in leaves]
    try:
        for each, _ in grads:
            each.grad = None
        yield
    finally:
        default_generator.set_state(random)
        with mini.no_grad():
            for each, content in contents:
                if (each != content).any().item():
                    each.detach().copy_(content)
        for each, grad in grads:
            each.grad = grad


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, mini.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def _name(model: Any) -> str:
    if isinstance(model, mini.nn.Module):
        return type(model).__name__
    name: str = getattr(model, "__qualname__", "") or type(model).__name__
    return name.rpartition("<locals>.")[2].strip("<>")


def _mode(module: Any) -> str:
    words = [] if module is None else ["train" if module.training else "eval"]
    grad = "grad" if mini.is_grad_enabled() else "no_grad"
    return ", ".join([*words, "inference_mode" if mini.is_inference_mode_enabled() else grad])


def _seen() -> str:
    if mini.is_inference_mode_enabled():
        return "Taken under inference_mode: no Autograd keys take composite operators apart, so these are seen whole."
    return "Taken with the Autograd keys in place: they take composite operators apart, so their parts are seen."


def _kind(tensor: Any) -> str:
    from ..records import TensorMeta

    return TensorMeta(0, tuple(tensor.shape), str(tensor.dtype).rsplit(".", 1)[-1]).type()
