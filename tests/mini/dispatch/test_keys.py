"""Facts about dispatch keys and key sets: the same bits, order and set operations as PyTorch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini
from glassbox.mini.c10 import dispatch_key_set as sets
from glassbox.mini.c10.dispatch_key import ALIASES, BACKENDS, FUNCTIONALITIES, PER_BACKEND, DispatchKey

# Per-backend keys that PyTorch's C++ has but its parser of names does not know.
NAMED_BY_TORCH = [
    (key.name, torch._C._parse_dispatch_key(key.name))
    for key in DispatchKey
    if torch._C._parse_dispatch_key(key.name) is not None
]

BITS = st.integers(0, sets.FULL)


def real(raw: int) -> torch._C.DispatchKeySet:
    return torch._C.DispatchKeySet.from_raw_repr(raw)


def names(key_set: object) -> str:
    return str(key_set)


def test_nearly_all_keys_have_a_name_in_torch() -> None:
    unknown = {key.name for key in DispatchKey} - {name for name, _ in NAMED_BY_TORCH}
    assert len(NAMED_BY_TORCH) == 107
    assert all(any(name.endswith(backend) for backend in BACKENDS) for name in unknown)


@pytest.mark.parametrize(("name", "key"), NAMED_BY_TORCH, ids=[name for name, _ in NAMED_BY_TORCH])
def test_a_key_has_torchs_bits(name: str, key: torch._C.DispatchKey) -> None:
    if name in ALIASES:
        assert mini.DispatchKeySet.of(name).raw_repr() == 0
        return
    assert mini.DispatchKeySet.of(name).raw_repr() == torch._C.DispatchKeySet(key).raw_repr()
    assert mini.DispatchKeySet(mini.DispatchKey.CPU).raw_repr() == 0x10001


def test_the_whole_set_and_what_lies_below_a_key_are_torchs() -> None:
    assert mini._C._dispatch_keyset_full().raw_repr() == torch._C._dispatch_keyset_full().raw_repr()
    for name, key in NAMED_BY_TORCH:
        if name in ALIASES or name == "Undefined":
            continue
        expected = torch._C._dispatch_keyset_full_after(key).raw_repr()
        assert mini._C._dispatch_keyset_full_after(name).raw_repr() == expected, name


def test_functionalities_stand_in_torchs_order_of_priority() -> None:
    named = dict(NAMED_BY_TORCH)
    places = [torch._C.DispatchKeySet(named[name]).raw_repr() for name in FUNCTIONALITIES if name in named]
    assert len(places) >= len(FUNCTIONALITIES) - len(PER_BACKEND)
    assert places == sorted(places)


@given(BITS)
def test_a_set_lists_its_keys_as_torch_does(raw: int) -> None:
    # PyTorch's text leaves out a functionality of several backends whose backends are not there, as ours
    # does.
    assert str(mini.DispatchKeySet(raw)) == names(real(raw))
    assert mini.DispatchKeySet.from_raw_repr(raw).raw_repr() == raw


@given(BITS)
def test_the_highest_key_is_torchs(raw: int) -> None:
    mine = mini.DispatchKeySet(raw).highestPriorityTypeId().name
    its = real(raw).highestPriorityTypeId().name
    if mine in PER_BACKEND:
        # No backend bit: PyTorch names the place before the first backend's.
        assert its.startswith("StartOf") or its == "???"
    elif its != "???":
        assert mine == its


@given(BITS, BITS, st.sampled_from(NAMED_BY_TORCH))
def test_set_operations_are_torchs(raw: int, other: int, named: tuple[str, torch._C.DispatchKey]) -> None:
    name, key = named
    a, b = mini.DispatchKeySet(raw), mini.DispatchKeySet(other)
    x, y = real(raw), real(other)
    assert (a | b).raw_repr() == (x | y).raw_repr()
    assert (a & b).raw_repr() == (x & y).raw_repr()
    assert (a - b).raw_repr() == (x - y).raw_repr()
    assert (a == b) == (x == y)
    if name in ALIASES or name == "Undefined":
        return
    assert a.has(name) == x.has(key)
    assert a.add(name).raw_repr() == x.add(key).raw_repr()
    assert a.remove(name).raw_repr() == x.remove(key).raw_repr()


def test_removing_a_key_leaves_the_backend_to_others() -> None:
    both = mini.DispatchKeySet.of("CPU", "AutogradCPU")
    assert both.remove("AutogradCPU") == mini.DispatchKeySet.of("CPU")
    assert both.remove("CPU").has("AutogradCPU")


def test_an_unknown_key_is_a_runtime_error_that_names_the_likely_one() -> None:
    assert mini._C._parse_dispatch_key("autogradcpu") is torch._C._parse_dispatch_key("autogradcpu") is None
    with pytest.raises(RuntimeError, match="'autogradcpu'; did you mean AutogradCPU"):
        mini.DispatchKeySet.of("autogradcpu")
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        torch.library.Library("aten", "IMPL").impl("sin", lambda x: x, "autogradcpu")
    with pytest.raises(AttributeError, match="no dispatch key is called 'Nonsense'"):
        _ = mini.DispatchKey.Nonsense


@pytest.mark.parametrize("alias", sorted(mini._C.ALIAS_COVERS))
def test_an_alias_covers_the_keys_that_torch_says(alias: str) -> None:
    for name, key in NAMED_BY_TORCH:
        if name in ALIASES or name in ("Undefined", *PER_BACKEND):
            continue
        expected = torch._C._dispatch_is_included_in_alias(key, torch._C._parse_dispatch_key(alias))
        assert mini._C._dispatch_is_included_in_alias(name, alias) == expected, name


def tensors(t: object) -> dict[str, object]:
    with t.inference_mode():  # type: ignore[attr-defined]
        inference = t.ones(2)  # type: ignore[attr-defined]
    return {
        "plain": t.ones(2),  # type: ignore[attr-defined]
        "grad": t.ones(2, requires_grad=True),  # type: ignore[attr-defined]
        "int": t.arange(2),  # type: ignore[attr-defined]
        "view": t.ones(2, 2)[0],  # type: ignore[attr-defined]
        "inference": inference,
    }


def test_tensors_carry_torchs_keys() -> None:
    mine, its = tensors(mini), tensors(torch)
    for name, tensor in mine.items():
        assert mini._C._dispatch_keys(tensor).raw_repr() == torch._C._dispatch_keys(its[name]).raw_repr(), name


def test_a_tensor_on_the_simulated_device_is_one_of_privateuse1() -> None:
    keys = mini._C._dispatch_keys(mini.ones(2, device="sim"))
    expected = ("PrivateUse1", "ADInplaceOrView", "AutogradPrivateUse1", "AutocastPrivateUse1")
    assert [key.name for key in keys] == list(expected)


def local(t: object) -> tuple[int, int]:
    c = t._C  # type: ignore[attr-defined]
    return c._dispatch_tls_local_include_set().raw_repr(), c._dispatch_tls_local_exclude_set().raw_repr()


def no_mode(t: object) -> object:
    class Mode(t.TorchDispatchMode if t is mini else torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[name-defined, misc]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    return Mode()


BLOCKS = {
    "nothing": lambda t: (),
    "no_grad": lambda t: (t.no_grad(),),
    "inference_mode": lambda t: (t.inference_mode(),),
    "autocast": lambda t: (t.autocast("cpu"),),
    "dispatch mode": lambda t: (no_mode(t),),
    "no_grad in inference_mode": lambda t: (t.inference_mode(), t.no_grad()),
    "autocast off inside": lambda t: (t.autocast("cpu"), t.autocast("cpu", enabled=False)),
    "inference mode left inside": lambda t: (t.inference_mode(), t.inference_mode(False)),
    "mode in autocast": lambda t: (t.autocast("cpu"), no_mode(t)),
    "autocast in inference_mode": lambda t: (t.inference_mode(), t.autocast("cpu")),
}


@pytest.mark.parametrize("block", BLOCKS)
def test_the_threads_key_sets_are_torchs_in_and_after(block: str) -> None:
    from contextlib import ExitStack

    found = {}
    for t in (torch, mini):
        before = local(t)
        with ExitStack() as stack:
            for manager in BLOCKS[block](t):
                stack.enter_context(manager)
            found[t] = local(t)
        assert local(t) == before
    assert found[mini] == found[torch]


def test_the_threads_key_sets_are_torchs_inside_vmap() -> None:
    found: dict[object, list[object]] = {torch: [], mini: []}
    for t in (torch, mini):

        def look(x, t=t):  # type: ignore[no-untyped-def]
            found[t].append((local(t), t._C._dispatch_keys(x).raw_repr()))
            return x

        t.vmap(t.vmap(look))(t.ones(2, 2, 2))
    assert found[mini] == found[torch]


GUARDS = {
    "exclude": lambda c, s: c._ExcludeDispatchKeyGuard(s("AutogradCPU")),
    "include": lambda c, s: c._IncludeDispatchKeyGuard(c._parse_dispatch_key("TESTING_ONLY_GenericMode")),
    "force": lambda c, s: c._ForceDispatchKeyGuard(s("Python"), s("Functionalize")),
    "below autograd": lambda c, s: c._AutoDispatchBelowAutograd(),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_guards_change_the_sets_as_torchs_and_restore_them(guard: str) -> None:
    found = []
    for t in (torch, mini):
        c = t._C
        before = local(t)
        with GUARDS[guard](c, lambda name, c=c: c.DispatchKeySet(c._parse_dispatch_key(name))):
            included, excluded = local(t)
            # PyTorch keeps a backend's bit here too, where it has no effect: backends cannot be excluded.
            found.append((included, excluded & ~sets.BACKEND_MASK))
        assert local(t) == before
    assert found[0] == found[1]


def test_setting_a_key_for_good_and_back() -> None:
    for t in (torch, mini):
        c = t._C
        key = c._parse_dispatch_key("AutocastCPU")
        assert c._dispatch_tls_is_dispatch_key_excluded(key)
        c._dispatch_tls_set_dispatch_key_excluded(key, False)
        try:
            assert not c._dispatch_tls_is_dispatch_key_excluded(key)
        finally:
            c._dispatch_tls_set_dispatch_key_excluded(key, True)
        assert c._dispatch_tls_is_dispatch_key_excluded(key)
