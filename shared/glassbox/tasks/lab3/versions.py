"""Lab 3: which saved values were changed before backward (PyTorch: torch/csrc/autograd/saved_variable.cpp)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Step = tuple[str, ...]


def _true_trace(program: Sequence[Step]) -> list[Any]:
    import torch

    t: dict[str, Any] = {}
    seen: list[Any] = []
    for kind, name, *operands in program:
        given = [t[each] for each in operands]
        if kind in ("parameter", "input"):
            t[name] = torch.ones(2, requires_grad=kind == "parameter")
        elif kind == "add_":
            t[name].add_(1)
        elif kind == "step":
            with torch.no_grad():
                t[name].add_(1)
        elif kind == "version":
            seen.append(t[name]._version)
        elif kind == "backward":
            try:
                t[name].sum().backward()
                seen.append("fine")
            except RuntimeError as error:
                seen.append("changed" if "modified by an inplace operation" in str(error) else "freed")
                break
        elif kind == "data":
            t[name] = given[0].data
        else:
            t[name] = getattr(given[0], kind)(*given[1:])
    return seen


class Writer:
    """Writes a program in which every step but a backward pass goes through.

    wants   the tensors that a gradient flows to; leaves: the parameters among them
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.steps = rng, list[Step]()
        self.wants, self.leaves, self.known = set[str](), set[str](), list[str]()
        self.names = iter(rng.sample("abcdefghijklmnopqrstuvwxyz", 26))

    def make(self, kind: str, *operands: str) -> str:
        name = next(self.names)
        self.steps.append((kind, name, *operands))
        self.known.append(name)
        if kind == "parameter":
            self.leaves.add(name)
        if kind == "parameter" or kind not in ("detach", "data") and self.wants & set(operands):
            self.wants.add(name)
        return name

    def change(self, name: str) -> None:
        """In place; a parameter may only be changed by an optimizer's step, where nothing is recorded."""
        self.steps.append(("step" if name in self.leaves else "add_", name))

    def version(self, name: str) -> None:
        self.steps.append(("version", name))

    def backward(self, name: str) -> None:
        self.steps.append(("backward", name))

    def one(self, *kinds: str) -> str:
        return self.rng.choice(kinds)

    def likely(self, share: float = 0.5) -> bool:
        return self.rng.random() < share


def _program(write: Callable[[Writer], None]) -> Draw:
    def draw(rng: random.Random) -> Case:
        writer = Writer(rng)
        write(writer)
        return (tuple(writer.steps),)

    return draw


def _operand_changed(w: Writer) -> None:
    """An operand of mul, add or sin is changed between forward and backward, or before, or after."""
    x, c = w.make("parameter"), w.make("input")
    y = w.make(w.one("mul", "add"), *w.rng.sample((x, c), 2))
    if w.likely():
        w.change(w.rng.choice((c, y)))
        w.version(y)
    z = w.make("sin", y) if w.likely(0.4) else w.make(w.one("mul", "add"), *w.rng.sample((y, c), 2))
    out = w.make("add", z, x)
    changed = w.rng.choice((x, c, y, z))
    if w.likely(0.7):
        w.change(changed)
    w.version(changed)
    w.backward(out)
    w.change(c)
    w.version(c)


def _frozen(w: Writer) -> None:
    """mul saves only what a wanted gradient needs."""
    x, c, d = w.make("parameter"), w.make("input"), w.make("input")
    e = w.make("mul", *w.rng.sample((c, d), 2))
    y = w.make("mul", *w.rng.sample((x, e), 2))
    w.change(w.rng.choice((x, c, d, e, y)))
    w.version(w.rng.choice((x, c, d, e, y)))
    w.backward(y)
    w.version(e)


def _result_changed(w: Writer) -> None:
    """exp and relu save their result, sin its input."""
    x, c = w.make("parameter"), w.make("input")
    y = w.make("mul", x, c) if w.likely() else w.make("add", x, c)
    z = w.make(w.one("exp", "relu", "sin", "exp"), y)
    w.change(w.rng.choice((y, z, z)))
    out = w.make(w.one("add", "mul"), z, c)
    w.version(z)
    w.version(y)
    w.backward(out)
    w.change(x)
    w.version(x)


def _chain(w: Writer) -> None:
    x = w.make("parameter")
    made = [w.make(w.one("exp", "sin", "relu"), x)]
    for _ in range(w.rng.randint(2, 3)):
        made.append(w.make(w.one("exp", "sin", "relu"), made[-1]))
    changed = w.rng.choice((x, *made))
    w.change(changed)
    for name in w.rng.sample(made, 2):
        w.version(name)
    w.backward(made[-1])


def _no_history(w: Writer) -> None:
    """The same ops on inputs leave nothing behind."""
    x, c = w.make("parameter"), w.make("input")
    e = w.make(w.one("exp", "relu"), c)
    y = w.make("add", *w.rng.sample((x, e), 2))
    w.change(w.rng.choice((e, c)))
    z = w.make("exp", y)
    if w.likely():
        w.change(w.rng.choice((y, z)))
    w.version(w.rng.choice((e, c, y)))
    w.backward(z)
    w.version(z)


def _alias(w: Writer) -> None:
    """A second name for the same numbers: detach shares the version, data has its own."""
    x, c = w.make("parameter"), w.make("input")
    y = w.make(w.one("add", "mul"), *w.rng.sample((x, c), 2))
    if w.likely():
        w.change(c if w.likely(0.3) else y)
    z = w.make(w.one("exp", "sin", "relu"), y)
    source = w.rng.choice((x, c, y, z))
    other = w.make(w.one("detach", "data"), source)
    if w.likely(0.4):
        other = w.make(w.one("detach", "data"), other)
    w.change(other if w.likely(0.8) else source)
    w.version(source)
    w.version(other)
    w.backward(z)
    w.version(other)


def _alias_of_input(w: Writer) -> None:
    x, c = w.make("parameter"), w.make("input")
    w.change(c)
    d = w.make(w.one("detach", "data"), c)
    w.version(d)
    y = w.make("mul", *w.rng.sample((x, d), 2))
    w.change(w.rng.choice((c, d, c)))
    w.version(d)
    w.version(c)
    w.backward(y)
    w.version(y)


def _two_passes(kind: str) -> Callable[[Writer], None]:
    def write(w: Writer) -> None:
        x, c = w.make("parameter"), w.make("input")
        shared = w.make(kind, x) if kind in ("exp", "sin", "relu") else w.make(kind, *w.rng.sample((x, c), 2))
        first = w.make(w.one("add", "mul", "add"), *w.rng.sample((shared, c), 2))
        second = w.make(w.one("add", "mul", "add"), *w.rng.sample((shared, x), 2))
        apart = w.make("mul", c, x)
        passes = [first, second, apart]
        if w.likely(0.3):
            passes.append(w.rng.choice(passes))
        w.rng.shuffle(passes)
        for name in passes:
            w.backward(name)
            w.version(w.rng.choice((x, shared, c)))

    return write


def _training(w: Writer) -> None:
    """Forward, backward, step; sometimes the step comes before the second loss has gone backward."""
    x, c = w.make("parameter"), w.make("parameter")
    for _ in range(2):
        hidden = w.make(w.one("mul", "add"), *w.rng.sample((x, c), 2))
        loss = w.make(w.one("exp", "sin", "relu"), hidden)
        late = w.make(w.one("mul", "add", "add"), x, c)
        w.backward(loss)
        w.change(x)
        if w.likely(0.3):
            late = w.make(w.one("mul", "add"), x, c)
        if w.likely(0.3):
            w.change(c)
        w.version(w.rng.choice((x, c)))
        w.backward(late)


trace_versions = Task(
    id="lab3.trace_versions",
    title="Saved values that were changed",
    function="trace_versions",
    points=9,
    minutes=35,
    difficulty=4,
    oracle=_true_trace,
    properties=(
        Property(
            "operands that were saved, and operands that were not",
            weight=2,
            corners=(_program(_operand_changed), _program(_frozen)),
            draws=(_program(_operand_changed), _program(_frozen)),
            why="mul needs the other operand where a gradient is wanted, add needs none: only what is saved can spoil",
            slip="a change counts if it comes after the saving and before the backward pass",
            count=18,
        ),
        Property(
            "results that were saved",
            weight=2,
            corners=(_program(_result_changed), _program(_chain), _program(_no_history)),
            draws=(_program(_result_changed), _program(_chain), _program(_no_history)),
            why="exp and relu keep their result, so a change of the result is what they cannot bear",
            slip="exp and relu do not mind a change of their input, sin does not mind one of its result",
            count=18,
        ),
        Property(
            "detach and .data",
            weight=2,
            corners=(_program(_alias), _program(_alias_of_input)),
            draws=(_program(_alias), _program(_alias), _program(_alias_of_input)),
            why="a change through detach() is caught; one through .data is not, and the gradient is silently wrong",
            slip="detach shares the version counter with its source; data begins a new one at 0",
            count=18,
        ),
        Property(
            "more than one backward pass",
            weight=2,
            corners=(*(_program(_two_passes(kind)) for kind in ("exp", "add", "mul")), _program(_training)),
            draws=(_program(_two_passes("relu")), _program(_training), _program(_two_passes("add"))),
            why="a pass frees what its nodes saved; a graph of adds saved nothing and can be walked again",
            slip="only a node that had saved something and ran in an earlier pass is freed; others do not mind",
            count=18,
        ),
    ),
    hints=(
        "Give each tensor a version counter (a list of one int that aliases can share), and each recorded op a node: "
        "what it saved with which version, and the nodes of its operands.",
        "backward walks the nodes under the tensor. A saved value whose counter has moved on means changed; a node "
        "whose saved values are gone means freed.",
        "add_ on a tensor with a node leaves a new node that saves nothing and leads to the old one. mul saves an "
        "operand only if the other one wants a gradient.",
    ),
    read="notebook 03, 6. Versions: a saved value that was changed",
)
