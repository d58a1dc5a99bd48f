"""Lab 5: a mode that prints every operator (PyTorch: torch/utils/_python_dispatch.py, torch/utils/_debug_mode)."""

from __future__ import annotations

from ..building import built
from ..model import Property, Task
from .drafting import IN_PLACE, Draft, pointwise, product, program, reduction, view

UNPLUGGED = (
    "glassbox",
    "torchvision",
    "torch.utils.flop_counter",
    "torch.utils._debug_mode",
    "torch.testing._internal.logging_tensor",
    "torch._subclasses",
    "torch.fx.experimental.proxy_tensor",
    "functorch",
)
"""The instruments, and what of PyTorch would do the work of a task."""


def _true_op_lines(text: str) -> list[str]:
    from ... import xray

    (run,) = built(("program",), (text,))
    with xray.op_log(modules=False) as log:
        run()
    return [
        " ".join([call.name, *(each.type() for each in call.inputs), "->", *(each.type() for each in call.outputs)])
        for call in log
    ]


def _several_in(draft: Draft) -> None:
    draft.rng.choice((_listed, _listed, _in_a_row))(draft)


def _listed(draft: Draft) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    other = draft.fresh(rows, columns)
    if draft.rng.random() < 0.5:
        draft.let(f"torch.cat([{one}, {other}, {one}], 1)", (rows, 3 * columns))
    else:
        draft.let(f"torch.stack([{other}, {one}])", (2, rows, columns))


def _in_a_row(draft: Draft) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    other = draft.fresh(rows, columns)
    text, shape = draft.rng.choice(
        (
            (f"torch.where({one} > 0, {other}, {one})", (rows, columns)),
            (f"torch.addcmul({other}, {one}, {one}, value=2)", (rows, columns)),
            (f"torch.block_diag({one}, {other})", (2 * rows, 2 * columns)),
        )
    )
    draft.let(text, shape)


def _several_out(draft: Draft) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    rng = draft.rng
    draft.let(
        *rng.choice(
            (
                (f"{one}.max(0)[0]", (columns,)),
                (f"{one}.sort(1)[0]", (rows, columns)),
                (f"{one}.unbind(1)[1]", (rows,)),
                (f"{one}.split(1)[0]", (1, columns)),
                (f"{one}.topk(2, 1)[0]", (rows, 2)),
                (f"torch.var_mean({one}, 0)[0]", (columns,)),
                (f"{one}.aminmax(dim=1)[0]", (rows,)),
            )
        )
    )


def _turned(draft: Draft) -> None:
    """The input has another shape afterwards; what was there first is what went in."""
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    copy = draft.let(f"{one}.clone()", (rows, columns))
    how, shape = draft.rng.choice(
        (("t_()", (columns, rows)), ("unsqueeze_(0)", (1, rows, columns)), ("swapaxes_(0, 1)", (columns, rows)))
    )
    draft.lines.append(f"{copy}.{how}")
    draft.shapes[copy] = shape


def _in_place(draft: Draft) -> None:
    one = draft.any(2)
    copy = draft.let(f"{one}.clone()", draft.shapes[one])
    how = draft.rng.choice(IN_PLACE)
    draft.lines.append(draft.rng.choice((f"{copy}.{how}()", f"{copy} += {one}", f"{copy}[0] *= 3", f"{copy}.fill_(2)")))


def _backward(draft: Draft) -> None:
    rng = draft.rng
    rows, columns = draft.size(2)
    weight = draft.let(f"torch.ones({rows}, {columns}, requires_grad=True)", (rows, columns))
    inner = rng.choice(
        (f"{weight} * 3", f"{weight}.tanh()", f"{weight} @ torch.ones({columns}, 2)", f"{weight} + {weight}")
    )
    draft.lines.append(f"({inner}).{rng.choice(('sum()', 'mean()', 'square().sum()'))}.backward()")
    del draft.shapes[weight]


def _values(draft: Draft) -> None:
    """What gives a number instead of a tensor."""
    one = draft.any()
    draft.lines.append(
        draft.rng.choice(
            (f"float({one}.sum())", f"{one}.mean().item()", f"bool(({one} > 1).all())", f"torch.equal({one}, {one})")
        )
    )


def _dtypes(draft: Draft) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    draft.lines.append(
        draft.rng.choice(
            (
                f"{one}.to(torch.bfloat16) * 2",
                f"{one}.argmax({draft.rng.randint(0, 1)}) + 1",
                f"({one} > 0) & ({one} < 1)",
                f"{one}.double().sum(0)",
                f"torch.arange({rows}) * torch.arange({rows}, dtype=torch.int32)",
                f"{one}.half() + {one}",
            )
        )
    )


op_lines = Task(
    id="lab5.op_lines",
    title="A mode that prints every operator",
    function="op_lines",
    points=9,
    minutes=25,
    difficulty=2,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program",),
    oracle=_true_op_lines,
    properties=(
        Property(
            "pointwise operators, products, reductions",
            weight=2,
            corners=(program(pointwise), program(product), program(reduction), program(view)),
            draws=(program(more=(pointwise, product, reduction, view), count=5),),
            why="what you wrote is a program of operators, and here is its list",
            slip="the tensors that went in stand before the arrow, those that came out behind it",
            count=8,
        ),
        Property(
            "several tensors in, several out",
            weight=2,
            corners=(program(_listed), program(_in_a_row), program(_several_out)),
            draws=(program(_several_in, _several_out, more=(pointwise, view), count=2),),
            why="cat takes a list of tensors, max gives two, unbind a list of them",
            slip="tensors also lie within the lists among the arguments, and within what an operator returns",
            count=8,
        ),
        Property(
            "operators that write to their input",
            weight=2,
            corners=(program(_turned), program(_in_place, _turned)),
            draws=(program(_turned, _in_place, more=(pointwise, view), count=2),),
            why="t_ and its like give their input another shape: what went in is gone once the call is over",
            slip="look at the inputs before the call, not after it",
            count=8,
        ),
        Property(
            "backward, numbers and other dtypes",
            weight=2,
            corners=(program(_backward), program(_values), program(_dtypes)),
            draws=(
                program(_backward, _dtypes, more=(pointwise, _values), count=1),
                program(_values, _dtypes, more=(_dtypes, view), count=2),
            ),
            why="backward is operators as well, and item() is the one that waits for a value",
            slip="a number or a bool that comes out is no tensor; nothing stands behind the arrow then",
            count=8,
        ),
    ),
    hints=(
        "A class that inherits from TorchDispatchMode needs one method, "
        "__torch_dispatch__(self, func, types, args=(), kwargs=None). "
        "It makes the call itself, and returns what came out.",
        "Write a helper that yields all tensors of a value: the value itself, or those within a list, tuple or dict.",
        "Make the words of the inputs first, then make the call, then the words of what came out; "
        "str(func) is the operator's name.",
    ),
    read="notebook 05, 1. A mode that prints every operator",
)
