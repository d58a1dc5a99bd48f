"""Lab 5: the operators of a model and their FLOPs (PyTorch: torch/utils/flop_counter.py)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..building import built
from ..model import Case, Property, Task
from .printing import UNPLUGGED

Lines = list[str]


def _true_portrait(text: str) -> Any:
    """Counted by the op log, FLOPs by PyTorch's own FlopCounterMode."""
    from torch.utils.flop_counter import FlopCounterMode

    from ... import xray

    model, x = built(("model", "x"), (text,))
    with xray.op_log(modules=False) as log:
        model(x)
    model, x = built(("model", "x"), (text,))
    with FlopCounterMode(display=False) as counter:
        model(x)
    flops = {str(packet): count for packet, count in counter.get_flop_counts()["Global"].items()}
    return [(name, calls, flops.get(name.rpartition(".")[0], 0)) for name, calls in log.counts().items()]


def _text(rng: random.Random, layers: Sequence[str], shape: Sequence[int]) -> str:
    """A model that is a stack of layers."""
    body = [f"    {layer}," for layer in layers]
    return "\n".join(["model = nn.Sequential(", *body, ")", f"x = torch.rand({', '.join(map(str, shape))})"]) + "\n"


def _net(rng: random.Random, parts: dict[str, str], forward: Sequence[str], shape: Sequence[int]) -> str:
    """A model with a forward of its own."""
    lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        self.{name} = {layer}" for name, layer in parts.items()]
    lines += ["", "    def forward(self, x):", *(f"        {line}" for line in forward), "", "model = Net()"]
    return "\n".join([*lines, f"x = torch.rand({', '.join(map(str, shape))})"]) + "\n"


def _activation(rng: random.Random) -> str:
    return rng.choice(("nn.ReLU()", "nn.GELU()", "nn.Tanh()", "nn.SiLU()", "nn.Sigmoid()"))


def _dense(rng: random.Random) -> Case:
    sizes = [rng.randint(2, 9) for _ in range(rng.randint(2, 5))]
    layers: Lines = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        bias = rng.choice(("", "", ", bias=False"))
        layers += [f"nn.Linear({before}, {after}{bias})", _activation(rng)]
    if rng.random() < 0.5:
        layers.append(f"nn.LayerNorm({sizes[-1]})")
    return (_text(rng, layers, (rng.randint(2, 6), sizes[0])),)


def _convolution(rng: random.Random) -> Case:
    channels, size = rng.choice((2, 4)), rng.choice((8, 10))
    groups = rng.choice((1, 1, 2))
    wide = rng.choice((4, 6, 8))
    kernel = rng.choice((1, 3, 5))
    layers = [
        f"nn.Conv2d({channels}, {wide}, {kernel}, stride={rng.choice((1, 2))}, padding={kernel // 2}, groups={groups})",
        rng.choice((f"nn.BatchNorm2d({wide})", f"nn.GroupNorm(2, {wide})", "nn.Identity()")),
        _activation(rng),
        f"nn.Conv2d({wide}, {rng.randint(2, 5)}, ({rng.choice((1, 2))}, 3), bias={rng.choice((True, False))})",
        rng.choice(("nn.MaxPool2d(2)", "nn.AdaptiveAvgPool2d(1)", "nn.Flatten()")),
    ]
    return (_text(rng, layers, (rng.randint(1, 3), channels, size, size)),)


def _grouped(rng: random.Random) -> Case:
    return _along_a_line(rng, rng.choice((2, 4)))


def _along_a_line(rng: random.Random, groups: int = 0) -> Case:
    """Convolutions over one dimension."""
    channels = rng.choice((2, 4))
    layers = [
        f"nn.Conv1d({channels}, 4, 3, dilation={rng.choice((1, 2))})",
        _activation(rng),
        f"nn.Conv1d(4, 4, {rng.choice((1, 3))}, groups={groups or rng.choice((1, 2, 4))})",
    ]
    return (_text(rng, layers, (rng.randint(1, 3), channels, rng.randint(9, 16))),)


def _attention(rng: random.Random) -> Case:
    width, length, batch = rng.choice((3, 4, 6)), rng.randint(2, 6), rng.randint(2, 4)
    parts = dict.fromkeys(("query", "key", "value"), f"nn.Linear({width}, {width})")
    forward = [
        f"scores = torch.bmm(self.query(x), self.key(x).transpose(1, 2)) / {width}",
        rng.choice(("weights = scores.softmax(-1)", "weights = F.softmax(scores, 2)", "weights = scores.sigmoid()")),
        rng.choice(("return torch.bmm(weights, self.value(x))", "return x + weights @ self.value(x)")),
    ]
    return (_net(rng, parts, forward, (batch, length, width)),)


def _again(rng: random.Random) -> Case:
    """One layer in a loop: the most frequent operator is not the first."""
    width = rng.randint(2, 8)
    parts = {"enter": f"nn.Linear({width}, {width + 1})", "step": f"nn.Linear({width + 1}, {width + 1}, bias=False)"}
    forward = [
        "x = self.enter(x)",
        f"for _ in range({rng.randint(2, 5)}):",
        rng.choice(
            ("    x = x + self.step(x).tanh()", "    x = F.silu(self.step(x)) * x", "    x = self.step(x).cos() - 1")
        ),
        rng.choice(("return x.sum(0)", "return x.relu_()", "return torch.cat([x, x], 1)")),
    ]
    return (_net(rng, parts, forward, (rng.randint(2, 5), width)),)


def _by_value(rng: random.Random) -> Case:
    """What is called depends on the input; views, in-place operators, a parameter that is no layer."""
    width, rows = rng.randint(3, 7), rng.randint(2, 5)
    parts = {"scale": f"nn.Parameter(torch.ones({width}))", "head": f"nn.Linear({width}, {rng.randint(2, 5)})"}
    forward = [
        rng.choice(("y = x * self.scale", "y = self.scale - x", "y = x.clone().mul_(self.scale)")),
        f"if y.mean() > {rng.choice(('-9', '9'))}:",
        rng.choice(("    y = y.exp().log()", "    y = y.flip(0)", "    y = y.roll(1, 0).neg()")),
        rng.choice(("y = y[1:].t().t()", "y = y.view(1, -1).view_as(x)", "y = y.unsqueeze(0).squeeze(0)")),
        "return self.head(y)",
    ]
    return (_net(rng, parts, forward, (rows, width)),)


def _added(rng: random.Random) -> Case:
    """Products with something added to them."""
    return _products(rng, "return torch.baddbmm(y, y, z)")


def _products(rng: random.Random, ending: str = "") -> Case:
    """No layer at all."""
    width, rows, batch = rng.randint(2, 6), rng.randint(2, 6), rng.randint(2, 4)
    parts = {"w": f"nn.Parameter(torch.rand({width}, {rng.randint(2, 6)}))"}
    forward = [
        rng.choice(("y = x @ self.w", "y = torch.einsum('bij,jk->bik', x, self.w)")),
        rng.choice(("z = y.transpose(1, 2) @ y", "z = torch.einsum('bij,bik->bjk', y, y)")),
        ending or rng.choice(("return y @ z", "return torch.baddbmm(y, y, z)", "return z.sum(0) @ z[0]")),
    ]
    return (_net(rng, parts, forward, (batch, rows, width)),)


portrait = Task(
    id="lab5.portrait",
    title="The portrait of a model",
    function="portrait",
    points=10,
    minutes=25,
    difficulty=3,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("model", "x"),
    oracle=_true_portrait,
    properties=(
        Property(
            "stacks of layers",
            weight=2,
            corners=(_dense, _convolution),
            draws=(_dense, _dense, _convolution),
            why="a layer is a few operators, and a stack of layers is a list of them",
            slip="count calls, and put the most frequent operators first",
            count=7,
        ),
        Property(
            "which operators come first",
            weight=2,
            corners=(_again, _attention),
            draws=(_again, _attention, _again),
            why="what a model does most often is seen at the top, not where it begins",
            slip="most calls first; of equally many the one that was called first",
            count=7,
        ),
        Property(
            "FLOPs of products",
            weight=2,
            corners=(_attention, _added),
            draws=(_products, _attention, _products),
            why="nearly all the arithmetic of a model is in its matrix products",
            slip="two FLOPs for each multiplication: 2 * rows * inner * columns, and times the batch for bmm",
            count=7,
        ),
        Property(
            "FLOPs of convolutions",
            weight=2,
            corners=(_convolution, _grouped),
            draws=(_convolution, _along_a_line),
            why="each output element is a sum over the kernel and over the input channels of its group",
            slip="groups, strides and dilation are in the shapes of weight and output already",
            count=7,
        ),
        Property(
            "models whose forward is Python",
            weight=2,
            corners=(_by_value, _again),
            draws=(_by_value, _by_value, _products),
            why="a mode sees what really runs, whatever the forward looks like",
            slip="views, in-place operators and item() are calls as well, of no FLOPs",
            count=7,
        ),
    ),
    hints=(
        "Take the mode of task 1. A dictionary from name to calls keeps the order in which names first came.",
        "mm, addmm, bmm and baddbmm: 2 * (elements of the output) * (the inner size). The inner size is the last of "
        "the first matrix; of addmm and baddbmm, the first argument is what is added.",
        "A convolution: 2 * (elements of the output) * (elements of weight[0]). "
        "sorted is stable, so sorting by -calls keeps the order of the rest.",
    ),
    read="notebook 05, 2. The portrait of ResNet-18",
)
