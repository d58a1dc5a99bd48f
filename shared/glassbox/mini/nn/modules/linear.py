"""Linear: x @ W.T + b (PyTorch: torch/nn/modules/linear.py)."""

import math
from typing import Any

from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


class Linear(Module):
    """weight: float[out_features, in_features], bias: float[out_features] or None."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(init.empty((out_features, in_features), dtype, device))
        self.register_parameter("bias", Parameter(init.empty((out_features,), dtype, device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # With sqrt(5) the bound is 1 / sqrt(in_features), as for the bias.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Identity(Module):
    """Returns what it gets; takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input
