"""Hooks on tensors and nodes (PyTorch: torch/csrc/autograd/function_hook.h, python_hook.cpp, torch/utils/hooks.py).

A tensor's hook stands at the node that its gradient goes to, so a leaf's is AccumulateGrad's. Before a node runs
come the hooks of its tensors, then what retain_grad asked for, then the node's own pre-hooks; after it its post-
hooks.
"""

import itertools
import weakref
from collections.abc import Callable
from typing import Any

_next_id = itertools.count().__next__
HookDict = dict[int, Callable[..., Any]]


class RemovableHandle:
    """What registering a hook returns; `remove()` or the end of a `with` block takes the hook away."""

    def __init__(self, hooks: HookDict, hook: Callable[..., Any]) -> None:
        self.id = _next_id()
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)
        self._hooks = {}

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class NodeHooks:
    """The hooks of one node.

    tensor_pre        input_nr -> hooks of the tensor whose gradient that input is: hook(grad) -> grad or None
    retains           input_nr -> the tensor whose .grad is to keep that input
    pre, post         hook(grad_outputs) and hook(grad_inputs, grad_outputs), each -> a tuple or None
    after_accumulate  of AccumulateGrad: hook(leaf)
    """

    __slots__ = ("tensor_pre", "retains", "pre", "post", "after_accumulate")

    def __init__(self) -> None:
        self.tensor_pre: dict[int, HookDict] = {}
        self.retains: dict[int, weakref.ref[Any]] = {}
        self.pre: HookDict = {}
        self.post: HookDict = {}
        self.after_accumulate: HookDict = {}

    @staticmethod
    def of(node: Any) -> "NodeHooks":
        """The node's hooks, made at first use."""
        if node.hooks is None:
            node.hooks = NodeHooks()
        return node.hooks


def register_node_hook(node: Any, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    """kind: "pre" or "post"."""
    return RemovableHandle(getattr(NodeHooks.of(node), kind), hook)


def move_retained(tensor: Any, old: Any, new: Any) -> None:
    """After an in-place op retain_grad means the tensor's new gradient; its other hooks stay where they were."""
    if old is None or old.hooks is None:
        return
    weak = old.hooks.retains.get(tensor._output_nr)
    if weak is not None and weak() is tensor:
        del old.hooks.retains[tensor._output_nr]
        NodeHooks.of(new).retains[0] = weak


def run_tensor_hooks(node: Any, grads: Any) -> Any:
    """The gradients as the tensors' hooks leave them. grads: bare for a node of one output, else a list or None."""
    hooks: NodeHooks = node.hooks
    single = node.n_outputs == 1
    items = [grads] if single else list(grads or (None,) * len(node.input_metadata))
    for input_nr, each in hooks.tensor_pre.items():
        for hook in list(each.values()):
            items[input_nr] = _tensor_result(hook, hook(items[input_nr]), items[input_nr])
    for input_nr, weak in hooks.retains.items():
        tensor, grad = weak(), items[input_nr]
        if tensor is not None and grad is not None:
            # A copy where it is the first: the gradient goes on through the graph and may be changed there.
            tensor._grad = grad.clone() if tensor._grad is None else tensor._grad + grad
    return items[0] if single else items


def run_pre_hooks(node: Any, grads: Any) -> Any:
    """The gradients as the node's own pre-hooks leave them."""
    single = node.n_outputs == 1
    for hook in list(node.hooks.pre.values()):
        given = (grads,) if single else tuple(grads or (None,) * len(node.input_metadata))
        changed = _tuple_result(hook, hook(given), given)
        grads = changed[0] if single else list(changed)
    return grads


def run_post_hooks(node: Any, results: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
    """The results as the node's post-hooks leave them."""
    single = node.n_outputs == 1
    given = (grads,) if single else tuple(grads or (None,) * len(node.input_metadata))
    for hook in list(node.hooks.post.values()):
        results = _tuple_result(hook, hook(results, given), results)
    return results


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _tensor_result(hook: Any, result: Any, old: Any) -> Any:
    if result is None:
        return old
    if not hasattr(result, "_key_set"):
        raise TypeError(f"expected Variable, but hook returned {type(result).__name__!r}")
    if old is not None:
        if result._dtype is not old._dtype or result._device is not old._device:
            raise RuntimeError(
                f"hook {_name(hook)!r} has changed the type of value (was mini.{old._dtype.name} on {old._device}, got "
                f"mini.{result._dtype.name} on {result._device})"
            )
        if result._shape != old._shape:
            raise RuntimeError(f"hook {_name(hook)!r} has changed the size of value")
    return result


def _tuple_result(hook: Any, result: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    if result is None:
        return old
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned {type(result).__name__!r}")
    if len(result) != len(old):
        raise RuntimeError(
            f"hook {_name(hook)!r} has returned an incorrect number of values (got {len(result)}, but expected "
            f"{len(old)})"
        )
    return tuple(
        None if new is None else _tensor_result(hook, new, before) for new, before in zip(result, old, strict=True)
    )
