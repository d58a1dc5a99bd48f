"""Lab 2, extension: the hops of calls never seen before (PyTorch: the kernels of its own dispatch tables)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, lru_cache
from typing import Any

from ..lab1.cases import until
from ..model import Case, Draw, Property, Task
from .pool import BY_KIND, OPERATORS, Call, call_of

HOOKED = (
    *("CPU", "BackendSelect", "ADInplaceOrView", "AutogradCPU", "AutocastCPU", "Python", "PythonTLSSnapshot"),
    *("FuncTorchBatched", "FuncTorchVmapMode", "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode"),
)

# What PyTorch runs


def _true_hops(program: Sequence[Call], state: Sequence[str]) -> list[tuple[str, str]]:
    return [hop for call in program for hop in _hops_of(call[0][0], frozenset(state))]


@lru_cache(1 << 14)
def _hops_of(name: str, state: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Runs one call with hooks around the kernels of its operators, and returns which of them ran."""
    import torch

    called, make, _ = OPERATORS[name]
    hops: list[tuple[str, str]] = []
    names = [each for each in (name, called) if each is not None]
    with warnings.catch_warnings(), torch.library._scoped_library("aten", "IMPL") as library, ExitStack() as blocks:
        warnings.simplefilter("ignore")
        for op, key, kernel in [hook for each in names for hook in _kernels(each)]:
            library.impl(op, _hook(hops, op, key, kernel), key, with_keyset=True, allow_override=True)
        _enter(blocks, state & {"inference_tensor"})
        levels = 2 if "vmap twice" in state else int("vmap" in state)
        x = torch.ones((2,) * (2 + levels), requires_grad="requires_grad" in state)
        _enter(blocks, state - {"inference_tensor"})
        base, _, overload = name.partition(".")
        function = getattr(getattr(torch.ops.aten, base), overload or "default")

        def run(x: Any) -> Any:
            return function(*make(x))

        for _ in range(levels):
            run = torch.vmap(run)
        hops.clear()
        run(x)
    return tuple(hops)


def _enter(blocks: ExitStack, words: frozenset[str]) -> None:
    import torch

    for word, block in (
        ("inference_tensor", torch.inference_mode),
        ("inference_mode", torch.inference_mode),
        ("no_grad", torch.no_grad),
        ("autocast", lambda: torch.autocast("cpu")),
        ("mode", lambda: _passing_mode()()),
    ):
        if word in words:
            blocks.enter_context(block())


@cache
def _passing_mode() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    return Passing


def _kernels(name: str) -> list[tuple[str, str, Any]]:
    """All kernels that can be hooked: a hook at a fallthrough would end the call there."""
    import torch

    found = []
    for line in torch._C._dispatch_dump_table(f"aten::{name}").splitlines():
        key, _, rest = line.partition(": ")
        if key in HOOKED and rest.endswith("]") and not rest.startswith("fallthrough"):
            found.append((name, key, torch.library.get_kernel(f"aten::{name}", key)))
    return found


def _hook(hops: list[tuple[str, str]], name: str, key: str, kernel: Any) -> Callable[..., Any]:
    def hook(keys: Any, *args: Any, **kwargs: Any) -> Any:
        hops.append((name, key))
        return kernel.call_boxed(keys, *args, **kwargs)

    return hook


# Programs


def _program(*kinds: str, state: Sequence[str] = (), maybe: Sequence[str] = (), calls: int = 3) -> Draw:
    """Calls of operators of some kinds; what is on in `state` for sure, and perhaps of `maybe`."""

    def draw(rng: random.Random) -> Case:
        on = {*state, *(word for word in maybe if rng.random() < 0.4)}
        names = [rng.choice(BY_KIND[kind]) for kind in kinds]
        while len(names) < calls:
            names.append(rng.choice(BY_KIND[rng.choice(kinds)]))
        rng.shuffle(names)
        return tuple(map(call_of, names)), tuple(rng.sample(sorted(on), len(on)))

    return until(draw, _runs)


def _runs(case: Case) -> bool:
    """Whether PyTorch runs the program, and has nothing special for it."""
    program, state = case
    kinds = {OPERATORS[call[0][0]][2].removesuffix(" composite") for call in program}
    if "requires_grad" in state and ("inplace" in kinds or "inference_tensor" in state):
        return False
    if "vmap" in state and "vmap twice" in state or "inference_mode" in state and "inference_tensor" in state:
        return False
    # Under vmap PyTorch has ways of its own for matrix products and some in-place operators; a factory maps nothing.
    return not (kinds & {"autocast", "factory", "inplace"} and {"vmap", "vmap twice"} & set(state))


predict_hops = Task(
    id="lab2.predict_hops",
    title="Predict the hops of calls never seen",
    function="predict_hops",
    points=13,
    minutes=45,
    difficulty=5,
    oracle=_true_hops,
    properties=(
        Property(
            "ordinary calls, with and without gradients",
            weight=2,
            corners=(
                _program("plain", "composite", "view"),
                _program("inplace", "inplace"),
                _program("factory", "plain"),
                _program("view", "plain", state=("requires_grad",)),
                _program("composite", "autocast", state=("no_grad",)),
            ),
            draws=(_program("plain", "composite", "view", "inplace", "factory", maybe=("requires_grad", "no_grad")),),
            why="requires_grad and no_grad change what the Autograd kernel does, not that it runs",
            slip="a composite without kernels of its own runs at AutogradCPU and calls its operator from the start",
            count=15,
        ),
        Property(
            "inference mode",
            weight=2,
            corners=(
                _program("plain", "view", "inplace", state=("inference_mode",)),
                _program("plain", "view", "inplace", state=("inference_tensor",)),
                _program("composite", "view", state=("inference_mode", "requires_grad")),
                _program("factory", "composite", state=("inference_tensor",)),
                _program("view composite", "inplace composite", state=("inference_mode",)),
            ),
            draws=(
                _program("plain", "view", "inplace", "composite", state=("inference_mode",)),
                _program("plain", "view", "inplace", "composite", state=("inference_tensor",)),
                _program("view", "inplace", "composite", maybe=("no_grad", "autocast", "inference_mode")),
            ),
            why="the mode excludes Autograd's keys; only tensors made in it lack ADInplaceOrView as well",
            slip="a tensor from outside keeps its ADInplaceOrView key, so views and in-place operators hop there",
            count=15,
        ),
        Property(
            "autocast and a dispatch mode",
            weight=3,
            corners=(
                _program("autocast", "plain", state=("autocast",)),
                _program("autocast", "view", state=("mode",)),
                _program("autocast", "composite", state=("autocast", "mode")),
                _program("factory", "composite", state=("mode",)),
                _program("view", "composite", "inplace", state=("mode", "inference_mode")),
                _program("view composite", "inplace composite", state=("mode", "inference_mode")),
                _program("autocast", "inplace", state=("autocast", "inference_tensor")),
            ),
            draws=(
                _program("autocast", "composite", state=("autocast",), maybe=("mode", "requires_grad")),
                _program("plain", "composite", "view", "factory", state=("mode",), maybe=("autocast",)),
                _program("autocast", "view", "composite", maybe=("mode", "autocast", "inference_mode")),
            ),
            why="PythonTLSSnapshot is passed by every call made above the mode; Python runs the mode below autograd",
            slip="autocast's kernel calls the operator anew, so PythonTLSSnapshot comes twice; below the mode only the "
            "backend is left",
            count=17,
        ),
        Property(
            "vmap, once and twice",
            weight=2,
            corners=(
                _program("plain", "view", state=("vmap",)),
                _program("composite", "view composite", state=("vmap twice",)),
                _program("plain", "view", state=("vmap", "mode")),
                _program("composite", "view", state=("vmap twice", "inference_tensor")),
            ),
            draws=(
                _program("plain", "view", "composite", state=("vmap",), maybe=("mode", "requires_grad", "autocast")),
                _program("plain", "view", "composite", state=("vmap twice",), maybe=("mode", "inference_tensor")),
                _program("plain", "composite", "view", maybe=("mode", "requires_grad")),
            ),
            why="each level is a way through front, batching rule and back; what is left goes on as if from outside",
            slip="a composite is taken apart at FuncTorchBatched in the first level, and is gone in the second",
            count=15,
        ),
    ),
    hints=(
        "Let a function of your own run one operator in a state, append to a list, and call itself: for what a "
        "composite calls, for autocast's second call, for what is left after vmap.",
        "From the top: each level of vmap; PythonTLSSnapshot with a mode; AutocastCPU; AutogradCPU; ADInplaceOrView; "
        "Python; BackendSelect; CPU. At each ask: does the call have the key, does the operator have a kernel there?",
        "A composite (CompositeImplicitAutograd, and neither CPU nor an Explicit alias) stands at AutogradCPU, in "
        "inference mode at CPU. zeros_like has no Autograd kernel, so its first hop may be CPU.",
    ),
    read="notebook 02, 7. Call and redispatch",
)
