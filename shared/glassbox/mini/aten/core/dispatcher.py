"""Dispatcher: which kernel runs for which keys (PyTorch: aten/src/ATen/core/dispatch/Dispatcher.h, OperatorEntry.cpp).

Kernels are registered per operator and key, or per key for all operators (a backend fallback). From them follows each
operator's dispatch table: one row per runtime key, filled by the first of these that is there:

1. the operator's own kernel for that key
2. an alias key that covers it: CompositeExplicitAutogradNonFunctional, CompositeExplicitAutograd,
   CompositeImplicitAutograd (for an autograd key only where the backend below has no kernel of its own), Autograd,
   FuncTorchBatchedDecomposition
3. the key's backend fallback

A call goes to the row of the highest key in its key set; a row that holds a fallthrough is passed over. What a key set
leads to is worked out at its first use and remembered in the operator's KernelTable until any registration changes.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...c10 import dispatch_key_set
from ...c10.dispatch_key import BACKENDS, FUNCTIONALITIES, PER_BACKEND, DispatchKey, parse
from ...c10.dispatch_key_set import BACKEND_MASK, DispatchKeySet, bits
from ...c10.pieces import an_int, on_swap, piece
from . import gen_operators
from .function_schema import FunctionSchema
from .kernel_function import KernelFunction

# Keys whose tensors have an autograd of no backend's own.
AUTOGRADOTHER_BACKENDS = tuple(
    parse(name) for name in ("FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU")
) + tuple(parse(kind + backend) for kind in ("Quantized", "Sparse", "SparseCsr") for backend in BACKENDS)
_DENSE = tuple(parse(backend) for backend in BACKENDS)
_AUTOGRADS = (
    parse("AutogradOther"),
    *(parse("Autograd" + backend) for backend in BACKENDS),
    parse("AutogradNestedTensor"),
)
_BACKENDS = _DENSE + AUTOGRADOTHER_BACKENDS

# Alias key -> the runtime keys it fills.
ALIAS_COVERS: dict[str, frozenset[DispatchKey]] = {
    "Autograd": frozenset(_AUTOGRADS),
    "CompositeImplicitAutograd": frozenset(
        _BACKENDS
        + _AUTOGRADS
        + tuple(parse("NestedTensor" + backend) for backend in BACKENDS)
        + (parse("Functionalize"),)
    ),
    "CompositeExplicitAutograd": frozenset(_BACKENDS),
    "CompositeExplicitAutogradNonFunctional": frozenset(
        key for key in _BACKENDS if not (key.name.startswith("Sparse"))
    ),
    "FuncTorchBatchedDecomposition": frozenset((parse("FuncTorchBatched"),)),
    "CompositeImplicitAutogradNestedTensor": frozenset(parse("NestedTensor" + b) for b in BACKENDS),
}


def runtime_keys() -> Iterator[DispatchKey]:
    """Every key that has a row, in the order in which PyTorch prints a table."""
    yield DispatchKey.Undefined
    for functionality in FUNCTIONALITIES:
        if functionality in PER_BACKEND:
            yield from (parse(PER_BACKEND[functionality] + backend) for backend in BACKENDS)
        else:
            yield parse(functionality)


def backends_below(key: DispatchKey) -> tuple[DispatchKey, ...]:
    """The backend keys that an autograd key stands above; none for any other key."""
    if key.name == "AutogradOther":
        return AUTOGRADOTHER_BACKENDS
    if key.backend and FUNCTIONALITIES[key.functionality - 1] == "AutogradFunctionality":
        return (parse(BACKENDS[key.backend - 1]),)
    return ()


@piece(returns=lambda out, args: an_int(out))
def compute_key_set(tensors: list[int], included: int, excluded: int) -> int:
    """The key set of a call: the keys of its tensors and the included ones, without the excluded ones."""
    return dispatch_key_set.remove_key(dispatch_key_set.union(tensors) | included, excluded)


def _a_row(out: Any, args: tuple[Any, ...]) -> tuple[str, str] | None:
    if out is None:
        return None
    if isinstance(out, tuple | list) and len(out) == 2 and out[0] in (*args[1], args[0]):
        return out[0], str(out[1])
    raise ValueError("None, or a pair (key whose kernel is used, reason)")


@piece(returns=_a_row)
def resolve_kernel(key: str, registered: frozenset[str], fallbacks: frozenset[str]) -> tuple[str, str] | None:
    """Whose kernel the row of runtime key `key` holds: (name of the key it was registered to, reason), or None.

    registered: the keys that the operator has kernels for; fallbacks: the keys that have a backend fallback. The
    reasons are PyTorch's: "kernel", "default backend kernel", "math kernel", "autograd kernel", "batched kernel",
    "backend fallback", "ambiguous autogradother".
    """
    if key in registered:
        return key, "kernel"
    row = parse(key)
    undefined = key == "Undefined"
    for alias in ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"):
        if alias in registered and (undefined or row in ALIAS_COVERS[alias]):
            return alias, "default backend kernel"
    alias = "CompositeImplicitAutogradNestedTensor"
    if alias in registered and row in ALIAS_COVERS[alias]:
        return alias, "nested kernel"
    alias = "CompositeImplicitAutograd"
    if alias in registered and (undefined or row in ALIAS_COVERS[alias]):
        below = any(backend.name in registered for backend in backends_below(row))
        if key == "AutogradOther" and below:
            return alias, "ambiguous autogradother"
        if not (below or "CompositeExplicitAutograd" in registered):
            return alias, "math kernel"
    if "Autograd" in registered and row in ALIAS_COVERS["Autograd"]:
        return "Autograd", "autograd kernel"
    alias = "FuncTorchBatchedDecomposition"
    if alias in registered and row in ALIAS_COVERS[alias]:
        return alias, "batched kernel"
    if key in fallbacks:
        return key, "backend fallback"
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dispatch table: the runtime key, the kernel or None, and how it came there."""

    key: DispatchKey
    kernel: KernelFunction | None
    reason: str

    def __str__(self) -> str:
        if self.kernel is None:
            return f"{self.key}: {self.reason}"
        kind = "fallthrough registered" if self.kernel.is_fallthrough else "registered"
        return f"{self.key}: {kind} at {self.kernel.registered} [{self.reason}]"


class KernelTable(dict[int, Callable[..., Any]]):
    """Key set -> the function that runs for it; a set that is met for the first time is looked up in the rows."""

    __slots__ = ("op",)

    def __init__(self, op: "OperatorHandle") -> None:
        super().__init__()
        self.op = op

    def __missing__(self, key_set: int) -> Callable[..., Any]:
        function = self.op.lookup(key_set)
        self[key_set] = function
        return function


class OperatorHandle:
    """One operator: its schema, its kernels, its call (PyTorch: OperatorHandle and OperatorEntry).

    call(*arguments)             what at::_ops::add_Tensor::call does; all arguments in the schema's order
    redispatch(key_set, *args)   the same from a kernel, with the keys that are left
    """

    __slots__ = (
        "schema",
        "tags",
        "call",
        "kernels",
        "registrations",
        "dispatcher",
        "_packet",
        "_bind",
        "__weakref__",
    )

    def __init__(self, schema: FunctionSchema, dispatcher: "Dispatcher", tags: tuple[str, ...] = ()) -> None:
        self.schema = schema
        self.tags = tags
        self.dispatcher = dispatcher
        self.kernels = KernelTable(self)
        self.registrations: dict[DispatchKey, list[KernelFunction]] = {}
        self.call = gen_operators.make_call(schema, self.kernels)
        self._packet: Any = None
        self._bind: Any = None

    @property
    def name(self) -> str:
        """namespace::base.overload, as errors and dump() write it."""
        overload = f".{self.schema.overload}" if self.schema.overload else ""
        return f"{self.schema.name}{overload}"

    def redispatch(self, key_set: int, *arguments: Any) -> Any:
        """Go on with the keys that are left: a kernel above the backend calls it with a smaller set."""
        return self.kernels[key_set](key_set, *arguments)

    def own_kernel(self, key: DispatchKey) -> KernelFunction | None:
        """The newest kernel registered to this very key, alias keys included."""
        found = self.registrations.get(key)
        return found[-1] if found else None

    def row(self, key: DispatchKey) -> Row:
        """The dispatch table's row of a runtime key."""
        registered = frozenset(key.name for key, kernels in self.registrations.items() if kernels)
        resolved = resolve_kernel(key.name, registered, self.dispatcher.fallback_names())
        if resolved is None:
            return Row(key, None, "missing")
        name, reason = resolved
        if reason == "ambiguous autogradother":
            return Row(key, None, reason)
        if reason == "backend fallback":
            return Row(key, self.dispatcher.fallbacks[key][-1], reason)
        return Row(key, self.own_kernel(parse(name)), reason)

    def winner(self, key_set: int) -> tuple[Row, int]:
        """The row that a call with `key_set` goes to, and the set without the fallthrough keys that were passed over.

        Raises NotImplementedError where no kernel is there, naming the operator, the keys and what is registered.
        """
        left = key_set
        while True:
            key = dispatch_key_set.highest_priority_key(left)
            row = self.row(key)
            if row.kernel is None or not row.kernel.is_fallthrough:
                break
            left = dispatch_key_set.remove_key(left, bits(key) & ~BACKEND_MASK)
        if row.kernel is None:
            raise NotImplementedError(self._missing(key, key_set, row.reason))
        return row, left

    def lookup(self, key_set: int) -> Callable[..., Any]:
        """The function that runs for a key set, wrapped by whoever watches the dispatcher."""
        row, left = self.winner(key_set)
        assert row.kernel is not None
        function = row.kernel.bound_to(self)
        for watch in self.dispatcher.watchers:
            function = watch(self, row, left, function)
        return function

    def dump(self) -> str:
        """What is registered, kernel by kernel, newest first (PyTorch: torch._C._dispatch_dump)."""
        lines = [f"name: {self.name}", f"schema: {self.schema}"]
        for key in [*runtime_keys(), *(parse(alias) for alias in ALIAS_COVERS)]:
            for age, kernel in enumerate(reversed(self.registrations.get(key, []))):
                kind = "fallthrough registered" if kernel.is_fallthrough else "registered"
                alias = "[alias]" if key.is_alias else ""
                inactive = " (inactive)" if age else ""
                lines.append(f"{key}{alias}: {kind} at {kernel.registered}{inactive}")
        return "\n".join(lines)

    def table(self) -> str:
        """The computed dispatch table, one line per row that holds something (PyTorch: _dispatch_dump_table)."""
        rows = (self.row(key) for key in runtime_keys())
        return "\n".join(str(row) for row in rows if row.kernel is not None or row.reason != "missing")

    def has_kernel_for_dispatch_key(self, key: str | DispatchKey) -> bool:
        """Whether a kernel was registered to this very key."""
        return self.own_kernel(parse(key)) is not None

    def _missing(self, key: DispatchKey, key_set: int, reason: str) -> str:
        there = [each.name for each, kernels in self.registrations.items() if kernels]
        known = ", ".join(sorted(there)) or "nothing"
        if reason != "missing":
            return (
                f"{self.name} has a CompositeImplicitAutograd kernel and one for a backend of AutogradOther, so it is "
                f"ambiguous which of them autograd should see"
            )
        if key is DispatchKey.Undefined:
            return (
                f"There were no tensor arguments to this function, and {self.name} has no kernel for that; registered "
                f"are: {known}. Give it a tensor, or register a CompositeImplicitAutograd or BackendSelect kernel"
            )
        return (
            f"Could not run '{self.name}' with arguments from the '{key}' backend: the call's keys are "
            f"{DispatchKeySet(key_set)}, and kernels are registered for {known}. Register one with "
            f"mini.library.impl({self.name!r}, {key.name!r}), or move the arguments to a device that has one"
        )

    def __str__(self) -> str:
        return f"{self.schema.namespace}.{self.schema.base}.{self.schema.overload_name}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.schema.namespace}.{self.schema.base}', overload='{self.schema.overload_name}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The call as Python writes it: keywords, numbers for tensors, defaults left out."""
        return self.call(*self._bind(args, kwargs))


class Registration:
    """What a registration returns: `remove()` takes it back and restores what was there before."""

    __slots__ = ("_remove",)

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove: Callable[[], None] | None = remove

    def remove(self) -> None:
        """Take the registration back; a second time does nothing."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()


Watcher = Callable[[OperatorHandle, Row, int, Callable[..., Any]], Callable[..., Any]]


class Dispatcher:
    """All operators and all backend fallbacks of the process (PyTorch: c10::Dispatcher::singleton())."""

    def __init__(self) -> None:
        self.operators: dict[tuple[str, str], OperatorHandle] = {}
        self.fallbacks: dict[DispatchKey, list[KernelFunction]] = {}
        self.watchers: list[Watcher] = []
        self._lock = threading.RLock()
        # Replaced by the Python binding, which knows how arguments are written there.
        self.binder: Callable[[FunctionSchema], Callable[..., Any]] | None = None

    def register_def(self, schema: FunctionSchema, tags: tuple[str, ...] = ()) -> OperatorHandle:
        """A new operator; RuntimeError where one with this name and overload is there already."""
        key = (schema.name, schema.overload)
        with self._lock:
            if key in self.operators:
                raise RuntimeError(
                    f"{self.operators[key].name} is defined already, with the schema {self.operators[key].schema}: "
                    f"choose another name or overload"
                )
            op = self.operators[key] = OperatorHandle(schema, self, tags)
            if self.binder is not None:
                op._bind = self.binder(schema)
            return op

    def deregister_def(self, op: OperatorHandle) -> None:
        """Forget an operator."""
        with self._lock:
            self.operators.pop((op.schema.name, op.schema.overload), None)
            self.forget()

    def register_impl(self, op: OperatorHandle, key: DispatchKey, kernel: KernelFunction) -> Registration:
        """A kernel of `op` for a runtime or alias key; the newest one counts."""
        if key is DispatchKey.Undefined:
            raise ValueError(f"a kernel cannot be registered to Undefined: {op.name} needs a key that calls can have")
        return self._push(op.registrations, key, kernel, op.kernels.clear)

    def register_fallback(self, key: DispatchKey, kernel: KernelFunction) -> Registration:
        """A kernel for every operator that has none for `key`; ValueError for an alias key."""
        if key.is_alias or key is DispatchKey.Undefined:
            raise ValueError(f"a backend fallback needs a runtime key, not {key.name}")
        return self._push(self.fallbacks, key, kernel, self.forget)

    def fallback_names(self) -> frozenset[str]:
        """The keys that have a backend fallback."""
        return frozenset(key.name for key, kernels in self.fallbacks.items() if kernels)

    def find_schema(self, name: str, overload: str = "") -> OperatorHandle | None:
        """The operator called namespace::base with that overload; None where there is none."""
        return self.operators.get((name, "" if overload == "default" else overload))

    def find_schema_or_throw(self, name: str) -> OperatorHandle:
        """The operator called namespace::base.overload; RuntimeError names those that look alike."""
        full = name if "::" in name else f"aten::{name}"
        base, _, overload = full.partition(".")
        found = self.find_schema(base, overload)
        if found is None:
            others = [op.name for (known, _), op in self.operators.items() if known == base]
            hint = f"; its overloads are {', '.join(others)}" if others else ""
            raise RuntimeError(f"no operator is called {name!r}{hint}")
        return found

    def watch(self, watcher: Watcher) -> Registration:
        """From now on each kernel is wrapped as watcher(op, row, key_set, function) says when it is looked up."""
        with self._lock:
            self.watchers.append(watcher)
            self.forget()
        return Registration(lambda: self._unwatch(watcher))

    def _unwatch(self, watcher: Watcher) -> None:
        with self._lock:
            self.watchers.remove(watcher)
            self.forget()

    def forget(self) -> None:
        """Drop what was worked out from registrations: a change may lead any call elsewhere."""
        for op in list(self.operators.values()):
            op.kernels.clear()

    def _push(
        self,
        stacks: dict[DispatchKey, list[KernelFunction]],
        key: DispatchKey,
        kernel: KernelFunction,
        forget: Callable[[], None],
    ) -> Registration:
        with self._lock:
            stacks.setdefault(key, []).append(kernel)
            forget()

        def remove() -> None:
            with self._lock:
                stacks[key].remove(kernel)
                forget()

        return Registration(remove)


dispatcher = Dispatcher()


def _pieces_changed() -> None:
    """While a learner's own step is plugged in, calls take it; else they unite the sets without a call."""
    dispatcher.forget()
    for op in list(dispatcher.operators.values()):
        gen_operators.take_steps(op.call, op.schema, None if compute_key_set is _own_step else _current_step)


def _current_step(tensors: list[int], included: int, excluded: int) -> int:
    return compute_key_set(tensors, included, excluded)


_own_step = compute_key_set
on_swap(_pieces_changed)
