"""The database: PyTorch's entries (op_db) beside the functions of mini that they are about."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, UnaryUfuncInfo

from glassbox import mini
from glassbox.mini.nn import functional

DTYPES = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)
Function = Callable[..., Any]

# Entries that are a method's, whatever else goes by that name in the package.
METHODS = frozenset(
    ("item", "contiguous", "sum_to_size", "expand", "expand_as", "reshape_as", "to", "view", "view_as", "repeat")
    + ("bfloat16", "bool", "byte", "char", "double", "float", "int", "long", "short")
    + ("new_zeros", "new_ones", "new_empty", "new_empty_strided", "new_full")
)


def _max_pool2d_backward(*args: Any, **kwargs: Any) -> Any:
    """As op_db's own function: the pooling first, then its backward with ones."""
    numbers = {"kernel_size": (), "stride": (), "padding": (0,), "dilation": (1,), "ceil_mode": False} | kwargs
    numbers.pop("return_indices", None)
    numbers["stride"] = numbers["stride"] if numbers["stride"] is not None else numbers["kernel_size"]
    aten = mini.ops.aten
    out, indices = aten.max_pool2d_with_indices(*args, **numbers)
    return aten.max_pool2d_with_indices_backward(mini.ones_like(out), *args, **numbers, indices=indices)


SPECIAL: dict[str, Function] = {
    "max_pool2d_with_indices_backward": _max_pool2d_backward,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "where": lambda self, condition, other, **kwargs: mini.where(condition, self, other, **kwargs),
    # The entry itself calls randn_like.
    "rand_like": lambda *args, **kwargs: mini.randn_like(*args, **kwargs),
    "zero_": lambda x: mini.zero_(x.clone()),
    "resize_": lambda x, shape: x.clone().resize_(shape),
    "nn.functional.embedding": lambda weight, idx, **kwargs: functional.embedding(idx, weight, **kwargs),
}
INPLACE: dict[str, Function] = {
    "nn.functional.leaky_relu": lambda x, slope=0.01: functional.leaky_relu(x, slope, inplace=True),
    "nn.functional.silu": lambda x: functional.silu(x, inplace=True),
    "nn.functional.relu": lambda x: functional.relu(x, inplace=True),
    "nn.functional.dropout": lambda x, *args, **kwargs: functional.dropout(x, *args, **kwargs, inplace=True),
}

# Entries of which mini has only another variant under the same name.
OTHER_VARIANTS = frozenset(
    f"nn.functional.pad.{mode}" for mode in ("reflect", "replicate", "replicate_negative", "circular")
)
# Entries whose results hold what was in memory: only their layout says anything.
UNSET = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"))
RANDOM = frozenset(
    ("rand_like", "randn", "randn_like", "randint", "randint_like", "nn.functional.dropout", "bernoulli")
    + ("normal", "multinomial", "uniform")
)
SEED = 42

# Results that are copies of elements, or of numbers that are not rounded.
_EXACT = """
T __getitem__ __radd__ __rmul__ __rsub__ abs add alias all amax amin any arange argmax argmin as_strided
bfloat16 bitwise_and bitwise_not bitwise_or bitwise_xor bool cat ceil chunk clamp clamp_max clamp_min clone
constant_pad_nd contiguous copy count_nonzero double eq equal expand expand_as eye flatten flip float floor full
full_like gather ge gt index_put index_select int isfinite isinf isnan item le logical_and logical_not
logical_or logical_xor long lt mT masked_fill masked_select max max_pool2d maximum min minimum movedim mul
narrow ne neg new_full new_ones new_zeros nn.functional.dropout nn.functional.embedding nn.functional.max_pool2d
nn.functional.relu nonzero ones ones_like outer permute reciprocal relu repeat reshape reshape_as roll rsub
scalar_tensor scatter select short sign slice sort split split_with_sizes square squeeze stack sub t to topk
transpose tril triu trunc unbind unsqueeze view view_as where zero_ zeros zeros_like
"""
EXACT = frozenset(_EXACT.split())
# Functions of few elements that are made of several roundings, some of which cancel.
_COMPOUND = """
addcdiv addcmul fmod lerp nn.functional.gelu nn.functional.silu nn.functional.softplus remainder
"""
COMPOUND = frozenset(_COMPOUND.split())


@dataclass(frozen=True)
class Entry:
    """One entry of op_db and what answers for it.

    function, method, inplace: mini's; None where the entry, or mini, has none. rule: how values are compared.
    """

    info: OpInfo
    function: Function
    method: Function | None
    inplace: Function | None
    rule: str
    missing: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.info.full_name


@cache
def entries() -> dict[str, Entry]:
    """The entries that mini has the operator of, by full name, in op_db's order."""
    return {info.full_name: made for info in op_db if (made := _entry(info)) is not None}


@cache
def not_in_mini() -> tuple[str, ...]:
    """The full names of the entries that mini has no operator for."""
    return tuple(info.full_name for info in op_db if info.full_name not in entries())


def _entry(info: OpInfo) -> Entry | None:
    function = _function(info.name)
    if function is None or info.full_name in OTHER_VARIANTS:
        return None
    missing = []
    method = inplace = None
    if info.method_variant is not None:
        method = getattr(mini.Tensor, info.name, None)
        if not callable(method):
            missing.append(f"method {info.name}")
    if info.inplace_variant is not None:
        inplace = INPLACE.get(info.name) or getattr(mini.Tensor, _inplace_name(info), None)
        if inplace is None:
            missing.append(f"in-place {_inplace_name(info)}")
    return Entry(info, function, method, inplace, _rule(info), tuple(missing))


def _inplace_name(info: OpInfo) -> str:
    return getattr(info.inplace_variant, "__name__", info.name + "_")


def _function(name: str) -> Function | None:
    if name in SPECIAL:
        return SPECIAL[name]
    if name.startswith("nn.functional."):
        return getattr(functional, name.rpartition(".")[2], None)
    found = None if name in METHODS else getattr(mini, name, None)
    if found is None or not callable(found) or isinstance(found, type):
        found = getattr(mini.Tensor, name, None)
    # What Python shows of an operator under no other name.
    found = found or getattr(mini.ops.aten, name, None)
    return found if callable(found) else None


def named(name: str) -> Function | None:
    """The function of a dotted name such as nn.functional.softmax; None where mini has none."""
    found: Any = mini
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def _rule(info: OpInfo) -> str:
    if info.name in UNSET:
        return "unset"
    if info.name in EXACT:
        return "exact"
    pointwise = isinstance(info, BinaryUfuncInfo | UnaryUfuncInfo) and info.name not in COMPOUND
    return "ulp" if pointwise else "sum"


def samples(info: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[Any]:
    """Every sample of an entry, the same ones each time."""
    seed_generators()
    return list(info.sample_inputs("cpu", dtype, requires_grad=requires_grad))


def error_samples(info: OpInfo) -> list[Any]:
    """Every sample that PyTorch refuses."""
    if info.error_inputs_func is None:
        return []
    seed_generators()
    return list(info.error_inputs("cpu"))


def seed_generators() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def picked(found: list[Any], most: int | None) -> list[Any]:
    """At most so many of a list, drawn with a fixed seed, in order."""
    if most is None or len(found) <= most:
        return found
    return [found[nr] for nr in sorted(random.Random(0).sample(range(len(found)), most))]
