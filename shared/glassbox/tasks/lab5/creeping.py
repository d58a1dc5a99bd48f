"""Lab 5, extension: where float64 comes from (PyTorch: ATen/native/TypeProperties.cpp, c10/core/DefaultDtype.cpp)."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..building import run, steady
from ..model import Case, Draw, Property, Task
from .drafting import UNARY, Draft
from .printing import UNPLUGGED

CALLS = {
    **dict.fromkeys(("double", "to", "type", "type_as", "softmax", "log_softmax"), "aten._to_copy.default"),
    **{name: f"aten.{name}.default" for name in ("full", "zeros", "ones", "eye", "arange", "linspace", "rand")},
    **{
        name: f"aten.{name}.default"
        for name in ("zeros_like", "rand_like", "new_ones", "sum", "mean", "cumsum", "prod")
    },
    **dict.fromkeys(("add", "mul", "sub"), ""),
    "scalar_tensor": "aten.scalar_tensor.default",
}
"""Which operator makes a float64 tensor where a line calls this."""
OPERATORS = {ast.Add: "aten.add.Tensor", ast.Sub: "aten.sub.Tensor", ast.Mult: "aten.mul.Tensor"}


def _true_float64_sources(text: str) -> Any:
    """Reads the program as text, line by line, and looks at the dtypes of what its names hold."""
    import torch

    names = run(text)
    outside = set(names)
    body = ast.parse(text).body[-1]
    assert isinstance(body, ast.FunctionDef)
    found = []
    with steady():
        for statement in body.body[:-1]:
            assert isinstance(statement, ast.Assign)
            (target,), value = statement.targets, statement.value
            assert isinstance(target, ast.Name)
            given = _operands(value)
            made = [names[name] for name in given if name not in outside and torch.is_tensor(names[name])]
            exec(compile(ast.Module([statement], []), "", "exec"), names)
            result = names[target.id]
            parts = list(result.parameters()) if isinstance(result, torch.nn.Module) else [result]
            if not any(one.dtype == torch.float64 for one in made) and parts[0].dtype == torch.float64:
                found.append((statement.lineno, _operator(value)))
            outside.discard(target.id)
    return found


def _operands(value: ast.expr) -> list[str]:
    """Names of what an operator gets; of to(other) and type_as(other) only the first."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "type_as"):
        value = value.func.value
    return [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]


def _operator(value: ast.expr) -> str:
    if isinstance(value, ast.BinOp):
        return OPERATORS[type(value.op)]
    assert isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    return CALLS[value.func.attr]


Write = Callable[[Draft], None]
F64 = "torch.float64"


def _cast(draft: Draft) -> None:
    one = draft.any(2)
    _double(
        draft,
        draft.rng.choice((f"{one}.double()", f"{one}.to({F64})", f"{one}.type({F64})", f"{one}.to(dtype={F64})")),
        draft.shapes[one],
    )


def _inside_an_operator(draft: Draft) -> None:
    """A dtype that is an argument of something else."""
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    text, shape = draft.rng.choice(
        (
            (f"{one}.sum(dtype={F64})", ()),
            (f"{one}.mean(dtype={F64})", ()),
            (f"{one}.cumsum(0, dtype={F64})", (rows, columns)),
            (f"{one}.prod(dtype={F64})", ()),
            (f"F.softmax({one}, 1, dtype={F64})", (rows, columns)),
            (f"F.log_softmax({one}, 0, dtype={F64})", (rows, columns)),
            (f"torch.zeros_like({one}, dtype={F64})", (rows, columns)),
            (f"{one}.new_ones({rows}, {columns}, dtype={F64})", (rows, columns)),
        )
    )
    _double(draft, text, shape)


def _factory(draft: Draft) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    text, shape = draft.rng.choice(
        (
            (f"torch.full(({rows}, {columns}), 0.5, dtype={F64})", (rows, columns)),
            (f"torch.zeros({rows}, {columns}, dtype={F64})", (rows, columns)),
            (f"torch.linspace(0, 1, {columns}, dtype={F64})", (columns,)),
            (f"torch.arange({columns}, dtype={F64})", (columns,)),
            (f"torch.scalar_tensor(0.1, dtype={F64})", ()),
            (f"torch.eye({rows}, dtype={F64})", (rows, rows)),
        )
    )
    _double(draft, text, shape)


def _layer(draft: Draft) -> None:
    """A whole layer in float64: its weight alone, made by PyTorch's own Python."""
    name = draft.let(f"nn.Linear({draft.rng.randint(2, 6)}, 3).double()", ())
    del draft.shapes[name]


def _double(draft: Draft, text: str, shape: Sequence[int]) -> None:
    name = draft.let(text, tuple(shape))
    del draft.shapes[name]
    _doubles(draft)[name] = tuple(shape)


def _doubles(draft: Draft) -> dict[str, Any]:
    if not hasattr(draft, "doubles"):
        draft.doubles = {}  # type: ignore[attr-defined]
    doubles: dict[str, Any] = draft.doubles  # type: ignore[attr-defined]
    return doubles


def _spread(draft: Draft) -> None:
    """float64 goes on, goes back, or goes nowhere: no source."""
    rng, doubles = draft.rng, _doubles(draft)
    if not doubles:
        rng.choice((_cast, _factory, _inside_an_operator))(draft)
    name = rng.choice(list(doubles))
    shape = doubles[name]
    u = rng.choice(UNARY)
    if rng.random() < 0.3:
        draft.let(f"{name}.float()", shape)
    elif shape == () and rng.random() < 0.7:
        # A float64 tensor without dimensions leaves a float32 matrix as it is.
        one = draft.any(2)
        draft.let(f"{one} * {name}", draft.shapes[one])
    else:
        _double(draft, rng.choice((f"{name}.{u}()", f"{name} * 2", f"{name} + {name}", f"torch.{u}({name})")), shape)


def _meeting(draft: Draft) -> None:
    """float64 meets float32 and wins; it came in before."""
    one = draft.any(2)
    other = draft._free.pop()
    draft.lines.append(f"{other} = {one}.double()")
    _double(draft, draft.rng.choice((f"{one} + {other}", f"{other} - {one}", f"{one} * {other}")), draft.shapes[one])


def _as_another(draft: Draft) -> None:
    """A cast to what another tensor has: the other one does not go into the operator."""
    one = draft.any(2)
    name = draft._free.pop()
    draft.lines.append(f"{name} = torch.ones(2, dtype={F64})")
    _double(draft, draft.rng.choice((f"{one}.to({name})", f"{one}.type_as({name})")), draft.shapes[one])


def _plain(draft: Draft) -> None:
    """No float64 at all, though it looks like it."""
    one = draft.any(2)
    u = draft.rng.choice(UNARY)
    draft.let(
        draft.rng.choice(
            (f"{one} * 0.1", f"{one}.{u}()", f"torch.full_like({one}, 0.5)", f"{one}.long() / 3", f"{one} / 7.0")
        ),
        draft.shapes[one],
    )


def _outside(draft: Draft) -> None:
    """A float64 tensor that was there before the program ran."""
    one = draft.any(2)
    a, b = draft.rng.choice(((one, "TABLE"), ("TABLE", one), (one, "TABLE")))
    _double(draft, f"{a} {draft.rng.choice('+-*')} {b}", draft.shapes[one])


def _outside_number(draft: Draft) -> None:
    """One without dimensions: it changes no dtype of what has some."""
    one = draft.any(2)
    draft.let(f"{one} {draft.rng.choice('+-*')} SCALE", draft.shapes[one])


def _of(*writers: Write, count: int = 0, more: Sequence[Write] = (_spread, _plain), head: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        rows, columns = draft.size(2)
        draft.fresh(rows, columns)
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft)
        lines = [
            f"TABLE = torch.ones({columns}, dtype={F64})",
            f"SCALE = torch.tensor({rng.randint(2, 9)}.5, dtype={F64})",
        ]
        text = draft.text("return None")
        return ("\n".join([*lines, "", text]) if head else text,)

    return draw


float64_sources = Task(
    id="lab5.float64_sources",
    title="Where float64 crept in",
    function="float64_sources",
    points=11,
    minutes=30,
    difficulty=3,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program",),
    oracle=_true_float64_sources,
    properties=(
        Property(
            "casts and factories",
            weight=2,
            corners=(_of(_cast, _plain), _of(_factory, _plain)),
            draws=(_of(_cast, _factory, _plain), _of(_factory, count=3), _of(_cast, count=3)),
            why="one float64 tensor makes all that it meets twice as large and, on a GPU, many times as slow",
            slip="a float64 tensor out, and none in; Python's own numbers are no tensors",
            count=8,
        ),
        Property(
            "float64 that goes on",
            weight=3,
            corners=(_of(_meeting), _of(_spread, _spread), _of(_as_another)),
            draws=(_of(_meeting, _spread, count=1), _of(_spread, _as_another, _plain), _of(_spread, _meeting)),
            why="of a hundred lines that compute in float64 one is to be mended",
            slip="where a float64 tensor went in already, the line is a victim; to(other) does not take other in",
            count=9,
        ),
        Property(
            "dtypes within operators and layers",
            weight=2,
            corners=(_of(_inside_an_operator), _of(_layer, _plain)),
            draws=(_of(_inside_an_operator, count=2), _of(_layer, _inside_an_operator), _of(_layer, _spread)),
            why="sum and softmax take a dtype, and a layer's double() casts far down in PyTorch's own Python",
            slip="the line is that of the innermost frame of the program; each line and operator once",
            count=8,
        ),
        Property(
            "tensors from outside",
            weight=2,
            corners=(_of(_outside, head=True), _of(_outside_number, _cast, head=True)),
            draws=(_of(_outside, _outside, _outside_number, head=True), _of(_outside, _spread, _cast, head=True)),
            why="a table that NumPy made is float64, and no operator of the program made it",
            slip="a float64 input that no earlier call gave out does not excuse a float64 output",
            count=8,
        ),
    ),
    hints=(
        "The mode of task 1 and the line of task 5 are all that is needed; the rest is a condition.",
        "Keep the outputs of earlier calls in a list, so that their id() stays theirs: "
        "a float64 input among them means that the line is a victim.",
        "A call is a source if one of its outputs is float64 and none of its inputs is a float64 tensor of the list.",
    ),
    read="notebook 05, 6. Autocast, seen from below",
)
