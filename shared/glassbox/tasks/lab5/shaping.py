"""Lab 5, extension: tensors of a shape and no data (PyTorch: torch/_subclasses/fake_tensor.py)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ...records.ops import DTYPE_LETTERS
from ..building import built
from ..model import Case, Draw, Property, Task
from .printing import UNPLUGGED

Ints = tuple[int, ...]


def _true_shapes_only(text: str, inputs: Sequence[tuple[str, Ints]]) -> Any:
    """Runs it on PyTorch's own fake tensors."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

    (run,) = built(("program",), (text,))
    with FakeTensorMode():
        given = [torch.empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in inputs]
        try:
            result = run(*given)
        except (DataDependentOutputException, DynamicOutputShapeException) as refused:
            return "needs data", str(refused.func)
    dtype = str(result.dtype).removeprefix("torch.")
    return "fine", f"{DTYPE_LETTERS[dtype]}[{', '.join(map(str, result.shape))}]"


class _Shaped:
    """A program over tensors of shapes that no memory holds, as it is written."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.rows, self.columns = (rng.randint(1, 9) * 1_000_000 + rng.randint(0, 999) for _ in range(2))
        self.wide = rng.randint(2, 2_000_000)

    def same(self) -> None:
        """One line after which x has the shape that it had."""
        u = self.rng.choice(("relu", "tanh", "exp", "neg"))
        self.lines.append(
            self.rng.choice(
                (
                    f"x = x.{u}()",
                    f"x = torch.{u}(x)",
                    "x = x + x.mean(0)",
                    "x = x * 2 - 1",
                    "x = x / x.sum(1, keepdim=True)",
                )
            )
        )

    def text(self, ending: str) -> str:
        return "\n".join(["def program(x, y):", *(f"    {line}" for line in (*self.lines, ending))]) + "\n"

    def ends(self) -> str:
        """A last line of some other shape or dtype."""
        return self.rng.choice(
            (
                "return x @ y",
                "return torch.cat([x, x])",
                "return x.t()",
                "return x.sum(0)",
                "return (x @ y).argmax(1)",
                "return (x > 0).flatten()",
                "return x.double().unsqueeze(0)",
                "return x[1:, ::2].bfloat16()",
                "return F.linear(x, y.t())",
                "return x.mean()",
                "return torch.stack([x, x], 2).permute(2, 0, 1)",
                "return x.reshape(-1)",
                "return x.topk(7, 1)[1]",
            )
        )


Write = Callable[[_Shaped], None]


def _same(shaped: _Shaped) -> None:
    shaped.same()


def _write(shaped: _Shaped) -> None:
    """In-place operators, also through views."""
    rng = shaped.rng
    shaped.lines.append(
        rng.choice(("x.add_(1)", "x = x.mul_(2)", "x[0].fill_(3)", "x.t().relu_()", "x += 1", "x = x.clone().zero_()"))
    )
    if rng.random() < 0.5:
        shaped.lines += [rng.choice(("z = x.t()", "z = x[1:].t()")), "x = x[0] if z.is_contiguous() else x"]


def _factory(shaped: _Shaped) -> None:
    """Tensors that the program makes itself, as large as it likes."""
    rng, n, m = shaped.rng, shaped.rows, shaped.columns
    shaped.lines.append(
        rng.choice(
            (
                f"x = x + torch.ones({n}, {m})",
                f"x = x * torch.arange({m})",
                "x = x + torch.zeros_like(x)",
                "x = x - torch.rand(x.shape)",
                f"x = torch.full(({n}, {m}), 2.0) * x",
                f"x = torch.maximum(x, x.new_ones({m}))",
                "x = torch.where(torch.rand_like(x) > 0.5, x, torch.tensor(0.0))",
            )
        )
    )


def _device(shaped: _Shaped) -> None:
    """Programs that ask where their tensors lie."""
    rng = shaped.rng
    shaped.lines += rng.choice(
        (
            ['if x.device.type != "cpu":', "    return x.new_zeros(1, 2, 3)"],
            ["x = x.t() if x.is_cpu else x", "x = x.t()"],
            ["x = x + torch.ones(1, device=x.device)", "if x.is_meta:", "    x = x[0]"],
            ['x = x if str(x.device) == "cpu" else x.sum()'],
            ["b = torch.ones(3)", "x = x if b.device == x.device and not b.is_meta else x.half()"],
        )
    )


def _by_shape(shaped: _Shaped) -> None:
    """Decisions about shapes and dtypes, which are there."""
    shaped.lines += shaped.rng.choice(
        (
            ["if x.shape[0] > 5:", "    x = x * x.numel()"],
            ["for _ in range(x.dim()):", "    x = x.relu()"],
            ["x = x if x.dtype == torch.float32 else x.long()"],
            ["assert x.is_contiguous() and not x.t().is_contiguous()"],
            ["x = x.view(x.size(0), -1)"],
        )
    )


def _contiguity(shaped: _Shaped) -> None:
    shaped.lines.append("assert x.is_contiguous() and not x.t().is_contiguous()")


def _asks(shaped: _Shaped) -> None:
    """A line that cannot be answered without data."""
    shaped.rng.choice((_asks_a_number, _asks_a_number, _asks_a_shape))(shaped)


def _asks_a_shape(shaped: _Shaped) -> None:
    """A tensor that has as many elements as the data say."""
    texts = ("x.masked_select(x > 0)", "(x > 0).nonzero()", "torch.unique(x)", "x.masked_select(x != x)")
    shaped.lines.append(f"x = {shaped.rng.choice(texts)}")


def _asks_a_number(shaped: _Shaped) -> None:
    """A number or a bool out of the data."""
    shaped.lines += shaped.rng.choice(
        (
            ["if x.sum() > 0:", "    x = x + 1"],
            ["x = x * x.mean().item()"],
            ["x = x / float(x[0, 0])"],
            ["assert torch.equal(x, x)"],
            ["n = int((x > 0).sum())"],
            ["x = x if bool(x.any()) else -x"],
            ["x = x.mean(0) if (x == 0).all() else x"],
        )
    )


def _of(*writers: Write, count: int = 1, more: Sequence[Write] = (_same, _by_shape)) -> Draw:
    def draw(rng: random.Random) -> Case:
        shaped = _Shaped(rng)
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(shaped)
        inputs = ("float32", (shaped.rows, shaped.columns)), ("float32", (shaped.columns, shaped.wide))
        return shaped.text(shaped.ends()), inputs

    return draw


shapes_only = Task(
    id="lab5.shapes_only",
    title="A tensor that has a shape and no data",
    function="shapes_only",
    points=13,
    minutes=50,
    difficulty=5,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program",),
    oracle=_true_shapes_only,
    properties=(
        Property(
            "shapes and dtypes",
            weight=2,
            corners=(_of(_same), _of(_contiguity, count=0), _of(_write)),
            draws=(_of(_same, _write), _of(_same, _by_shape, _write), _of(_write, count=2)),
            why="a model of a hundred billion parameters can be looked at on a laptop",
            slip="strides belong to it: whether a tensor is contiguous, its transpose and its rows depend on them",
            count=9,
        ),
        Property(
            "tensors that the program makes",
            weight=2,
            corners=(_of(_factory), _of(_factory, _factory)),
            draws=(_of(_factory, _same), _of(_factory, _write), _of(_factory, _factory, _by_shape)),
            why="torch.ones has no tensor to go by; only a mode sees it",
            slip="a subclass alone does not see factories: a mode does",
            count=8,
        ),
        Property(
            "programs that ask for the device",
            weight=2,
            corners=(_of(_device), _of(_device, _factory)),
            draws=(_of(_device, _same), _of(_device, _device), _of(_device, _write)),
            why="a tensor on the meta device says so, and a program that asks goes another way",
            slip="the tensor says cpu, and what computes its shape is on meta: two things, one within the other",
            count=8,
        ),
        Property(
            "programs that ask for data",
            weight=2,
            corners=(_of(_asks_a_number), _of(_asks_a_shape, _same), _of(_same, _factory)),
            draws=(
                _of(_asks, _same),
                _of(_asks, _factory),
                _of(_asks, _device),
                _of(_asks, count=2),
                _of(_same, _write),
            ),
            why="an if over a value is where a compiler must break the graph",
            slip="tags say it: data_dependent_output and dynamic_output_shape",
            count=10,
        ),
    ),
    hints=(
        'Compute on the meta device: torch.empty(shape, dtype=dtype, device="meta") has a shape and no memory, and '
        "every operator knows what comes out.",
        'torch.Tensor._make_wrapper_subclass(cls, shape, strides=..., dtype=..., device="cpu") makes a tensor of a '
        "subclass without data. Keep the meta tensor in it, as an attribute.",
        "One TorchDispatchMode does all: take the meta tensors out of the arguments, set a device among them to meta, "
        "call, wrap what comes out. Before that, look at func.tags. Plain tensors go to meta as well.",
    ),
    read="notebook 05, 7. What else is built on this hook",
)
