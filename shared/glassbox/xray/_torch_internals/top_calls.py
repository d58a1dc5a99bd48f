"""Top calls: each operator call before the dispatcher does anything with it (aten/src/ATen/core/dispatch/Dispatcher.h).

A kernel of ours is registered for every operator at TESTING_ONLY_GenericMode, a key above functorch, autocast and
autograd that nothing else uses, and the key is put into this thread's included set. The kernel takes it out again and
hands the call on, so it sees the calls of the program and none that kernels make in turn. (One boxed fallback would do
the same in less, but PyTorch looks for a kernel of the operator itself while a dispatch mode is on.)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .access import private

KEY = "TESTING_ONLY_GenericMode"

# Their results become tensors of another class where nn.Parameter and as_subclass are at work, which C++ refuses for a
# tensor that Python has had in its hands; so they are not seen unless they are what is asked for.
PASSED_OVER = ("aten::detach", "aten::alias")

See = Callable[[Any, int, Sequence[Any], Mapping[str, Any]], None]

_one_at_a_time = threading.Lock()
_owner: list[int] = []


def watched_here() -> bool:
    """Whether the calls of this thread are being watched, so that nothing that it waits for can be."""
    return _owner == [threading.get_ident()]


@contextlib.contextmanager
def top_calls(see: See, passed_over: Sequence[str] = PASSED_OVER) -> Iterator[None]:
    """`with top_calls(see):` calls see(op, key_set, args, kwargs) before each call that this thread makes.

    op         the torch._ops.OpOverload
    key_set    the 64-bit number that the dispatcher worked out for the call, after all masks
    args       as the operator's schema has them, those left out at their defaults
    see runs with the thread's key sets as the call found them, and what it calls is not seen.

    RuntimeError inside of another such block of the same thread; another thread's block is waited for.
    """
    if watched_here():
        raise RuntimeError("the calls of this thread are being watched already; look at one program at a time.")
    with _one_at_a_time, contextlib.ExitStack() as stack:
        _owner[:] = [threading.get_ident()]
        stack.callback(_owner.clear)
        _register(see, set(passed_over), stack)
        bit = int(private("torch._C.DispatchKeySet")(private("torch._C._parse_dispatch_key")(KEY)).raw_repr())
        stack.enter_context(_local_sets(include=bit, drop=0))
        yield


def _register(see: See, passed_over: set[str], stack: contextlib.ExitStack) -> None:
    """A kernel for every operator, and nothing for those that are passed over; undone by the stack."""
    import torch

    bit = int(private("torch._C.DispatchKeySet")(private("torch._C._parse_dispatch_key")(KEY)).raw_repr())
    from_raw = private("torch._C.DispatchKeySet").from_raw_repr

    def library(namespace: str) -> Any:
        made = torch.library.Library(namespace, "IMPL")
        stack.callback(made._destroy)
        return made

    library("_").fallback(torch.library.fallthrough_kernel, KEY)
    libraries: dict[str, Any] = {}
    for name in private("torch._C._dispatch_get_all_op_names")():
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if name in passed_over:
            continue
        try:
            op = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
        except (AttributeError, RuntimeError):
            # Operators that TorchScript alone knows have no Python object.
            continue
        if namespace not in libraries:
            libraries[namespace] = library(namespace)
        libraries[namespace].impl(rest, _kernel(op, see, bit, from_raw), KEY, with_keyset=True)


def _kernel(op: Any, see: See, bit: int, from_raw: Callable[[int], Any]) -> Callable[..., Any]:
    wants_tensor = [str(each.type) in ("Tensor", "Optional[Tensor]") for each in op._schema.arguments]

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        with _local_sets(include=0, drop=bit):
            left = int(keys.raw_repr()) & ~bit
            see(op, left, args, kwargs)
            if any(wanted and isinstance(arg, int | float | complex) for wanted, arg in zip(wants_tensor, args)):  # noqa: B905
                return _with_numbers(op, wants_tensor, left, args, kwargs)
            return op.redispatch(from_raw(left), *args, **kwargs)

    return kernel


def _with_numbers(op: Any, wants_tensor: list[bool], left: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hand a call on in which numbers stand for tensors, as in `a + 2`: C++ made them tensors that promote weakly."""
    import torch

    if private("torch._C._should_allow_numbers_as_tensors")(op._schema.name.partition("::")[2]):
        # The operator's own binding makes the same weak tensors again; the keys come out the same.
        return op(*args, **kwargs)
    dtypes = [arg.dtype for arg in args if isinstance(arg, torch.Tensor)]
    given = [
        _scalar(arg, dtypes) if wanted and isinstance(arg, int | float | complex) else arg
        for wanted, arg in zip(wants_tensor, args, strict=False)
    ]
    given += args[len(given) :]
    return op.redispatch(private("torch._C.DispatchKeySet").from_raw_repr(left), *given, **kwargs)


def _scalar(number: complex, dtypes: list[Any]) -> Any:
    """A 0-d tensor that promotes beside tensors of these dtypes as the number does."""
    import torch

    kind = torch.tensor(number).dtype
    fits = [dtype for dtype in dtypes if torch.promote_types(dtype, kind) == dtype]
    return torch.tensor(number, dtype=fits[0] if fits else kind)


@contextlib.contextmanager
def _local_sets(include: int, drop: int) -> Iterator[None]:
    """The thread's included set with some bits more or fewer, until the block ends."""
    from_raw = private("torch._C.DispatchKeySet").from_raw_repr
    included = int(private("torch._C._dispatch_tls_local_include_set")().raw_repr())
    excluded = private("torch._C._dispatch_tls_local_exclude_set")()
    with private("torch._C._ForceDispatchKeyGuard")(from_raw((included | include) & ~drop), excluded):
        yield
