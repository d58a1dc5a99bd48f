"""Library: define operators and register kernels from outside (PyTorch: torch/library.py).

Everything registered through a Library can be taken back at once, and what was there before counts again.

    with library.Library("mine", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        mini.ops.mine.twice(x)
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...c10.dispatch_key import DispatchKey, parse
from ...c10.dispatch_key_set import DispatchKeySet
from . import function_schema
from .boxing import returned
from .dispatcher import OperatorHandle, Registration, dispatcher
from .kernel_function import KernelFunction, place_of
from .op_overload import OpOverload

KINDS = ("DEF", "IMPL", "FRAGMENT")

# (operator, key) pairs that some Library holds a kernel for, and the namespaces that one of kind DEF has
# taken.
_taken: dict[tuple[str, DispatchKey], int] = {}
_namespaces: set[str] = set()


class _Fallthrough:
    def __repr__(self) -> str:
        return "library.fallthrough_kernel"


fallthrough_kernel = _Fallthrough()


class Library:
    """A bundle of registrations in one namespace.

    kind: "DEF" and "FRAGMENT" may define operators, of "DEF" there is one per namespace; "IMPL" registers
    kernels only. Namespace "_" with "IMPL" registers fallbacks. ValueError for another kind or namespace,
    RuntimeError for a namespace whose DEF is there.
    """

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        if kind not in KINDS:
            raise ValueError(f"a Library's kind is one of {', '.join(KINDS)}, not {kind!r}")
        if not (ns == "_" or ns.isidentifier()):
            raise ValueError(f"a Library's namespace is a name such as 'mine' or 'aten', not {ns!r}")
        if kind == "DEF":
            if ns in _namespaces or ns == "aten":
                raise RuntimeError(
                    f"only one Library of kind DEF can define the namespace {ns}: make this one a FRAGMENT, or take "
                    "the "
                    f"other back"
                )
            _namespaces.add(ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._registrations: list[Registration] = []

    def define(self, schema: str, *, tags: tuple[str, ...] = ()) -> str:
        """A new operator from its schema line; returns its name.

        RuntimeError where the line cannot be read or the operator is there already; ValueError for another
        namespace.
        """
        if self.kind == "IMPL":
            raise RuntimeError('a Library of kind "IMPL" defines no operators: make one of kind "FRAGMENT"')
        parsed = function_schema.parse(schema, self.ns)
        if parsed.namespace != self.ns:
            raise ValueError(f"{schema!r} lies in namespace {parsed.namespace!r}, this Library in {self.ns!r}")
        op = dispatcher.register_def(parsed, tags)
        self._registrations.append(Registration(lambda: dispatcher.deregister_def(op)))
        return parsed.key

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Any,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """`fn` runs for calls of an operator whose highest key is `dispatch_key`, an alias key for all it covers.

        fn gets the arguments as Python writes them, defaults left out, and before them the call's
        DispatchKeySet where with_keyset is set; library.fallthrough_kernel lets calls pass over the key.
        The newest kernel counts. RuntimeError for an unknown key or operator, and unless allow_override
        where a Library holds a kernel for the two already.
        """
        self._impl(op_name, lambda op: _python_kernel(fn, with_keyset), dispatch_key, allow_override)

    def _impl(
        self,
        op_name: str | OpOverload,
        make: Callable[[OperatorHandle], KernelFunction],
        dispatch_key: str,
        allow_override: bool,
    ) -> None:
        key = self._key(dispatch_key)
        op = self._find(op_name)
        held = (op.name, key)
        if _taken.get(held) and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from Python for {op.name} and "
                f"{key.name}: "
                f"take that Library back, or say allow_override=True"
            )
        registration = dispatcher.register_impl(op, key, make(op))
        _taken[held] = _taken.get(held, 0) + 1

        def remove() -> None:
            registration.remove()
            _taken[held] -= 1

        self._registrations.append(Registration(remove))

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """`fn(op, *args, **kwargs)` runs for every operator that has no kernel of its own for a runtime key.

        RuntimeError for another namespace than "_", an unknown key, or an alias key.
        """
        if self.ns != "_":
            raise RuntimeError(f'a fallback serves all namespaces: use Library("_", "IMPL"), not {self.ns!r}')
        key = self._key(dispatch_key)
        if fn is fallthrough_kernel:
            kernel = KernelFunction(None, "library")
        else:
            _callable(fn)

            def boxed(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
                args, kwargs = op.unbind(arguments)
                if with_keyset:
                    return fn(DispatchKeySet(key_set), op.overload, *args, **kwargs)
                return fn(op.overload, *args, **kwargs)

            kernel = KernelFunction(boxed, place_of(fn), boxed=True)
        self._registrations.append(dispatcher.register_fallback(key, kernel))

    def _destroy(self) -> None:
        """Take everything back, newest first."""
        while self._registrations:
            self._registrations.pop().remove()
        if self.kind == "DEF":
            _namespaces.discard(self.ns)

    def __enter__(self) -> "Library":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._destroy()

    def _key(self, given: str) -> DispatchKey:
        return parse(given or self.dispatch_key or "CompositeImplicitAutograd")

    def _find(self, name: str | OpOverload) -> OperatorHandle:
        if isinstance(name, OpOverload):
            return name._handle
        return dispatcher.find_schema_or_throw(name if "::" in name else f"{self.ns}::{name}")


def _callable(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"a kernel is a function, not {type(fn).__name__}")


def _python_kernel(fn: Any, with_keyset: bool) -> KernelFunction:
    if fn is fallthrough_kernel:
        return KernelFunction(None, "library")
    _callable(fn)

    def boxed(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
        args, kwargs = op.unbind(arguments)
        given = (DispatchKeySet(key_set), *args) if with_keyset else args
        result = fn(*given, **kwargs)
        # None stands for an undefined tensor.
        return None if result is None else returned(op, arguments, result)

    return KernelFunction(boxed, place_of(fn), boxed=True)


def impl(op_name: str, dispatch_key: str, fn: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel, also as a decorator: `@library.impl("aten::add.Tensor", "CPU")`.

    Without `lib` it stays for the life of the process.
    """
    into = _forever if lib is None else lib

    def register(function: Any) -> Any:
        into.impl(op_name, function, dispatch_key)
        return function

    return register if fn is None else register(fn)


def define(schema: str, *, lib: Library | None = None) -> str:
    """A new operator from a schema line that names its namespace; without `lib` it stays."""
    parsed = function_schema.parse(schema)
    return (Library(parsed.namespace, "FRAGMENT") if lib is None else lib).define(schema)


class Kernel:
    """The kernel that one row of an operator's table held when it was asked for."""

    __slots__ = ("_op", "_kernel")

    def __init__(self, op: OperatorHandle, kernel: KernelFunction) -> None:
        self._op = op
        self._kernel = kernel

    def call_boxed(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run it with the arguments as Python writes them, whatever has been registered since."""
        keys = keyset.raw_repr()
        return self._kernel.bound_to(self._op, keys)(keys, *self._op.bind(args, kwargs))


def get_kernel(op: str | OpOverload, dispatch_key: str | DispatchKey) -> Kernel:
    """The kernel in the row of a runtime key; RuntimeError where there is none or only a fallthrough."""
    handle = op._handle if isinstance(op, OpOverload) else dispatcher.find_schema_or_throw(op)
    row = handle.row(parse(dispatch_key))
    if row.kernel is None or row.kernel.is_fallthrough:
        raise RuntimeError(f"no kernel of {handle.name} can be called for {row.key}: its row says {row}")
    return Kernel(handle, row.kernel)


_forever = Library("aten", "FRAGMENT")
