"""Facts about the dispatcher: which kernel a row holds, which one runs, and what registrations do, as in PyTorch."""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.c10.pieces import reference

KEYS = (
    "CPU",
    "PrivateUse1",
    "AutogradCPU",
    "Autograd",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "FuncTorchBatched",
    "FuncTorchBatchedDecomposition",
)
MORE_KEYS = (
    "AutogradOther",
    "QuantizedCPU",
    "SparseCsrCPU",
    "Functionalize",
    "BackendSelect",
    "ADInplaceOrView",
    "CompositeImplicitAutogradNestedTensor",
    "AutocastCPU",
    "Python",
)
# Keys whose fallback in PyTorch serves what there is not here: meta tensors, lazy conjugation, tracing,
# nested tensors, the old vmap, functorch's grad, the Python dispatcher.
NOT_HERE = frozenset(
    [
        "Meta",
        "Conjugate",
        "Negative",
        "ZeroTensor",
        "Tracer",
        "BatchedNestedTensor",
        "Batched",
        "FuncTorchGradWrapper",
        "PreDispatch",
        "PythonDispatcher",
    ]
)
# The simulated device has an autocast; PyTorch leaves that to whoever brings a PrivateUse1 backend.
ONLY_HERE = frozenset(("AutocastPrivateUse1",))
_fresh = itertools.count()


def rows(table: str) -> dict[str, str]:
    """Key -> kind of its row, of the text of a dispatch table."""
    found = {}
    for line in table.splitlines():
        key, colon, rest = line.partition(": ")
        if colon:
            kind = rest[rest.rindex("[") + 1 : -1] if rest.endswith("]") else rest
            found[key] = ("fallthrough: " if rest.startswith("fallthrough") else "") + kind
    return found


def comparable(its: dict[str, str], mine: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    its = {key: kind for key, kind in its.items() if not (key in NOT_HERE and kind == "backend fallback")}
    mine = {key: kind for key, kind in mine.items() if key not in ONLY_HERE}
    return its, mine


def compare_tables(registered: tuple[str, ...]) -> None:
    ns = f"resolve{next(_fresh)}"
    its, mine = torch.library.Library(ns, "DEF"), mini.library.Library(ns, "DEF")
    try:
        for lib in (its, mine):
            lib.define("f(Tensor x) -> Tensor")
            for key in registered:
                lib.impl("f", lambda x: x, key)
        expected, found = comparable(
            rows(torch._C._dispatch_dump_table(f"{ns}::f")), rows(mini._C._dispatch_dump_table(f"{ns}::f"))
        )
        assert found == expected, registered
        assert list(found) == list(expected), registered
    finally:
        its._destroy()
        mine._destroy()


def test_every_subset_of_registrations_fills_the_table_as_torchs() -> None:
    for size in range(len(KEYS) + 1):
        for registered in itertools.combinations(KEYS, size):
            compare_tables(registered)


def test_one_more_registration_of_each_other_kind_fills_it_as_torchs(full: bool) -> None:
    for more in MORE_KEYS:
        for size in range(5 if full else 2):
            for registered in itertools.combinations(KEYS, size):
                compare_tables((more, *registered))


def outcome(t: Any, op: Any, block: Any, grad: bool) -> Any:
    """What a call gives, or the type of its error."""
    x = t.zeros(2, requires_grad=grad)
    with block(t), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return t.vmap(op)(x).tolist() if block is mapped else op(x).tolist()
        except (NotImplementedError, RuntimeError) as problem:
            return type(problem)


def mapped(t: Any) -> Any:
    return nullcontext()


def test_calls_run_the_kernel_that_torchs_run() -> None:
    blocks = (lambda t: nullcontext(), lambda t: t.inference_mode(), mapped)
    for size in range(4):
        for registered in itertools.combinations(KEYS, size):
            ns = f"called{next(_fresh)}"
            found: dict[Any, list[Any]] = {torch: [], mini: []}
            for t in (torch, mini):
                lib = t.library.Library(ns, "DEF")
                lib.define("f(Tensor x) -> Tensor")
                for nr, key in enumerate(KEYS):
                    if key in registered:
                        lib.impl("f", lambda x, nr=nr: x + (nr + 1), key)
                op = getattr(t.ops, ns).f.default
                for block in blocks:
                    found[t] += [outcome(t, op, block, grad) for grad in (False, True)]
                lib._destroy()
            assert found[mini] == found[torch], registered


def test_the_same_keys_have_backend_fallbacks() -> None:
    its, mine = torch.library.Library("noth", "DEF"), mini.library.Library("noth", "DEF")
    try:
        for lib in (its, mine):
            lib.define("f(Tensor x) -> Tensor")
        expected, found = comparable(
            rows(torch._C._dispatch_dump_table("noth::f")), rows(mini._C._dispatch_dump_table("noth::f"))
        )
        assert found == expected
        assert found["Functionalize"] == "backend fallback"
        assert found["BackendSelect"] == "fallthrough: backend fallback"
    finally:
        its._destroy()
        mine._destroy()


SHOWN = ("AutogradCPU", "ADInplaceOrView", "BackendSelect", "AutocastCPU", "CPU", "FuncTorchVmapMode", "Python")


@pytest.mark.parametrize(
    "name", ["add.Tensor", "add_.Tensor", "mm", "t", "relu", "view", "randn", "zeros_like", "fill_.Scalar"]
)
def test_the_tables_of_real_operators_agree_where_it_shows(name: str) -> None:
    its, mine = (
        rows(torch._C._dispatch_dump_table(f"aten::{name}")),
        rows(mini._C._dispatch_dump_table(f"aten::{name}")),
    )
    for key in SHOWN:
        if key == "AutogradCPU" and name == "randn":
            continue  # no tensor can bring the key
        assert mine.get(key) == its.get(key), (key, mine.get(key), its.get(key))


def test_the_operators_with_a_backendselect_kernel_are_torchs() -> None:
    for op in dispatcher.operators.values():
        if op.schema.namespace != "aten" or not torch._C._dispatch_has_kernel(op.name):
            continue
        expected = torch._C._dispatch_has_kernel_for_dispatch_key(op.name, "BackendSelect")
        assert op.has_kernel_for_dispatch_key("BackendSelect") == expected, op.name


# Which kernel runs


@pytest.fixture
def both() -> Iterator[tuple[torch.library.Library, mini.library.Library]]:
    """A Library of a namespace of its own on each side, with one operator f."""
    ns = f"ran{next(_fresh)}"
    its, mine = torch.library.Library(ns, "DEF"), mini.library.Library(ns, "DEF")
    for lib in (its, mine):
        lib.define("f(Tensor x, *, int n=3) -> Tensor")
    yield its, mine
    its._destroy()
    mine._destroy()


def call(t: object, lib: object, *args: object, **kwargs: object) -> object:
    return getattr(t.ops, lib.ns).f(*args, **kwargs)  # type: ignore[attr-defined]


def test_with_keyset_kernels_are_told_torchs_effective_key_set(both: tuple) -> None:  # type: ignore[type-arg]
    seen: dict[object, list[int]] = {torch: [], mini: []}
    for t, lib in zip((torch, mini), both, strict=True):

        def kernel(keys, x, *, n=3, t=t):  # type: ignore[no-untyped-def]
            seen[t].append(keys.raw_repr())
            return x.clone()

        def autograd(keys, x, *, n=3, t=t, lib=lib):  # type: ignore[no-untyped-def]
            seen[t].append(keys.raw_repr())
            op = getattr(t.ops, lib.ns).f.default
            below = keys & t._C._dispatch_keyset_full_after(t._C._parse_dispatch_key("AutogradOther"))
            return op.redispatch(below, x, n=n)

        lib.impl("f", kernel, "CPU", with_keyset=True)
        lib.impl("f", autograd, "AutogradCPU", with_keyset=True)
        x = t.ones(2, requires_grad=True)
        call(t, lib, x)
        with t.no_grad():
            call(t, lib, x)
        with t.inference_mode():
            call(t, lib, x)
        with t.autocast("cpu"):
            call(t, lib, x)
    assert seen[mini] == seen[torch]
    assert len(seen[mini]) == 7


def test_a_kernel_gets_arguments_as_written_and_defaults_left_out(both: tuple) -> None:  # type: ignore[type-arg]
    seen: dict[object, list[object]] = {torch: [], mini: []}
    for t, lib in zip((torch, mini), both, strict=True):
        lib.define("g(Tensor x, int[] sizes, float f=1.5, *, bool flag=False, Tensor[] rest) -> Tensor")

        def f(*args, t=t, **kwargs):  # type: ignore[no-untyped-def]
            seen[t].append((len(args), args[1:], kwargs))
            return args[0].clone()

        def g(*args, t=t, **kwargs):  # type: ignore[no-untyped-def]
            rest = kwargs.pop("rest")
            seen[t].append((args[1:], kwargs, type(rest), len(rest)))
            return args[0].clone()

        lib.impl("f", f, "CPU")
        lib.impl("g", g, "CPU")
        x = t.ones(2)
        call(t, lib, x)
        call(t, lib, x, n=3)
        call(t, lib, x, n=4)
        op = getattr(t.ops, lib.ns).g
        op(x, (1, 2), rest=[x])
        op(x, [1, 2], 1.5, flag=True, rest=[x, x])
        op(x, [1, 2], 2.5, rest=[])
    assert seen[mini] == seen[torch]


def test_a_fallthrough_is_passed_over(both: tuple) -> None:  # type: ignore[type-arg]
    for t, lib in zip((torch, mini), both, strict=True):
        lib.impl("f", lambda x, *, n=3: x + n, "CPU")
        lib.impl("f", t.library.fallthrough_kernel, "AutogradCPU")
        assert call(t, lib, t.ones(2, requires_grad=True)).tolist() == [4.0, 4.0]
        table = t._C._dispatch_dump_table(f"{lib.ns}::f")
        assert rows(table)["AutogradCPU"] == "fallthrough: kernel"


def test_the_newest_kernel_counts_and_taking_it_back_restores_the_older(both: tuple) -> None:  # type: ignore[type-arg]
    for t, lib in zip((torch, mini), both, strict=True):
        lib.impl("f", lambda x, *, n=3: x + 1, "CPU")
        x = t.ones(2)
        assert call(t, lib, x).tolist() == [2.0, 2.0]
        with_two = t.library.Library(lib.ns, "IMPL")
        with_two.impl("f", lambda x, *, n=3: x + 2, "CPU")
        assert call(t, lib, x).tolist() == [3.0, 3.0]
        assert "(inactive)" in t._C._dispatch_dump(f"{lib.ns}::f")
        with_two._destroy()
        assert call(t, lib, x).tolist() == [2.0, 2.0]


def test_a_missing_kernel_names_op_keys_and_what_is_registered(both: tuple) -> None:  # type: ignore[type-arg]
    for t, lib in zip((torch, mini), both, strict=True):
        lib.impl("f", lambda x, *, n=3: x, "PrivateUse1")
        with pytest.raises(
            NotImplementedError, match=rf"Could not run '{lib.ns}::f' with arguments from the 'CPU' backend"
        ):
            call(t, lib, t.ones(2))
    with pytest.raises(NotImplementedError) as caught:
        call(mini, both[1], mini.ones(2))
    text = str(caught.value)
    assert "DispatchKeySet(CPU)" in text and "registered for PrivateUse1" in text and "mini.library.impl" in text


def test_no_tensor_and_no_kernel_for_that_is_an_error_that_says_so() -> None:
    for t in (torch, mini):
        lib = t.library.Library(f"nothing{next(_fresh)}", "DEF")
        lib.define("f(int n) -> Tensor")
        lib.impl("f", lambda n, t=t: t.ones(n), "CPU")
        with pytest.raises(NotImplementedError, match="There were no tensor arguments to this function"):
            getattr(t.ops, lib.ns).f(2)
        lib.impl("f", lambda n, t=t: t.ones(n), "CompositeImplicitAutograd")
        assert getattr(t.ops, lib.ns).f(2).tolist() == [1.0, 1.0]
        lib._destroy()


def test_overriding_a_real_operator_changes_every_way_to_it() -> None:
    x = mini.ones(2)
    held = mini.ops.aten.mul.Tensor
    with mini.library.Library("aten", "IMPL") as lib:
        lib.impl("mul.Tensor", lambda a, b: mini.full((2,), 42.0), "CPU", allow_override=True)
        assert (x * x).tolist() == x.mul(x).tolist() == mini.mul(x, x).tolist() == held(x, x).tolist() == [42.0, 42.0]
        assert "test_dispatcher.py" in dispatcher.find_schema_or_throw("mul.Tensor").table()
    assert (x * x).tolist() == [1.0, 1.0]


def test_the_backendselect_hop_of_a_factory() -> None:
    with mini.record() as seen:
        mini.randn(2)
    assert [(hop.op, hop.key, hop.kind) for hop in seen.hops][:2] == [
        ("aten.randn.default", "BackendSelect", "kernel"),
        ("aten.randn.default", "CPU", "default backend kernel"),
    ]


def test_to_copy_finds_its_device_through_backendselect() -> None:
    for source, target in (("cpu", "sim"), ("sim", "cpu")):
        x = mini.ones(2, device=source)
        with mini.record() as seen:
            y = x.to(target)
        copies = [hop.key for hop in seen.hops if hop.op == "aten._to_copy.default"]
        autograd = "AutogradCPU" if source == "cpu" else "AutogradPrivateUse1"
        assert copies == [autograd, "BackendSelect", "PrivateUse1"]
        assert y.device.type == target


def test_a_watcher_that_goes_leaves_nothing_behind() -> None:
    op = dispatcher.find_schema_or_throw("sin")
    seen = []
    watching = dispatcher.watch(lambda op, row, left, function: seen.append(row.key.name) or function)  # type: ignore[func-returns-value]
    mini.ones(2).sin()
    assert seen[-2:] == ["AutogradCPU", "CPU"]
    watching.remove()
    count = len(seen)
    mini.ones(2).sin()
    assert len(seen) == count
    assert op.kernels[mini._C._dispatch_keys(mini.ones(2)).raw_repr()] is not None


# Learners' own steps


def test_a_learners_resolution_takes_every_decision_and_goes_again() -> None:
    asked = []

    own = reference("resolve_kernel")

    def mine(key: str, registered: frozenset[str], fallbacks: frozenset[str]) -> tuple[str, str] | None:
        asked.append(key)
        return own(key, registered, fallbacks)

    with mini.using(resolve_kernel=mine):
        assert (mini.ones(2) + 1).tolist() == [2.0, 2.0]
        assert "CPU" in asked
    asked.clear()
    assert (mini.ones(2) + 1).tolist() == [2.0, 2.0]
    assert asked == []


def test_a_learners_wrong_resolution_shows() -> None:
    with mini.using(resolve_kernel=lambda key, registered, fallbacks: None), pytest.raises(NotImplementedError):
        mini.ones(2) + 1
    with (
        mini.using(resolve_kernel=lambda key, registered, fallbacks: 5),
        pytest.raises(TypeError, match="your resolve_kernel"),
    ):
        mini.ones(2) + 1


def test_a_learners_key_set_step_is_asked_at_every_call() -> None:
    seen = []

    def mine(tensors: list[int], included: int, excluded: int) -> int:
        seen.append(len(tensors))
        total = included
        for keys in tensors:
            total |= keys
        return total & (0xFFFF | ~excluded)

    with mini.using(compute_key_set=mine):
        x = mini.ones(2)
        seen.clear()
        x + x
        assert seen == [2]
    seen.clear()
    x + x
    assert seen == []
