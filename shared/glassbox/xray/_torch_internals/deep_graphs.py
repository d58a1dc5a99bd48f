"""Deep graphs: freeing one whose nodes Python has looked at (torch/csrc/autograd/python_cpp_function.cpp).

PyTorch frees a graph in a loop, but a node that has a Python object is freed inside of the one that led to it, and a
node that once got such an object keeps it. So a chain of some ten thousand nodes that was looked at overflows the stack
when it goes. Here a look at a deep graph leaves word in its nodes: when one goes that has an edge into the next stretch
of the graph, the node at the other end is held until the stack is clear, and is let go then.
"""

from __future__ import annotations

import ctypes
import sys
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

# So many nodes may be freed one inside of the other; each takes about 100 bytes of stack.
STRETCH = 1_000
_KEY = "glassbox: held until the stack is clear"

_api: Any = ctypes.pythonapi
_waiting: deque[Any] = deque()


def _let_go(_: Any) -> int:
    while _waiting:
        _waiting.popleft()
    return 0


_callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_let_go)


class _Held:
    """Lies in a node's metadata, which go before its edges do."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: list[Any]) -> None:
        self.nodes = nodes

    # What it needs is bound here, since at the end of the process modules are emptied first.
    def __del__(
        self, ending: Any = sys.is_finalizing, api: Any = ctypes.pythonapi, own: Any = ctypes.py_object
    ) -> None:
        if ending():
            # Nothing runs any more that could let go of them; the process gives all memory back.
            api.Py_IncRef(own(self.nodes))
            return
        _waiting.extend(self.nodes)
        api.Py_AddPendingCall(_callback, None)


def make_freeable(order: Sequence[Any], edges: Mapping[Any, Sequence[tuple[Any, int]]]) -> None:
    """Prepare a graph that was looked at for being freed; does nothing to one that is not deep.

    order   all its nodes, each before those that its edges lead to
    """
    if len(order) <= 2 * STRETCH:
        return
    depth = dict.fromkeys(order, 0)
    for node in order:
        below = depth[node] + 1
        for to, _ in edges[node]:
            if to is not None and depth[to] < below:
                depth[to] = below
    over: dict[Any, list[Any]] = defaultdict(list)
    for node in order:
        over_to = [to for to, _ in edges[node] if to is not None and depth[to] // STRETCH > depth[node] // STRETCH]
        if over_to:
            over[node] = over_to
    for node, ends in over.items():
        node.metadata.setdefault(_KEY, _Held(list(dict.fromkeys(ends))))
