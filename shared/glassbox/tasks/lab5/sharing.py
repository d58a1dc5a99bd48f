"""Lab 5: which tensors share a storage (PyTorch: torch/storage.py, c10/core/StorageImpl.h)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..building import built
from ..model import Case, Draw, Property, Task
from .drafting import Draft
from .printing import UNPLUGGED

Write = Callable[[Draft, str], None]


def _true_who_shares(text: str) -> Any:
    from ... import xray

    (tensors,) = built(("tensors",), (text,))
    groups = xray.storage_map(**tensors).groups()
    return [([view.name for view in group], group[0].nbytes) for group in groups]


def _let(draft: Draft, *expressions: str) -> None:
    """One of these expressions. What becomes of the shape is not needed here: all go on from matrices."""
    name = draft.let(draft.rng.choice(expressions), ())
    del draft.shapes[name]
    _named(draft).append(name)


def _named(draft: Draft) -> list[str]:
    if not hasattr(draft, "named"):
        draft.named = list(draft.shapes)  # type: ignore[attr-defined]
    found: list[str] = draft.named  # type: ignore[attr-defined]
    return found


def _view(draft: Draft, one: str) -> None:
    _let(
        draft,
        f"{one}.t()",
        f"{one}[1:]",
        f"{one}[:, 1]",
        f"{one}.unsqueeze(0)",
        f"{one}[0]",
        f"{one}.expand(2, -1, -1)",
    )


def _apart(draft: Draft, one: str) -> None:
    """Two views that overlap nowhere, over one storage."""
    _let(draft, f"{one}[:1]", f"{one}[0, :1]")
    _let(draft, f"{one}[1:]", f"{one}[1, 1:]", f"{one}.chunk(2)[1]")


def _copy(draft: Draft, one: str) -> None:
    _let(
        draft,
        f"{one}.clone()",
        f"{one} + 0",
        f"{one}.t().contiguous()",
        f"{one}[:, :1].clone()",
        f"torch.empty_like({one})",
    )


def _either(draft: Draft, one: str) -> None:
    """Reshapes and casts: a view or the tensor itself where that will do, a copy where not."""
    _let(
        draft,
        f"{one}.reshape(-1)",
        f"{one}.contiguous()",
        f"{one}.to(torch.float32)",
        f"{one}.flatten()",
        f"{one}.ravel()",
    )
    _let(draft, f"{one}.t().reshape(-1)", f"{one}.double()", f"{one}.t().flatten()", f"{one}[:, 1:].contiguous()")


def _in_disguise(draft: Draft, one: str) -> None:
    """The same storage under another type."""
    _let(
        draft,
        f"{one}.view(torch.int32)",
        f"{one}.view(torch.uint8)",
        f"nn.Parameter({one})",
        f"{one}.detach()",
        f"{one}.data",
    )


def _tiny(draft: Draft, one: str) -> None:
    """A small view of something large that has no other name."""
    size = draft.rng.randint(100, 999)
    _let(draft, f"torch.zeros({size}, 8)[0]", f"torch.zeros({size})[5:6]", f"torch.zeros(8, {size}).t()[3]")


def _nothing(draft: Draft, one: str) -> None:
    """No elements: address 0 for all of them, and still storages of their own."""
    _let(draft, "torch.empty(0)", "torch.zeros(0, 3)", f"torch.ones({draft.rng.randint(1, 9)}, 0)")
    _let(draft, "torch.empty(0)", "torch.zeros(2, 0)")
    last = _named(draft)[-1]
    _let(draft, f"{last}.view(-1)", f"{one}[:0]", f"{last}.detach()")


def _meta(draft: Draft, one: str) -> None:
    """On the meta device there is no address at all."""
    rows, columns = draft.size(2)
    _let(draft, f'torch.empty({rows}, {columns}, device="meta")')
    first = _named(draft)[-1]
    _let(draft, f"{first}.t()", f"{first}[0]", f"{first}.view(-1)")
    _let(draft, f"{first} + 1", f'torch.empty({rows}, {columns}, device="meta")')


def _tied(draft: Draft, one: str) -> None:
    width = draft.rng.randint(2, 6)
    draft.lines += [
        f"net = nn.Sequential(nn.Linear({width}, {width}), nn.Linear({width}, {width}))",
        "net[1].weight = net[0].weight" if draft.rng.random() < 0.6 else "net[1].bias.data = net[0].bias.data",
    ]
    for text in draft.rng.sample(["net[0].weight", "net[1].weight", "net[0].bias", "net[1].bias"], 3):
        _let(draft, text)


def _of(*writers: Write, count: int = 0, more: Sequence[Write] = (_view, _copy)) -> Draw:
    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        for _ in range(rng.randint(1, 2)):
            draft.fresh()
        _named(draft)
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft, draft.any(2))
        names = list(_named(draft))
        rng.shuffle(names)
        entries = ", ".join(f'"{name}": {name}' for name in names)
        return ("\n".join([*draft.lines, f"tensors = {{{entries}}}"]) + "\n",)

    return draw


who_shares = Task(
    id="lab5.who_shares",
    title="Who shares the storage?",
    function="who_shares",
    points=9,
    minutes=15,
    difficulty=2,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("tensors",),
    oracle=_true_who_shares,
    properties=(
        Property(
            "views and copies",
            weight=2,
            corners=(_of(_view, _copy), _of(_apart), _of(_view, _view, _copy)),
            draws=(_of(_apart, _view, _copy), _of(_view, _copy, count=3)),
            why="whoever writes to one writes to all of a group",
            slip="two views of one storage begin at different addresses; the storage is the same object",
            count=9,
        ),
        Property(
            "reshapes and casts that copy, or do not",
            weight=2,
            corners=(_of(_either), _of(_either, _view)),
            draws=(_of(_either, count=2), _of(_either, _either)),
            why="reshape, contiguous and to give a view or the tensor itself where they can",
            slip="not the name of the call but the storage tells whether something was copied",
            count=8,
        ),
        Property(
            "other dtypes, parameters, tied layers, small views",
            weight=2,
            corners=(_of(_in_disguise, _tiny), _of(_tied), _of(_tiny, _view)),
            draws=(_of(_in_disguise, _tiny, count=1), _of(_tied, _in_disguise)),
            why="tied weights are trained as one; one row keeps all of a large matrix alive",
            slip="the bytes are those of the whole storage, not of the tensors",
            count=9,
        ),
        Property(
            "no elements, and no data at all",
            weight=2,
            corners=(_of(_nothing), _of(_meta), _of(_nothing, _meta)),
            draws=(_of(_nothing, _meta, count=1), _of(_nothing, _view), _of(_meta, _meta, _view)),
            why="an address of 0 says that there is no memory, not that it is the same",
            slip="compare the storages themselves, untyped_storage()._cdata, and not where their data begin",
            count=9,
        ),
    ),
    hints=(
        "t.untyped_storage() is the storage; nbytes() of it is its size.",
        "untyped_storage() makes a new Python object at every call; ._cdata of it is the number of the storage behind.",
        "A dictionary from that number to a list of names keeps groups in the order of their first tensor.",
    ),
    read="notebook 05, 4. Who shares the storage?",
)
