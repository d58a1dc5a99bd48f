"""BatchNorm2d: each channel shifted and scaled by its statistics (PyTorch: torch/nn/modules/batchnorm.py)."""

from typing import Any

from ...aten import ops as at
from ...c10.dtype import int64
from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


class BatchNorm2d(Module):
    """weight, bias, running_mean, running_var: float[num_features]; num_batches_tracked: int64, 0-d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            self.register_parameter(
                name, Parameter(at.full((num_features,), value, None, None)) if affine else None
            )
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(
                name, at.full((num_features,), value, None, None) if track_running_stats else None
            )
        self.register_buffer("num_batches_tracked", at.zeros((), int64, None) if track_running_stats else None)

    def reset_parameters(self) -> None:
        if self.affine:
            init.constant_(self.weight, 1.0)
            init.constant_(self.bias, 0.0)

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )
