"""Function: an operation whose backward is written by hand (PyTorch: torch/autograd/function.py, python_function.cpp).

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result

    y = Exp.apply(x)

The ctx is the node itself: what forward keeps on it is there in backward. forward runs without recording.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..aten import ops as at
from ..c10.grad_mode import grad_enabled
from . import anomaly
from .node import Node
from .saved_variable import FREED, SavedVariable, save
from .variable import gradient_edge, requires_grad
from .view import IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE, check_inplace, meta_of, rebase_history


class FunctionCtx:
    """What forward and backward are handed first.

    needs_input_grad   per argument of forward whether its gradient is wanted
    saved_tensors      in backward: what forward saved
    """

    needs_input_grad: tuple[bool, ...] = ()
    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward: inputs, outputs or anything between, each with its version."""
        self.to_save = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that forward wrote into these inputs; they must be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that no gradient flows through these outputs."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for an output that no gradient came to."""
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx, Node):
    """The node of a Function. Each Function has a class of its own under this one."""

    _forward_cls: type["Function"]
    _saved: tuple[SavedVariable | None, ...] | None

    def __init__(self) -> None:
        self.begin()
        self._saved = ()
        self._is_tensor: tuple[bool, ...] = ()

    def _tensors_saved(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple(None if saved is None else saved.unpack(self) for saved in self._saved)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._tensors_saved()

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise RuntimeError(FREED)
        return self._saved

    def release_variables(self) -> None:
        for saved in self._saved or ():
            if saved is not None:
                saved.release()
        self._saved = None

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        if self.n_outputs == 1:
            grads = grads or (None,)
        given = [self._zeros(nr) if grad is None and self.materialize_grads else grad for nr, grad in enumerate(grads)]
        results = self._backward()(self, *given)
        if not isinstance(results, tuple):
            results = (results,)
        return self._checked(results)

    def _zeros(self, nr: int) -> Any:
        metadata = self.input_metadata[nr]
        if metadata is None:
            return None
        shape, dtype, device = metadata
        return at.zeros(shape, dtype, device)

    def _backward(self) -> Callable[..., Any]:
        cls = self._forward_cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed: implement one of them."
            )
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    def _checked(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """One gradient per tensor argument; what is given for other arguments must be None."""
        expected = len(self._is_tensor)
        name = self.name()
        if len(results) > expected and all(result is None for result in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
            )
        for place, (result, tensor) in enumerate(zip(results, self._is_tensor, strict=True)):
            if result is None:
                continue
            if not tensor:
                raise RuntimeError(
                    f"function {name} returned a gradient different from None at position {place + 1}, but the "
                    f"corresponding forward input was not a Variable"
                )
            if not hasattr(result, "_key_set"):
                raise RuntimeError(f"function {name}: expected Variable or None (got {type(result).__name__})")
        return tuple(result for result, tensor in zip(results, self._is_tensor, strict=True) if tensor)


class _FunctionMeta(type):
    """Gives each Function its class of nodes, called after it."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})
        super().__init__(name, bases, attributes)


class Function(metaclass=_FunctionMeta):
    """Subclass it with static methods `forward` and `backward` and call `apply`.

    forward(ctx, *args) -> a tensor or a tuple; or forward(*args) with setup_context(ctx, inputs, output).
    backward(ctx, *grad_outputs) -> one gradient or None per argument of forward.
    """

    _backward_cls: type[BackwardCFunction]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            f"should invoke them on the class itself: {type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward on the arguments and, where a gradient is wanted, hang the results on a node for backward."""
        node = cls._backward_cls()
        node._is_tensor = tuple(hasattr(arg, "_key_set") for arg in args)
        inputs = [arg for arg, tensor in zip(args, node._is_tensor, strict=True) if tensor]
        node.needs_input_grad = tuple(
            tensor and requires_grad(arg) for arg, tensor in zip(args, node._is_tensor, strict=True)
        )
        recording = grad_enabled.get() and any(node.needs_input_grad)
        node.next_edges = tuple(gradient_edge(tensor) for tensor in inputs) if recording else ()
        if recording and anomaly.enabled[0]:
            anomaly.remember(node)
        before = grad_enabled.get()
        grad_enabled.set(False)
        try:
            if cls.setup_context is Function.setup_context:
                output = cls.forward(node, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(node, args, output)
        finally:
            grad_enabled.set(before)
        outputs = output if isinstance(output, tuple) else (output,)
        wrapped = _wrap_outputs(node, inputs, outputs, recording)
        _save(node, recording)
        return wrapped if isinstance(output, tuple) else wrapped[0]


def _wrap_outputs(
    node: BackwardCFunction, inputs: list[Any], outputs: tuple[Any, ...], recording: bool
) -> tuple[Any, ...]:
    for tensor in node.dirty_tensors:
        if all(tensor is not each for each in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        tensor.bump_version()
    node.n_outputs = len(outputs)
    metadata: list[Any] = []
    wrapped: list[Any] = []
    differentiable = 0
    for nr, output in enumerate(outputs):
        if not hasattr(output, "_key_set"):
            metadata.append(None)
            wrapped.append(output)
            continue
        metadata.append((output._shape, output._dtype, output._device))
        flows = (
            recording
            and output._dtype.is_floating_point
            and all(output is not each for each in node.non_differentiable)
        )
        differentiable += flows
        wrapped.append(_wrap_output(node, inputs, output, nr, len(outputs), flows))
    node.input_metadata = tuple(metadata)
    if differentiable > 1:
        # Several of them may see one storage, which a write could not be followed through.
        for output in wrapped:
            if hasattr(output, "_key_set") and output._base is not None:
                meta_of(output).creation = MULTI_OUTPUT_NODE
    return tuple(wrapped)


def _wrap_output(node: Any, inputs: list[Any], output: Any, nr: int, count: int, flows: bool) -> Any:
    """One output, with the node for its history where a gradient flows through it."""
    is_input = any(output is each for each in inputs)
    is_dirty = any(output is each for each in node.dirty_tensors)
    if not flows:
        if is_input and not is_dirty:
            return _view_as_self(output)
        return output.detach() if is_input and requires_grad(output) else output
    if is_dirty:
        if not is_input:
            warnings.warn(
                "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need "
                "to pass it to mark_dirty().",
                UserWarning,
                stacklevel=4,
            )
        if is_input and output._base is not None and count > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view or make your Function only return one Tensor."
            )
        check_inplace(output)
        if count == 1:
            rebase_history(output, node)
            return output
    elif is_input:
        output = _view_as_self(output)
        meta_of(output).creation = IN_CUSTOM_FUNCTION
    elif output._base is not None:
        meta_of(output).creation = IN_CUSTOM_FUNCTION
    output._grad_fn, output._output_nr, output._requires_grad = node, nr, True
    return output


def _view_as_self(tensor: Any) -> Any:
    before = grad_enabled.get()
    grad_enabled.set(False)
    try:
        return at.view(tensor, tensor._shape)
    finally:
        grad_enabled.set(before)


def _save(node: BackwardCFunction, recording: bool) -> None:
    tensors = node.to_save
    for place, tensor in enumerate(tensors):
        if tensor is not None and not hasattr(tensor, "_key_set"):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {place} is of type {type(tensor).__name__}"
            )
    if recording:
        node._saved = tuple(
            None if tensor is None else save(tensor, tensor._output_nr if tensor._grad_fn is node else -1)
            for tensor in tensors
        )
    node.to_save = ()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that cannot itself be differentiated: trying to raises RuntimeError."""

    @functools.wraps(backward)
    def wrapped(ctx: Any, *grads: Any) -> Any:
        before = grad_enabled.get()
        grad_enabled.set(False)
        try:
            results = backward(ctx, *grads)
        finally:
            grad_enabled.set(before)
        if not before or not any(requires_grad(grad) for grad in grads if hasattr(grad, "_key_set")):
            return results
        several = results if isinstance(results, tuple) else (results,)
        error = _DelayedError()
        error.begin()
        error.next_edges = tuple(gradient_edge(grad) for grad in grads if hasattr(grad, "_key_set"))
        refused = tuple(None if result is None else _refusing(result, error) for result in several)
        return refused if isinstance(results, tuple) else refused[0]

    return wrapped


class _DelayedError(Node):
    """Raises when a gradient arrives."""

    __slots__ = ()

    def name(self) -> str:
        return "Error"

    def apply(self, *grads: Any) -> tuple[Any, ...]:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _refusing(result: Any, error: Node) -> Any:
    from .variable import set_history

    result = result.detach()
    set_history(result, error)
    return result
