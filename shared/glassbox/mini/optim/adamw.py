"""AdamW: Adam whose weight decay does not go through the gradient (PyTorch: torch/optim/adamw.py)."""

from collections.abc import Iterable
from typing import Any

from .adam import Adam


class AdamW(Adam):
    """Each step shrinks the parameter by lr * weight_decay, whatever its gradients (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
