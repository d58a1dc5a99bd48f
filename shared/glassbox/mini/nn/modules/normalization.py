"""LayerNorm: the last dimensions shifted and scaled by their own statistics (PyTorch: torch/nn/modules/normalization.py)."""

from typing import Any

from ...aten import ops as at
from .. import functional as F  # noqa: N812
from ..parameter import Parameter
from .module import Module


class LayerNorm(Module):
    """weight, bias: float[normalized_shape]."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        affine = elementwise_affine
        self.register_parameter("weight", Parameter(at.ones(shape, None, None)) if affine else None)
        self.register_parameter("bias", Parameter(at.zeros(shape, None, None)) if affine and bias else None)

    def forward(self, input: Any) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
