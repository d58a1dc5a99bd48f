"""Facts about the onion: which kernels run for a call, one inside of the other, and that looking changes nothing."""

import contextlib
import gc
import re
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from glassbox import mini
from glassbox.records import Hop, Onion
from glassbox.xray import onion, table, why
from glassbox.xray._kernel_hooks import KernelHooks


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@torch.library.custom_op("glassbox_onion::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


@torch.library.custom_op("glassbox_onion::thrice", mutates_args=(), device_types="cpu")
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x + x + x


X, W = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
META = torch.ones(2, 2, device="meta")
with torch.inference_mode():
    INFERENCE = torch.ones(2, 2)


def under(*blocks: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """The program as it runs in some blocks."""

    def wrap(program: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with contextlib.ExitStack() as stack:
                for block in blocks:
                    stack.enter_context(block())
                return program()

        return run

    return wrap


AUTOCAST = under(lambda: torch.autocast("cpu"))
IN_INFERENCE = under(torch.inference_mode)

# A program, and the kernels that run for it.
PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "with and without a gradient the Autograd kernel runs": (
        lambda: (X + X, W + X),
        """\
aten.add.Tensor @ AutogradCPU [autograd kernel]
  aten.add.Tensor @ CPU [kernel]
aten.add.Tensor @ AutogradCPU [autograd kernel]
  aten.add.Tensor @ CPU [kernel]""",
    ),
    "of inference tensors the backend's kernel alone": (
        IN_INFERENCE(lambda: INFERENCE + INFERENCE),
        "aten.add.Tensor @ CPU [kernel]",
    ),
    "autocast casts above autograd": (
        AUTOCAST(lambda: X @ W),
        """\
aten.matmul.default @ AutocastCPU [kernel]
  aten.to.dtype @ AutogradCPU [math kernel]
    aten._to_copy.default @ AutogradCPU [autograd kernel]
      aten._to_copy.default @ BackendSelect [kernel]
        aten._to_copy.default @ CPU [default backend kernel]
          aten.empty_strided.default @ BackendSelect [kernel]
            aten.empty_strided.default @ CPU [kernel]
          aten.copy_.default @ CPU [default backend kernel]
  aten.to.dtype @ AutogradCPU [math kernel]
    aten._to_copy.default @ AutogradCPU [autograd kernel]
      aten._to_copy.default @ BackendSelect [kernel]
        aten._to_copy.default @ CPU [default backend kernel]
          aten.empty_strided.default @ BackendSelect [kernel]
            aten.empty_strided.default @ CPU [kernel]
          aten.copy_.default @ CPU [default backend kernel]
  aten.matmul.default @ AutogradCPU [math kernel]
    aten.mm.default @ AutogradCPU [autograd kernel]
      aten.mm.default @ CPU [kernel]
        aten.resolve_conj.default @ CPU [math kernel]
        aten.resolve_conj.default @ CPU [math kernel]
        aten.resolve_conj.default @ CPU [math kernel]""",
    ),
    "views have a kernel at ADInplaceOrView": (
        lambda: X.t(),
        """\
aten.t.default @ AutogradCPU [autograd kernel]
  aten.t.default @ ADInplaceOrView [kernel]
    aten.t.default @ CPU [default backend kernel]
      aten.transpose.int @ CPU [default backend kernel]
        aten.as_strided.default @ CPU [kernel]""",
    ),
    "so have writes": (
        lambda: torch.zeros(2, 2).mul_(X),
        """\
aten.zeros.default @ BackendSelect [kernel]
  aten.zeros.default @ CPU [default backend kernel]
    aten.empty.memory_format @ BackendSelect [kernel]
      aten.empty.memory_format @ CPU [kernel]
    aten.zero_.default @ CPU [kernel]
aten.mul_.Tensor @ AutogradCPU [autograd kernel]
  aten.mul_.Tensor @ ADInplaceOrView [kernel]
    aten.mul_.Tensor @ CPU [kernel]""",
    ),
    "vmap": (
        lambda: torch.vmap(torch.sin)(X),
        """\
aten.sin.default @ FuncTorchDynamicLayerFrontMode [backend fallback]
  aten.sin.default @ FuncTorchBatched [kernel]
    aten.sin.default @ FuncTorchDynamicLayerBackMode [backend fallback]
      aten.sin.default @ AutogradCPU [autograd kernel]
        aten.sin.default @ CPU [kernel]""",
    ),
    "a mode is called at the Python key, below autograd": (
        under(Passing)(lambda: X + X),
        """\
aten.add.Tensor @ PythonTLSSnapshot [backend fallback]
  aten.add.Tensor @ AutogradCPU [autograd kernel]
    aten.add.Tensor @ Python [backend fallback]
      aten.add.Tensor @ CPU [kernel]""",
    ),
    "functionalize": (
        lambda: torch.func.functionalize(torch.sin)(X),
        """\
aten.sin.default @ FuncTorchDynamicLayerFrontMode [backend fallback]
  aten.sin.default @ Functionalize [backend fallback]
    aten.sin.default @ FuncTorchDynamicLayerBackMode [backend fallback]
      aten.sin.default @ AutogradCPU [autograd kernel]
        aten.sin.default @ CPU [kernel]""",
    ),
    "a composite's calls are inside of it": (
        IN_INFERENCE(lambda: torch.nn.functional.linear(INFERENCE, INFERENCE, INFERENCE[0])),
        """\
aten.select.int @ CPU [default backend kernel]
  aten.as_strided.default @ CPU [kernel]
aten.linear.default @ CPU [math kernel]
  aten.t.default @ CPU [default backend kernel]
    aten.transpose.int @ CPU [default backend kernel]
      aten.as_strided.default @ CPU [kernel]
  aten.addmm.default @ CPU [kernel]
    aten.expand.default @ CPU [default backend kernel]
      aten.as_strided.default @ CPU [kernel]
    aten.copy_.default @ CPU [default backend kernel]
    aten.resolve_conj.default @ CPU [math kernel]
    aten.resolve_conj.default @ CPU [math kernel]""",
    ),
    "a backward pass is under its nodes": (
        lambda: torch.autograd.grad((W * X).sum(), W),
        """\
aten.mul.Tensor @ AutogradCPU [autograd kernel]
  aten.mul.Tensor @ CPU [kernel]
aten.sum.default @ AutogradCPU [autograd kernel]
  aten.sum.default @ CPU [default backend kernel]
    aten.sum.dim_IntList @ CPU [kernel]
      aten.as_strided.default @ CPU [kernel]
      aten.fill_.Scalar @ CPU [kernel]
aten.ones_like.default @ CPU [default backend kernel]
  aten.empty_like.default @ CPU [default backend kernel]
    aten.empty_strided.default @ BackendSelect [kernel]
      aten.empty_strided.default @ CPU [kernel]
  aten.fill_.Scalar @ CPU [kernel]
SumBackward0, in backward:
  aten.expand.default @ AutogradCPU [autograd kernel]
    aten.expand.default @ ADInplaceOrView [kernel]
      aten.expand.default @ CPU [default backend kernel]
        aten.as_strided.default @ CPU [kernel]
MulBackward0, in backward:
  aten.mul.Tensor @ AutogradCPU [autograd kernel]
    aten.mul.Tensor @ CPU [kernel]""",
    ),
    "an operator of one's own": (
        lambda: twice(X),
        """\
glassbox_onion.twice.default @ AutogradCPU [autograd kernel]
  glassbox_onion.twice.default @ CPU [default backend kernel]
    aten.add.Tensor @ CPU [kernel]""",
    ),
    "one whose kernel is Python's for one key": (
        lambda: thrice(X),
        """\
glassbox_onion.thrice.default @ AutogradCPU [autograd kernel]
  glassbox_onion.thrice.default @ CPU [kernel] (not watched: inferred)
    aten.add.Tensor @ CPU [kernel]
    aten.add.Tensor @ CPU [kernel]""",
    ),
    "on meta tensors shapes alone are computed": (
        lambda: META.t(),
        """\
aten.t.default @ AutogradMeta [autograd kernel]
  aten.t.default @ ADInplaceOrView [kernel]
    aten.t.default @ Meta [default backend kernel]
      aten.transpose.int @ Meta [default backend kernel]
        aten.as_strided.default @ Meta [kernel]""",
    ),
}


def dropout_and_loss(seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(inplace=True),
        torch.nn.AdaptiveAvgPool2d(3),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(36, 5),
    )
    loss = torch.nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.tensor([1, 2]))
    loss.backward()
    step = torch.optim.Adam(net.parameters(), weight_decay=0.1)
    step.step()
    return [loss, *(p.grad for p in net.parameters()), *net.parameters(), *net.buffers(), torch.get_rng_state()]


def numbers() -> list[torch.Tensor]:
    """What a number is beside a tensor decides the result's dtype."""
    tensors = [
        torch.tensor([1, 0], dtype=torch.int8),
        torch.tensor(2, dtype=torch.uint8),
        torch.tensor([True, False]),
        torch.tensor([1.5, -0.0]),
        torch.tensor(1.5, dtype=torch.float64),
        torch.tensor([1.5 + 1j], dtype=torch.complex64),
    ]
    found = []
    for tensor in tensors:
        for number in (3, 2.5, True, -0.0, 1 + 2j):
            found += [tensor * number, tensor + number]
            if tensor.dtype != torch.bool and number is not True:
                found.append(number - tensor)
            found += [torch.where(tensor != 0, tensor, number), tensor / number]
    return found


def every_kind_of_argument() -> list[torch.Tensor]:
    x = torch.arange(12.0).view(3, 4)
    out = torch.empty(0)
    torch.add(x, x, alpha=2, out=out)
    y = x.clone().requires_grad_()
    y.detach()[1:].mul_(2)
    gradient = torch.func.grad(lambda t: (t * 2.5).sin().sum())(x)
    tangents = torch.func.jvp(torch.sin, (x,), (x,))
    looped = [x * i for i in range(200)]
    return [
        out,
        torch.cat([x, x[:1]], dim=0),
        x[[0, 2]],
        x[:, None, torch.tensor([1, 1])],
        x.max(1).indices,
        x.to(torch.float64),
        torch.full((2,), 3, dtype=torch.int64),
        x.clamp(min=2),
        torch.einsum("ij,kj->ik", x, x),
        torch.nn.functional.pad(x, (1, 1), value=0.5),
        torch.stft(torch.arange(16.0), 4, return_complex=True, window=torch.ones(4)),
        torch.searchsorted(x[0], 1.5),
        torch.normal(0.0, 1.0, (3,), generator=torch.Generator().manual_seed(3)),
        gradient,
        *tangents,
        *looped,
        *x.split([1, 2]),
        torch.tensor([[1, 2], [3, 4]]).float().inverse(),
        x.to_sparse().to_dense(),
        torch.nn.Parameter(x),
        torch.vmap(lambda row: row * 3 + row.sum())(x),
    ]


COMPUTED = {"a step of training": dropout_and_loss, "numbers": numbers, "arguments": every_kind_of_argument}
COMPUTED["numbers in inference mode"] = IN_INFERENCE(numbers)


def deep_reentrant_backward() -> list[torch.Tensor]:
    """Backward inside of backward: from the 60th on the engine takes threads of its own for it."""

    class Deeper(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, depth: int) -> torch.Tensor:
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            threads.add(threading.get_ident())
            with torch.enable_grad():
                leaf = torch.ones(2, requires_grad=True)
                inner = Deeper.apply(leaf, ctx.depth - 1) if ctx.depth else leaf.sin()
                inner.sum().backward()
            return leaf.grad, None

    threads: set[int] = set()
    x = torch.ones(2, requires_grad=True)
    Deeper.apply(x, 80).sum().backward()
    assert len(threads) > 1
    return [x.grad]


COMPUTED["backward inside of backward"] = deep_reentrant_backward


def tables() -> dict[str, str]:
    """Everything that the dispatcher knows of every operator."""
    names = torch._C._dispatch_get_all_op_names()
    return {name: torch._C._dispatch_dump(name) + torch._C._dispatch_dump_table(name) for name in names}


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bytes."""
    plain = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
    # A tensor of one element may keep any strides.
    return torch.empty(plain.numel(), dtype=plain.dtype).copy_(plain.reshape(-1)).view(torch.uint8)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.dtype == other.dtype
        and one.stride() == other.stride()
        and type(one) is type(other)
        and torch.equal(raw(one), raw(other))
    )


def train_step() -> Callable[[], None]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    x = torch.ones(3, 4)
    return lambda: net(x).pow(2).mean().backward()


def resnet_step() -> Callable[[], list[torch.Tensor]]:
    models = pytest.importorskip("torchvision.models")
    torch.manual_seed(0)
    model = models.resnet18().eval()
    image = torch.randn(1, 3, 32, 32)

    def step() -> list[torch.Tensor]:
        model.zero_grad()
        model(image).sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    return step


def elsewhere() -> list[torch.Tensor]:
    """A program that another thread runs, and one kernel of this one."""
    found: list[torch.Tensor] = []

    def work() -> None:
        y = torch.ones(3, requires_grad=True)
        (y * 2.5).sin().sum().backward()
        found.append(y.grad)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return [*found, torch.cos(X)]


COMPUTED["another thread"] = elsewhere


class Mine(torch.Tensor):
    pass


FAILING: list[Callable[[], Any]] = [
    lambda: X + torch.ones(3),
    lambda: X.view(3),
    lambda: X[5],
    lambda: torch.ones(2).mm(X),
    lambda: torch.empty(2, device="meta").item(),
    lambda: X.long() / "2",
]


def raised(program: Callable[[], Any]) -> tuple[type, str]:
    with pytest.raises(Exception) as error:  # noqa: PT011
        program()
    return type(error.value), str(error.value)


class Session:
    """What was seen in one time of hooking, which takes a second or two."""

    def __init__(self) -> None:
        self.plain = {name: compute() for name, compute in COMPUTED.items()}
        self.resolved = {name: resolved(program) for name, program in RESOLVED.items()}
        self.raised = [raised(program) for program in FAILING]
        train, resnet = train_step(), resnet_step()
        train()
        with torch.profiler.profile() as profiler:
            train()
        self.profiled = Counter(event.name for event in profiler.events() if event.name.startswith("aten::"))
        self.resnet = resnet()
        self.watched: dict[str, list[torch.Tensor]] = {}
        self.hops: dict[str, tuple[Hop, ...]] = {}
        self.tables_before = tables()
        with KernelHooks() as hooks:
            for name, program in {**{name: program for name, (program, _) in PROGRAMS.items()}, **RESOLVED}.items():
                program()
                self.hops[name] = hooks.take()
            for name, compute in COMPUTED.items():
                self.watched[name] = compute()
                self.hops[name] = hooks.take()
            train()
            self.hops["train"] = hooks.take()
            self.resnet_watched = resnet()
            self.hops["resnet"] = hooks.take()
            self.raised_watched = [raised(program) for program in FAILING]
            hooks.take()
            self.fake_shape = fake_product().shape
            self.hops["fake"] = hooks.take()
            self.traced = [node.name for node in traced().graph.nodes]
            self.hops["modules"] = hooks.take()
            torch.nn.Linear(2, 2)(X)
            self.subclass = type(torch.ones(2).as_subclass(Mine) + 1)
            self.hops["modules"] = hooks.take()
            self.kept = is_kept()
            hooks.take()
            (X @ W).t()
            self.hops["mini"] = hooks.take()
        self.tables_after = tables()


def fake_product() -> torch.Tensor:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2, 3).mm(torch.ones(3, 4))


def traced() -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(lambda x: (x * 2).sin())(X)


def is_kept() -> bool:
    x = torch.ones(1000)
    gone = weakref.ref(x)
    y = x * 2.5
    del x, y
    gc.collect()
    return gone() is not None


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Session()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernels_of_a_program(session: Session, name: str) -> None:
    assert Onion(session.hops[name]).text() == PROGRAMS[name][1]


@pytest.mark.parametrize("name", COMPUTED)
def test_results_and_gradients_are_the_same_to_the_bit(session: Session, name: str) -> None:
    plain, watched = session.plain[name], session.watched[name]
    assert len(plain) == len(watched) > 0
    assert [nr for nr, pair in enumerate(zip(plain, watched, strict=True)) if not same_bits(*pair)] == []
    assert len(session.hops[name]) >= 2


def test_every_table_is_as_it_was(session: Session) -> None:
    assert session.tables_after == session.tables_before
    assert not {"_make_subclass", "as_subclass"} & vars(torch.Tensor).keys()


def test_key_sets_at_each_hop(session: Session) -> None:
    above, below = session.hops["with and without a gradient the Autograd kernel runs"][:2]
    # AutocastCPU is excluded while autocast is off; ADInplaceOrView falls through for add.
    assert above.keys == ("CPU", "AutogradCPU")
    assert below.keys == ("CPU",)
    keys = torch._C.DispatchKey
    bits = [torch._C.DispatchKeySet(key).raw_repr() for key in (keys.CPU, keys.AutogradCPU)]
    assert (above.key_set, below.key_set) == (bits[0] | bits[1], bits[0])
    alone = session.hops["of inference tensors the backend's kernel alone"][0]
    assert alone.keys == ("CPU",)


def test_a_number_in_inference_mode_brings_no_view_key(session: Session) -> None:
    assert {key for hop in session.hops["numbers in inference mode"] for key in hop.keys} <= {
        "CPU",
        "BackendSelect",
    }


def test_registration_places(session: Session) -> None:
    above, below = session.hops["with and without a gradient the Autograd kernel runs"][:2]
    assert above.place.startswith("torch/csrc/autograd/generated/VariableType_")
    assert below.place.startswith("build/aten/src/ATen/RegisterCPU_")
    own = session.hops["one whose kernel is Python's for one key"][1]
    assert own.inferred and own.place.startswith("torch/_library/custom_ops.py:")
    assert own.keys == ("CPU",)


def test_nodes_of_the_backward_pass(session: Session) -> None:
    seen = session.hops["a backward pass is under its nodes"]
    assert [hop.node for hop in seen if hop.depth == 0] == ["", "", "", "SumBackward0", "MulBackward0"]
    assert {hop.phase for hop in seen} == {"forward", "backward"}


def test_what_the_engine_does_in_threads_of_its_own_is_seen(session: Session) -> None:
    assert (
        sum(
            hop.node == "SinBackward0" and hop.op == "aten.cos.default"
            for hop in session.hops["backward inside of backward"]
            if hop.key == "CPU"
        )
        == 1
    )
    functions = Counter(hop.op for hop in session.hops["backward inside of backward"] if hop.key == "AutogradCPU")
    assert functions["aten.clone.default"] == 81


# The way of asking PyTorch's Python dispatcher, which resolves each hop of a call in Python


def resolved(program: Callable[[], Any]) -> list[tuple[str, str]]:
    from torch._dispatch.python import enable_python_dispatcher
    from torch._ops import OpOverload

    log: list[tuple[str, str]] = []
    plain = OpOverload._get_dispatch

    def logging(self: Any, key: Any) -> Any:
        log.append((str(self), key.name))
        found = plain(self, key)
        self._dispatch_cache.pop(key, None)
        return found

    for packet in (torch.ops.aten.add, torch.ops.aten.mul, torch.ops.aten.sum, torch.ops.aten.t, torch.ops.aten.sin):
        for overload in packet.overloads():
            getattr(packet, overload)._dispatch_cache.clear()
    OpOverload._get_dispatch = logging
    try:
        with enable_python_dispatcher():
            program()
    finally:
        OpOverload._get_dispatch = plain
    return log


RESOLVED: dict[str, Callable[[], Any]] = {
    "add": lambda: W + X,
    "mul and add": lambda: (X * W) + X,
    "sin": lambda: W.sin(),
    "inference": IN_INFERENCE(lambda: INFERENCE * INFERENCE),
    "in place": lambda: torch.sin_(X.clone()),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_the_python_dispatcher_resolves_the_same_hops(session: Session, name: str) -> None:
    # It sees no kernel that one below the backend's key calls, as clone does.
    inner = {"aten.empty_like.default", "aten.empty_strided.default", "aten.copy_.default"}
    seen = [(hop.op, hop.key) for hop in session.hops[name] if hop.op not in inner]
    assert seen == [each for each in session.resolved[name] if each[0] not in inner] != []


def test_calls_are_those_that_the_profiler_counts(session: Session) -> None:
    # A call is what no kernel of the same operator handed on; the profiler makes one of a call inside of its namesake.
    stack: list[Hop] = []
    calls = []
    for hop in session.hops["train"]:
        del stack[hop.depth :]
        name = "::".join(hop.op.split(".")[:2])
        if not stack or "::".join(stack[-1].op.split(".")[:2]) != name:
            calls.append(name)
        stack.append(hop)
    assert Counter(calls) == session.profiled


# Leaving nothing behind


def test_an_exception_in_the_middle_leaves_nothing() -> None:
    before = tables()
    impls = set(torch.library._impls)

    def fails() -> None:
        torch.ones(2) + torch.ones(2)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        onion(fails)
    assert not {"_make_subclass", "as_subclass"} & vars(torch.Tensor).keys()
    assert tables() == before
    assert set(torch.library._impls) == impls
    assert torch._C._len_torch_dispatch_stack() == 0 and torch.is_grad_enabled() and gc.isenabled()


def test_an_error_of_the_program_is_the_error_that_it_was(session: Session) -> None:
    assert session.raised_watched == session.raised


def test_an_onion_inside_of_another_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"kernels are hooked already, .*; look at one program at a time\.$"):
        onion(lambda: onion(torch.sin, X))


def test_kernels_that_others_registered_from_python_keep_working() -> None:
    with torch.library._scoped_library("glassbox_others", "DEF") as lib:
        lib.define("half(Tensor x) -> Tensor")
        seen = []

        def cpu(x: torch.Tensor) -> torch.Tensor:
            seen.append("cpu")
            return x / 2

        def autograd(x: torch.Tensor) -> torch.Tensor:
            seen.append("autograd")
            with torch._C._AutoDispatchBelowAutograd():
                return torch.ops.glassbox_others.half(x)

        lib.impl("half", cpu, "CPU")
        lib.impl("half", autograd, "AutogradCPU")
        hops = onion(torch.ops.glassbox_others.half, X)
        assert [str(hop) for hop in hops if hop.depth == 0] == ["aten.div.Tensor @ CPU [kernel]"]
        assert re.search(r"Python's for one key alone were not hooked \(of .*glassbox_others", hops.note)
        # With a mode on, PyTorch looks the function up by operator and key.
        with Passing():
            assert torch.equal(torch.ops.glassbox_others.half(X), X / 2)
        assert seen == ["autograd", "cpu"] * 2
        assert {"glassbox_others/half/CPU", "glassbox_others/half/AutogradCPU"} <= torch.library._impls
        with pytest.raises(RuntimeError, match="already a kernel registered"):
            lib.impl("half", cpu, "CPU", allow_override=False)


def test_other_threads_pass_unseen(session: Session) -> None:
    assert [str(hop) for hop in session.hops["another thread"]] == [
        "aten.cos.default @ AutogradCPU [autograd kernel]",
        "  aten.cos.default @ CPU [kernel]",
    ]


def test_the_function_runs_once() -> None:
    ran = []
    seen = onion(lambda *args, **kwargs: ran.append((args, kwargs)), 1, two=3)
    assert ran == [((1,), {"two": 3})]
    assert len(seen) == 0 and str(seen) == seen.note and "no kernel ran" in seen.figure().text


def test_no_tensor_is_kept(session: Session) -> None:
    assert not session.kept


# What it can and cannot look at


def test_modules_may_be_made_and_a_subclass_from_data_not(session: Session) -> None:
    assert session.subclass is Mine
    assert "aten.linear.default" in {hop.op for hop in session.hops["modules"]}
    with pytest.raises(RuntimeError, match=r"of another class from data while kernels are hooked; make it before"):
        onion(lambda: Mine([1.0, 2.0]))


def test_a_compiled_function_is_refused() -> None:
    for compiled in (torch.compile(torch.sin), torch.compile(torch.nn.Linear(2, 2))):
        with pytest.raises(ValueError, match=r"a compiled function runs kernels that were generated.*before torch\."):
            onion(compiled, X)


def test_fake_tensors_and_traces(session: Session) -> None:
    assert session.fake_shape == (2, 4)
    assert {"Python", "PythonTLSSnapshot"} <= {hop.key for hop in session.hops["fake"]}
    assert session.traced == ["x_1", "mul", "sin", "output"]


def test_resnet_forward_and_backward(session: Session) -> None:
    assert all(map(same_bits, session.resnet, session.resnet_watched))
    seen = Onion(session.hops["resnet"])
    runs = Counter(hop.op for hop in seen if hop.key == "AutogradCPU" and not hop.node)
    assert runs["aten.conv2d.default"] == runs["aten.convolution.default"] == 20
    backward = Counter(hop.op for hop in seen if hop.node == "ConvolutionBackward0" and hop.depth == 0)
    assert backward["aten.convolution_backward.default"] == 20
    html = seen._repr_html_()
    assert "<svg" not in html and f"{len(seen)} hops, of which the first 300 are listed" in html


def test_every_operator_of_the_database_gives_the_same(full: bool) -> None:
    """Outputs, gradients, errors: of every operator, or of each thirtieth."""
    import warnings

    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._pytree import tree_leaves, tree_map

    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            copy = value.detach().clone()
            return copy.requires_grad_(value.requires_grad)
        return value

    def run(op: Any, sample: Any) -> list[Any]:
        torch.manual_seed(0)
        given = tree_map(copied, (sample.input, sample.args, sample.kwargs))
        try:
            results = op.op(given[0], *given[1], **given[2])
            results = sample.output_process_fn_grad(results) if sample.output_process_fn_grad else results
            outputs = [each for each in tree_leaves(results) if isinstance(each, torch.Tensor)]
            inputs = [each for each in tree_leaves(given) if isinstance(each, torch.Tensor) and each.requires_grad]
            sums = [each.abs().sum() for each in outputs if each.requires_grad and each.layout == torch.strided]
            if sums and inputs:
                outputs += [g for g in torch.autograd.grad(sums, inputs, allow_unused=True) if g is not None]
        except Exception as error:
            # One that no kernel was found goes on to list those that there are, and then the hooks are among them.
            return [type(error), str(error).partition("This could be because")[0]]
        return outputs

    def same(ones: list[Any], others: list[Any]) -> bool:
        return len(ones) == len(others) and all(
            type(one) is type(other)
            and (raw_of_any(one).equal(raw_of_any(other)) if isinstance(one, torch.Tensor) else one == other)
            for one, other in zip(ones, others, strict=True)
        )

    def raw_of_any(tensor: torch.Tensor) -> torch.Tensor:
        dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
        return raw(dense.dequantize() if dense.is_quantized else dense)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = []
        for op in op_db if full else op_db[::30]:
            dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(op.dtypes), torch.float32)
            wanted = op.supports_autograd and dtype.is_floating_point
            for sample in list(op.sample_inputs("cpu", dtype, requires_grad=wanted))[: 3 if full else 2]:
                first, again = run(op, sample), run(op, sample)
                # What gives other values each time (an empty tensor's) tells nothing.
                plain += [(op, sample, first)] if same(first, again) else []
        with KernelHooks() as hooks:
            different = []
            for op, sample, expected in plain:
                if not same(run(op, sample), expected):
                    different.append(op.full_name)
                hooks.take()
    assert different == [] and len(plain) > (1500 if full else 30)


# The record


def test_mini_gives_the_same_onion_without_torch(session: Session) -> None:
    x, w = mini.ones(2, 2), mini.ones(2, 2, requires_grad=True)
    ours = onion(lambda: (x @ w).t())
    its = session.hops["mini"]
    # Below the backend's key each has its own ways.
    upper, lower = ([(hop.op, hop.key, hop.key_set) for hop in seen if "resolve" not in hop.op] for seen in (ours, its))
    assert upper == lower[: len(upper)] and len(upper) >= 6
    assert [hop.op for hop in onion(mini.add, x, w)] == ["aten.add.Tensor"] * 2
    code = (
        "import sys; from glassbox import mini, xray; x = mini.ones(2); "
        "print(len(xray.onion(lambda: x + x)), len(xray.onion(mini.ones, 2)) > 0, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 True False"


def test_calls_counts_rows_and_words(session: Session) -> None:
    seen = Onion(session.hops["a backward pass is under its nodes"], "a note")
    assert [len(call) for call in seen.calls()] == [2, 5, 5, 4, 2]
    assert next(iter(seen.counts().items())) == ("CPU", 12)
    assert seen.rows()[0] == {
        "hop": "aten.mul.Tensor",
        "key": "AutogradCPU",
        "kernel": "autograd kernel",
        "keys": "CPU, AutogradCPU",
        "place": seen[0].place,
        "backward of": "",
    }
    assert seen.rows()[-1]["hop"] == ". aten.mul.Tensor" and seen.rows()[-1]["backward of"] == "MulBackward0"
    assert str(seen).endswith("\na note")
    assert seen._repr_html_().startswith("<svg") and "18 hops; a note" in seen._repr_html_()


def test_hops_and_tables_show_the_same_places(session: Session) -> None:
    hops = [hop for seen in session.hops.values() for hop in seen if hop.op.startswith(("aten.", "glassbox_onion."))]
    for hop in hops:
        row = table(hop.op.replace(".", "::", 1).removesuffix(".default"))[hop.key]
        assert (hop.place, hop.kind) == (row.place, row.kind)
    assert len({hop.op for hop in hops}) > 10


def test_a_torch_without_the_internals_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from glassbox.xray import TorchInternalsError

    before = tables()
    monkeypatch.delattr(torch._C, "_dispatch_get_computed_kernel_for_dispatch_key")
    with pytest.raises(TorchInternalsError, match="has no torch._C._dispatch_get_computed_kernel_for_dispatch_key"):
        onion(torch.sin, X)
    monkeypatch.undo()
    assert tables() == before
    # and the next one works
    assert [str(hop) for hop in onion(torch.sin, X)] == [
        "aten.sin.default @ AutogradCPU [autograd kernel]",
        "  aten.sin.default @ CPU [kernel]",
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA's kernels are hooked where there is a device")
def test_it_says_that_rows_of_a_device_that_is_not_here_are_not_hooked() -> None:
    with FakeTensorMode():
        x = torch.ones(2, 2, device="cuda", requires_grad=True)
        seen, reasons = onion(lambda: x.sin()), why(torch.sin, x)
    assert {"CUDA", "AutogradCUDA"} <= set(seen[0].keys) and not any("CUDA" in hop.key for hop in seen)
    assert "no CUDA device is here, so kernels of its keys (Autograd's too) were not hooked" in seen.note
    assert "device is here" not in onion(torch.sin, META).note
    assert reasons[0].rows()[-1]["step"] == "not hooked"
    assert "no CUDA device is here" in str(reasons) and "no CUDA device is here" in reasons._repr_html_()
    assert "device is here" not in str(why(torch.sin, META))
