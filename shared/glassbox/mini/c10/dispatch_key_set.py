"""DispatchKeySet: a set of dispatch keys in one 64-bit number (PyTorch: c10/core/DispatchKeySet.h).

The low 16 bits are backends, the bits above them functionalities. What runs at every call works on the bare
number; the class DispatchKeySet is the same number with names for people. Removing a key removes its
functionality only: AutogradCPU taken from (CPU, AutogradCPU) must leave the CPU bit for CPU.
"""

from collections.abc import Iterable, Iterator

from .dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND, DispatchKey, parse
from .pieces import an_int, piece

NUM_BACKENDS = len(BACKENDS)
BACKEND_MASK = (1 << NUM_BACKENDS) - 1
FULL = (1 << (NUM_BACKENDS + len(FUNCTIONALITIES))) - 1
_PER_BACKEND_PLACES = frozenset(FUNCTIONALITIES.index(name) + 1 for name in PER_BACKEND)


@piece(returns=lambda out, args: an_int(out))
def key_bits(functionality: int, backend: int) -> int:
    """The set that holds one key: its functionality bit and, for a per-backend key, its backend bit.

    functionality, backend: places counted from 1 (see DispatchKey); 0 stands for none. Functionality 1 is bit
    16, backend 1 is bit 0.
    """
    bits = 0
    if functionality:
        bits |= 1 << (NUM_BACKENDS + functionality - 1)
    if backend:
        bits |= 1 << (backend - 1)
    return bits


@piece(returns=lambda out, args: an_int(out))
def remove_key(key_set: int, key: int) -> int:
    """`key_set` without the functionality bits of `key`; backend bits stay, since other keys share them."""
    return key_set & (BACKEND_MASK | ~key)


@piece(returns=lambda out, args: an_int(out))
def highest_functionality(key_set: int) -> int:
    """Place, counted from 1, of the highest functionality in the set; 0 where there is none."""
    return (key_set >> NUM_BACKENDS).bit_length()


@piece(returns=lambda out, args: an_int(out))
def highest_backend(key_set: int) -> int:
    """Place, counted from 1, of the highest backend in the set; 0 where there is none."""
    return (key_set & BACKEND_MASK).bit_length()


def bits(*keys: DispatchKey) -> int:
    """The bare number of a set of keys."""
    found = 0
    for key in keys:
        found |= key_bits(key.functionality, key.backend)
    return found


def highest_priority_key(key_set: int) -> DispatchKey:
    """The key that a call with this set goes to; Undefined for a set without functionality."""
    place = highest_functionality(key_set)
    if place == 0:
        return DispatchKey.Undefined
    return runtime_key(place, highest_backend(key_set))


def runtime_key(functionality: int, backend: int) -> DispatchKey:
    """The key at a place: per-backend functionalities need a backend, the others have none."""
    name = FUNCTIONALITIES[functionality - 1]
    if functionality in _PER_BACKEND_PLACES:
        return parse(PER_BACKEND[name] + BACKENDS[backend - 1]) if backend else parse(name)
    return parse(name)


def full_after(key: DispatchKey) -> int:
    """All backends and every functionality below the key's own, and PythonDispatcher, which nothing takes away."""
    return (1 << (NUM_BACKENDS + key.functionality - 1)) - 1 | bits(DispatchKey.PythonDispatcher)


class DispatchKeySet:
    """A set of keys for people: `DispatchKeySet(DispatchKey.CPU)`, `DispatchKeySet.of("CPU", "AutogradCPU")`.

    Sets combine with |, & and - (which leaves backend bits alone), compare with ==, and list their keys from
    the lowest to the highest priority. A number stands for the set with these bits.
    """

    __slots__ = ("_raw",)

    def __init__(self, keys: "int | DispatchKey" = 0) -> None:
        self._raw = keys if isinstance(keys, int) else bits(keys)

    @classmethod
    def from_raw_repr(cls, raw: int) -> "DispatchKeySet":
        """The set that a 64-bit number stands for."""
        return cls(raw)

    @classmethod
    def of(cls, *keys: str | DispatchKey) -> "DispatchKeySet":
        return cls(bits(*(parse(key) for key in keys)))

    def raw_repr(self) -> int:
        """The 64-bit number."""
        return self._raw

    def has(self, key: str | DispatchKey) -> bool:
        """Whether all bits of the key are there; Undefined is in no set."""
        wanted = bits(parse(key))
        return wanted != 0 and self._raw & wanted == wanted

    __contains__ = has

    def add(self, key: str | DispatchKey) -> "DispatchKeySet":
        return DispatchKeySet(self._raw | bits(parse(key)))

    def remove(self, key: str | DispatchKey) -> "DispatchKeySet":
        return DispatchKeySet(remove_key(self._raw, bits(parse(key))))

    def highestPriorityTypeId(self) -> DispatchKey:  # noqa: N802 - PyTorch's own name
        return highest_priority_key(self._raw)

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self._raw | other._raw)

    def __and__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self._raw & other._raw)

    def __sub__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(remove_key(self._raw, other._raw))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and other._raw == self._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __bool__(self) -> bool:
        return self._raw != 0

    def __iter__(self) -> Iterator[DispatchKey]:
        backends = [place for place in range(1, NUM_BACKENDS + 1) if self._raw >> (place - 1) & 1]
        for place in range(1, len(FUNCTIONALITIES) + 1):
            if self._raw >> (NUM_BACKENDS + place - 1) & 1:
                if place in _PER_BACKEND_PLACES:
                    yield from (runtime_key(place, backend) for backend in backends)
                else:
                    yield runtime_key(place, 0)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


def union(sets: Iterable[int]) -> int:
    """All keys of all sets."""
    found = 0
    for each in sets:
        found |= each
    return found


AUTOGRAD = bits(DispatchKey.AutogradFunctionality, DispatchKey.AutogradOther, DispatchKey.AutogradNestedTensor)
AD_INPLACE_OR_VIEW = bits(DispatchKey.ADInplaceOrView)
AUTOCAST = union(bits(parse(name)) for name in FUNCTIONALITIES if name.startswith("Autocast"))
AFTER_AUTOGRAD = full_after(DispatchKey.AutogradOther)
AFTER_AD_INPLACE_OR_VIEW = full_after(DispatchKey.ADInplaceOrView)
PYTHON = bits(DispatchKey.Python, DispatchKey.PythonTLSSnapshot)
DEFAULT_INCLUDED = bits(DispatchKey.BackendSelect, DispatchKey.ADInplaceOrView)
DEFAULT_EXCLUDED = AUTOCAST


def tensor_keys(backend: str) -> int:
    """The keys of an ordinary tensor of a backend: itself, ADInplaceOrView, its Autograd and its Autocast key."""
    return (
        bits(parse(backend), parse("Autograd" + backend), parse("Autocast" + backend)) | AD_INPLACE_OR_VIEW
    )
