"""Facts about lifetimes: who holds a storage after each line, by the framework's own counts, and their figure."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.records.lifetime import Lifetime
from glassbox.widgets import LifetimeStepper
from glassbox.xray import lifetime

BOTH = pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])

PROGRAM = """
base = torch.zeros(1000, 1000)
head = base[:1]
del base
head = head.clone()
x = torch.ones(12)
w = torch.ones(12, requires_grad=True)
y = x * w
del x
s = w.untyped_storage()
z = w.exp()
parts = [torch.zeros(3)]
y.sum().backward()
del y
del w, z
del s
"""


def counts(lives: Lifetime, storage: int) -> list[int]:
    return [next((s.use_count for s in moment.storages if s.nr == storage), -1) for moment in lives]


@BOTH
def test_the_count_of_a_storage_is_that_of_its_holders(lib: Any) -> None:
    for moment in lifetime(PROGRAM, lib):
        for storage in moment.storages:
            assert storage.use_count == len(moment.over(storage.nr)) + len(storage.handles), moment.code


def test_both_frameworks_keep_and_free_the_same() -> None:
    real, ours = lifetime(PROGRAM, torch), lifetime(PROGRAM, mini)
    assert (real.framework, ours.framework) == ("PyTorch", "mini")
    for one, other in zip(real, ours, strict=True):
        assert one.storages == other.storages and one.nbytes == other.nbytes
        assert one.says() == other.says()


@BOTH
def test_a_base_keeps_the_storage_of_a_name_that_is_gone(lib: Any) -> None:
    lives = lifetime(PROGRAM, lib)
    assert counts(lives, 0)[:5] == [1, 2, 2, 0, 0]
    base, head = lives[2].tensors[1], lives[2].tensors[0]
    assert (base.names, base.label, base.nr) == ((), "base", 0) and head.base == base.nr
    assert "the tensor once named base (held by head as _base)" in lives[2].says()
    assert lives[3].says().startswith("Storage S0 (4 MB) is freed.")


@BOTH
def test_a_saved_value_lives_until_backward(lib: Any) -> None:
    lives = lifetime(PROGRAM, lib)
    assert counts(lives, 2)[7:12] == [1, 1, 1, 1, 0]
    (saved,) = lives[7].over(2)
    assert (saved.names, saved.holders) == ((), (("MulBackward0", "self"),))


@BOTH
def test_a_saved_result_is_a_tensor_of_its_own(lib: Any) -> None:
    moment = lifetime(PROGRAM, lib)[9]
    z, kept = moment.over(5)
    assert z.names == ("z",) and kept.names == () and kept.holders == (("ExpBackward0", "result"),)


@BOTH
def test_a_storage_object_alone_keeps_the_bytes(lib: Any) -> None:
    lives = lifetime(PROGRAM, lib)
    assert counts(lives, 3)[-3:] == [2, 1, 0]
    assert lives[-2].storages[3].handles == ("s",) and lives[-2].over(3) == []


@BOTH
def test_a_leaf_is_held_by_its_accumulator(lib: Any) -> None:
    lives = lifetime("w = torch.ones(2, requires_grad=True)\ny = w * 2\ndel w", lib)
    assert ("AccumulateGrad", "variable") in lives[2].over(0)[0].holders


@BOTH
def test_tensors_in_containers_are_found(lib: Any) -> None:
    lives = lifetime("d = {'k': [torch.zeros(3)], 't': (torch.ones(1),)}", lib)
    assert [t.names for t in lives[0].tensors] == [("d['k'][0]",), ("d['t'][0]",)]


@BOTH
def test_what_is_held_from_elsewhere_is_not_called_freed(lib: Any) -> None:
    lives = lifetime("def keep(t=torch.zeros(3)): return t\nx = keep()\ndel x", lib)
    assert lives[2].tensors == () and not lives[2].storages[0].freed
    assert "held from elsewhere" in lives[2].says()


@BOTH
def test_a_name_that_is_bound_again_follows_its_new_tensor(lib: Any) -> None:
    lives = lifetime("x = torch.zeros(3)\nx = x + 1\ny = x", lib)
    assert [t.nr for t in lives[1].tensors] == [1] and counts(lives, 0) == [1, 0, 0]
    assert lives[2].tensors[0].names == ("x", "y")


def test_looking_keeps_nothing_alive() -> None:
    space: dict[str, Any] = {}
    lives = lifetime("x = torch.zeros(1000, 1000)")
    space["after"] = [t for t in _live() if t.numel() == 1_000_000]
    assert len(lives) == 1 and space["after"] == []


def _live() -> list[torch.Tensor]:
    import gc

    gc.collect()
    return [t for t in gc.get_objects() if type(t) is torch.Tensor]


def test_an_error_of_the_program_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        lifetime("x = torch.zeros(2)\n1 / 0")
    with pytest.raises(SyntaxError):
        lifetime("x = ")


def test_it_is_a_table_of_lines() -> None:
    rows = lifetime("x = torch.zeros(250)\ndel x").rows()
    assert rows == [
        {"line": "x = torch.zeros(250)", "alive": "1 kB", "S0": 1},
        {"line": "del x", "alive": "0 B", "S0": "freed"},
    ]


# The figure


@pytest.fixture(scope="module")
def stepper() -> LifetimeStepper:
    return LifetimeStepper(PROGRAM, mini=mini, PyTorch=torch)


def test_it_steps_through_the_lines(stepper: LifetimeStepper) -> None:
    lines = [line for line in PROGRAM.splitlines() if line]
    assert [lane["labels"] for lane in stepper.lanes] == [lines, lines]
    assert stepper.steps == len(lines) and stepper.code


def test_a_picture_shows_who_is_there(stepper: LifetimeStepper) -> None:
    def words(nr: int) -> set[str]:
        return set(re.findall(r"<text[^>]*>([^<]+)</text>", stepper.lanes[1]["pictures"][nr]))

    assert {"base", "head", "_base", "S0 4 MB", "use count 2"} <= words(1)
    assert "base" not in words(2) and {"head", "_base", "tensor 1000×1000"} <= words(2)
    assert {"S0 4 MB freed", "gone", "S1 4 kB"} <= words(3) and "_base" not in words(3)
    assert {"MulBackward0", "AccumulateGrad"} <= words(7) and "x" not in words(7)


def test_every_line_ends_at_something_that_is_drawn(stepper: LifetimeStepper) -> None:
    for lives in stepper.lives.values():
        for nr, moment in enumerate(lives):
            svg = lives.figure(nr).text
            views = sum(t.base is not None for t in moment.tensors)
            held = sum(len(t.names) + len({node for node, _ in t.holders}) for t in moment.tensors)
            handles = sum(len(s.handles) for s in moment.storages)
            assert svg.count('class="hold') == views + held + handles + len(moment.tensors)
            assert svg.count('class="hold base"') == views
            ET.fromstring(svg)


def test_things_keep_their_places(stepper: LifetimeStepper) -> None:
    sizes = {re.search(r'viewBox="([^"]+)"', text)[1] for text in stepper.lanes[1]["pictures"]}  # type: ignore[index]
    assert len(sizes) == 1
    at = {re.search(r'y="([\d.]+)"[^>]*>S1 4 kB', text) for text in stepper.lanes[1]["pictures"][3:]}
    assert len({found[1] for found in at if found}) == 1 and None not in at


def test_an_export_shows_the_end_and_every_sentence(stepper: LifetimeStepper) -> None:
    page = stepper.static_html()
    assert page.count('class="glassbox-figure"') == 2 and page.count("<li>") == 2 * stepper.steps
    assert "<code>del x</code>" in page


def test_a_program_without_a_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="no statement"):
        LifetimeStepper("# nothing")
