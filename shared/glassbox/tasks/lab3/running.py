"""Lab 3: a backward pass, node by node (PyTorch: Engine::execute and ReadyQueue in engine.cpp)."""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Graph = list[list[tuple[int, int | None] | None]]


@functools.cache
def _step() -> Any:
    """A PyTorch function that gives each input its factor times the gradient, and notes that it ran."""
    import torch

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, note: Any, factors: Any, *inputs: Any) -> Any:
            ctx.note, ctx.factors = note, factors
            ctx.set_materialize_grads(False)
            return torch.zeros((), dtype=torch.float64)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            ctx.note()
            given = [None if grad is None or factor is None else grad * factor for factor in ctx.factors]
            return None, None, *given

    return Step


def _numbered(number: int, make: Callable[[], Any]) -> Any:
    """What `make` makes, its node with this sequence number: a thread of its own begins to count at 0."""
    import torch

    made: list[Any] = []

    def run() -> None:
        one = torch.ones((), requires_grad=True)
        for _ in range(number):
            one.neg()
        made.append(make())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert made[0].grad_fn._sequence_nr() == number
    return made[0]


def _true_run(
    nodes: Sequence[Any], numbers: Sequence[int | None], roots: Sequence[tuple[int, int]], grads: Sequence[int | None]
) -> Any:
    import torch

    order: list[int] = []
    tensors: list[Any] = []
    for place, (edges, number, before) in enumerate(zip(nodes, numbers, grads, strict=True)):
        note = functools.partial(order.append, place)
        if edges:
            inputs = [torch.zeros(()) if edge is None else tensors[edge[0]] for edge in edges]
            factors = [None if edge is None else edge[1] for edge in edges]
            tensors.append(_numbered(number or 0, functools.partial(_step().apply, note, factors, *inputs)))
            continue
        leaf = torch.zeros((), dtype=torch.float64, requires_grad=True)
        if before is not None:
            leaf.grad = torch.tensor(float(before), dtype=torch.float64)
        leaf.register_post_accumulate_grad_hook(lambda _, note=note: note())
        tensors.append(leaf)
    start = [torch.tensor(float(gradient), dtype=torch.float64) for _, gradient in roots]
    torch.autograd.backward([tensors[root] for root, _ in roots], start)
    found = [tensor.grad if not edges else None for tensor, edges in zip(tensors, nodes, strict=True)]
    return order, [None if grad is None else int(grad) for grad in found]


def _canon(case: Case, value: Any) -> Any:
    """Leaves that are ready together run in any order."""
    nodes = case[0]
    order, grads = value
    runs: list[tuple[bool, list[int]]] = []
    for number in order:
        leaf = not nodes[number]
        if runs and runs[-1][0] == leaf:
            runs[-1][1].append(number)
        else:
            runs.append((leaf, [number]))
    return [sorted(run) if leaf else run for leaf, run in runs], grads


def _factor(rng: random.Random) -> int:
    return rng.choice((-3, -2, -1, 1, 2, 3, 5))


def _graph(rng: random.Random, ops: int, reach: int = 4, most: int = 3) -> Graph:
    """Leaves among steps, each step with edges to what was made before it."""
    graph: Graph = [[], []]
    late = rng.sample(range(1, ops), rng.randint(0, 2))
    for op in range(ops):
        if op in late:
            graph.append([])
        before = range(max(0, len(graph) - reach), len(graph))
        graph.append([(rng.choice(before), _factor(rng)) for _ in range(rng.randint(1, most))])
    return graph


def _numbers(rng: random.Random, graph: Graph, threads: int) -> tuple[int | None, ...]:
    """The sequence numbers: rising from step to step in a thread, and different in all; leaves have none of their own.

    With two threads a step may have a smaller number than what it was made of.
    """
    steps = [place for place, edges in enumerate(graph) if edges]
    left = rng.sample(range(2 * len(steps)), len(steps))
    numbers: list[int | None] = [None] * len(graph)
    owners = [rng.randrange(threads) for _ in steps]
    for owner in range(threads):
        mine = [place for place, by in zip(steps, owners, strict=True) if by == owner]
        for place, number in zip(mine, sorted(left[: len(mine)]), strict=True):
            numbers[place] = number
        del left[: len(mine)]
    return tuple(numbers)


def _case(rng: random.Random, graph: Graph, roots: Sequence[int], before: bool = False) -> Case:
    grads = tuple(rng.randint(-20, 20) if before and not edges and rng.random() < 0.7 else None for edges in graph)
    numbers = _numbers(rng, graph, rng.choice((1, 2, 2)))
    return tuple(map(tuple, graph)), numbers, tuple((root, rng.choice((1, 2, 3, -1))) for root in roots), grads


def _from_the_last(make: Callable[[random.Random], Graph]) -> Draw:
    def draw(rng: random.Random) -> Case:
        graph = make(rng)
        return _case(rng, graph, [len(graph) - 1])

    return draw


def _branches(rng: random.Random) -> Graph:
    """Two branches of unequal length from one leaf or two, made step by step in turns, that meet again."""
    graph: Graph = [[], []]
    ends = [0, rng.randint(0, 1)]
    for _ in range(rng.randint(3, 7)):
        side = rng.randrange(2)
        graph.append([(ends[side], _factor(rng))])
        ends[side] = len(graph) - 1
    graph.append([(end, _factor(rng)) for end in rng.sample(ends, 2)])
    return graph


def _skip(rng: random.Random) -> Graph:
    """A residual block: the input goes on beside the steps that it goes through."""
    graph: Graph = [[], [], [(0, _factor(rng)), (1, _factor(rng))]]
    for _ in range(rng.randint(1, 3)):
        start = len(graph) - 1
        for _ in range(rng.randint(1, 2)):
            graph.append([(len(graph) - 1, _factor(rng))])
        pair = [(len(graph) - 1, _factor(rng)), (start, _factor(rng))]
        rng.shuffle(pair)
        graph.append([*pair])
    return graph


def _some(rng: random.Random) -> Graph:
    return _graph(rng, rng.randint(4, 8))


def _wide(rng: random.Random) -> Graph:
    return _graph(rng, rng.randint(4, 7), reach=9)


def _squares(rng: random.Random) -> Graph:
    """Steps that take one thing twice."""
    graph: Graph = [[]]
    for _ in range(rng.randint(2, 5)):
        at = rng.randrange(max(0, len(graph) - 2), len(graph))
        graph.append([(at, _factor(rng)), (at, _factor(rng))])
    return graph


def _with_gaps(rng: random.Random) -> Graph:
    """Edges that no gradient is wanted at, and steps that send nothing along an edge."""
    graph = _some(rng)
    steps = [number for number, edges in enumerate(graph) if edges]
    for number in rng.sample(steps, 2):
        graph[number].insert(rng.randint(0, len(graph[number])), None)
    for number in rng.sample(steps, 2):
        at = next(place for place, edge in enumerate(graph[number]) if edge is not None)
        graph[number][at] = graph[number][at][0], None  # type: ignore[index]
    return graph


def _nothing_arrives(rng: random.Random) -> Graph:
    """A step in the middle gets no gradient, and runs all the same."""
    graph = _branches(rng)
    first, second = graph[-1]
    graph[-1] = [first, (second[0], None)] if rng.random() < 0.5 else [(first[0], None), second]  # type: ignore[index]
    return graph


def _unreached(rng: random.Random) -> Case:
    """Steps after the root, which lead into its graph and have no part in its pass."""
    graph = _some(rng)
    root = len(graph) - 1
    for _ in range(rng.randint(1, 2)):
        graph.append([(rng.randint(0, len(graph) - 1), _factor(rng)) for _ in range(2)])
    return _case(rng, graph, [root])


def _roots(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        graph = _some(rng)
        last = len(graph) - 1
        steps = [number for number, edges in enumerate(graph[:-1]) if edges]
        if kind == "twice":
            return _case(rng, graph, [last, last], before=True)
        if kind == "leaf":
            return _case(rng, graph, [0, last], before=True)
        return _case(rng, graph, [rng.choice(steps), last], before=True)

    return draw


def _grads_before(rng: random.Random) -> Case:
    graph = _branches(rng)
    return _case(rng, graph, [len(graph) - 1], before=True)


run_backward = Task(
    id="lab3.run_backward",
    title="The engine",
    function="run_backward",
    points=13,
    minutes=40,
    difficulty=4,
    piece="execute",
    oracle=_true_run,
    canon=_canon,
    properties=(
        Property(
            "the newest of those that are ready",
            weight=3,
            corners=(_from_the_last(_branches), _from_the_last(_branches), _from_the_last(_wide)),
            draws=(_from_the_last(_branches), _from_the_last(_wide)),
            why="what was made last runs first; but forward may run in several threads, and each has its own numbers",
            slip="ready is who waits for nothing; of those the highest number runs, and leaves before everybody",
        ),
        Property(
            "gradients where paths meet",
            weight=3,
            corners=(_from_the_last(_skip), _from_the_last(_squares), _from_the_last(_some)),
            draws=(_from_the_last(_skip), _from_the_last(_some), _from_the_last(_squares)),
            why="a node that ran on the first gradient would have to run again for the second, and all below it, too",
            slip="what arrives is added up; a node runs once, when all its edges have delivered",
        ),
        Property(
            "edges and gradients that are None",
            weight=3,
            corners=(_from_the_last(_nothing_arrives), _from_the_last(_with_gaps), _unreached),
            draws=(_from_the_last(_with_gaps), _from_the_last(_nothing_arrives), _unreached),
            why="a derivative may be None; who waits for it must learn that nothing comes",
            slip="None is delivered, too: it counts down, adds nothing, and a node that got only None sends only None",
        ),
        Property(
            "several roots, and leaves that have a gradient already",
            weight=2,
            corners=(_roots("under another"), _roots("twice"), _roots("leaf"), _grads_before),
            draws=(_roots("under another"), _grads_before, _roots("leaf"), _roots("twice")),
            why="gradients gather in a leaf until somebody zeroes them: that is how batches are split",
            slip="a root that another leads to waits for it; a leaf adds to what it has",
        ),
    ),
    hints=(
        "Count first what each node waits for (task 4). Keep a dict of gradients that have arrived, and a list of "
        "nodes that wait for nothing.",
        "Take from the list: any leaf first, else the highest number. A leaf adds what arrived to its grad; a step "
        "sends derivative * gradient along each edge.",
        "Whatever is sent, None included, lowers the target's count by one; at zero it joins the list. Roots are put "
        "on the list at the beginning if nothing leads to them; their gradients have arrived before the pass begins.",
    ),
    read="notebook 03, 7. The engine: counts and a queue",
)
