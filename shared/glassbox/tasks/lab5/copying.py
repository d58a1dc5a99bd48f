"""Lab 5: the line that copies without being asked (PyTorch: ATen/native/TensorShape.cpp, reshape)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..building import built
from ..model import Case, Draw, Property, Task
from .drafting import Draft
from .printing import UNPLUGGED

COPIES = ("aten.clone.default", "aten._to_copy.default", "aten.copy_.default")


def _true_hidden_copies(text: str) -> Any:
    """What xray.hidden_copies finds, of copies that are an operator's whole work: those a mode can see."""
    from ... import xray

    (run,) = built(("program",), (text,))
    sites = [site for site in xray.hidden_copies(run) if site.op in COPIES]
    rows: dict[tuple[int, str], list[int]] = {}
    for site in sites:
        row = rows.setdefault((int(site.place.rpartition(":")[2]), site.op), [0, 0])
        row[0] += site.times
        row[1] += site.nbytes
    return [(*key, *row) for key, row in sorted(rows.items())]


Write = Callable[[Draft], None]


def _line(draft: Draft, *texts: str) -> None:
    """One of these lines, its result under a name of its own that nothing goes on from."""
    del draft.shapes[draft.let(draft.rng.choice(texts), ())]


def _hidden(draft: Draft) -> None:
    """A copy that nobody asked for."""
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    _line(
        draft,
        f"{one}.t().reshape(-1)",
        f"{one}.t().flatten()",
        f"torch.ravel({one}.t())",
        f"{one}.expand(2, {rows}, {columns}).reshape(-1, {columns})",
        f"{one}.reshape(1, {rows}, {columns}).transpose(1, 2).flatten(1) + 1",
        f"nn.Flatten(0)({one}.t())",
        f"{one}[:, 1:].reshape(-1) * 2",
    )


def _asked(draft: Draft) -> None:
    """A copy that the line itself asks for."""
    _ask(draft, draft.rng.choice((*ASKING, "contiguous")))


ASKING = ("clone", "contiguous", "copy_", "to", "double", "float")


def _ask(draft: Draft, how: str) -> None:
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    if how == "contiguous":
        _line(draft, f"{one}.t().contiguous()", f"{one}.t().contiguous().reshape(-1)")
    elif how == "copy_":
        _line(draft, f"torch.empty({columns}, {rows}).copy_({one}.t())")
    elif how == "float":
        _line(draft, f"({one} > 0).float()", f"{one}.argmax(1).float()")
    else:
        _line(
            draft, {"clone": f"{one}.clone()", "double": f"{one}.double() + 1", "to": f"{one}.to(torch.bfloat16)"}[how]
        )


def _asked_by(*how: str) -> Write:
    """Each of these, once."""

    def write(draft: Draft) -> None:
        for each in draft.rng.sample(how, len(how)):
            _ask(draft, each)

    return write


def _no_copy(draft: Draft) -> None:
    """What might copy and does not."""
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    _line(
        draft,
        f"{one}.reshape(-1)",
        f"{one}.t().t().flatten()",
        f"{one}.contiguous()",
        f"{one}.to(torch.float32)",
        f"{one}[1:].reshape(-1)",
        f"torch.cat([{one}, {one}])",
        f"{one}.t() + {one}.t()",
        f"{one}.reshape({columns}, {rows})",
        f"{one}.float()",
    )


def _named_alike(draft: Draft) -> None:
    """Names that only look as if somebody asked."""
    one = draft.any(2)
    name, words = draft.rng.choice(
        (("clone", "flatten()"), ("to", "reshape(-1)"), ("contiguous", "ravel()"), ("copy_", "flatten()"))
    )
    draft.lines.append(f"{name} = {one}.t().{words}")


def _helper(draft: Draft) -> None:
    """The guilty line is in a function that this one calls."""
    one = draft.any(2)
    _line(
        draft,
        f"flat({one}.t())",
        f"flat({one})",
        f"flat({one}.t()) + 1",
        f"dense({one}.t())",
        f"dense({one}).reshape(-1)",
    )


def _layer(draft: Draft) -> None:
    """The guilty line is in the forward of a layer of the program's own."""
    one = draft.any(2)
    _line(
        draft,
        f"Turn()({one})",
        f"nn.Sequential(Turn(), nn.ReLU())({one})",
        f"nn.Sequential(nn.ReLU(), nn.Flatten(0))({one}.t())",
    )


def _loop(draft: Draft) -> None:
    one = draft.any(2)
    draft.lines.append(f"for part in ({one}, {one}.t(), {one}[:, 1:]):")
    draft.lines.append(draft.rng.choice(("    part.reshape(-1)", "    part.flatten()", "    part = part.ravel() + 1")))


def _autocast(draft: Draft) -> None:
    one = draft.any(2)
    draft.lines += [
        'with torch.autocast("cpu", dtype=torch.bfloat16):',
        "    " + draft.rng.choice((f"{one} @ {one}.t()", f"torch.mm({one}.t(), {one})", f"F.linear({one}, {one})")),
    ]


HEAD = (
    "def flat(values):",
    "    return values.reshape(-1)",
    "",
    "def dense(values):",
    "    return values.contiguous()",
    "",
    "class Turn(nn.Module):",
    "    def forward(self, x):",
    "        return x.t().flatten()",
    "",
)


def _of(*writers: Write, count: int = 0, more: Sequence[Write] = (_asked, _no_copy), head: bool = False) -> Draw:
    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        for _ in range(rng.randint(1, 2)):
            draft.fresh()
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft)
        body = draft.text("return None")
        return ("\n".join(HEAD) + "\n" + body if head else body,)

    return draw


hidden_copies = Task(
    id="lab5.hidden_copies",
    title="The line that copies without being asked",
    function="hidden_copies",
    points=12,
    minutes=35,
    difficulty=4,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program", "text"),
    oracle=_true_hidden_copies,
    properties=(
        Property(
            "reshapes that copy, and those that do not",
            weight=2,
            corners=(_of(_hidden, _no_copy), _of(_hidden, _hidden)),
            draws=(_of(_hidden, _no_copy, count=2, more=(_hidden, _no_copy)),),
            why="reshape promises the elements, not that they stay where they are",
            slip="a mode sees the copy as clone, on the line that called reshape; bytes are those of what was written",
            count=8,
        ),
        Property(
            "copies that the line asked for",
            weight=2,
            corners=(
                _of(_hidden, _asked_by("to", "double", "float")),
                _of(_named_alike, _asked_by("clone", "contiguous", "copy_")),
            ),
            draws=(_of(_hidden, _asked, _named_alike, count=1), _of(_asked, _hidden, count=2)),
            why="contiguous() and clone() are no surprise; a report that lists them is not read",
            slip="the line asked where it calls one of these methods, not where their name stands in it",
            count=8,
        ),
        Property(
            "helpers, layers and PyTorch's own Python",
            weight=3,
            corners=(_of(_helper, _hidden, head=True), _of(_layer, head=True), _of(_helper, _layer, _asked, head=True)),
            draws=(_of(_helper, _layer, count=1, head=True), _of(_layer, _helper, _hidden, head=True)),
            why="between the mode and the guilty line stand frames of torch/nn and of the mode itself",
            slip="go outwards from the mode's own frame to the first frame of the program: the innermost one",
            count=9,
        ),
        Property(
            "lines that run several times, and casts of autocast",
            weight=2,
            corners=(_of(_loop), _of(_autocast, _no_copy), _of(_loop, _autocast)),
            draws=(_of(_loop, _autocast, count=1), _of(_loop, _asked, _hidden), _of(_autocast, _hidden, _no_copy)),
            why="one line in a loop may be most of what is copied; autocast casts without a word in the code",
            slip="one row for each line and operator, with the number of copies and the bytes of them all",
            count=9,
        ),
    ),
    hints=(
        "The mode of task 1, once more: which operators does it see when x.t().reshape(-1) runs?",
        "sys._getframe() is the frame that runs, frame.f_back the one that called it, frame.f_lineno its line. "
        'The frames of the program have frame.f_code.co_filename == "<program>".',
        "text.splitlines()[line - 1] is the line's own text; "
        r're.search(r"\.(clone|contiguous|copy_|to|float|double)\(", it) says whether it asked.',
    ),
    read="notebook 05, 5. The line that copies without being asked",
)
