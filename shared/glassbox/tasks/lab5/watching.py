"""Lab 5: one layer, watched by a hook (PyTorch: torch/nn/modules/module.py, register_forward_hook)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..building import built
from ..model import Case, Draw, Property, Task
from .printing import UNPLUGGED

DIGITS = 3


@lru_cache(4096)
def _seen(text: str, path: str) -> tuple[Any, str | None]:
    """(the layer's calls, the name of what the model raised), mean and std as they are."""
    from ... import xray

    model, x = built(("model", "x"), (text,))
    raised: str | None = None

    def once() -> None:
        nonlocal raised
        try:
            model(x)
        except Exception as problem:
            raised = type(problem).__name__

    observed = xray.observe(model.get_submodule(path), once)
    calls = tuple(
        tuple((one.shape, one.mean, one.std, bool(one.nan)) for one in call.outputs)
        for call in observed
        if not call.raised
    )
    return calls, raised


def _true_watch_layer(text: str, path: str) -> Any:
    calls, raised = _seen(text, path)
    # The second number is how many hooks are left.
    return (_rounded(calls), raised), 0


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # A mean of nothing but zeros may be -0.0.
        return round(value, DIGITS) + 0.0 if math.isfinite(value) else value
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _numbers(value: Any) -> list[float]:
    if isinstance(value, list | tuple):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, float) else []


def _far_from_the_edge(draw: Draw) -> Draw:
    """No number so close to where rounding turns that another order of adding would turn it."""

    def drawn(rng: random.Random) -> Case:
        while True:
            case = draw(rng)
            steps = [abs(number) * 10**DIGITS % 1 for number in _numbers(_seen(*case))]
            if all(abs(step - 0.5) > 0.01 for step in steps):
                return case

    return drawn


def _case(rng: random.Random, lines: Sequence[str], shape: Sequence[int], path: str) -> Case:
    whole = [
        *lines,
        f"x = torch.randn({', '.join(map(str, shape))}) * {rng.randint(50, 200) / 100}",
        "model.after = lambda: hooks(model)  # how many are left when you are done",
    ]
    return "\n".join(whole) + "\n", path


def _class(parts: dict[str, str], forward: Sequence[str], name: str = "Net") -> list[str]:
    lines = [f"class {name}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        self.{name} = {layer}" for name, layer in parts.items()]
    return [*lines, "", "    def forward(self, x):", *(f"        {line}" for line in forward), ""]


def _stack(rng: random.Random) -> Case:
    """A layer somewhere in a stack, perhaps in a stack within it."""
    sizes = [rng.randint(2, 7) for _ in range(4)]
    act = rng.choice(("ReLU", "Tanh", "GELU", "Sigmoid"))
    inner = f"nn.Sequential(nn.Linear({sizes[1]}, {sizes[2]}), nn.{act}(), nn.LayerNorm({sizes[2]}))"
    lines = [
        "model = nn.Sequential(",
        f"    nn.Linear({sizes[0]}, {sizes[1]}),",
        f"    nn.{act}(),",
        f"    {inner},",
        f"    nn.Linear({sizes[2]}, {sizes[3]}),",
        ")",
    ]
    return _case(rng, lines, (rng.randint(2, 6), sizes[0]), rng.choice(("0", "1", "2", "2.0", "2.1", "2.2", "3")))


def _image(rng: random.Random) -> Case:
    channels, wide = rng.randint(1, 3), rng.choice((2, 4))
    parts = {
        "stem": f"nn.Conv2d({channels}, {wide}, 3, padding=1)",
        "norm": rng.choice((f"nn.BatchNorm2d({wide})", f"nn.GroupNorm(2, {wide})")),
        "pool": rng.choice(("nn.MaxPool2d(2)", "nn.AvgPool2d(2)", "nn.AdaptiveAvgPool2d(1)")),
    }
    forward = [
        rng.choice(("y = F.relu(self.norm(self.stem(x)))", "y = self.norm(self.stem(x)).relu()")),
        "return self.pool(y)",
    ]
    lines = [*_class(parts, forward), "model = Net()"]
    return _case(rng, lines, (rng.randint(1, 3), channels, 6, 6), rng.choice((*parts, "")))


def _again(rng: random.Random) -> Case:
    """The same layer several times, or not at all."""
    width = rng.randint(2, 6)
    parts = {"step": f"nn.Linear({width}, {width})", "act": "nn.Tanh()", "spare": f"nn.Linear({width}, 2)"}
    forward = [f"for _ in range({rng.randint(2, 4)}):", "    x = x + self.act(self.step(x))", "return x"]
    path = rng.choice(("step", "act", "step", "act", "spare"))
    return _case(rng, [*_class(parts, forward), "model = Net()"], (rng.randint(2, 5), width), path)


def _listed(rng: random.Random) -> Case:
    """Tensors in a list."""
    return _several(rng, rng.choice(("[x * 2, x.argmax(1)]", "(x, (x.cos(), [x.sin()]))", "[x.neg()]")))


def _several(rng: random.Random, two: str = "") -> Case:
    """A layer that gives several tensors, some of them further in."""
    listed, width, wide = bool(two), rng.randint(2, 5), rng.randint(2, 5)
    two = two or rng.choice(
        ("x.max(1)", "(x, x.sum(0))", "[x * 2, x.argmax(1)]", "(x, (x.cos(), [x.sin()]))", "(x, 3, None)")
    )
    if not listed and rng.random() < 0.4:
        kind = rng.choice(("LSTM", "GRU"))
        lines = [*_class({"rnn": f"nn.{kind}({width}, {wide})"}, ["return self.rnn(x)[0]"]), "model = Net()"]
        return _case(rng, lines, (rng.randint(2, 5), width), "rnn")
    lines = [
        *_class({}, [f"return {two}"], "Two"),
        *_class({"two": "Two()"}, ["return self.two(x)[0]"]),
        "model = Net()",
    ]
    return _case(rng, lines, (rng.randint(2, 5), width), "two")


def _infinite(rng: random.Random) -> Case:
    """Infinities, and no NaN."""
    return _broken(rng, rng.choice(("(x * 200).exp()", "x.abs().sub(0.2).relu().log()")))


def _nothing_finite(rng: random.Random) -> Case:
    return _broken(rng, rng.choice(("x * float('nan')", "x.abs() / 0")))


def _broken(rng: random.Random, how: str = "") -> Case:
    """Numbers that are none: some, all, or infinite ones."""
    width = rng.randint(2, 6)
    path = "1" if how else rng.choice(("1", "1", "2", "0"))
    how = how or rng.choice(
        ("x.log()", "x / 0", "x.sqrt() * x", "x * float('nan')", "(x * 200).exp()", "x.acos()", "x.relu() / x.relu()")
    )
    lines = [*_class({}, [f"return {how}"], "Odd"), f"model = nn.Sequential(nn.Linear({width}, 4), Odd(), nn.ReLU())"]
    return _case(rng, lines, (rng.randint(2, 5), width), path)


def _whole(rng: random.Random) -> Case:
    """Integers and bools, and too few numbers for a spread."""
    rows, columns = rng.randint(1, 4), rng.randint(2, 5)
    how = rng.choice(
        ("x.argmax(1)", "x > 0", "x.sum()", "x[:0]", "x[0, 0]", "x.round().long()", "x.bfloat16()", "x.double()")
    )
    lines = [*_class({}, [f"return {how}"], "Odd"), "model = nn.Sequential(Odd(), nn.Identity())"]
    return _case(rng, lines, (rows, columns), rng.choice(("0", "1")))


def _raising_late(rng: random.Random) -> Case:
    """After the layer has run."""
    return _raising(rng, "raise ValueError")


def _raising(rng: random.Random, middle: str = "") -> Case:
    """The model raises: after the layer, in it, or before it."""
    width = rng.randint(2, 6)
    error = rng.choice(("ValueError", "KeyError", "RuntimeError", "IndexError"))
    parts = {"first": f"nn.Linear({width}, {width})", "last": f"nn.Linear({width}, 2)"}
    where = "first" if middle else rng.choice(("first", "first", "last"))
    middle = middle or rng.choice(
        (f"raise {error}('no')", "x = x @ x.new_ones(1, 3, 77)", f"if x.numel() > {rng.choice((0, 99))}: raise {error}")
    )
    forward = [rng.choice(("x = self.first(x)", "x = self.first(self.first(x))")), middle, "return self.last(x)"]
    return _case(rng, [*_class(parts, forward), "model = Net()"], (rng.randint(2, 5), width), where)


def _draws(*made: Callable[[random.Random], Case]) -> tuple[Draw, ...]:
    return tuple(_far_from_the_edge(each) for each in made)


def _canon(case: Case, value: Any) -> Any:
    return _rounded(value)


watch_layer = Task(
    id="lab5.watch_layer",
    title="One layer, watched by a hook",
    function="watch_layer",
    points=10,
    minutes=25,
    difficulty=3,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("model", "x"),
    oracle=_true_watch_layer,
    canon=_canon,
    properties=(
        Property(
            "one call of one layer",
            weight=2,
            corners=_draws(_stack, _image),
            draws=_draws(_stack, _image),
            why="what a layer sees is what it was trained for, or not",
            slip="the path may lead several levels down, or be empty: the model itself",
            count=7,
        ),
        Property(
            "several calls, several tensors",
            weight=2,
            corners=_draws(_again, _several, _listed),
            draws=_draws(_several, _again, _several),
            why="a shared layer runs several times, and an LSTM gives a tuple within a tuple",
            slip="one entry for each call, and in it one for each tensor, however far in it lies",
            count=8,
        ),
        Property(
            "NaN, infinities, integers and nothing",
            weight=2,
            corners=_draws(_infinite, _infinite, _nothing_finite, _broken, _whole),
            draws=_draws(_broken, _whole, _broken),
            why="one NaN makes every mean NaN; the finite values still tell what the rest is like",
            slip="mean and std are those of the finite values, correction=0; without any they are None",
            count=9,
        ),
        Property(
            "models that raise",
            weight=2,
            corners=_draws(_raising_late, _raising, _again),
            draws=_draws(_raising, _raising, _again),
            why="a hook that stays behind watches the next run as well, and the one after that",
            slip="remove the hook also when the model raises, and keep what was seen until then; "
            "the last number is how many hooks are left",
            count=8,
        ),
    ),
    hints=(
        "model.get_submodule(path) finds the layer; layer.register_forward_hook(hook) returns a handle with remove().",
        "The hook is called as hook(module, inputs, output) after each call. Let it append to a list and return None.",
        "values = t.detach().double(); values[values.isfinite()] are the finite ones. "
        "Put handle.remove() into a finally.",
    ),
    read="notebook 05, 3. One layer, watched by a hook",
)
