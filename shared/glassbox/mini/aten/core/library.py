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
from .dispatcher import OperatorHandle, Registration, dispatcher
from .kernel_function import KernelFunction, place_of

KINDS = ("DEF", "IMPL", "FRAGMENT")

# (operator, key) pairs that some Library holds a kernel for: a second one is more often a slip than a wish.
_taken: dict[tuple[str, DispatchKey], int] = {}


class _Fallthrough:
    def __repr__(self) -> str:
        return "library.fallthrough_kernel"


fallthrough_kernel = _Fallthrough()


class Library:
    """A bundle of registrations in one namespace.

    kind "DEF" or "FRAGMENT" may define operators, "IMPL" registers kernels only; namespace "_" with "IMPL" registers
    fallbacks. ValueError for another kind or namespace.
    """

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        if kind not in KINDS:
            raise ValueError(f"a Library's kind is one of {', '.join(KINDS)}, not {kind!r}")
        if not (ns == "_" or ns.isidentifier()):
            raise ValueError(f"a Library's namespace is a name such as 'mine' or 'aten', not {ns!r}")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._registrations: list[Registration] = []
        self._defined: list[OperatorHandle] = []
        self._held: list[tuple[str, DispatchKey]] = []

    def define(self, schema: str, *, tags: tuple[str, ...] = ()) -> str:
        """A new operator from its schema line; returns its name.

        ValueError where the line cannot be read or names another namespace, RuntimeError where the operator is there.
        """
        if self.kind == "IMPL":
            raise ValueError('a Library of kind "IMPL" defines no operators: make one of kind "FRAGMENT"')
        parsed = function_schema.parse(schema, self.ns)
        if parsed.namespace != self.ns:
            raise ValueError(f"{schema!r} lies in namespace {parsed.namespace!r}, this Library in {self.ns!r}")
        op = dispatcher.register_def(parsed, tags)
        self._defined.append(op)
        return parsed.key

    def impl(
        self,
        op_name: str | OperatorHandle,
        fn: Any,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """`fn` runs for calls of an operator whose highest key is `dispatch_key`, an alias key for all it covers.

        fn gets the arguments as Python writes them, keyword-only ones by keyword, and first the DispatchKeySet where
        with_keyset is set; library.fallthrough_kernel lets calls pass over the key. RuntimeError where another Library
        holds a kernel for the two already, unless allow_override; ValueError for an unknown key.
        """
        key = self._key(dispatch_key)
        op = op_name if isinstance(op_name, OperatorHandle) else self._find(op_name)
        held = (op.name, key)
        if _taken.get(held) and not allow_override:
            raise RuntimeError(
                f"a kernel for {op.name} and {key.name} is registered from Python already: take that Library back, or "
                f"say allow_override=True"
            )
        kernel = self._kernel(fn, op, with_keyset)
        self._registrations.append(dispatcher.register_impl(op, key, kernel))
        self._held.append(held)
        _taken[held] = _taken.get(held, 0) + 1

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """`fn(op, *args, **kwargs)` runs for every operator that has no kernel of its own for a runtime key."""
        if self.ns != "_":
            raise ValueError(f'a fallback serves all namespaces: use Library("_", "IMPL"), not {self.ns!r}')
        key = self._key(dispatch_key)
        if fn is fallthrough_kernel:
            kernel = KernelFunction(None, "library")
        else:
            self._callable(fn)

            def boxed(op: OperatorHandle, key_set: int, arguments: tuple[Any, ...]) -> Any:
                args, kwargs = as_python(op, arguments)
                if with_keyset:
                    return fn(DispatchKeySet(key_set), op, *args, **kwargs)
                return fn(op, *args, **kwargs)

            kernel = KernelFunction(boxed, place_of(fn), boxed=True)
        self._registrations.append(dispatcher.register_fallback(key, kernel))

    def _destroy(self) -> None:
        """Take everything back, newest first."""
        while self._registrations:
            self._registrations.pop().remove()
        for held in self._held:
            _taken[held] -= 1
        self._held.clear()
        while self._defined:
            dispatcher.deregister_def(self._defined.pop())

    def __enter__(self) -> "Library":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._destroy()

    def _key(self, given: str) -> DispatchKey:
        name = given or self.dispatch_key
        if not name:
            raise ValueError('say for which dispatch key, such as "CPU" or "CompositeImplicitAutograd"')
        return parse(name)

    def _find(self, name: str) -> OperatorHandle:
        return dispatcher.find_schema_or_throw(name if "::" in name else f"{self.ns}::{name}")

    def _kernel(self, fn: Any, op: OperatorHandle, with_keyset: bool) -> KernelFunction:
        if fn is fallthrough_kernel:
            return KernelFunction(None, "library")
        self._callable(fn)
        return KernelFunction(_from_python(fn, op, with_keyset), place_of(fn))

    @staticmethod
    def _callable(fn: Any) -> None:
        if not callable(fn):
            raise TypeError(f"a kernel is a function, not {type(fn).__name__}")


def _from_python(fn: Callable[..., Any], op: OperatorHandle, with_keyset: bool) -> Callable[..., Any]:
    count = len(op.schema.positional)
    keywords = [argument.name for argument in op.schema.arguments[count:]]

    def kernel(key_set: int, *arguments: Any) -> Any:
        named = dict(zip(keywords, arguments[count:], strict=True))
        if with_keyset:
            return fn(DispatchKeySet(op.winner(key_set)[1]), *arguments[:count], **named)
        return fn(*arguments[:count], **named)

    return kernel


def as_python(op: OperatorHandle, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments as Python writes them: trailing defaults left out, keyword-only ones as a dict."""
    schema = op.schema.arguments
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument, value in zip(schema, arguments, strict=True):
        if argument.kwarg_only:
            if not _is_default(argument, value):
                kwargs[argument.name] = value
        else:
            args.append(value)
    for argument in reversed(schema[: len(args)]):
        if not args or not _is_default(argument, args[-1]):
            break
        args.pop()
    return tuple(args), kwargs


def _is_default(argument: function_schema.Argument, value: Any) -> bool:
    default = argument.default
    return argument.has_default and (value is default or type(value) is type(default) and value == default)


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


_forever = Library("aten", "FRAGMENT")
