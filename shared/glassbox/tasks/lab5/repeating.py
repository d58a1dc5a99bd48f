"""Lab 5, extension: work that is done twice (PyTorch: torch/_functorch/compile_utils.py, fx_graph_cse)."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..building import run, steady
from ..model import Case, Draw, Property, Task
from .drafting import UNARY, Draft
from .printing import UNPLUGGED

RANDOM = ("bernoulli", "poisson", "rand_like", "randn_like")
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul"}


def _true_repeated_work(text: str) -> Any:
    """Reads the program as text, line by line: each line is one operator, and its operands have names.

    Everything stays alive here, so an address is never somebody else's.
    """
    names = run(text)
    first: dict[Any, int] = {}
    alive: list[Any] = []
    found = []
    body = ast.parse(text).body[-1]
    assert isinstance(body, ast.FunctionDef)
    with steady():
        for statement in body.body[:-1]:
            value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
            what, operands = _reading(value, names) if value is not None else ("", [])
            key = what, tuple(map(_state, operands))
            exec(compile(ast.Module([statement], []), "", "exec"), names)
            if not isinstance(statement, ast.Assign) or what in RANDOM:
                continue
            assert isinstance(statement.targets[0], ast.Name)
            result = names[statement.targets[0].id]
            alive += [operands, result]
            if _storages(operands) and not _storages(result) & _storages(operands):
                line = first.setdefault(key, statement.lineno)
                found += [(statement.lineno, line)] if line != statement.lineno else []
    return found


def _reading(node: ast.expr, names: dict[str, Any]) -> tuple[str, list[Any]]:
    """(what is done, with which operands), the same for all ways to write it."""

    def value(part: ast.expr) -> Any:
        return eval(compile(ast.Expression(part), "", "eval"), names)

    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)], [value(node.left), value(node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of = value(node.func.value)
        given = [value(each) for each in (*node.args, *(named.value for named in node.keywords))]
        operands = [of, *given] if _storages(of) else given
        if node.func.attr == "linear":
            return "matmul", [operands[0], operands[1].t()]
        return node.func.attr, operands
    return "view", [value(node.value)] if isinstance(node, ast.Subscript) else []


def _storages(value: Any) -> set[int]:
    if isinstance(value, list | tuple):
        return {storage for each in value for storage in _storages(each)}
    return {value.untyped_storage()._cdata} if hasattr(value, "untyped_storage") else set()


def _state(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_state, value))
    if hasattr(value, "untyped_storage"):
        layout = value.shape, value.stride(), value.storage_offset(), value.dtype
        return (*_storages(value), value._version, *layout)
    return type(value), value


Write = Callable[[Draft], None]


def _work(draft: Draft) -> None:
    """Something to do, in one of the ways to write it; kept, so that it can be done again."""
    rng = draft.rng
    one, other = rng.choice(_bases(draft)), rng.choice(_bases(draft))
    u, d = rng.choice(UNARY[:-1]), rng.randint(0, 1)
    ways = rng.choice(
        (
            [f"{one}.{u}()", f"torch.{u}({one})", f"{one}.t().t().{u}()"],
            [f"{one}.t().{u}()", f"torch.{u}({one}.t())", f"torch.{u}({one}.transpose(0, 1))"],
            [f"{one} + {other}", f"torch.add({one}, {other})", f"{one}.add({other})"],
            [f"{one} * {other}", f"torch.mul({one}, {other})", f"{one}.detach() * {other}"],
            [f"{one} * 3", f"torch.mul({one}, 3)", f"{one}[:] * 3"],
            [f"{one} @ {other}.t()", f"F.linear({one}, {other})", f"torch.matmul({one}, {other}.t())"],
            [f"{one}.sum({d})", f"torch.sum({one}, {d})", f"{one}.sum(dim={d})"],
            [f"{one}.softmax({d})", f"F.softmax({one}, {d})", f"torch.softmax({one}, dim={d})"],
            [f"torch.cat([{one}, {other}])", f"torch.cat([{one}, {other}], 0)", f"torch.cat([{one}, {other}.t().t()])"][
                ::2
            ],
            [f"{one}[1:].{u}()", f"torch.{u}({one}[1:])", f"torch.{u}({one}[1:, :])"],
        )
    )
    _done(draft).append(ways)
    _let(draft, rng.choice(ways))


def _again(draft: Draft) -> None:
    """What was done before, perhaps written otherwise."""
    if not _done(draft):
        _work(draft)
    _let(draft, draft.rng.choice(draft.rng.choice(_done(draft))))


def _write(draft: Draft) -> None:
    """A base changes: what comes after is other work, though it reads the same."""
    one = draft.rng.choice(_bases(draft))
    draft.lines.append(
        draft.rng.choice(
            (
                f"{one}.add_(1)",
                f"{one}[0].fill_(7)",
                f"{one}.t().mul_(2)",
                f"{one}.detach().neg_()",
                f"{one}[:, 1:].zero_()",
            )
        )
    )


def _changed_between(draft: Draft) -> None:
    """Work, a write to one of its operands, the work again; and once more without a write."""
    rng = draft.rng
    one = rng.choice(_bases(draft))
    u = rng.choice(UNARY[:-1])
    _let(draft, f"{one}.{u}()")
    draft.lines.append(
        rng.choice((f"{one}.add_(1)", f"{one}[0].fill_(7)", f"{one}.detach().neg_()", f"{one}.t().mul_(2)"))
    )
    _let(draft, f"torch.{u}({one})")
    if rng.random() < 0.6:
        _let(draft, f"{one}.{u}()")


def _almost(draft: Draft) -> None:
    """Nearly the same twice: other order, argument, view, or a copy of the same values."""
    rng = draft.rng
    one, other = rng.sample(_bases(draft), 2)
    u = rng.choice(UNARY[:-1])
    left, right = rng.choice(
        (
            (f"{one} - {other}", f"{other} - {one}"),
            (f"{one}.sum(0)", f"{one}.sum(1)"),
            (f"{one} * 3", f"{one} * 4"),
            (f"{one}.{u}()", f"{one}.t().{u}()"),
            (f"{one}[1:].{u}()", f"{one}[:-1].{u}()"),
            (f"{one}.{u}()", f"{one}[:].sign()"),
            (f"{one}.sum(0)", f"{one}.sum(0, keepdim=True)"),
            (f"torch.cat([{one}, {other}])", f"torch.cat([{other}, {one}])"),
        )
    )
    _let(draft, left)
    _let(draft, right)


def _turned(draft: Draft) -> None:
    """A square matrix and its transpose differ in their strides alone."""
    size, u = draft.rng.randint(2, 8), draft.rng.choice(UNARY[:-1])
    one = _let(draft, f"torch.rand({size}, {size})")
    for text in (f"{one}.{u}()", f"{one}.t().{u}()", f"torch.{u}({one})"):
        _let(draft, text)


def _moved(draft: Draft) -> None:
    """Two rows of one matrix differ in their offset alone."""
    one, u = draft.rng.choice(_bases(draft)), draft.rng.choice(UNARY[:-1])
    for text in (f"{one}[0].{u}()", f"{one}[1].{u}()", f"torch.{u}({one}[0])"):
        _let(draft, text)


def _swapped(draft: Draft) -> None:
    """The same operands in another order, and under another operator."""
    one, other = draft.rng.sample(_bases(draft), 2)
    for u in draft.rng.sample(UNARY[:-1], 2):
        _let(draft, f"{one}.{u}()")
    _let(draft, f"{one} - {other}")
    _let(draft, f"{other} - {one}")


def _numbers(draft: Draft) -> None:
    """The same operator with another number."""
    one = draft.rng.choice(_bases(draft))
    few, many = draft.rng.sample(range(2, 9), 2)
    left, right = draft.rng.choice(((f"{one} * {few}", f"{one} * {many}"), (f"{one}.sum(0)", f"{one}.sum(1)")))
    _let(draft, left)
    _let(draft, right)


def _made(draft: Draft) -> None:
    """The same factory twice: there is nothing to go by."""
    text = draft.rng.choice(("torch.ones(4, 3)", "torch.zeros(5)", "torch.arange(6)", "torch.full((2, 3), 4.0)"))
    _let(draft, text)
    _let(draft, text)


def _copied(draft: Draft) -> None:
    """The same values in memory of their own."""
    one = draft.rng.choice(_bases(draft))
    u = draft.rng.choice(UNARY[:-1])
    copy = _let(draft, draft.rng.choice((f"{one}.clone()", f"{one} + 0", f"torch.empty_like({one}).copy_({one})")))
    _let(draft, f"{one}.{u}()")
    _let(draft, f"{copy}.{u}()")


def _recycled(draft: Draft) -> None:
    """Memory that is given back and taken again: the address is the same, the tensor is not."""
    rng = draft.rng
    name = draft._free.pop()
    # So large that an allocator gives the same place again at once.
    size, how = rng.randint(1500, 8000), rng.choice(("sum()", "exp()", "mean()"))
    for value in rng.sample(range(2, 9), 3):
        draft.lines.append(f"{name} = torch.full(({size},), {value}.0)")
        _let(draft, f"{name}.{how}")
        draft.lines.append(f"del {name}")


def _random(draft: Draft) -> None:
    """New numbers each time, so never the same work."""
    one = draft.rng.choice(_bases(draft))
    zeros = _let(draft, f"{one} * 0")
    text = draft.rng.choice(
        (f"torch.bernoulli({zeros})", f"torch.poisson({zeros})", f"torch.rand_like({one})", f"torch.randn_like({one})")
    )
    _let(draft, text)
    _let(draft, text)


def _no_work(draft: Draft) -> None:
    """Views, twice, and factories, twice."""
    rng = draft.rng
    one = rng.choice(_bases(draft))
    text = rng.choice(
        (f"{one}.t()", f"{one}[1:]", f"{one}.reshape(-1)", f"{one}.detach()", "torch.ones(4, 3)", f"{one}.unsqueeze(0)")
    )
    _let(draft, text)
    _let(draft, text)


def _let(draft: Draft, expression: str) -> str:
    name = draft.let(expression, ())
    del draft.shapes[name]
    return name


def _done(draft: Draft) -> list[list[str]]:
    if not hasattr(draft, "done"):
        draft.done = []  # type: ignore[attr-defined]
    done: list[list[str]] = draft.done  # type: ignore[attr-defined]
    return done


def _bases(draft: Draft) -> list[str]:
    return list(draft.shapes)


def _of(*writers: Write, count: int = 0, more: Sequence[Write] = (_work, _again)) -> Draw:
    """Programs over two tensors of one shape; the last of `writers` in any order, then what repeats."""

    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        rows, columns = draft.size(2)
        for _ in range(2):
            draft.fresh(rows, columns)
        _work(draft)
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft)
        return (draft.text("return None"),)

    return draw


repeated_work = Task(
    id="lab5.repeated_work",
    title="Work that is done twice",
    function="repeated_work",
    points=14,
    minutes=45,
    difficulty=5,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program",),
    oracle=_true_repeated_work,
    properties=(
        Property(
            "the same call again, however it is written",
            weight=2,
            corners=(_of(_again, _almost), _of(_turned, _swapped), _of(_moved, _numbers)),
            draws=(_of(_again, _again, count=2), _of(_again, _almost, count=1)),
            why="what a compiler finds by itself (common subexpressions) a mode finds in the program as it runs",
            slip="the operator, every tensor's storage and layout, and all other arguments, in their order",
            count=8,
        ),
        Property(
            "writes between the two",
            weight=3,
            corners=(_of(_changed_between), _of(_write, _again, _again)),
            draws=(_of(_changed_between, _again), _of(_changed_between, _write, _again, count=1)),
            why="the same storage with other numbers in it is other work, and a write to any view of it counts",
            slip="a tensor's _version counts the writes to its storage, through all views",
            count=9,
        ),
        Property(
            "the same address, the same values",
            weight=2,
            corners=(_of(_recycled, _again), _of(_copied, _again)),
            draws=(_of(_recycled, _copied, _again), _of(_recycled, _again, count=2)),
            why="memory is given back and taken again; and equal numbers elsewhere had to be computed elsewhere",
            slip="keep what you remember alive, or the next tensor moves into its address",
            count=9,
        ),
        Property(
            "random numbers, views, factories",
            weight=1,
            corners=(_of(_random, _again), _of(_no_work, _made, _again)),
            draws=(_of(_random, _again, _no_work), _of(_no_work, _again, _again)),
            why="random numbers twice are meant twice; a view costs nothing",
            slip="PyTorch knows which operators draw random numbers: their tags say it",
            count=8,
        ),
    ),
    hints=(
        "Remember for each call a key that says all that its result depends on; a dictionary from key to line does the "
        "rest.",
        "A tensor in the key: its storage, t._version, shape, stride, storage_offset and dtype. "
        "Everything else: itself; lists become tuples.",
        "torch.Tag.nondeterministic_seeded in func.tags: random. Left out as well: calls without a tensor, and calls "
        "whose result lies in an input's storage. A list of all arguments keeps them alive.",
    ),
    read="notebook 05, 1. A mode that prints every operator",
)
