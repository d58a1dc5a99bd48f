"""Batch normalization: each channel shifted and scaled by its statistics (PyTorch: torch/nn/modules/batchnorm.py)."""

from typing import Any

from ...aten import ops as at
from ...c10.device import device as Device  # noqa: N812
from ...c10.dtype import int64
from .. import functional as F  # noqa: N812
from .. import init
from ..parameter import Parameter
from .module import Module


class _BatchNorm(Module):
    """weight, bias, running_mean, running_var: float[num_features]; num_batches_tracked: int64, 0-d.

    In training it takes the statistics of the batch and lets the running ones follow by `momentum`, or with None be
    their plain mean; in evaluation it takes the running ones.
    """

    # Since 2 the state has num_batches_tracked.
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats

        def numbers() -> Any:
            return init.empty((num_features,), dtype, device)

        self.register_parameter("weight", Parameter(numbers()) if affine else None)
        self.register_parameter("bias", Parameter(numbers()) if affine and bias else None)
        self.register_buffer("running_mean", numbers() if track_running_stats else None)
        self.register_buffer("running_var", numbers() if track_running_stats else None)
        where = None if device is None else Device(device)
        self.register_buffer("num_batches_tracked", at.zeros((), int64, where) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
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

    def _upgrade_state_dict(self, values: dict[str, Any], prefix: str, version: int | None) -> None:
        if (version is None or version < 2) and self.num_batches_tracked is not None:
            values.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Over (N, C) or (N, C, L)."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Over (N, C, H, W)."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")
