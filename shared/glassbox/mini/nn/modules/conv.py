"""Conv2d: cross-correlation over pictures (PyTorch: torch/nn/modules/conv.py)."""

import math
from typing import Any

from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


def pair(value: Any) -> tuple[int, int]:
    """One int for both directions, or two."""
    return (value, value) if isinstance(value, int) else tuple(value)


class Conv2d(Module):
    """weight: float[out_channels, in_channels / groups, kH, kW], bias: float[out_channels] or None."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(f"in_channels and out_channels must be divisible by groups, which is {groups}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = pair(kernel_size), pair(stride)
        self.padding, self.dilation = pair(padding), pair(dilation)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(init.empty(shape, dtype, device))
        self.register_parameter("bias", Parameter(init.empty((out_channels,), dtype, device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init.fans(self.weight)[0]
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def forward(self, input: Any) -> Any:
        return F.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", padding={self.padding}" if self.padding != (0, 0) else ""
        text += f", dilation={self.dilation}" if self.dilation != (1, 1) else ""
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias is None else "")
