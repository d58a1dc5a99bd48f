"""Cost: how long launches, kernels and copies take on the device (PyTorch: torch/utils/flop_counter.py).

The roofline model: a kernel needs the longer of moving its bytes and doing its arithmetic, and never less
than the shortest kernel. The constants are round numbers of a data-centre GPU; CostModel names each, and
`sim.set_cost_model(dataclasses.replace(sim.cost_model(), launch_us=8.0))` changes one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..c10 import layout
from ..c10.tensor_impl import TensorImpl
from .footprint import footprint


@dataclass(frozen=True)
class CostModel:
    """Constants of the device; subclass it and override kernel_us or copy_us for another law.

    launch_us            the host's time per launch, all layers from Python to the driver together
    api_us               the host's time for a call that launches nothing: record, wait, query, synchronize
    malloc_us            the host's time to get a segment of memory from the device (a cache miss)
    gap_us               from the head of the queue to the start of a kernel or copy
    shortest_kernel_us   no kernel takes less, however small
    bytes_per_s          memory bandwidth of the device
    flops_per_s          arithmetic per second
    bus_bytes_per_s      bandwidth between host and device, each way
    bus_us               latency of a copy between host and device
    full_elements        a kernel over so many elements fills the device and runs alone; kernels of other
                         streams run beside smaller ones
    queue_depth          a stream takes so many unfinished launches; then the host waits for the oldest
    memory_bytes         capacity

    Raises ValueError for a constant that is negative, not finite or, where time would stand still, 0.
    """

    launch_us: float = 4.0
    api_us: float = 0.5
    malloc_us: float = 50.0
    gap_us: float = 1.0
    shortest_kernel_us: float = 1.5
    bytes_per_s: float = 1e12
    flops_per_s: float = 1e13
    bus_bytes_per_s: float = 16e9
    bus_us: float = 2.0
    full_elements: int = 262_144
    queue_depth: int = 1024
    memory_bytes: int = 16 << 30

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            positive = field.name not in _MAY_BE_ZERO
            if not (isinstance(value, int | float) and math.isfinite(value)) or value < 0:
                raise ValueError(
                    f"CostModel({field.name}={value!r}): use a finite number that is not negative"
                )
            if positive and value == 0:
                raise ValueError(f"CostModel({field.name}=0): use more than 0")

    def kernel_us(self, op: str, nbytes: int, flops: int) -> float:
        """Duration of a kernel that moves `nbytes` and does `flops` operations."""
        return max(self.shortest_kernel_us, nbytes / self.bytes_per_s * 1e6, flops / self.flops_per_s * 1e6)

    def copy_us(self, nbytes: int) -> float:
        """Duration of a copy between host and device."""
        return self.bus_us + nbytes / self.bus_bytes_per_s * 1e6

    def share(self, elements: int) -> float:
        """Which part of the device a kernel over so many elements fills, over 0 and up to 1."""
        return min(1.0, max(elements, 1) / self.full_elements)


# A query costs api_us, so that a loop that polls an event comes to an end.
_MAY_BE_ZERO = ("launch_us", "malloc_us", "gap_us", "shortest_kernel_us", "bus_us", "memory_bytes")


def nanoseconds(us: float) -> int:
    """Whole nanoseconds: times are ints inside, so that sums do not depend on rounding."""
    return round(us * 1000)


def work(
    op: str, args: Sequence[Any], inputs: Sequence[TensorImpl], outputs: Sequence[TensorImpl]
) -> tuple[int, int]:
    """(bytes, flops) of one call of `op`, whose name is as in "add.Tensor": what it reads and writes.

    An op without an entry of its own does one operation for each element of its largest tensor.
    """
    plain = op.partition(".")[0].rstrip("_")
    written = _bytes(outputs)
    if plain in PICKS and inputs:
        # Only the chosen rows of the table are read.
        table, *rest = inputs
        read = min(_bytes([table]), written) + _bytes(rest)
    else:
        read = _bytes(inputs)
    count = FLOPS.get(plain)
    flops = count(args, outputs) if count else elements([*inputs, *outputs])
    return read + written, flops


def elements(tensors: Sequence[TensorImpl]) -> int:
    """Elements of the largest of the tensors."""
    return max([footprint(tensor).numel for tensor in tensors], default=0)


def _bytes(tensors: Sequence[TensorImpl]) -> int:
    return sum([footprint(tensor).nbytes for tensor in tensors])


# Ops that read a part of their first tensor, as large as what they return.
PICKS = frozenset(["index_select", "gather", "embedding"])


def _no_flops(args: Sequence[Any], outputs: Sequence[TensorImpl]) -> int:
    return 0


def _product(left: int, right: int) -> Callable[[Sequence[Any], Sequence[TensorImpl]], int]:
    def count(args: Sequence[Any], outputs: Sequence[TensorImpl]) -> int:
        # Each element of the result is a sum of k products.
        k = args[left]._shape[-1]
        return 2 * layout.numel(args[left]._shape[:-1]) * k * _columns(args[right]._shape)

    return count


def _columns(shape: tuple[int, ...]) -> int:
    return shape[-1] if len(shape) > 1 else 1


def _convolution(args: Sequence[Any], outputs: Sequence[TensorImpl]) -> int:
    return 2 * layout.numel(outputs[0]._shape) * layout.numel(args[1]._shape[1:])


def _convolution_backward(args: Sequence[Any], outputs: Sequence[TensorImpl]) -> int:
    # One pass of the forward's size for the input's gradient, one for the weight's; the bias's is small.
    grad_output, _, weight = args[:3]
    mask = args[-1]
    passes = sum(bool(wanted) for wanted in mask[:2]) if isinstance(mask, tuple | list) else 2
    return passes * 2 * layout.numel(grad_output._shape) * layout.numel(weight._shape[1:])


# Counted as torch.utils.flop_counter does: a multiply and an add are two.
FLOPS: dict[str, Callable[[Sequence[Any], Sequence[TensorImpl]], int]] = {
    "mm": _product(0, 1),
    "bmm": _product(0, 1),
    "mv": _product(0, 1),
    "dot": _product(0, 1),
    "addmm": _product(1, 2),
    "baddbmm": _product(1, 2),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    **dict.fromkeys(["fill", "zero", "copy", "clone", "_to_copy", "cat", "stack", *PICKS], _no_flops),
}
