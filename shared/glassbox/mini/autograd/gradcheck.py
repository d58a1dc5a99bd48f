"""gradcheck: analytical gradients against finite differences (PyTorch: torch/autograd/gradcheck.py).

Each input element is moved a little in both directions and the change of every output element measured; backward
must give the same Jacobian. Only float64 is exact enough for that.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..aten import ops as at
from ..c10.dtype import float64
from .python_engine import grad
from .variable import requires_grad


class GradcheckError(RuntimeError):
    """The analytical and the numerical gradient differ."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
) -> bool:
    """Whether the gradients of func(*inputs) at its inputs that require grad are those of finite differences.

    func gives a tensor or a tuple of them. Differing ones raise GradcheckError, which says where, or, without
    raise_exception, give False. nondet_tol: how much two backward passes may differ. check_undefined_grad: an output
    that no gradient comes to must be taken for zeros. ValueError where no input requires grad.
    """
    args = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    try:
        _check(func, args, eps, atol, rtol, nondet_tol, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """The same of the gradients themselves: whether their derivatives, by double backward, are right.

    grad_outputs: the gradients of the outputs to differentiate at; made up where not given.
    """
    args = tuple(inputs) if isinstance(inputs, Sequence) else (inputs,)
    outputs = _differentiable(func(*args))
    if grad_outputs is None:
        given = tuple(_some_values(output).requires_grad_() for output in outputs)
    else:
        given = tuple(grad_outputs) if isinstance(grad_outputs, Sequence) else (grad_outputs,)

    def first(*arguments: Any) -> tuple[Any, ...]:
        arguments, seeds = arguments[: len(args)], arguments[len(args) :]
        wanted = [each for each in arguments if _is_checked(each)]
        found = grad(_differentiable(func(*arguments)), wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None and requires_grad(each))

    return gradcheck(
        first,
        args + given,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=False,
    )


def _check(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
) -> None:
    checked = [place for place, each in enumerate(args) if _is_checked(each)]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them does.")
    for place in checked:
        if args[place]._dtype is not float64:
            warnings.warn(
                f"Input #{place} requires gradient and is not a double precision floating point: the check is likely "
                f"to fail for want of digits.",
                UserWarning,
                stacklevel=4,
            )
    outputs = _differentiable(func(*args))
    if not outputs:
        _check_no_gradient(func, args, checked, eps)
        return
    analytical = [_analytical(outputs, args, checked, nr) for nr in range(len(outputs))]
    again = _differentiable(func(*args))
    for nr in range(len(outputs)):
        for place, left, right in zip(checked, analytical[nr], _analytical(again, args, checked, nr), strict=True):
            if not np.allclose(left, right, rtol=0.0, atol=nondet_tol, equal_nan=True):
                raise GradcheckError(
                    f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    f"gives different values, although analytical gradient matches numerical gradient: output {nr}, "
                    f"input {place}."
                )
    for column, place in enumerate(checked):
        numerical = _numerical(func, args, place, eps, len(outputs))
        for nr in range(len(outputs)):
            _compare(analytical[nr][column], numerical[nr], nr, place, atol, rtol)
    if check_undefined_grad:
        _check_undefined(func, args, checked)


def _is_checked(each: Any) -> bool:
    return hasattr(each, "_key_set") and requires_grad(each)


def _differentiable(outputs: Any) -> tuple[Any, ...]:
    several = outputs if isinstance(outputs, tuple | list) else (outputs,)
    return tuple(each for each in several if _is_checked(each))


def _some_values(like: Any) -> Any:
    from ..c10.tensor_impl import TensorImpl

    values = np.cos(np.arange(like.numel(), dtype=np.float64)).reshape(like._shape) + 0.5
    return TensorImpl.of_values(values, like._dtype, like._device)


def _analytical(outputs: tuple[Any, ...], args: tuple[Any, ...], checked: list[int], nr: int) -> list[np.ndarray]:
    """The Jacobian of output nr per checked input, (input elements, output elements), by one backward each."""
    output = outputs[nr]
    wanted = [args[place] for place in checked]
    jacobians = [np.zeros((each.numel(), output.numel())) for each in wanted]
    for element in range(output.numel()):
        seed = at.zeros(output._shape, output._dtype, output._device)
        seed.strided_array().flat[element] = 1
        found = grad(output, wanted, seed, retain_graph=True, allow_unused=True)
        for jacobian, each, gradient in zip(jacobians, wanted, found, strict=True):
            if gradient is None:
                continue
            if gradient._shape != each._shape or gradient._dtype is not each._dtype:
                raise GradcheckError("Gradient has a different shape or dtype than its input.")
            jacobian[:, element] = gradient.values().reshape(-1)
    return jacobians


def _numerical(func: Callable[..., Any], args: tuple[Any, ...], place: int, eps: float, count: int) -> list[np.ndarray]:
    """The same for one input, by moving each of its elements; one Jacobian per output."""
    values = args[place].detach().clone().values().astype(np.float64)
    columns: list[list[np.ndarray]] = [[] for _ in range(count)]
    for element in range(values.size):
        results = []
        for step in (eps, -eps):
            moved = values.copy()
            moved.reshape(-1)[element] += step
            results.append(_values_at(func, args, place, moved))
        for nr in range(count):
            columns[nr].append((results[0][nr] - results[1][nr]) / (2 * eps))
    return [np.stack(each) if each else np.zeros((0, 0)) for each in columns]


def _values_at(func: Callable[..., Any], args: tuple[Any, ...], place: int, moved: np.ndarray) -> list[np.ndarray]:
    old = args[place]
    fresh = at.empty_strided(old._shape, old._stride, old._dtype, old._device)
    array = fresh.strided_array()
    if fresh._dtype.numpy == moved.dtype:
        array[...] = moved
    else:
        fresh.copy_(type(old).of_values(moved, old._dtype, old._device))
    changed = (*args[:place], fresh.requires_grad_(), *args[place + 1 :])
    return [each.detach().clone().values().astype(np.float64).reshape(-1) for each in _differentiable(func(*changed))]


def _compare(analytical: np.ndarray, numerical: np.ndarray, output: int, place: int, atol: float, rtol: float) -> None:
    if analytical.size == 0 or np.allclose(analytical, numerical, rtol=rtol, atol=atol, equal_nan=True):
        return
    error = np.abs(analytical - numerical)
    worst = np.unravel_index(int(np.nanargmax(error)) if not np.isnan(error).all() else 0, error.shape)
    raise GradcheckError(
        f"Jacobian mismatch for output {output} with respect to input {place},\n"
        f"numerical: {numerical}\nanalytical: {analytical}\n"
        f"The largest difference, {error[worst]:.3g}, is between input element {worst[0]} and output element "
        f"{worst[1]}: numerical {numerical[worst]:.6g}, analytical {analytical[worst]:.6g}."
    )


def _check_no_gradient(func: Callable[..., Any], args: tuple[Any, ...], checked: list[int], eps: float) -> None:
    """Outputs that say they have no gradient must not depend on the inputs."""
    outputs = func(*args)
    several = outputs if isinstance(outputs, tuple | list) else (outputs,)
    before = [np.asarray(each.values(), np.float64) for each in several if hasattr(each, "_key_set")]
    for place in checked:
        moved = args[place].detach() + eps
        changed = (*args[:place], moved.requires_grad_(), *args[place + 1 :])
        outputs = func(*changed)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        after = [np.asarray(each.values(), np.float64) for each in several if hasattr(each, "_key_set")]
        for left, right in zip(before, after, strict=True):
            if not np.allclose(left, right, rtol=0, atol=eps / 10, equal_nan=True):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_undefined(func: Callable[..., Any], args: tuple[Any, ...], checked: list[int]) -> None:
    """With no gradient coming to an output, none, or zeros, must come to the inputs."""
    outputs = _differentiable(func(*args))
    wanted = [args[place] for place in checked]
    node_grads = [None] * len(outputs)
    from . import engine
    from .python_engine import input_edges, root_edges

    found = engine.execute(root_edges(outputs), node_grads, True, False, input_edges(tuple(wanted)))
    if any(each is not None and (each.values() != 0).any() for each in found):
        raise GradcheckError(
            "Expected backward function to handle undefined output grads: a gradient that is None stands for zeros."
        )
