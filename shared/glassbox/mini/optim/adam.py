"""Adam: each parameter at a pace of its own (PyTorch: torch/optim/adam.py)."""

import math
from collections.abc import Iterable
from typing import Any

from .optimizer import Optimizer


class Adam(Optimizer):
    """Running means of the gradient and of its square, without the bias of their first steps."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if eps < 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for place, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        settings = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        beta1, beta2 = group["betas"]
        for parameter in params:
            grad = -parameter._grad if group["maximize"] else parameter._grad
            state = self.state[parameter]
            if not state:
                state["step"] = 0
                state["exp_avg"] = parameter.detach().new_zeros(parameter._shape)
                state["exp_avg_sq"] = parameter.detach().new_zeros(parameter._shape)
                if group["amsgrad"]:
                    state["max_exp_avg_sq"] = parameter.detach().new_zeros(parameter._shape)
            state["step"] += 1
            step = state["step"]
            if group["weight_decay"]:
                grad = grad.add(parameter.detach(), alpha=group["weight_decay"])
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                square = state["max_exp_avg_sq"].copy_(state["max_exp_avg_sq"].maximum(square))
            scale = math.sqrt(1 - beta2**step)
            denominator = (square.sqrt() / scale).add_(group["eps"])
            parameter.detach().addcdiv_(mean, denominator, value=-group["lr"] / (1 - beta1**step))
