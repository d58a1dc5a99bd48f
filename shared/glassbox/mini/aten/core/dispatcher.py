"""Dispatcher: which kernel runs for a call (PyTorch: aten/src/ATen/core/dispatch/Dispatcher.h, OperatorEntry.h).

Kernels are registered per operator and key, or per key for all operators (a backend fallback). From them follows
each operator's dispatch table, with one row per runtime key: see dispatch_table.py.

Keys whose row holds a fallthrough are masked out of a call's key set; the call goes to the row of the
highest key that is left. What a key set leads to is worked out at its first use and remembered in the
operator's KernelTable until any registration changes.
"""

import threading
from collections.abc import Callable
from typing import Any

from ...c10 import dispatch_key_set
from ...c10.dispatch_key import DispatchKey, parse
from ...c10.dispatch_key_set import NUM_BACKENDS, DispatchKeySet
from ...c10.pieces import an_int, on_swap, piece
from . import boxing, dispatch_table, gen_operators
from .dispatch_table import ALIAS_COVERS, Row, runtime_keys
from .function_schema import FunctionSchema
from .kernel_function import KernelFunction
from .op_overload import OpOverload


@piece(returns=lambda out, args: an_int(out))
def compute_key_set(tensors: list[int], included: int, excluded: int) -> int:
    """The key set of a call: the keys of its tensors and the included ones, without the excluded ones."""
    return dispatch_key_set.remove_key(dispatch_key_set.union(tensors) | included, excluded)


@piece(returns=lambda out, args: an_int(out))
def effective_key_set(key_set: int, fallthrough: tuple[tuple[int, int], ...]) -> int:
    """`key_set` without the functionalities that an operator has fallthroughs for, judged by the highest backend.

    fallthrough: (functionality, backend) of each key whose row holds a fallthrough, places counted from 1; backend
    0 for a functionality without backends. Backend bits stay.
    """
    backend = dispatch_key_set.highest_backend(key_set)
    for functionality, its in fallthrough:
        if its in (0, backend):
            key_set &= ~(1 << (NUM_BACKENDS + functionality - 1))
    return key_set


class KernelTable(dict[int, Callable[..., Any]]):
    """Key set -> the function that runs for it; a set that is met for the first time is looked up in the rows."""

    __slots__ = ("op",)

    def __init__(self, op: "OperatorHandle") -> None:
        super().__init__()
        self.op = op

    def __missing__(self, key_set: int) -> Callable[..., Any]:
        # Under the lock, lest a function that was looked up before a registration be kept after it.
        with self.op.dispatcher.lock:
            function = self[key_set] = self.op.lookup(key_set)
        return function


class OperatorHandle:
    """One operator: its schema, its kernels, its call (PyTorch: OperatorHandle and OperatorEntry).

    call(*arguments)             what at::_ops::add_Tensor::call does; all arguments in the schema's order
    redispatch(key_set, *args)   the same from a kernel, with the keys that are left
    bind(args, kwargs)           what Python wrote -> all arguments in the schema's order
    unbind(arguments)            all arguments -> (args, kwargs) as Python writes them
    overload                     the operator as Python has it: an OpOverload
    """

    __slots__ = (
        "schema",
        "tags",
        "call",
        "kernels",
        "registrations",
        "dispatcher",
        "overload",
        "bind",
        "unbind",
        "_rows",
        "__weakref__",
    )

    def __init__(self, schema: FunctionSchema, dispatcher: "Dispatcher", tags: tuple[str, ...] = ()) -> None:
        self.schema = schema
        self.tags = tags
        self.dispatcher = dispatcher
        self.kernels = KernelTable(self)
        self.registrations: dict[DispatchKey, list[KernelFunction]] = {}
        self.call = gen_operators.make_call(schema, self.kernels)
        self.bind = dispatcher.binder(schema)
        self.unbind = boxing.make_unbinder(schema)
        self.overload = OpOverload(self)
        self._rows: dict[DispatchKey, Row] = {}

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

    def forget(self) -> None:
        """Drop what was worked out from registrations."""
        self._rows.clear()
        self.kernels.clear()

    def row(self, key: DispatchKey) -> Row:
        """The dispatch table's row of a runtime key."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._resolve(key)
        return row

    def _resolve(self, key: DispatchKey) -> Row:
        registered = frozenset(key.name for key, kernels in self.registrations.items() if kernels)
        resolved = dispatch_table.resolve_kernel(key.name, registered, self.dispatcher.fallback_names())
        if resolved is None:
            return Row(key, None, "missing")
        name, reason = resolved
        if reason == "ambiguous autogradother":
            return Row(key, None, reason)
        if reason == "backend fallback":
            return Row(key, self.dispatcher.fallbacks[key][-1], reason)
        return Row(key, self.own_kernel(parse(name)), reason)

    def effective(self, key_set: int) -> int:
        """The key set without the keys that this operator has fallthroughs for."""
        found = []
        for key in DispatchKeySet(key_set):
            kernel = self.row(key).kernel
            if kernel is not None and kernel.is_fallthrough:
                found.append((key.functionality, key.backend))
        return effective_key_set(key_set, tuple(found))

    def winner(self, key_set: int) -> tuple[Row, int]:
        """The row that a call with `key_set` goes to, and the effective key set, which its kernel is told.

        Raises NotImplementedError where no kernel is there, naming the operator, the keys and what is
        registered.
        """
        left = self.effective(key_set)
        key = dispatch_key_set.highest_priority_key(left)
        row = self.row(key)
        if row.kernel is None:
            raise NotImplementedError(self._missing(key, key_set, row.reason))
        return row, left

    def lookup(self, key_set: int) -> Callable[..., Any]:
        """The function that runs for a key set, wrapped by whoever watches the dispatcher."""
        row, left = self.winner(key_set)
        assert row.kernel is not None
        function = row.kernel.bound_to(self, left)
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

    def __repr__(self) -> str:
        return f"<OperatorHandle {self.name}>"


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
        # namespace::base -> its overloads in the order of their definition.
        self.overloads: dict[str, list[OperatorHandle]] = {}
        self.fallbacks: dict[DispatchKey, list[KernelFunction]] = {}
        self.watchers: list[Watcher] = []
        self.lock = threading.RLock()
        # Set by the Python binding, which knows how arguments are written there.
        self.binder: Callable[[FunctionSchema], Callable[..., Any]] = _no_binder

    def register_def(self, schema: FunctionSchema, tags: tuple[str, ...] = ()) -> OperatorHandle:
        """A new operator; RuntimeError where one with this name and overload is there already."""
        key = (schema.name, schema.overload)
        with self.lock:
            if key in self.operators:
                raise RuntimeError(
                    f"{self.operators[key].name} is defined already, with the schema {self.operators[key].schema}: "
                    f"choose another name or overload"
                )
            op = self.operators[key] = OperatorHandle(schema, self, tags)
            self.overloads.setdefault(schema.name, []).append(op)
            return op

    def deregister_def(self, op: OperatorHandle) -> None:
        """Forget an operator."""
        with self.lock:
            if self.operators.pop((op.schema.name, op.schema.overload), None) is None:
                return
            self.overloads[op.schema.name].remove(op)
            if not self.overloads[op.schema.name]:
                del self.overloads[op.schema.name]
            op.forget()

    def register_impl(self, op: OperatorHandle, key: DispatchKey, kernel: KernelFunction) -> Registration:
        """A kernel of `op` for a runtime or alias key; the newest one counts."""
        if key is DispatchKey.Undefined:
            raise ValueError(f"a kernel cannot be registered to Undefined: {op.name} needs a key that calls can have")
        return self._push(op.registrations, key, kernel, op.forget)

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
            others = [op.name for op in self.overloads.get(base, ())]
            hint = f"; its overloads are {', '.join(others)}" if others else ""
            raise RuntimeError(f"no operator is called {name!r}{hint}")
        return found

    def watch(self, watcher: Watcher) -> Registration:
        """From now on each kernel is wrapped as watcher(op, row, key_set, function) says when it is looked up."""
        with self.lock:
            self.watchers.append(watcher)
            self.forget()
        return Registration(lambda: self._unwatch(watcher))

    def _unwatch(self, watcher: Watcher) -> None:
        with self.lock:
            self.watchers.remove(watcher)
            self.forget()

    def forget(self) -> None:
        """Drop what was worked out from registrations: a change may lead any call elsewhere."""
        with self.lock:
            for op in self.operators.values():
                op.forget()

    def _push(
        self,
        stacks: dict[DispatchKey, list[KernelFunction]],
        key: DispatchKey,
        kernel: KernelFunction,
        forget: Callable[[], None],
    ) -> Registration:
        with self.lock:
            stacks.setdefault(key, []).append(kernel)
            forget()

        def remove() -> None:
            with self.lock:
                stacks[key].remove(kernel)
                forget()

        return Registration(remove)


def _no_binder(schema: FunctionSchema) -> Callable[..., Any]:
    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        raise RuntimeError(f"{schema.key} cannot be called from Python: no binding reads its arguments")

    return bind


dispatcher = Dispatcher()
# For code that spares a call nobody sees: with a watcher somebody does.
watchers = dispatcher.watchers


def _pieces_changed() -> None:
    """While a learner's own step is plugged in, calls take it; else they unite the sets without a call."""
    global _last_steps
    steps = (
        compute_key_set,
        effective_key_set,
        dispatch_table.resolve_kernel,
        dispatch_key_set.remove_key,
        dispatch_key_set.highest_functionality,
        dispatch_key_set.highest_backend,
        dispatch_key_set.key_bits,
    )
    if steps == _last_steps:
        return
    _last_steps = steps
    dispatcher.forget()
    own = (compute_key_set, dispatch_key_set.remove_key) == _own_steps
    for op in list(dispatcher.operators.values()):
        gen_operators.take_steps(op.call, op.schema, None if own else _current_step)


def _current_step(tensors: list[int], included: int, excluded: int) -> int:
    return compute_key_set(tensors, included, excluded)


_own_steps = (compute_key_set, dispatch_key_set.remove_key)
_last_steps: tuple[Callable[..., Any], ...] = ()
on_swap(_pieces_changed)
