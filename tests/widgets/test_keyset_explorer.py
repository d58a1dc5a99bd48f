"""Facts about the key set explorer's Python side: each state is what the instruments say of the same program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from traitlets import TraitError

from glassbox import xray
from glassbox.records import Hop
from glassbox.widgets import KeySetExplorer, _keyset_states
from glassbox.widgets._keyset_states import OPS, Choice, choices, program, run, states
from glassbox.widgets.keyset_explorer import compact
from glassbox.xray import _kernel_rows

WITH_CUDA = torch.version.cuda is not None
FAKES = ("Python", "PythonTLSSnapshot")
with_cuda = pytest.mark.skipif(not WITH_CUDA, reason="a PyTorch without CUDA knows no keys of its calls")


def local_sets() -> tuple[int, int]:
    included, excluded = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    return included.raw_repr(), excluded.raw_repr()


@pytest.fixture(scope="module", autouse=True)
def looked() -> Iterator[None]:
    """The states are asked for once, which leaves nothing behind."""
    before, table = local_sets(), torch._C._dispatch_dump_table("aten::mm")
    states()
    assert local_sets() == before and torch._C._dispatch_dump_table("aten::mm") == table
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    yield


def names(hops: list[Hop]) -> list[tuple[int, str, str]]:
    return [(hop.depth, hop.op, hop.key) for hop in hops]


def with_ends_of(hops: list[Hop], device: str, mode: bool) -> list[tuple[int, str, str]]:
    """What an onion shows, in the explorer's terms: nothing below a kernel of the backend but what composites call;
    for CUDA, where a fake tensor takes over, the backend's kernel stands.
    """
    found: list[tuple[int, str, str]] = []
    backend = _keyset_states.BACKENDS[device]

    def end(nr: int) -> int:
        after = nr + 1
        while after < len(hops) and hops[after].depth > hops[nr].depth:
            after += 1
        return after

    def walk(nr: int, stop: int, depth: int) -> None:
        while nr < stop:
            hop, after = hops[nr], end(nr)
            inner = nr + 1 < after and (hops[nr + 1].op, hops[nr + 1].depth) == (hop.op, hop.depth + 1)
            if device == "cuda" and hop.key == "PythonTLSSnapshot" and not mode:
                walk(nr + 1, after, depth)
            elif device == "cuda" and hop.key == "Python":
                found.extend([(depth, hop.op, "Python")] * mode)
                found.append((depth + mode, hop.op, backend))
            else:
                found.append((depth, hop.op, hop.key))
                hands_on = hop.key in ("FuncTorchDynamicLayerBackMode", "ADInplaceOrView", "Python", "BackendSelect")
                if hands_on and not inner:
                    found.append((depth + 1, hop.op, backend))
                elif hop.key != backend or hop.kind == "math kernel":
                    walk(nr + 1, after, depth + 1)
            nr = after

    walk(0, len(hops), 0)
    return found


def without(key: str, hops: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Without the layers of a key, what is inside of them moved out by one."""
    found: list[tuple[int, str, str]] = []
    inside: list[int] = []
    for depth, op, name in hops:
        while inside and depth <= inside[-1]:
            inside.pop()
        if name == key:
            inside.append(depth)
        else:
            found.append((depth - len(inside), op, name))
    return found


def down_to(key: str, hops: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Without what is inside of the layers of a key."""
    found: list[tuple[int, str, str]] = []
    inside = None
    for depth, op, name in hops:
        if inside is None or depth <= inside:
            found.append((depth, op, name))
            inside = depth if name == key else None
    return found


def calls_of(some: list[Choice]) -> list[tuple[Choice, xray.Why]]:
    """The instrument's own answer for each state, from one look."""
    wanted = {OPS[each.op][0] for each in some}

    def every() -> None:
        for each in some:
            run(each)

    found = [call for call in xray.why(every) if call.op in wanted]
    assert [call.op for call in found] == [OPS[each.op][0] for each in some]
    return list(zip(some, found, strict=True))


def test_every_combination_is_there():
    found = states()
    assert len(found) == len(OPS) * (3 if WITH_CUDA else 2) * 2 * 2 * 2 * 3 * 2 * 2
    assert list(found) == choices()
    assert {state.choice.device for state in found.values() if not state.executed} == ({"cuda"} if WITH_CUDA else set())
    assert [choice for choice, state in found.items() if not state.call.agrees] == []


def test_on_cpu_and_meta_the_keys_and_kernels_are_those_that_the_instruments_see():
    """In another order, so that no state can be another's."""
    found = states()
    some = [each for each in reversed(choices()) if each.device != "cuda"]
    for choice, call in calls_of(some):
        mine = found[choice].call
        assert mine.key_sets == call.key_sets, choice
        assert names(mine.hops) == with_ends_of(list(call.hops), choice.device, choice.mode), choice


@with_cuda
def test_for_cuda_they_are_those_of_fake_tensors_less_the_python_keys(monkeypatch):
    """Kernels for CUDA keys are hooked here, though no tensor on a GPU can reach them."""
    monkeypatch.setattr(_kernel_rows, "_backends_here", lambda: {"CPU", "Meta", "CUDA"})
    monkeypatch.setattr(_kernel_rows, "_read", {})
    found = states()
    for choice, call in calls_of([each for each in choices() if each.device == "cuda"]):
        mine = found[choice].call
        fakes = call.key_sets.layout.bits(*FAKES)
        for name, brought in call.key_sets.arguments.items():
            assert mine.key_sets.arguments[name].bits == brought.bits & ~fakes, choice
        for role in ("included", "excluded", "fallthrough"):
            assert mine.key_sets.of_role(role) == call.key_sets.of_role(role), choice
        others = call.key_sets.effective.bits & ~fakes
        assert mine.key_sets.effective.bits & ~fakes == others, choice
        assert ("Python" in mine.key_sets.effective) == choice.mode, choice
        # Where a fake tensor takes over, neither BackendSelect nor what a composite calls below autograd is reached.
        expected = with_ends_of(list(call.hops), "cuda", choice.mode)
        # reshape calls view where a subclass of Tensor might look, and _reshape_alias elsewhere.
        reckoned = [(depth, op.replace("_reshape_alias", "view"), key) for depth, op, key in names(mine.hops)]
        assert without("BackendSelect", down_to("CUDA", reckoned)) == expected, choice


def test_a_single_look_says_the_same():
    choice = Choice("mm", autocast=True, mode=True)
    first = states()[choice].call
    hops = next(call for call in xray.onion(run, choice).calls() if call[0].op == first.op)
    assert names(first.hops) == with_ends_of(list(hops), choice.device, choice.mode)


def test_what_everyone_should_see():
    def winner(**chosen):
        return states()[Choice(**chosen)].call.winner

    assert winner() == winner(requires_grad=False) == winner(no_grad=True) == "AutogradCPU"
    assert winner(inference="around the call") == winner(inference="tensors made in it, too") == "CPU"
    assert winner(autocast=True) == "AutogradCPU" and winner(op="mm", autocast=True) == "AutocastCPU"
    assert winner(mode=True) == "PythonTLSSnapshot" and winner(vmap=True) == "FuncTorchDynamicLayerFrontMode"
    assert winner(op="mm", device="meta", autocast=True) == "AutogradMeta"
    if WITH_CUDA:
        assert winner(op="mm", device="cuda", autocast=True) == "AutocastCUDA"
        assert [hop.key for hop in states()[Choice(device="cuda")].call.hops] == ["AutogradCUDA", "CUDA"]
    assert [hop.key for hop in states()[Choice(mode=True)].call.hops][-2:] == ["Python", "CPU"]


def test_the_code_on_show_is_the_program():
    """It runs as it stands, and reaches the operator with the keys on show."""
    some = [each for each in choices()[::7] if each.device != "cuda"]
    sources = ["\n".join(filter(None, program(each))) for each in some]

    def every() -> None:
        for source in sources:
            exec(source, {"torch": torch, "PassOn": _keyset_states.PassOn})

    wanted = [OPS[each.op][0] for each in some]
    found = [call for call in xray.why(every) if call.op in wanted]
    assert [call.op for call in found] == wanted and len(found) > 100
    for choice, source, call in zip(some, sources, found, strict=True):
        assert call.key_sets == states()[choice].call.key_sets, source


def expand(choice: Choice) -> tuple[str, dict, list, str]:
    """What the browser side draws for a choice."""
    data = compact()
    place = 0
    for name, options in data["options"].items():
        place = place * len(options) + options.index(getattr(choice, name))
    *code, sets, onion, remark = data["states"][place]
    hops = [(depth, *data["hops"][nr]) for depth, nr in data["onions"][onion]]
    words = "\n".join(filter(None, (data["texts"][nr] for nr in code)))
    return words, data["sets"][sets], hops, data["texts"][remark]


def test_the_browser_gets_the_same_of_every_state():
    data = json.loads(json.dumps(compact()))
    assert len(data["states"]) == len(states())
    bits = [row[0] for row in data["rows"]]
    assert bits == sorted(bits, reverse=True) and [row[3] for row in data["rows"]].count(True) == (
        3 if WITH_CUDA else 2
    )
    for choice, state in states().items():
        code, sums, hops, remark = expand(choice)
        sets = state.call.key_sets
        assert code == "\n".join(filter(None, program(choice)))
        assert sum(1 << bit for bit in sums["left"]) == sets.effective.bits == int(sums["hex"], 16)
        assert {name: sum(1 << bit for bit in has) for name, has in sums["arguments"]} == {
            name: each.bits for name, each in sets.arguments.items()
        }
        for nr, role in enumerate(("excluded", "fallthrough")):
            assert sum(1 << bit for bit in sums[role]) == sets.of_role(role).bits
            assert sum(1 << bit for bit in sums["taken"][nr]) == sets.taken(role)
        assert sums["winner"] == sets.winner and set(sums["lit"]) <= set(sums["left"]) <= set(bits)
        assert [(depth, f"aten.{op}".removesuffix(".default"), key) for depth, op, key, *_ in hops] == [
            (hop.depth, hop.op.removesuffix(".default"), hop.key) for hop in state.call.hops
        ]
        assert ("not executed" in remark) == (not state.executed)


def test_each_bit_that_is_there_has_a_reason():
    data = compact()
    for sums in data["sets"]:
        there = {bit for _, bits in sums["arguments"] for bit in bits} | set(sums["included"])
        for (bit, *_), why in zip(data["rows"], sums["why"], strict=True):
            assert bool(data["texts"][why]) == (bit in there), (bit, sums)
            gone = bit in sums["taken"][0] or bit in sums["taken"][1]
            assert ("taken away" in data["texts"][why]) == gone
    _, sums, _, _ = expand(Choice(autocast=False))
    assert sums["words"] == "AutogradFunctionality (bit 36) with CPU (bit 0)"
    assert expand(Choice("mm", autocast=True))[1]["words"] == "bit 39"
    reasons = dict(zip([row[1] for row in data["rows"]], [data["texts"][nr] for nr in sums["why"]], strict=True))
    assert reasons["AutocastCPU"].endswith("taken away: autocast is off for CPU")
    assert reasons["BackendSelect"] == "every thread starts with it; taken away: its row is a fallthrough"
    assert reasons["CPU"] == "the backend of self and other" and reasons["Meta"] == ""


def test_it_is_small_enough_to_be_saved_in_a_notebook():
    assert len(json.dumps(compact())) < 250_000


def test_the_traits_choose_a_state():
    widget = KeySetExplorer()
    assert widget.choice == Choice() and widget.call.winner == "AutogradCPU"
    assert widget.code == "a = torch.ones(3, 3, requires_grad=True)\nb = torch.ones(3, 3)\ntorch.add(a, b)"
    widget.set_state({"op": "mm", "autocast": True})
    assert widget.call.winner == "AutocastCPU"
    assert str(widget).startswith("KeySetExplorer: aten.mm.default goes to AutocastCPU, hops AutocastCPU, ")
    assert widget.at(mode=True).winner == "PythonTLSSnapshot" and widget.choice.mode is False
    with pytest.raises(ValueError, match="there is no state Choice.op='sub'"):
        widget.at(op="sub")
    assert KeySetExplorer(device="meta", inference="around the call").call.winner == "Meta"
    for wrong in ({"op": "sub"}, {"device": "tpu"}, {"inference": "on"}):
        with pytest.raises(TraitError, match="is not offered; choose one of"):
            KeySetExplorer(**wrong)


def test_an_export_has_the_program_and_the_reasons_as_a_picture():
    html = KeySetExplorer(op="mm", autocast=True)._repr_mimebundle_()[0]["text/html"]
    assert "with torch.autocast(&quot;cpu&quot;):" in html and "<svg" in html and "AutocastCPU is highest" in html
    assert "not executed" not in html
    if WITH_CUDA:
        assert "not executed" in KeySetExplorer(device="cuda").static_html()


def test_the_other_widgets_need_no_torch():
    code = "import sys, glassbox.widgets; print('torch' in sys.modules, 'KeySetExplorer' in glassbox.widgets.__all__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False True"
