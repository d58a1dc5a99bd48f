"""Lab 3: its points, learners' slips, other ways of thinking, and what is no thought at all."""

from glassbox import mini
from glassbox.mini import small_autograd
from glassbox.mini.autograd import (
    engine,
    functions_manual,
    functions_nn,
    functions_pointwise,
    functions_reduction,
    gradcheck,
    graph,
    saved_variable,
)
from glassbox.mini.autograd.node import LEAF_FIRST, Node
from glassbox.mini.c10 import expand_utils, layout, pieces
from glassbox.tasks.lab3.counting import counted_by

from .lab3_slips import SLIPS
from .lab3_ways import RIGHT, WRONG

POINTS = {
    "unbroadcast": 6,
    "product_backward": 9,
    "unary_backward": 7,
    "count_dependencies": 6,
    "run_backward": 13,
    "trace_versions": 9,
    "running_product": 11,
    "dual_numbers": 13,
    "reversible_backward": 13,
    "wrong_derivatives": 13,
}
CORE = 6
# The framework's versions are counted in every tensor; the task is what a program sees of them.
CORE_WITHOUT_PIECE = ("trace_versions",)
PIECES = {"product_backward": "mm_mat1_backward", "unary_backward": "sum_backward", "run_backward": "execute"}
WRITTEN = "written_engine"
READ = "notebook 03, "
CALLS = {}


def _tensor(values):
    return mini.tensor(values, dtype=mini.float64)


def _ints(tensor):
    return None if tensor is None else [[int(number) for number in row] for row in tensor.tolist()]


def _product(mat1_backward):
    """mul by the framework's own graph, mm by its two pieces."""

    def product_backward(op, grad, a, b, shapes):
        operands = [
            mini.zeros(*shape, dtype=mini.float64) if value is None else _tensor(value)
            for value, shape in zip((a, b), shapes, strict=True)
        ]
        if op == "mm":
            sides = mat1_backward, pieces.reference("mm_mat2_backward")
            return [
                _ints(side(_tensor(grad), operands[1 - at], tuple(shapes[at]), operands[at].stride(), 1))
                if shapes[at]
                else None
                for at, side in enumerate(sides)
            ]
        for operand, shape in zip(operands, shapes, strict=True):
            operand.requires_grad_(shape is not None)
        (operands[0] * operands[1]).backward(_tensor(grad))
        return [_ints(operand.grad) for operand in operands]

    return product_backward


def _unary(sum_backward):
    def unary_backward(op, grad, saved):
        grad = _tensor(grad)
        if op == "sum":
            shape, dim, keepdim = saved
            return sum_backward(grad, tuple(shape), None if dim is None else (dim,), keepdim).tolist()
        if op == "relu":
            return mini.ops.aten.threshold_backward(grad, _tensor(saved), 0).tolist()
        return mini.ops.aten._softmax_backward_data(grad, _tensor(saved[0]), saved[1], mini.float64).tolist()

    return unary_backward


class _Step(Node):
    saves = False

    def apply(self, grad):
        self.order.append(self.place)
        return tuple(
            [None if edge is None or edge[1] is None or grad is None else grad * edge[1] for edge in self.edges]
        )


class _Leaf(_Step):
    def apply(self, grad):
        self.order.append(self.place)
        if grad is not None:
            self.grads[self.place] = int(grad.item()) + (self.grads[self.place] or 0)
        return ()


def _run(execute):
    def run_backward(nodes, numbers, roots, grads):
        order, grads = [], list(grads)
        made = [_Step() if edges else _Leaf() for edges in nodes]
        for place, (node, edges) in enumerate(zip(made, nodes, strict=True)):
            node.begin()
            node.place, node.edges, node.order, node.grads = place, edges, order, grads
            node.sequence_nr = numbers[place] if edges else LEAF_FIRST
            node.input_metadata = (((), mini.float64, mini.device("cpu")),)
            node.next_edges = tuple(edge and (made[edge[0]], 0) for edge in edges)
        execute([(made[root], 0) for root, _ in roots], [_tensor(float(start)) for _, start in roots], False, False)
        return order, grads

    return run_backward


AS_PIECE = {
    "product_backward": _product,
    "unary_backward": _unary,
    "count_dependencies": lambda piece: lambda roots, edges: counted_by(piece, roots, edges),
    "run_backward": _run,
}

TELLING = ("cumprod", "running_prod", "dual_number", "reversible", "wrong_deriv", "wrong_formula", "tangent_of")
NEAR = (
    *(engine, functions_manual, functions_nn, functions_pointwise, functions_reduction, gradcheck, graph),
    *(saved_variable, expand_utils, layout, small_autograd),
)

SHARES = []


def _zeros(value):
    return [_zeros(each) for each in value] if isinstance(value, tuple | list) else 0


TRIVIAL = {
    "all dimensions": lambda *args: tuple(range(len(args[-1]))),
    "the dimensions that are missing": lambda *args: tuple(range(len(args[1]) - len(args[0]))),
    "the gradient for both": lambda *args: (args[1], args[1]),
    "the other operand": lambda *args: (args[3], args[2]),
    "nothing for both": lambda *args: (None, None),
    "the gradient": lambda *args: args[1],
    "zeros like the gradient": lambda *args: _zeros(args[1]),
    "how many edges each node has": lambda *args: tuple(len(edges) for edges in args[1]),
    "one for each node": lambda *args: (1,) * len(args[1]),
    "the roots alone": lambda *args: ([root for root, _ in args[2]], args[3]),
    "all nodes, the last first": lambda *args: (list(range(len(args[0])))[::-1], args[3]),
    "nothing runs": lambda *args: ((), args[3]),
    "fine, always": lambda *args: ["fine" if step[0] == "backward" else 0 for step in args[0] if len(step) == 2],
    "changed, always": lambda *args: ["changed"],
    "fine once": lambda *args: ["fine"],
    "never changed": lambda *args: [
        {"version": 0, "backward": "fine"}[step[0]] for step in args[0] if step[0] in ("version", "backward")
    ],
    "the row itself, and its gradient": lambda *args: (args[0], args[1]),
    "zeros, and the gradient": lambda *args: (_zeros(args[0]), args[1]),
    "pairs of the inputs": lambda *args: tuple(zip(args[1], args[2], strict=False)),
    "the outputs, with their gradients": lambda *args: (args[1], args[2], _zeros(args[0])),
    "all formulas": lambda *args: [(at, name) for at, entry in enumerate(args[0]) for name, _ in entry[1]],
    "the first formula": lambda *args: [(0, "x")],
}
RIGHT_THERE = set()

# What a slip loses on every seed, and nothing else.
LOST = {
    ("unbroadcast", "a longer shape is cut"): {"shapes that do not fit, and those next to them"},
    ("unary_backward", "relu passes at 0"): {"relu"},
    ("unary_backward", "softmax not turned back"): {"softmax"},
    ("unary_backward", "sum with dimensions swapped"): {"sum"},
    ("product_backward", "mm without transposing the right"): {"mm", "one gradient alone"},
    ("product_backward", "both or nothing"): {"one gradient alone"},
    ("count_dependencies", "None is the last node"): {"edges that lead nowhere, nodes that no root leads to"},
    ("run_backward", "the last root only"): {"several roots, and leaves that have a gradient already"},
    ("trace_versions", "a pass frees nothing"): {"more than one backward pass"},
    ("trace_versions", "data counts with its source"): {"detach and .data"},
    ("running_product", "the zero alone is special"): {"several zeros"},
    ("dual_numbers", "the first at a tie"): {"corners and ties"},
    ("dual_numbers", "detach goes on moving"): {"what stands still"},
    ("reversible_backward", "blocks from the first"): {"several blocks", "layers that are cut off"},
    ("wrong_derivatives", "the gradient is 1"): {"the gradient forgotten, or taken twice"},
}

__all__ = ["RIGHT", "SLIPS", "WRONG"]
