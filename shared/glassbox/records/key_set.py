"""KeySet: dispatch keys as named bits of one 64-bit number, how a call's set is made (c10/core/DispatchKeySet.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .table import Rows, Table, html_table

if TYPE_CHECKING:
    from ..draw import Svg


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """Which bit of a key set is which key.

    backends          names of the backend bits; backends[0] is bit 0
    functionalities   names of the bits above them, lowest priority first
    per_backend       (functionality, prefix) for those that have one key per backend: ("AutogradFunctionality",
                      "Autograd") makes AutogradCPU, AutogradCUDA, ...
    aliases           names that stand for several keys when a kernel is registered; they have no bit
    """

    backends: tuple[str, ...]
    functionalities: tuple[str, ...]
    per_backend: tuple[tuple[str, str], ...]
    aliases: tuple[str, ...] = ()

    @property
    def backend_mask(self) -> int:
        return (1 << len(self.backends)) - 1

    @property
    def size(self) -> int:
        """How many bits have a name."""
        return len(self.backends) + len(self.functionalities)

    def prefix(self, functionality: str) -> str | None:
        """What the functionality's keys begin with, followed by the backend; None where it has one key."""
        return dict(self.per_backend).get(functionality)

    def bit_name(self, bit: int) -> str:
        """The name of a bit: a backend's for the low ones, else a functionality's; IndexError for a nameless bit."""
        if not 0 <= bit < self.size:
            raise IndexError(f"bit {bit} of a key set has no name; {self.size} bits have one.")
        return (self.backends + self.functionalities)[bit]

    def bits(self, *keys: str) -> int:
        """The set that holds these keys, each a runtime key ("AutogradCPU", "Python") or a functionality alone.

        KeyError for a name that is neither.
        """
        found = 0
        for key in keys:
            functionality, backend = self.pair(key)
            found |= 1 << (len(self.backends) + self.functionalities.index(functionality))
            if backend:
                found |= 1 << self.backends.index(backend)
        return found

    def pair(self, key: str) -> tuple[str, str]:
        """A key as (functionality, backend): AutogradCPU is ("AutogradFunctionality", "CPU"), Python ("Python", "").

        KeyError for an unknown name, and for an alias, which has no bit.
        """
        if key in self.functionalities:
            return key, ""
        for functionality, prefix in self.per_backend:
            if key.startswith(prefix) and key[len(prefix) :] in self.backends:
                return functionality, key[len(prefix) :]
        kind = "an alias key, which has no bit" if key in self.aliases else "unknown"
        raise KeyError(f"the dispatch key {key!r} is {kind}.")

    def key(self, functionality: str, backend: str) -> str:
        """The runtime key at a functionality and a backend, which only a per-backend functionality needs."""
        prefix = self.prefix(functionality)
        return functionality if prefix is None or not backend else prefix + backend

    def keys(self, bits: int) -> tuple[str, ...]:
        """The runtime keys of a set, lowest priority first; a per-backend functionality needs a backend bit."""
        backends = self.backends_of(bits)
        found: list[str] = []
        for functionality in self.functionalities_of(bits):
            if self.prefix(functionality) is None:
                found.append(functionality)
            else:
                found += [self.key(functionality, backend) for backend in backends]
        return tuple(found)

    def backends_of(self, bits: int) -> tuple[str, ...]:
        return tuple(name for nr, name in enumerate(self.backends) if bits >> nr & 1)

    def functionalities_of(self, bits: int) -> tuple[str, ...]:
        """The functionality bits of a set by name, lowest first: what a mask, which has no backends, consists of."""
        return tuple(name for nr, name in enumerate(self.functionalities, len(self.backends)) if bits >> nr & 1)

    def highest(self, bits: int) -> str:
        """The key that a call with this set goes to; "Undefined" where no functionality bit is set."""
        functionalities = self.functionalities_of(bits)
        if not functionalities:
            return "Undefined"
        backends = self.backends_of(bits)
        return self.key(functionalities[-1], backends[-1] if backends else "")

    def remove(self, bits: int, away: int) -> int:
        """A set without the functionalities of another; backend bits stay, since other keys share them."""
        return bits & (self.backend_mask | ~away)

    def below(self, bits: int, key: str) -> int:
        """The part of a set that lies below a key: what its kernel hands on to."""
        return bits & ((1 << (len(self.backends) + self.functionalities.index(self.pair(key)[0]))) - 1)


@dataclass(frozen=True, slots=True)
class KeySet(Table):
    """One key set. `str` lists its keys, `rows()` its bits, `"AutogradCPU" in it` asks for a key.

    name   whose it is
    bits   the 64-bit number, as raw_repr() has it
    """

    name: str
    bits: int
    layout: KeyLayout

    @property
    def keys(self) -> tuple[str, ...]:
        """The runtime keys, lowest priority first."""
        return self.layout.keys(self.bits)

    @property
    def highest(self) -> str:
        """The key of highest priority; "Undefined" where there is none."""
        return self.layout.highest(self.bits)

    @property
    def backends(self) -> tuple[str, ...]:
        return self.layout.backends_of(self.bits)

    @property
    def functionalities(self) -> tuple[str, ...]:
        return self.layout.functionalities_of(self.bits)

    def __contains__(self, key: str) -> bool:
        wanted = self.layout.bits(key)
        return self.bits & wanted == wanted

    def rows(self) -> Rows:
        """One row per bit that is set, highest first: its number, its name, what it is, and the keys that it makes."""
        found: Rows = []
        for bit in reversed(range(self.layout.size)):
            if not self.bits >> bit & 1:
                continue
            name = self.layout.bit_name(bit)
            if bit < len(self.layout.backends):
                found.append({"bit": bit, "name": name, "kind": "backend", "keys": ""})
            else:
                keys = [name]
                if self.layout.prefix(name) is not None:
                    keys = [self.layout.key(name, backend) for backend in self.backends]
                found.append({"bit": bit, "name": name, "kind": "functionality", "keys": ", ".join(keys)})
        return found

    def caption(self) -> str:
        return f"{self.name}: {self.bits:#x}"

    def figure(self) -> Svg:
        """All bits as a strip, those that are set with their names."""
        from ..draw import key_set_figure

        return key_set_figure(KeySets("", (KeyStep("set", self.name, self.bits),), self.layout))

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + html_table(self.rows(), self.caption())

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.keys) or 'no keys'}"


@dataclass(frozen=True, slots=True)
class KeyStep:
    """One line of the sum that makes a call's key set.

    role   "argument", "union", "included", "excluded", "fallthrough" or "effective"; "set" for a set by itself
    name   for an argument its name in the schema: "self", "tensors[1]"; else as the role
    bits   what the argument brings, or the mask that is added or taken away
    """

    role: str
    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class KeySets(Table):
    """How the key set of a tensor, or of a call, comes about, step by step; made by `keys`.

    op      the operator, "aten.add.Tensor"; "" for a tensor, where no operator's fallthroughs count
    steps   in order: the arguments, their union, + included, - excluded, - fallthrough, = effective
    """

    op: str
    steps: tuple[KeyStep, ...]
    layout: KeyLayout

    @property
    def arguments(self) -> dict[str, KeySet]:
        """What each argument brings, by its name in the schema."""
        return {step.name: KeySet(step.name, step.bits, self.layout) for step in self.steps if step.role == "argument"}

    @property
    def raw(self) -> KeySet:
        """The keys that the arguments bring, all together."""
        united = 0
        for step in self.steps:
            united |= step.bits if step.role == "argument" else 0
        return KeySet(self.op or self.steps[0].name, united, self.layout)

    @property
    def effective(self) -> KeySet:
        """What is left after the thread's sets and the operator's fallthroughs: the call goes to its highest key."""
        return KeySet(self.op or self.steps[0].name, self.steps[-1].bits, self.layout)

    @property
    def winner(self) -> str:
        """The key that the call goes to first; "Undefined" where none is left."""
        return self.effective.highest

    def of_role(self, role: str) -> KeySet:
        """The set of the step with that role; an empty one where there is no such step."""
        bits = next((step.bits for step in self.steps if step.role == role), 0)
        return KeySet(role, bits, self.layout)

    def taken(self, role: str) -> int:
        """The bits that the excluded set or the fallthroughs take away from what has come together by then."""
        so_far = 0
        for step in self.steps:
            if step.role == role:
                return so_far & step.bits
            if step.role in ("argument", "included"):
                so_far |= step.bits
            elif step.role == "excluded":
                so_far = self.layout.remove(so_far, step.bits)
        return 0

    def rows(self) -> Rows:
        """One row per step; of a mask the keys that it takes away, and how many more are in it."""
        return [
            {"step": label(step), "keys": self._names(step) or "-", "bits": f"{step.bits:#x}"} for step in self.steps
        ]

    def _names(self, step: KeyStep) -> str:
        if step.role in ("excluded", "fallthrough"):
            taken = self.layout.functionalities_of(self.taken(step.role))
            idle = len(self.layout.functionalities_of(step.bits)) - len(taken)
            words = [", ".join(taken)] if taken else []
            return " ".join(words + ([f"({idle} more that are not there)"] if idle else []))
        # The thread's included set may hold a functionality without any backend of its own.
        return ", ".join(self.layout.keys(step.bits) or self.layout.functionalities_of(step.bits))

    def caption(self) -> str:
        return f"{self.op or self.steps[0].name}: {self.winner}"

    def figure(self) -> Svg:
        """The steps as rows over named bits, the winner lit."""
        from ..draw import key_set_figure

        return key_set_figure(self)

    def _repr_html_(self) -> str:
        return self.figure()._repr_html_() + html_table(self.rows(), self.caption())


def label(step: KeyStep) -> str:
    """A step as a line of a sum: "argument self", "+ included", "= effective"."""
    signs = {"included": "+ ", "excluded": "- ", "fallthrough": "- ", "effective": "= "}
    return f"argument {step.name}" if step.role == "argument" else signs.get(step.role, "") + step.name
