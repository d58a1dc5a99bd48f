"""Lab 3: how many gradients each node waits for (PyTorch: Engine::compute_dependencies in engine.cpp)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ..model import Case, Draw, Property, Task

Edges = list[list[int | None]]


class Stub:
    """As much of a node as the framework's own count needs."""

    def __init__(self) -> None:
        self.next_edges: list[Any] = []


def counted_by(count: Any, roots: Sequence[int], next_edges: Sequence[Sequence[int | None]]) -> list[int]:
    """What a piece that counts over nodes says of a graph in plain numbers."""
    nodes = [Stub() for _ in next_edges]
    for node, edges in zip(nodes, next_edges, strict=True):
        node.next_edges = [None if to is None else (nodes[to], 0) for to in edges]
    found = count([nodes[root] for root in roots])
    return [found.get(node, 0) for node in nodes]


def _true_dependencies(roots: Sequence[int], next_edges: Sequence[Sequence[int | None]]) -> list[int]:
    from ...mini import pieces  # noqa: F401 - the framework as a whole comes before its parts
    from ...mini.c10.pieces import reference

    return counted_by(reference("count_dependencies"), roots, next_edges)


def _renamed(rng: random.Random, roots: Sequence[int], edges: Edges) -> Case:
    """The same graph with other numbers, so that a node's number says nothing."""
    names = rng.sample(range(len(edges)), len(edges))
    renamed: Edges = [[] for _ in edges]
    for node, successors in enumerate(edges):
        renamed[names[node]] = [None if to is None else names[to] for to in successors]
    return tuple(names[root] for root in roots), tuple(map(tuple, renamed))


def _any(rng: random.Random, count: int, most: int = 3) -> Edges:
    """Each node leads to nodes before it, the first one to nothing."""
    edges: Edges = [[]]
    for node in range(1, count):
        edges.append([rng.randrange(max(0, node - 4), node) for _ in range(rng.randint(1, most))])
    return edges


def _paths_meet(rng: random.Random) -> Case:
    count = rng.randint(5, 11)
    return _renamed(rng, [count - 1], _any(rng, count))


def _ladder(rng: random.Random) -> Case:
    """Two paths from each rung to the next: very many paths, few edges."""
    rungs = rng.randint(4, 9)
    edges: Edges = [[]]
    for _ in range(rungs):
        last = len(edges) - 1
        edges += [[last], [last]]
        edges.append([last + 1, last + 2])
    return _renamed(rng, [len(edges) - 1], edges)


def _chain(rng: random.Random) -> Case:
    count = rng.randint(4, 12)
    edges: Edges = [[]]
    edges += [[node] for node in range(count - 1)]
    at = rng.randrange(1, count)
    edges[at].append(rng.randrange(at))
    return _renamed(rng, [count - 1], edges)


def _same_twice(rng: random.Random) -> Case:
    """x * x: two edges of one node to one other, and nodes between."""
    count = rng.randint(4, 9)
    edges = _any(rng, count, 2)
    for node in rng.sample(range(1, count), 2):
        edges[node] += [rng.choice(edges[node])] * rng.randint(1, 2)
    return _renamed(rng, [count - 1], edges)


def _nothing_wanted(rng: random.Random) -> Case:
    """Some edges lead nowhere."""
    count = rng.randint(5, 10)
    edges = _any(rng, count)
    for node in rng.sample(range(1, count), 3):
        edges[node].insert(rng.randint(0, len(edges[node])), None)
    return _renamed(rng, [count - 1], edges)


def _not_reached(rng: random.Random) -> Case:
    """Nodes lead into the graph that no root leads to: another loss over the same layers."""
    count = rng.randint(4, 8)
    edges = _any(rng, count)
    for _ in range(rng.randint(1, 3)):
        edges.append([rng.randrange(len(edges)) for _ in range(rng.randint(1, 3))])
    return _renamed(rng, [count - 1], edges)


def _roots(kind: str) -> Draw:
    def draw(rng: random.Random) -> Case:
        count = rng.randint(6, 11)
        edges = _any(rng, count)
        if kind == "under another":
            return _renamed(rng, [count - 1, rng.choice([to for to in edges[-1] if to is not None])], edges)
        if kind == "twice":
            return _renamed(rng, [count - 1, count - 2, count - 1], edges)
        return _renamed(rng, rng.sample(range(1, count), rng.randint(2, 3)), edges)

    return draw


count_dependencies = Task(
    id="lab3.count_dependencies",
    title="How many gradients a node waits for",
    function="count_dependencies",
    points=6,
    minutes=15,
    difficulty=2,
    piece="count_dependencies",
    oracle=_true_dependencies,
    properties=(
        Property(
            "where paths meet",
            weight=2,
            corners=(_paths_meet, _ladder, _chain),
            draws=(_paths_meet, _ladder, _chain, _paths_meet),
            why="a node may only run when everything that it is to send on has arrived",
            slip="edges are counted, not paths: look into each node once, however many edges lead to it",
        ),
        Property(
            "several edges from one node to another",
            weight=1,
            corners=(_same_twice, _same_twice),
            draws=(_same_twice,),
            why="x * x has two edges to x, and two gradients arrive there",
            slip="two edges are two gradients, also when both come from one node",
        ),
        Property(
            "edges that lead nowhere, nodes that no root leads to",
            weight=2,
            corners=(_nothing_wanted, _not_reached),
            draws=(_not_reached, _nothing_wanted),
            why="a count that includes an edge of another graph never reaches zero: the node would wait for ever",
            slip="only edges of nodes that a root leads to are counted",
        ),
        Property(
            "several roots",
            weight=1,
            corners=(_roots("under another"), _roots("twice"), _roots("any")),
            draws=(_roots("any"), _roots("under another")),
            why="backward may begin at several losses at once, and one may lie under another",
            slip="a root that another root leads to waits like any other node; being a root is no edge",
        ),
    ),
    hints=(
        "Begin at the roots and go along the edges. What must you remember so that no node is looked into twice?",
        "Keep a list of nodes still to look into and a set of nodes ever put on it.",
        "For every edge of a node that you take from the list: add 1 to its target's count, and put the target on the "
        "list if it was never there.",
    ),
    read="notebook 03, 7. The engine: counts and a queue",
)
