"""OpOverload: an operator as Python has it, in mini.ops and in the hands of a dispatch mode (PyTorch: torch/_ops.py).

`mini.ops.aten.add` is a packet of overloads that finds the one its arguments fit;
`mini.ops.aten.add.Tensor` is one of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...c10.dispatch_key import DispatchKey, parse
from ...c10.dispatch_key_set import DispatchKeySet
from .function_schema import FunctionSchema

if TYPE_CHECKING:
    from .dispatcher import Dispatcher, OperatorHandle


class OpOverload:
    """One overload. There is one object per operator, so `is` and `==` compare operators."""

    __slots__ = ("_handle", "__weakref__")

    def __init__(self, handle: "OperatorHandle") -> None:
        self._handle = handle

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it as Python writes calls; RuntimeError where the arguments do not fit the schema."""
        return _called(self._handle, self._bound(args, kwargs))

    def redispatch(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Go on from a kernel with the keys of `keyset`, without those of the arguments and of the thread."""
        return self._handle.redispatch(keyset.raw_repr(), *self._bound(args, kwargs))

    def decompose(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the CompositeImplicitAutograd kernel, whatever other kernels there are; NotImplemented without one."""
        kernel = self._handle.own_kernel(DispatchKey.CompositeImplicitAutograd)
        if kernel is None:
            return NotImplemented
        return kernel.bound_to(self._handle, 0)(0, *self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._handle.bind(args, kwargs)
        except TypeError as problem:
            raise RuntimeError(f"{self._handle.schema.name}: {problem}. Declaration: {self._schema}") from None

    @property
    def _schema(self) -> FunctionSchema:
        return self._handle.schema

    @property
    def namespace(self) -> str:
        return self._handle.schema.namespace

    @property
    def _opname(self) -> str:
        return self._handle.schema.base

    @property
    def _overloadname(self) -> str:
        return self._handle.schema.overload or "default"

    @property
    def overloadpacket(self) -> "OpOverloadPacket":
        return OpOverloadPacket(self._handle.dispatcher, self._handle.schema.name)

    @property
    def tags(self) -> list[str]:
        return list(self._handle.tags)

    def name(self) -> str:
        """namespace::base.overload, without the overload where it is the default one."""
        return self._handle.name

    @property
    def __name__(self) -> str:
        return f"{self._opname}.{self._overloadname}"

    def has_kernel_for_dispatch_key(self, key: str | DispatchKey) -> bool:
        return self._handle.has_kernel_for_dispatch_key(parse(key))

    def dump(self) -> str:
        """What is registered, kernel by kernel (PyTorch: torch._C._dispatch_dump)."""
        return self._handle.dump()

    def table(self) -> str:
        """Which kernel runs for which key, row by row (PyTorch: torch._C._dispatch_dump_table)."""
        return self._handle.table()

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"


def _called(op: "OperatorHandle", arguments: tuple[Any, ...]) -> Any:
    result = op.call(*arguments)
    return list(result) if type(result) is tuple and op.schema.returns[0].type.is_list else result


class OpOverloadPacket:
    """All overloads of a name: `packet(...)` calls the first one that takes the arguments, `packet.Tensor` is one."""

    __slots__ = ("_dispatcher", "_qualified_op_name")

    def __init__(self, dispatcher: "Dispatcher", name: str) -> None:
        self._dispatcher = dispatcher
        self._qualified_op_name = name

    def overloads(self) -> list[str]:
        """The names of the overloads, "default" for the nameless one."""
        return [op.overload._overloadname for op in self._operators()]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        operators = self._operators()
        problems = []
        for op in operators:
            try:
                arguments = op.bind(args, kwargs)
            except TypeError as problem:
                problems.append(f"{problem}. Declaration: {op.schema}")
                continue
            return _called(op, arguments)
        raise RuntimeError(
            "Overloaded operator invoked from Python failed to match any schema:\n" + "\n".join(problems)
        )

    def __getattr__(self, name: str) -> OpOverload:
        op = None if name.startswith("__") else self._dispatcher.find_schema(self._qualified_op_name, name)
        if op is None:
            raise AttributeError(
                f"the op {self} has no overload {name!r}; it has {', '.join(self.overloads()) or 'none any more'}"
            )
        return op.overload

    def _operators(self) -> "list[OperatorHandle]":
        return self._dispatcher.overloads.get(self._qualified_op_name, [])

    @property
    def __name__(self) -> str:
        return self._qualified_op_name.rpartition("::")[2]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.overloads()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverloadPacket) and other._qualified_op_name == self._qualified_op_name

    def __hash__(self) -> int:
        return hash(self._qualified_op_name)

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class OpNamespace:
    """The packets of one namespace: `mini.ops.aten.add`."""

    __slots__ = ("_dispatcher", "name")

    def __init__(self, dispatcher: "Dispatcher", name: str) -> None:
        self._dispatcher = dispatcher
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        full = f"{self.name}::{name}"
        if name.startswith("__") and name.endswith("__") or full not in self._dispatcher.overloads:
            raise AttributeError(f"no op is called {self.name}.{name}")
        return OpOverloadPacket(self._dispatcher, full)

    def __iter__(self) -> Iterator[str]:
        names = [name for name in self._dispatcher.overloads if name.startswith(f"{self.name}::")]
        return iter(name.rpartition("::")[2] for name in names)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self]

    def __repr__(self) -> str:
        return f"<mini.ops.{self.name}>"


class Ops:
    """Every namespace of operators: `mini.ops.aten`, `mini.ops.mine`."""

    __slots__ = ("_dispatcher",)

    def __init__(self, dispatcher: "Dispatcher") -> None:
        self._dispatcher = dispatcher

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return OpNamespace(self._dispatcher, name)

    def __dir__(self) -> list[str]:
        return sorted({name.partition("::")[0] for name in self._dispatcher.overloads})

    def __repr__(self) -> str:
        return "<mini.ops>"
