"""Lab 2: key sets as numbers (PyTorch: c10/core/DispatchKeySet.h)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ...mini.c10.dispatch_key import FUNCTIONALITIES, PER_BACKEND
from ..lab1.cases import always
from ..model import Case, Draw, Property, Task
from . import real
from .real import NUM_BACKENDS, Key

PLACES = range(1, len(FUNCTIONALITIES) + 1)
SHARED = tuple(place for place in PLACES if FUNCTIONALITIES[place - 1] in PER_BACKEND)
OWN = tuple(place for place in PLACES if place not in SHARED)
AUTOGRAD = FUNCTIONALITIES.index("AutogradFunctionality") + 1
FULL = (1 << (NUM_BACKENDS + len(FUNCTIONALITIES))) - 1
BACKEND_MASK = (1 << NUM_BACKENDS) - 1


def bit(place: int) -> int:
    """The bit of a functionality."""
    return 1 << (NUM_BACKENDS + place - 1)


def raw(chosen: Sequence[Key]) -> int:
    """The set of some keys, worked out by PyTorch."""
    made = real.set_of(0)
    for key in chosen:
        if key[0]:
            made = made.add(real.key_called(real.name_of(key)))
    return made.raw_repr()


def some_keys(rng: random.Random, of: Callable[[Key], bool], least: int = 1, most: int = 5) -> list[Key]:
    """Different keys that PyTorch knows by name, in any order."""
    return rng.sample([key for key in real.all_keys() if of(key)], rng.randint(least, most))


def any_key(key: Key) -> bool:
    """Every key."""
    return True


def own_bit(key: Key) -> bool:
    """The keys of no backend."""
    return key[1] == 0


def per_backend(key: Key) -> bool:
    """The keys made of a functionality and a backend."""
    return key[1] != 0


# The number of some keys


def _true_key_set(keys: Sequence[Key]) -> int:
    return raw(keys)


def _keys(of: Callable[[Key], bool], least: int = 1, most: int = 5) -> Draw:
    return lambda rng: (tuple(some_keys(rng, of, least, most)),)


def _same_backend(rng: random.Random) -> Case:
    """Keys that share a backend bit."""
    backend = rng.choice([place for place in range(1, NUM_BACKENDS + 1) if (AUTOGRAD, place) in real.all_keys()])
    fitting = [key for key in real.all_keys() if key[1] == backend]
    return (tuple(rng.sample(fitting, rng.randint(2, min(4, len(fitting))))),)


def _same_functionality(rng: random.Random) -> Case:
    """Keys that share a functionality bit."""
    place = rng.choice(SHARED)
    return (tuple(rng.sample([key for key in real.all_keys() if key[0] == place], rng.randint(2, 3))),)


def _twice(rng: random.Random) -> Case:
    keys = some_keys(rng, any_key, 2, 4)
    return ((*keys, rng.choice(keys)),)


def _with_undefined(rng: random.Random) -> Case:
    keys = [*some_keys(rng, any_key, 2, 4), (0, 0)]
    rng.shuffle(keys)
    return (tuple(keys),)


key_set = Task(
    id="lab2.key_set",
    title="A set of keys in one number",
    function="key_set",
    points=5,
    minutes=10,
    difficulty=1,
    piece="key_bits",
    oracle=_true_key_set,
    properties=(
        Property(
            "keys that belong to no backend",
            weight=1,
            corners=(_keys(own_bit, 1, 1), _keys(own_bit, 6, 6)),
            draws=(_keys(own_bit), _keys(own_bit, 2, 4)),
            why="a functionality without backends is a single bit, above those of the backends",
            slip="functionality 1 is bit 16, so functionality n is bit 15 + n",
        ),
        Property(
            "keys that are a functionality and a backend",
            weight=2,
            corners=(_same_backend, _same_functionality, _keys(per_backend, 1, 1)),
            draws=(_same_backend, _keys(per_backend), _same_functionality, _keys(any_key, 3, 7)),
            why="AutogradCPU and CPU share the backend bit CPU: 16 + 46 bits stand for some 140 keys",
            slip="bits are united with |; adding them up counts a shared bit twice",
        ),
        Property(
            "no key, Undefined, the same key twice",
            weight=1,
            corners=(always(()), always(((0, 0),)), _twice, _with_undefined),
            draws=(_twice, _with_undefined),
            why="a set holds a key or does not, and Undefined is in no set",
            slip="0 stands for none: it sets no bit, where 1 << -1 would be an error",
        ),
    ),
    hints=(
        "Which bit is the functionality's, which the backend's? Two shifts of 1.",
        "Start with 0 and unite with |, so that a bit that is there already stays as it is.",
        "Leave the shift out where the place is 0.",
    ),
    read="notebook 02, 2. Keys are bits of one number",
)


# Taking keys out


def _true_remove_key(key_set: int, key: int) -> int:
    left = real.set_of(key_set)
    for each in real.named_in(key):
        left = left.remove(real.key_called(real.name_of(each)))
    return left.raw_repr()


def _removal(of: Callable[[Key], bool], kind: str = "there", most: int = 1) -> Draw:
    """A set, and the bits of one key or a few: all of them there, not there, or only half of each."""

    def draw(rng: random.Random) -> Case:
        taken = some_keys(rng, of, most, most)
        others = some_keys(rng, any_key, 3, 7)
        if kind == "there":
            return raw([*others, *taken]), raw(taken)
        absent = {place for place, _ in taken}
        others = [key for key in others if key[0] not in absent]
        if kind == "other backend":
            ((place, backend),) = taken
            siblings = [key for key in real.all_keys() if key[0] == place and key[1] != backend]
            others = [key for key in others if key[1] != backend] + [rng.choice(siblings)]
        return raw(others), raw(taken)

    return draw


def _last_backend(rng: random.Random) -> Case:
    """A key of the highest backend, in a set with others of it."""
    last = [key for key in real.all_keys() if key[1] == NUM_BACKENDS]
    return raw([*last, *some_keys(rng, any_key, 2, 5)]), raw(rng.sample(last, 1))


remove_key = Task(
    id="lab2.remove_key",
    title="Taking a key out",
    function="remove_key",
    points=4,
    minutes=8,
    difficulty=2,
    piece="remove_key",
    oracle=_true_remove_key,
    properties=(
        Property(
            "keys that belong to no backend",
            weight=1,
            corners=(_removal(own_bit), _removal(own_bit, most=3)),
            draws=(_removal(own_bit), _removal(own_bit, most=2)),
            why="an autocast kernel takes its own key out before it calls the operator again",
            slip="only the bits of the key go; all others stay",
        ),
        Property(
            "the backend bit stays",
            weight=2,
            corners=(_removal(per_backend), _removal(per_backend, most=3), _last_backend),
            draws=(_removal(per_backend), _removal(any_key, most=4)),
            why="AutogradCPU taken out of (CPU, AutogradCPU) must leave CPU, or no kernel could compute",
            slip="& ~key takes the backend away with the functionality; the low 16 bits must be kept",
        ),
        Property(
            "keys that are not there, or only in part",
            weight=1,
            corners=(
                _removal(own_bit, "absent"),
                _removal(per_backend, "absent"),
                _removal(per_backend, "other backend"),
                lambda rng: (raw(some_keys(rng, any_key, 3, 6)), 0),
            ),
            draws=(
                _removal(any_key, "absent", most=2),
                _removal(per_backend, "other backend"),
                _removal(any_key, most=2),
            ),
            why="functionality bits are shared by all backends: AutogradCUDA goes with AutogradCPU",
            slip="nothing is looked up first: whichever of the functionality bits are there are cleared",
        ),
    ),
    hints=(
        "Which bits of `key` may be cleared at all?",
        "Clearing is & with the complement; in Python ~key has endless ones to the left, which is fine here.",
        "Keep the low 16 bits by putting them into the mask: 0xFFFF | ~key.",
    ),
    read="notebook 02, 2. Keys are bits of one number",
)
