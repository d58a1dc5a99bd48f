"""Convolutions: cross-correlation over signals and pictures (PyTorch: torch/nn/modules/conv.py)."""

import math
from typing import Any

from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """weight: float[out_channels, in_channels / groups, *kernel_size], bias: float[out_channels] or None.

    padding: ints, or "same" (output as large as the input; stride 1 only) or "valid" (none).
    ValueError for channels that groups does not divide, and for an unknown padding; NotImplementedError for a
    padding_mode other than "zeros".
    """

    dims: int

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
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = self._several(kernel_size), self._several(stride)
        self.padding = padding if isinstance(padding, str) else self._several(padding)
        self.dilation, self.padding_mode = self._several(dilation), padding_mode
        self._check_padding()
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(init.empty(shape, dtype, device))
        self.register_parameter("bias", Parameter(init.empty((out_channels,), dtype, device)) if bias else None)
        self.reset_parameters()

    def _several(self, value: Any) -> tuple[int, ...]:
        """One int for all directions, or one for each."""
        return (value,) * self.dims if isinstance(value, int) else tuple(value)

    def _check_padding(self) -> None:
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of {{'same', 'valid'}}")
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode={self.padding_mode!r}"
            )
        if self.padding_mode != "zeros":
            raise NotImplementedError(f"only padding_mode='zeros' is here, not {self.padding_mode!r}")

    def reset_parameters(self) -> None:
        # With sqrt(5) the bound is 1 / sqrt(fan_in), as for the bias.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init.fans(self.weight)
            if fan_in != 0:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", padding={self.padding}" if self.padding != (0,) * self.dims else ""
        text += f", dilation={self.dilation}" if self.dilation != (1,) * self.dims else ""
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias is None else "")


class Conv1d(_ConvNd):
    """Over (N, C, L) or (C, L)."""

    dims = 1

    def forward(self, input: Any) -> Any:
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    """Over (N, C, H, W) or (C, H, W)."""

    dims = 2

    def forward(self, input: Any) -> Any:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


for _kind in (Conv1d, Conv2d):
    _kind.__doc__ = f"{_kind.__doc__}\n\n    {_ConvNd.__doc__}"
