"""Lab 5, extension: a forward that may make so many calls and no more (PyTorch: torch/utils/_python_dispatch.py)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..building import built
from ..model import Case, Draw, Property, Task
from .drafting import Draft
from .printing import UNPLUGGED


class _Marks:
    """Stands for the program's list: notes how many calls came before each mark."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.noted: list[tuple[int, str]] = []

    def append(self, mark: str) -> None:
        self.noted.append((len(self.log), mark))


def _true_run_within(text: str, budget: int) -> Any:
    """The whole program runs here, under a log; what a budget would have left of it is told afterwards."""
    from ... import xray

    (run,) = built(("program",), (text,))
    log = xray.op_log(places=True)
    marks = run.__globals__["reached"] = _Marks(log)
    with log:
        run()
    calls = list(log)
    end = next((number for number, line in enumerate(text.splitlines(), 1) if ".backward()" in line), 0)
    used, stop = 0, len(calls)
    for at, call in enumerate(calls):
        if call.promised == "view":
            continue
        if used == budget:
            stop = at
            break
        used += 1
    writes = [call for call in calls[:stop] if call.name == "aten.add_.Tensor" and call.inputs[0].shape == (1,)]
    after = [mark for at, mark in marks.noted if at <= stop], float(len(writes))
    if stop == len(calls):
        return ("done", used), after
    call = calls[stop]
    line = end if call.phase == "backward" else int(call.place.rpartition(":")[2])
    return ("stopped", used, call.name, line), after


Write = Callable[[Draft], None]


def _work(draft: Draft) -> None:
    draft.rng.choice((draft.pointwise, draft.product, draft.reduction, draft.pointwise))()


def _view(draft: Draft) -> None:
    draft.view()


def _mark(draft: Draft) -> None:
    draft.lines.append(f'reached.append("{len(draft.lines)}")')


def _state(draft: Draft) -> None:
    draft.lines.append("state.add_(1)")


def _layer(draft: Draft) -> None:
    """Operators that PyTorch's own Python calls, several on one line."""
    one = draft.any(2)
    rows, columns = draft.shapes[one]
    wide = draft.rng.randint(2, 6)
    text, shape = draft.rng.choice(
        (
            (f"nn.Linear({columns}, {wide}, bias=False)({one})", (rows, wide)),
            (f"F.gelu({one}) * F.softmax({one}, 1)", (rows, columns)),
            (f"nn.Sequential(nn.ReLU(), nn.Tanh())({one})", (rows, columns)),
            (f"F.mse_loss({one}, {one} + 1)", ()),
        )
    )
    draft.let(text, shape)


def _loop(draft: Draft) -> None:
    one = draft.any(2)
    draft.lines.append(f"for _ in range({draft.rng.randint(2, 4)}):")
    draft.lines.append(
        draft.rng.choice((f"    {one} = {one}.cos()", f"    {one} = {one}.t().t() + 1", "    state.add_(1)"))
    )


def _caught(draft: Draft) -> None:
    """Code that catches whatever goes wrong: the stop must not be caught."""
    one = draft.any(2)
    wrong = draft.rng.choice((False, False, True))
    draft.lines += [
        "try:",
        f"    {one} = {one}.exp()",
        f"    {one} = {one} + {one}.t() @ {one}.t()" if wrong else f"    {one} = {one}.sin()",
    ]
    draft.lines += ["    state.add_(1)", "except Exception:", f'    reached.append("caught {len(draft.lines)}")']


def _retried(draft: Draft) -> None:
    """Tries several times, and hides why it failed."""
    one = draft.any(2)
    mark = f'    reached.append("tried {len(draft.lines)}")'
    draft.lines += ["for _ in range(3):", "    try:", f"        {one}.tanh()", "        state.add_(1)"]
    draft.lines += ["    except (RuntimeError, ValueError, Exception):", f"    {mark}"]


def _backward(draft: Draft) -> None:
    rng = draft.rng
    rows, columns = draft.size(2)
    weight = draft.let(f"torch.ones({rows}, {columns}, requires_grad=True)", (rows, columns))
    inner = rng.choice((f"{weight} * 3", f"{weight}.tanh()", f"{weight} * {weight}.exp()"))
    draft.lines += [f"({inner}).{rng.choice(('sum()', 'mean()'))}.backward()", 'reached.append("trained")']
    del draft.shapes[weight]


def _of(*writers: Write, count: int = 2, more: Sequence[Write] = (_work, _mark, _state), share: float = 0.75) -> Draw:
    """Programs, and a budget: in most cases less than what they need."""

    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        draft.fresh()
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft)
        body = draft.text("return None")
        head = "reached, state = [], torch.zeros(1)\n\n"
        text = f"{head}{body}\nprogram.after = lambda: (reached, state.item())  # what was done\n"
        # Lines stand for calls here; a budget well above them is enough for all.
        need = sum(any(sign in line for sign in ("=", "(1)", "tanh")) for line in draft.lines)
        return text, rng.randint(0, max(need - 1, 1)) if rng.random() < share else need * 3 + 12

    return draw


run_within = Task(
    id="lab5.run_within",
    title="A budget of operators",
    function="run_within",
    points=12,
    minutes=35,
    difficulty=4,
    unplugged=UNPLUGGED,
    seconds=6.0,
    builds=("program",),
    oracle=_true_run_within,
    properties=(
        Property(
            "calls that are counted, views that are not",
            weight=2,
            corners=(_of(_work, _view, share=1), _of(_view, _view, _work, share=0), _of(_work, _state, share=1)),
            draws=(_of(_work, _view, _view), _of(_work, _view, count=4), _of(_view, _state, _work)),
            why="a budget that is full stops the next call, not the one after it",
            slip="a view is free, also when nothing is left; an in-place operator counts",
            count=9,
        ),
        Property(
            "layers and loops",
            weight=2,
            corners=(_of(_layer, share=1), _of(_loop, share=1), _of(_loop, _layer, share=0)),
            draws=(_of(_layer, _loop, count=3), _of(_loop, _view, _layer, _mark)),
            why="one line of a model is several calls, and the report names the line of yours that made them",
            slip="the line is that of the innermost frame of the program when the call came",
            count=9,
        ),
        Property(
            "programs that catch errors",
            weight=2,
            corners=(_of(_caught, share=1), _of(_retried, share=1), _of(_caught, _work, share=0)),
            draws=(_of(_caught, _retried, share=0.9), _of(_retried, _mark, _view, share=0.9), _of(_caught, count=4)),
            why="code that catches Exception would go on as if nothing had been",
            slip="raise what `except Exception` does not catch, and catch it yourself outside of the program",
            count=9,
        ),
        Property(
            "backward, too",
            weight=2,
            corners=(_of(_backward, share=0), _of(_backward, share=1), _of(_backward, _state, count=0, share=1)),
            draws=(_of(_backward, _work, count=1), _of(_backward, _view, _mark, share=0.9)),
            why="a backward pass is as many calls again, on the line of backward()",
            slip="count what comes; it makes no difference who calls",
            count=8,
        ),
    ),
    hints=(
        "The mode counts. Before each call that is no view it asks whether anything is left; if not, it notes the "
        "report and raises.",
        "func.is_view says that an operator's schema promises a view.",
        "class OverBudget(BaseException) passes through `except Exception`. "
        "Catch it around the block with the mode, and return what the mode noted.",
    ),
    read="notebook 05, 1. A mode that prints every operator",
)
