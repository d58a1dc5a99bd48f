"""Kernels: fetching what a dispatch table holds, and putting something in its place for a while
(torch/csrc/utils/python_dispatch.cpp, aten/src/ATen/core/dispatch/Dispatcher.h).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .access import missing, private


def tables() -> Iterator[tuple[str, str]]:
    """Every registered operator, "aten::add.Tensor", with its table of kernels as the dispatcher prints it: a line for
    each runtime key, as in `computed_table`.
    """
    dump = private("torch._C._dispatch_dump_table")
    for name in private("torch._C._dispatch_get_all_op_names")():
        yield name, dump(name)


def backend_names() -> tuple[str, ...]:
    """The backends that a dispatch key may belong to, as keys spell them: "CPU", "CUDA", ..., "Meta"."""
    names = list(private("torch._C.DispatchKey").__members__)
    try:
        return tuple(names[names.index("StartOfDenseBackends") + 1 : names.index("EndOfDenseBackends")])
    except ValueError:
        raise missing("DispatchKey.StartOfDenseBackends") from None


def backend_key(device_type: str) -> str:
    """The dispatch key of a device's dense tensors: "cuda" -> "CUDA"."""
    return str(private("torch._C._dispatch_key_for_device")(device_type))


def key_bits(key: str) -> int:
    """A runtime key as the 64-bit number of the set that holds it alone."""
    return int(private("torch._C.DispatchKeySet")(private("torch._C._parse_dispatch_key")(key)).raw_repr())


def kernel_fetcher() -> Callable[[str, str], Any]:
    """A function (op, key) -> the kernel in that row of the operator's table, with `call_boxed(key_set, *args)`; None
    where none can be had.
    """
    parse = functools.cache(private("torch._C._parse_dispatch_key"))
    fetch = private("torch._C._dispatch_get_computed_kernel_for_dispatch_key")

    def kernel(op: str, key: str) -> Any:
        try:
            # Python has no object for some keys, such as QuantizedMeta.
            return None if (parsed := parse(key)) is None else fetch(op, parsed)
        except RuntimeError:
            return None

    return kernel


class Registrations:
    """Kernels of our own in rows of dispatch tables, until `remove()` gives each row back what it held.

    torch.library.Library would do the same, but forgets on leaving what others have registered for the same rows.
    """

    def __init__(self) -> None:
        self._make = private("torch._C._dispatch_library")
        self._libraries: dict[str, Any] = {}

    def put(self, op: str, key: str, kernel: Callable[..., Any]) -> None:
        """Have `kernel(key_set, *args, **kwargs)` run for an operator's row; RuntimeError where that cannot be."""
        namespace, _, name = op.partition("::")
        library = self._libraries.get(namespace)
        if library is None:
            library = self._libraries[namespace] = self._make("IMPL", namespace, "", __file__, 0)
        library.impl(name, key, kernel, True)

    def remove(self) -> None:
        while self._libraries:
            self._libraries.popitem()[1].reset()


@functools.cache
def tensor_places(op: str) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """Where an operator's schema says Tensor: by position, by the name of keyword-only arguments, and in its results.

    op   as "aten::add.Tensor"

    Each place is "one" for a tensor or an optional one, "written" for one that is written to, "list" for a list of
    them, "" for anything else.
    """
    name, _, overload = op.partition(".")
    schema = private("torch._C._get_schema")(name, overload)
    kinds = {"Tensor": "one", "Optional[Tensor]": "one", "List[Tensor]": "list", "List[Optional[Tensor]]": "list"}

    def kind(argument: Any) -> str:
        found = kinds.get(str(argument.type), "")
        written = argument.alias_info is not None and argument.alias_info.is_write
        return "written" if found == "one" and written else found

    arguments = [(each.name, kind(each), each.kwarg_only) for each in schema.arguments]
    return (
        tuple(place for _, place, keyword in arguments if not keyword),
        {name: place for name, place, keyword in arguments if keyword},
        tuple(kinds.get(str(each.type), "") for each in schema.returns),
    )


def number_as_tensor(number: complex) -> Any:
    """The 0-d tensor that C++ makes of a number in `x * number`: it promotes as weakly as the number itself.

    To be called outside of any mode, transform or inference mode. No binding makes one; but autograd saves it.
    """
    import torch

    with torch.enable_grad():
        product = torch.ones((), dtype=torch.complex64, device="cpu", requires_grad=True) * number
    try:
        return product.grad_fn._saved_other
    except AttributeError:
        raise missing("MulBackward0._saved_other") from None


def without_keys(bits: int) -> AbstractContextManager[Any]:
    """A context in which this thread's calls leave some keys out."""
    guard: AbstractContextManager[Any] = private("torch._C._ExcludeDispatchKeyGuard")(
        private("torch._C.DispatchKeySet").from_raw_repr(bits)
    )
    return guard


def in_engine() -> Callable[[Any], bool]:
    """A function that says of a Python frame whether it is where torch waits for the backward engine."""
    code = private("torch.autograd.graph._engine_run_backward").__code__
    return lambda frame: frame.f_code is code


@contextlib.contextmanager
def around_new_classes(without_hooks: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """In the block, tensors get another class (nn.Parameter, as_subclass) inside of `without_hooks()`.

    C++ gives its class to a tensor that `detach` or `alias` just made, and refuses one that Python has had in its
    hands, as it has where those operators run kernels of ours.
    """
    import torch

    before = {name: vars(torch.Tensor).get(name) for name in ("_make_subclass", "as_subclass")}
    try:
        for name in before:
            setattr(torch.Tensor, name, _entering(getattr(torch.Tensor, name), without_hooks, name == "_make_subclass"))
        yield
    finally:
        for name, own in before.items():
            if own is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, own)


def _entering(function: Any, block: Callable[[], AbstractContextManager[Any]], static: bool) -> Any:
    def entered(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)

    return staticmethod(entered) if static else entered
