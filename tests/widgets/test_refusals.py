"""Facts about what the figures refuse: one sentence that says what, where and what to do, of the right type."""

# mypy: disable-error-code="arg-type, list-item, dict-item, return-value"
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from glassbox import mini, xray
from glassbox.records import CallPath, Why
from glassbox.widgets import (
    AutogradStepper,
    CallPathExplorer,
    DispatchStepper,
    KeySetExplorer,
    LifetimeStepper,
    Ordering,
    TimelinePlayer,
)
from glassbox.xray import engine_run, lifetime

PROGRAM = "x = torch.ones(2)"


def path() -> CallPath:
    x = mini.ones(2)
    return xray.call_path(lambda: x + x)


def explained() -> Why:
    x = mini.ones(2)
    return xray.why(lambda: x + x)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: AutogradStepper(x=lambda: 1), TypeError, r"AutogradStepper: x is a function.*xray\.engine_run\("),
    (lambda: CallPathExplorer(lambda: 1), TypeError, r"CallPathExplorer: path 1 is a function.*xray\.call_path\("),
    (lambda: CallPathExplorer(path(), costs=[5]), TypeError, r"CallPathExplorer: the costs of a path are .*got 5"),
    (lambda: CallPathExplorer(path(), costs=[("1", "x", "y")]), TypeError, r"CallPathExplorer: the costs .*'x'"),
    (lambda: CallPathExplorer(path(), costs=[[("1", "x", "y")]]), TypeError, r"CallPathExplorer: the costs .*'x'"),
    (lambda: CallPathExplorer(path(), costs="a"), TypeError, r"CallPathExplorer: costs is a list .* got 'a'"),
    (lambda: TimelinePlayer(sizes=[0]), ValueError, r"TimelinePlayer: sizes are .* 1 or more, got 0"),
    (lambda: TimelinePlayer(sizes=[-1]), ValueError, r"TimelinePlayer: sizes are .* 1 or more, got -1"),
    (lambda: TimelinePlayer(sizes=["a"]), TypeError, r"TimelinePlayer: sizes are whole numbers .* got 'a'"),
    (lambda: TimelinePlayer(sizes=5), TypeError, r"TimelinePlayer: sizes is a list .* got 5"),
    (lambda: TimelinePlayer({"p": lambda n: None}), TypeError, r"'p' .* make\(1\) gave a NoneType; write"),
    (lambda: TimelinePlayer({"p": 5}), TypeError, r"'p' .* it is a int; write"),
    (lambda: TimelinePlayer([1]), TypeError, r"TimelinePlayer: programs is a dict .* got a list"),
    (lambda: DispatchStepper(call="0", x=explained()), TypeError, r"DispatchStepper: call is the number .* got '0'"),
    (lambda: DispatchStepper(depth="a", x=explained()), TypeError, r"DispatchStepper: depth is a number.* got 'a'"),
    (lambda: DispatchStepper(depth=-1, x=explained()), ValueError, r"DispatchStepper: depth is 0 or more.* got -1"),
    (lambda: LifetimeStepper(5), TypeError, r"the program is Python text, such as .* got 5"),
    (lambda: LifetimeStepper(PROGRAM, PyTorch=3), TypeError, r"the framework is the module torch or .* got 3"),
    (lambda: Ordering(5), TypeError, r"Ordering: steps is a list such as .* got 5"),
    (lambda: Ordering("ab"), TypeError, r"Ordering: steps is a list such as .* got 'ab'"),
    (lambda: xray.call_path(5), TypeError, r"call_path: 5 cannot be called; pass a function"),
    (lambda: engine_run("z = 1 + 1", torch), ValueError, r"engine_run: z is a int, not a tensor; make it of leaves"),
    (lambda: engine_run("z = a * 2", None, a=1), TypeError, r"engine_run: lib is the module torch or .* got None"),
    (
        lambda: engine_run("z = a * 2", "torch", a=1),
        TypeError,
        r"engine_run: lib is the module torch or .* got 'torch'",
    ),
    (lambda: engine_run(5, torch, a=1), TypeError, r"engine_run: the program is text .* got 5"),
    (lambda: KeySetExplorer(no_gard=True), TypeError, r"no switch 'no_gard'; the switches are op, .* no_grad, .* mode"),
    (lambda: KeySetExplorer(data={}), TypeError, r"no switch 'data'; the switches are op"),
]


@pytest.mark.parametrize(("call", "kind", "sentence"), REFUSED, ids=[each[2][:40] for each in REFUSED])
def test_it_says_what_is_wrong_and_what_to_do(call: Callable[[], Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


BLOCKS: list[tuple[Any, Callable[[], Any], str]] = [
    (torch.no_grad, lambda: engine_run("z = a * a", torch, a=1), r"torch\.no_grad\(\)"),
    (torch.inference_mode, lambda: engine_run("z = a * a", torch, a=1), r"torch\.inference_mode\(\)"),
    (mini.no_grad, lambda: engine_run("z = a * a", mini, a=1), r"mini\.no_grad\(\)"),
    (mini.no_grad, AutogradStepper, r"mini\.no_grad\(\)"),
    (mini.inference_mode, AutogradStepper, r"mini\.inference_mode\(\)"),
]


@pytest.mark.parametrize(("block", "call", "name"), BLOCKS)
def test_a_block_that_keeps_graphs_from_being_recorded_is_named(block: Any, call: Callable[[], Any], name: str) -> None:
    with block(), pytest.raises(RuntimeError, match=name + " is on here, .* outside of that block"):
        call()
    call()


@pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])
def test_a_program_s_own_switches_are_not_left_and_the_caller_s_do_not_count(lib: Any) -> None:
    lives = lifetime("torch.set_grad_enabled(False)\ny = torch.ones(2, requires_grad=True) * 2", lib)
    assert lib.is_grad_enabled() and len(lives) == 2
    saves = "w = torch.ones(2, requires_grad=True)\ny = w.exp()\nz = y.exp()\ndel y"
    plain = str(lifetime(saves, lib))
    with lib.no_grad():
        assert str(lifetime(saves, lib)) == plain
    # What is saved outlives its name, which it would not under no_grad.
    assert plain.splitlines()[-1].split() == ["del", "y", "24", "B", "1", "1", "2"]


# What the first explorer of a process finds does not depend on what is on around it. `states` is asked for anew, over
# a few choices, so that one process can do it under each block.
_UNDER = """
import contextlib, sys
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from glassbox import xray
from glassbox.widgets import KeySetExplorer, _keyset_states as kept

class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

few = [kept.Choice(), kept.Choice(requires_grad=False, autocast=True), kept.Choice(inference=kept.INSIDE, vmap=True)]
kept.choices = lambda: few

def seen():
    kept.states.cache_clear()
    return [(s.call.key_sets, s.call.winner, s.call.hops.hops, s.call.context) for s in kept.states().values()]

plain = seen()
blocks = [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu"), Pass, lambda: torch.device("meta")]
for block in blocks:
    with block():
        assert seen() == plain, block
found = []
def look():
    kept.states.cache_clear()
    try:
        KeySetExplorer()
    except RuntimeError as error:
        found.append(str(error))
    torch.ones(1)
xray.why(look)
xray.onion(look)
assert len(found) == 2 and all("KeySetExplorer: " in each or "onion: " in each for each in found), found
print("the same")
"""


def test_the_first_explorer_takes_nothing_over_from_the_blocks_around_it() -> None:
    done = subprocess.run([sys.executable, "-c", _UNDER], capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("the same\n"), done.stderr[-2000:]


def test_a_program_s_name_is_text_in_an_export() -> None:
    player = TimelinePlayer({"<b>x & y</b>": lambda n: lambda: mini.ones(n, device="sim") + 1}, [1, 2])
    page = player.static_html()
    assert page.startswith("<p><b>&lt;b&gt;x &amp; y&lt;/b&gt;</b>, ") and "<b>x" not in page
