"""What the database found and its samples hit only by chance, or that lies beside its entries."""

import pytest
import torch

from glassbox import mini
from glassbox.mini.autograd.python_engine import grad


def test_a_gradient_flows_where_one_root_lies_under_another() -> None:
    # Which root is looked at first depends on addresses, so once would not do.
    for _ in range(20):
        x = mini.rand(3, dtype=mini.float64).requires_grad_()
        below = x * x
        above = below.unsqueeze(0)
        (found,) = grad((above, below), x, (mini.ones_like(above), mini.ones_like(below)))
        assert found.tolist() == (4 * x).tolist()


@pytest.mark.parametrize("name", ["eq", "lt", "remainder", "fmod", "clamp_min", "pow"])
def test_a_tensor_of_one_element_is_no_number(name: str) -> None:
    # The overload for tensors comes first, so its dtype and its gradient count.
    theirs = getattr(torch, name)(torch.tensor([1, 2, 3]), torch.tensor(2.5, dtype=torch.float64))
    ours = getattr(mini, name)(mini.tensor([1, 2, 3]), mini.tensor(2.5, dtype=mini.float64))
    assert ours.tolist() == theirs.tolist()
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]


@pytest.mark.parametrize("name", ["zeros", "ones", "rand", "randn", "empty"])
def test_sizes_go_by_keyword_too(name: str) -> None:
    assert tuple(getattr(mini, name)(size=(2, 3)).shape) == tuple(getattr(torch, name)(size=(2, 3)).shape)


def test_views_in_place_keep_the_graph() -> None:
    def program(t, x):
        y = x * 2
        y.transpose_(0, 1)
        y.unsqueeze_(0)
        y.squeeze_(0)
        (y * y.t_()).sum().backward()
        return x.grad, tuple(y.shape), y._version

    values = [[1.0, 2.0], [3.0, 5.0]]
    theirs = program(torch, torch.tensor(values, requires_grad=True))
    ours = program(mini, mini.tensor(values, requires_grad=True))
    assert ours[0].tolist() == theirs[0].tolist()
    assert ours[1:] == theirs[1:]


def test_out_of_a_function_with_one_overload() -> None:
    for t in (torch, mini):
        out = t.empty(0)
        result = t.dot(t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0]), out=out)
        assert result is out
        assert out.item() == 11.0


def test_out_refuses_a_tensor_that_requires_grad() -> None:
    for t in (torch, mini):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        for name in ("dot", "add", "mv", "square"):
            arguments = (x,) if name == "square" else (x.reshape(1, 2) if name == "mv" else x, x)
            with pytest.raises(RuntimeError):
                getattr(t, name)(*arguments, out=t.empty(0))


def test_where_as_a_method_takes_the_condition_first() -> None:
    for t in (torch, mini):
        x = t.tensor([1.0, -2.0])
        assert x.where(x > 0, t.zeros(2)).tolist() == [1.0, 0.0]
        assert x.where(x > 0, 0.5).tolist() == [1.0, 0.5]
        assert t.where(x > 0, 1, 0).dtype is t.int64
