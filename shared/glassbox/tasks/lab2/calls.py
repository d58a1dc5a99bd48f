"""Lab 2: the keys that a call has (PyTorch: ATen/core/dispatch/DispatchKeyExtractor.h)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...mini.c10.dispatch_key import BACKENDS, FUNCTIONALITIES
from ..lab1.cases import until
from ..model import Case, Draw, Property, Task
from . import real
from .key_sets import BACKEND_MASK, own_bit, per_backend, raw, some_keys
from .real import NUM_BACKENDS, Key


def _place(name: str) -> int:
    return FUNCTIONALITIES.index(name) + 1


def tensor_keys(backend: int, *without: str) -> int:
    """The key set that an ordinary tensor of a backend has, without some of its functionalities."""
    names = [name for name in ("Dense", "ADInplaceOrView", "AutogradFunctionality") if name not in without]
    autocast = f"Autocast{BACKENDS[backend - 1]}"
    if autocast in FUNCTIONALITIES and autocast not in without:
        names.append(autocast)
    return sum(1 << (NUM_BACKENDS + _place(name) - 1) for name in names) | 1 << (backend - 1)


# PyTorch knows the names of all keys of these.
KNOWN = tuple(BACKENDS.index(name) + 1 for name in ("CPU", "CUDA", "XPU", "PrivateUse1"))
# Of these it knows Dense and Autograd.
WITH_TENSORS = (*KNOWN, NUM_BACKENDS)
DEFAULT_INCLUDED = ("BackendSelect", "ADInplaceOrView")
AUTOCASTS = tuple(name for name in FUNCTIONALITIES if name.startswith("Autocast"))


def _functionalities(*names: str) -> int:
    return sum(1 << (NUM_BACKENDS + _place(name) - 1) for name in names)


# Union, included, excluded


def _true_compute(tensors: Sequence[int], included: int, excluded: int) -> int:
    united = included
    for each in tensors:
        united |= each
    return real.seen_set(united, excluded)


def _tensors(rng: random.Random, backend: int = 0) -> tuple[int, ...]:
    """Ordinary tensors, inference tensors, and some with a few keys more, mostly of one backend."""
    made = []
    backend = backend or rng.choice(WITH_TENSORS)
    for nr in range(rng.randint(1, 3)):
        its = rng.choice(WITH_TENSORS) if nr and rng.random() < 0.4 else backend
        without = rng.choice(((), (), ("ADInplaceOrView", "AutogradFunctionality"), ("AutogradFunctionality",)))
        more = [key for key in some_keys(rng, own_bit, 1, 2) if rng.random() < 0.6]
        made.append(tensor_keys(its, *without) | raw(more))
    return tuple(made)


def _call(included: str = "default", excluded: str = "autocast", tensors: bool = True, backend: int = 0) -> Draw:
    """A call; what the thread includes and excludes, by kind."""

    def draw(rng: random.Random) -> Case:
        found = _tensors(rng, backend) if tensors else ()
        united = 0
        for each in found:
            united |= each
        there = [key for key in real.named_in(united) if not key[1]]
        some = raw(some_keys(rng, own_bit, 1, 3))
        include = {
            "none": 0,
            "default": _functionalities(*DEFAULT_INCLUDED),
            "more": _functionalities(*DEFAULT_INCLUDED) | some,
            "some": some,
        }[included]
        exclude = {
            "none": 0,
            "autocast": _functionalities(*AUTOCASTS),
            "some": raw(rng.sample(there, min(len(there), 1))) | raw(some_keys(rng, own_bit, 0, 2)),
            "included": include & _functionalities(*rng.sample(FUNCTIONALITIES, 25))
            | raw(some_keys(rng, own_bit, 1, 1)),
            "autograd": raw([(_place("AutogradFunctionality"), its) for its in rng.sample(WITH_TENSORS, 3)]),
            "backends": raw([(_place("AutogradFunctionality"), rng.choice(KNOWN))]) | rng.randint(1, BACKEND_MASK),
            "all backends": raw([(_place("AutogradFunctionality"), rng.choice(KNOWN))]) | BACKEND_MASK,
            "dense": raw([(_place("Dense"), rng.choice(KNOWN)), (_place("AutogradFunctionality"), KNOWN[0])]),
        }[excluded]
        return found, include, exclude

    return until(draw, _callable)


def _callable(case: Case) -> bool:
    """Whether PyTorch has a name for the key that such a call goes to."""
    tensors, included, excluded = case
    left = included
    for each in tensors:
        left |= each
    left &= ~excluded | BACKEND_MASK
    top = real.top_name(left)
    return not left >> NUM_BACKENDS or not top.endswith("Undefined")


compute_key_set = Task(
    id="lab2.compute_key_set",
    title="The keys of a call",
    function="compute_key_set",
    points=6,
    minutes=12,
    difficulty=2,
    piece="compute_key_set",
    oracle=_true_compute,
    properties=(
        Property(
            "the keys of all tensors",
            weight=2,
            corners=(_call("none", "none"), _call("none", "none"), _call("none")),
            draws=(_call("none", "none"), _call("none"), _call("none")),
            why="one argument that requires a layer is enough: the layer sees the whole call",
            slip="all sets are united, not only the first one's and not what they have in common",
        ),
        Property(
            "what the thread includes and excludes",
            weight=2,
            corners=(_call(), _call("more"), _call("some", "some"), _call("more", "included")),
            draws=(_call(), _call("more", "included"), _call("some", "some"), _call("more", "some")),
            why="vmap and modes include keys; autocast is held off by an exclusion until it is on",
            slip="excluding comes last: a key that is included and excluded is not there",
        ),
        Property(
            "excluded keys leave their backend",
            weight=1,
            corners=(
                _call("default", "autograd"),
                _call("default", "backends"),
                _call("none", "dense"),
                _call("default", "all backends", backend=NUM_BACKENDS),
            ),
            draws=(_call("default", "autograd"), _call("default", "backends"), _call("none", "dense")),
            why="a kernel of Autograd excludes its own key; the call must still find the backend",
            slip="this is remove_key: no exclusion ever clears one of the 16 low bits",
        ),
        Property(
            "calls without tensors",
            weight=1,
            corners=(_call(tensors=False), _call("none", "none", tensors=False)),
            draws=(
                _call("more", tensors=False),
                _call("some", "included", tensors=False),
                _call("more", "included"),
                _call("some", "some", tensors=False),
            ),
            why="torch.zeros(3) has no tensor that could bring a key; the thread's BackendSelect does",
            slip="no tensors is an empty union, 0; the thread's sets still count",
        ),
    ),
    hints=(
        "Unite, then take away.",
        "`tensors` may be empty: start the union with the included set.",
        "You have written remove_key already; here is what it is for. (Or write its one line again.)",
    ),
    read="notebook 02, 4. The keys of a call",
)


# Without the fallthroughs


def _true_effective(key_set: int, fallthrough: Sequence[Key]) -> int:
    return real.seen_set(key_set, fallthrough=fallthrough)


def _masked(kind: str, backends: tuple[int, int] = (1, 1)) -> Draw:
    """A call's set and an operator's fallthroughs."""

    def draw(rng: random.Random) -> Case:
        its = rng.sample(KNOWN, rng.randint(*backends))
        places = [1, _place("AutogradFunctionality"), *rng.sample([_place("Sparse"), _place("Quantized")], 1)]
        mine = [(place, backend) for place in places for backend in its]
        shared = some_keys(rng, own_bit, 3, 6)
        key_set = raw(mine + shared)
        absent = [key for key in some_keys(rng, own_bit, 4, 8) if key not in shared]
        others = [(place, backend) for place in places for backend in KNOWN if backend not in its]
        lower = [(place, backend) for place in places for backend in its if backend != max(its)]
        highest = [(place, max(its)) for place in places]
        passed = {
            "own": rng.sample(shared, rng.randint(1, len(shared) - 1)),
            "absent": absent + rng.sample(others, rng.randint(1, len(others))),
            "none": [],
            "highest": rng.sample(highest, rng.randint(1, len(highest) - 1)) + rng.sample(others, 2),
            "lower": rng.sample(lower, rng.randint(1, len(lower))) if lower else [],
            "any": rng.sample([*shared, *highest, *lower, *others, *absent], rng.randint(3, 8)),
            "all": shared + highest,
            "all shared": shared,
        }[kind]
        passed = list(dict.fromkeys(passed))
        rng.shuffle(passed)
        return key_set, tuple(passed)

    return draw


def _factory(rng: random.Random) -> Case:
    """A set without backend bits, as a call without tensors has."""
    shared = some_keys(rng, own_bit, 3, 7)
    passed = rng.sample(shared, rng.randint(1, len(shared))) + some_keys(rng, per_backend, 0, 3)
    rng.shuffle(passed)
    return raw(shared), tuple(passed)


effective_key_set = Task(
    id="lab2.effective_key_set",
    title="Passing over fallthroughs",
    function="effective_key_set",
    points=8,
    minutes=15,
    difficulty=3,
    piece="effective_key_set",
    oracle=_true_effective,
    properties=(
        Property(
            "functionalities without backends",
            weight=2,
            corners=(_masked("own"), _masked("none"), _masked("own", (2, 3))),
            draws=(_masked("own"), _masked("own"), _masked("all shared"), _factory),
            why="AutocastCPU and ADInplaceOrView are in nearly every set, and most operators have nothing there",
            slip="the functionality bit goes; one bit for each pair, and nothing for pairs that are not there",
        ),
        Property(
            "functionalities with a key for each backend",
            weight=2,
            corners=(_masked("highest"), _masked("highest", (2, 3)), _masked("lower", (2, 3))),
            draws=(
                _masked("highest", (1, 3)),
                _masked("lower", (2, 3)),
                _masked("any", (2, 3)),
                _masked("highest", (2, 3)),
            ),
            why="a fallthrough at AutogradCPU must not hide the kernel at AutogradCUDA",
            slip="only the pair with the highest backend of the set decides; a lower backend's does not count",
        ),
        Property(
            "keys that the call does not have",
            weight=1,
            corners=(_masked("absent"), _masked("absent", (2, 3)), _masked("any")),
            draws=(_masked("absent", (1, 2)), _masked("any", (1, 2)), _masked("any")),
            why="an operator's fallthroughs are about all calls, a set is about one",
            slip="clear with & ~bit; subtracting or flipping puts a bit in where none was",
        ),
        Property(
            "nothing is left",
            weight=1,
            corners=(_masked("all"), _masked("all", (2, 3)), _factory),
            draws=(_masked("all", (1, 3)), _masked("any", (1, 3)), _masked("all", (1, 2)), _factory),
            why="without a functionality no kernel is found, and the error names the operator's keys",
            slip="backend bits stay even then, and the answer is a number, not an error",
        ),
    ),
    hints=(
        "What is the highest backend of the set? Find it once, before anything is cleared.",
        "A pair matters where its backend is 0, or is the highest one.",
        "Clear bit 15 + functionality of each pair that matters.",
    ),
    read="notebook 02, 5. Fallthrough: keys that are passed over",
)
