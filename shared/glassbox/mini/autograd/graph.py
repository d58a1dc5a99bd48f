"""The graph from outside: its edges, its nodes as records, hooks on what is saved (PyTorch: torch/autograd/graph.py).

`nodes(tensor)` walks the backward graph of a tensor and describes each node as a record: figures and tables are made of
those. `steps` runs a backward pass and stops after every node.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...records import Graph, GraphNode, SavedTensor
from ..c10.grad_mode import grad_enabled
from . import python_engine
from .accumulate_grad import AccumulateGrad
from .engine import GraphTask
from .function import FunctionCtx
from .hooks import RemovableHandle
from .node import GradientEdge, Node
from .saved_variable import disable_saved_tensors_hooks, saved_tensors_hooks
from .variable import gradient_edge

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "nodes",
    "ordered_nodes",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "steps",
]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Where the tensor's gradient goes, to be named in grad and backward in the tensor's place.

    RuntimeError for a tensor that no gradient flows to.
    """
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge)


def increment_version(tensors: Any) -> None:
    """Count one in-place change of each tensor, for code that wrote into it where autograd could not see."""
    for tensor in tensors if isinstance(tensors, Sequence) else (tensors,):
        tensor.bump_version()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801 - PyTorch's own name
    """`with save_on_cpu():` what is saved in the block waits in the CPU's memory until it is needed."""

    def __init__(self) -> None:
        super().__init__(lambda tensor: (tensor._device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


class _Handles:
    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> "_Handles":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[[tuple[Any, ...]], None]) -> _Handles:
    """fn(gradients) runs once in each backward pass, when the gradients of all the tensors are there."""
    arrived: dict[int, Any] = {}

    def hook_of(place: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            arrived[place] = grad
            if len(arrived) == len(tensors):
                grads = tuple(arrived[nr] for nr in range(len(tensors)))
                arrived.clear()
                fn(grads)

        return hook

    return _Handles([tensor.register_hook(hook_of(place)) for place, tensor in enumerate(tensors)])


# Records


class _NoNames:
    """What nodes() asks of names, where there are none; glassbox.xray has others."""

    def of(self, tensor: Any) -> str:
        return ""

    def of_outputs(self, node: Node) -> tuple[tuple[int, str], ...]:
        return ()

    def owner_of(self, tensor: Any) -> str | None:
        return None


def nodes(*tensors: Any, names: Any = None) -> Graph:
    """The nodes of the tensors' backward graph, each before those that it hands gradients to, newest first.

    A node's `id` is its place in it. `names` tells variables' names, as glassbox.xray finds them.
    """
    place = {node: nr for nr, node in enumerate(ordered_nodes(*tensors))}
    return Graph(tuple(_record(node, place, names or _NoNames()) for node in place))


def ordered_nodes(*tensors: Any) -> list[Node]:
    """The nodes that nodes() describes, in its order."""
    roots = [edge[0] for edge in map(gradient_edge, tensors) if edge is not None]
    found = _reachable(roots)
    found.sort(key=lambda node: (isinstance(node, AccumulateGrad), -node.sequence_nr))
    return found


def _reachable(roots: Sequence[Node]) -> list[Node]:
    seen = dict.fromkeys(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().next_edges:
            if edge is not None and edge[0] not in seen:
                seen[edge[0]] = None
                stack.append(edge[0])
    return list(seen)


def _record(node: Node, place: dict[Node, int], names: Any) -> GraphNode:
    leaf = isinstance(node, AccumulateGrad)
    variable: Any = node.variable if isinstance(node, AccumulateGrad) else None
    owner = names.owner_of(variable) if leaf else None
    name = names.of(variable) if leaf else ""
    metadata = [((), None, "") if each is None else each for each in node.input_metadata]
    return GraphNode(
        id=place[node],
        name=node.name(),
        sequence_nr=None if leaf else node.sequence_nr,
        edges=tuple(None if edge is None else (place[edge[0]], edge[1]) for edge in node.next_edges),
        outputs=tuple(tuple(shape) for shape, _, _ in metadata),
        saved=tuple(saved_tensors(node, place, names)),
        leaf=None if variable is None else tuple(variable._shape),
        kind=("leaf" if owner is None else "parameter") if leaf else _kind(node),
        variables=((0, name),) if name else names.of_outputs(node),
        module=owner or "",
        dtypes=tuple("" if dtype is None else dtype.name for _, dtype, _ in metadata),
        device=str(metadata[0][2]) if metadata else "",
        values=tuple(_values(node)),
    )


def _kind(node: Node) -> str:
    if isinstance(node, FunctionCtx):
        return "checkpoint" if node.name().startswith("Checkpoint") else "custom"
    return "write" if node.name() == "CopySlices" else ""


def _values(node: Node) -> Iterator[tuple[str, str]]:
    """What a node keeps besides tensors, as text."""
    for name in dir(type(node)):
        if name.startswith("_saved_") and not hasattr(type(node), f"_raw{name}"):
            try:
                yield name.removeprefix("_saved_"), str(getattr(node, name))
            except (AttributeError, RuntimeError):
                continue


def saved_tensors(node: Node, place: dict[Node, int] | None = None, names: Any = None) -> Iterator[SavedTensor]:
    """What a node keeps for its backward step; nothing once that was released."""
    for name in dir(type(node)):
        if not name.startswith("_raw_saved_"):
            continue
        try:
            saved = getattr(node, name)
        except (AttributeError, RuntimeError):
            continue
        many = isinstance(saved, tuple) or hasattr(saved, "items")
        items = getattr(saved, "items", saved) if many else (saved,)
        for nr, item in enumerate(items or ()):
            label = name.removeprefix("_raw_saved_") + (f"[{nr}]" if many else "")
            if getattr(item, "hooks", None) is not None:
                yield SavedTensor(label, (), "", 0, state="packed", packed=type(item.packed[0]).__name__)
            elif hasattr(getattr(item, "tensor", None), "_key_set"):
                yield _saved(label, item, node, place or {}, names or _NoNames())


def _saved(label: str, item: Any, node: Node, place: dict[Node, int], names: Any) -> SavedTensor:
    tensor: Any = item.tensor
    now = tensor._version_counter[0]
    fn, nr = (node, item.output_nr) if item.output_nr >= 0 else (tensor._grad_fn, tensor._output_nr)
    if item.output_nr >= 0:
        kind = "result"
    elif not tensor._requires_grad:
        kind = "constant"
    elif fn is not None:
        kind = "inner"
    else:
        kind = "leaf" if names.owner_of(tensor) is None else "parameter"
        accumulator = tensor._grad_accumulator and tensor._grad_accumulator()
        fn, nr = accumulator, 0
    variable = names.of(tensor)
    if not variable and kind in ("result", "inner"):
        variable = dict(names.of_outputs(fn)).get(nr, "")
    return SavedTensor(
        name=label,
        shape=tuple(tensor._shape),
        dtype=tensor._dtype.name,
        nbytes=tensor.numel() * tensor._dtype.itemsize,
        storage=id(tensor._storage),
        version=item.version,
        kind=kind,
        variable=variable,
        origin=(place[fn], nr) if fn in place else None,
        view=tensor._base is not None,
        state="kept" if now == item.version else "changed",
        now=now,
    )


def steps(tensor: Any, gradient: Any = None, retain_graph: bool = False) -> Iterator[tuple[Node, GraphTask]]:
    """A backward pass from `tensor`, step by step: yields each node when its gradients have been handed on.

    Beside it the GraphTask, whose `ready`, `buffers` and `dependencies` say what is to come.
    """
    gradients = python_engine.initial_gradients((tensor,), gradient)
    edge = get_gradient_edge(tensor)
    task = GraphTask([(edge.node, edge.output_nr)], gradients, retain_graph, create_graph=False)
    run = task.run()
    while True:
        before = grad_enabled.get()
        grad_enabled.set(False)
        try:
            node = next(run, None)
        finally:
            grad_enabled.set(before)
        if node is None:
            return
        yield node, task
