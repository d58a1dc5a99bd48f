"""Folding: a graph too large to read becomes one of runs: nodes that were made one after the other (PyTorch has no
part that draws).

Runs of the order of creation can never form a cycle, however they are cut. First they follow the modules, from the
innermost out; then chains; at last they are just of equal length.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

_CHAIN = 5


@dataclass(frozen=True, slots=True)
class Run:
    """Nodes drawn as one: their numbers, oldest first, and the module that holds them all; "" if none does."""

    nodes: tuple[int, ...]
    module: str = ""


def folded(modules: Sequence[str], links: Sequence[tuple[int, int]], limit: int) -> list[Run]:
    """The nodes 0, 1, ... (oldest first, each after those that it has links from) in at most `limit` runs, as few as
    needed to get below it.

    modules   the path of each node's module; links: (from, to)
    """
    runs = [Run((nr,), module) for nr, module in enumerate(modules)]
    if len(runs) <= limit:
        return runs
    deepest = max((module.count(".") + 1 for module in modules if module), default=0)
    for depth in range(deepest, 0, -1):
        runs = _together([_outer(module, depth) for module in modules])
        if len(runs) <= limit:
            return runs
    chained = _chains(runs, links, len(modules))
    if len(chained) <= limit:
        return chained
    size = -(-len(chained) // limit)
    return [_merged(chained[nr : nr + size]) for nr in range(0, len(chained), size)]


def _together(modules: Sequence[str]) -> list[Run]:
    """Neighbours of one module as one; those of none by themselves."""
    runs: list[Run] = []
    for outer, group in itertools.groupby(range(len(modules)), key=modules.__getitem__):
        nodes = tuple(group)
        runs += [Run(nodes, outer)] if outer else [Run((nr,)) for nr in nodes]
    return runs


def _outer(module: str, depth: int) -> str:
    return ".".join(module.split(".")[:depth]) if module else ""


def _chains(runs: Sequence[Run], links: Sequence[tuple[int, int]], count: int) -> list[Run]:
    """Runs one after the other of which each only leads to the next become one."""
    run_of = [0] * count
    for nr, run in enumerate(runs):
        for node in run.nodes:
            run_of[node] = nr
    into: list[set[int]] = [set() for _ in runs]
    out: list[set[int]] = [set() for _ in runs]
    for source, target in links:
        one, two = run_of[source], run_of[target]
        if one != two:
            out[one].add(two)
            into[two].add(one)
    found: list[Run] = []
    chain: list[Run] = []
    for nr, run in enumerate(runs):
        follows = bool(chain) and out[nr - 1] == {nr} and into[nr] == {nr - 1}
        if not follows:
            found += _closed(chain)
            chain = []
        chain.append(run)
    return found + _closed(chain)


def _closed(chain: list[Run]) -> list[Run]:
    return [_merged(chain)] if len(chain) >= _CHAIN else chain


def _merged(runs: Sequence[Run]) -> Run:
    modules = {run.module for run in runs}
    module = modules.pop() if len(modules) == 1 else ""
    return Run(tuple(node for run in runs for node in run.nodes), module)
