"""gradcheck and gradgradcheck: what they pass, what they catch, what they say."""

import warnings
from typing import Any

import pytest

from glassbox import mini
from glassbox.mini.autograd import GradcheckError, gradcheck, gradgradcheck


def values(*shape: int) -> mini.Tensor:
    count = 1
    for n in shape:
        count *= n
    return ((mini.arange(count, dtype=mini.float64) * 0.37).sin().reshape(shape) + 0.1).detach().requires_grad_()


def wrong(scale: float) -> Any:
    class Wrong(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * scale * x

    return Wrong.apply


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y,
        lambda x, y: (x @ y.t()).tanh(),
        lambda x, y: (x.sum(0), y.exp()),
        lambda x, y: x.log_softmax(1) * y,
        lambda x, y: x.clone().mul_(y),
        lambda x, y: mini.cat([x, y], 1)[:, 1:],
        lambda x, y: (x > 0, x * 2),
        lambda x, y: x.view(-1)[2] + y.t()[0, 1],
    ],
)
def test_right_functions_pass(function: Any) -> None:
    assert gradcheck(function, (values(2, 3), values(2, 3)))
    assert gradgradcheck(function, (values(2, 3), values(2, 3)))


def test_a_wrong_gradient_is_caught_and_told() -> None:
    x = values(3)
    assert gradcheck(wrong(2.0), (x,))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0") as caught:
        gradcheck(wrong(2.1), (x,))
    text = str(caught.value)
    assert "numerical:" in text and "analytical:" in text
    assert "The largest difference" in text
    assert issubclass(GradcheckError, RuntimeError)
    assert not gradcheck(wrong(2.1), (x,), raise_exception=False)
    assert gradcheck(wrong(2.1), (x,), atol=1.0)


def test_the_worst_element_is_named() -> None:
    class OneWrong(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            result = grad * 2
            result[1] = 7.0
            return result

    with pytest.raises(GradcheckError, match="between input element 1 and output element"):
        gradcheck(OneWrong.apply, (values(3),))


def test_a_wrong_second_derivative_is_caught() -> None:
    class Once(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x.detach()

    x = values(3)
    assert gradcheck(Once.apply, (x,))
    with pytest.raises(GradcheckError):
        gradgradcheck(Once.apply, (x,))
    assert not gradgradcheck(Once.apply, (x,), raise_exception=False)


def test_a_backward_that_gives_other_values_each_time() -> None:
    class Noisy(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 + mini.rand(3, dtype=mini.float64) * 1e-7

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Noisy.apply, (values(3),))
    assert gradcheck(Noisy.apply, (values(3),), nondet_tol=1e-5, check_undefined_grad=False)


def test_what_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x * 2, (mini.ones(3, dtype=mini.float64),))
    single = mini.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradcheck(lambda x: x * 2, (single,), eps=1e-2, atol=1e-2)
    assert "is not a double precision floating point" in str(caught[0].message)


def test_outputs_that_hide_their_gradient() -> None:
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (values(3),))
    assert gradcheck(lambda x: mini.ones(3, dtype=mini.float64), (values(3),))


def test_undefined_gradients_must_be_taken_for_zeros() -> None:
    class Careless(mini.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return mini.ones(3, dtype=mini.float64) if grad is None else grad * 2

    with pytest.raises(GradcheckError, match="undefined output grads"):
        gradcheck(Careless.apply, (values(3),))
    assert gradcheck(Careless.apply, (values(3),), check_undefined_grad=False)


def test_inputs_that_are_views_and_strided() -> None:
    x = values(3, 2).detach().t().requires_grad_()
    assert not x.is_contiguous()
    assert gradcheck(lambda t: (t.t() * t.t()).sum(0), (x,))


def test_other_arguments_stay_as_they_are() -> None:
    assert gradcheck(lambda x, n, flag: x * n if flag else x, (values(2), 3, True))
    assert gradcheck(lambda x: x * 2, values(2))
