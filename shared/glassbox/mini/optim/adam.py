"""Adam: each parameter at a pace of its own (PyTorch: torch/optim/adam.py)."""

import math
from collections.abc import Iterable
from typing import Any

from ..aten import ops as at
from ..c10.dtype import float32
from .optimizer import Optimizer, check, number


class Adam(Optimizer):
    """Running means of the gradient and of its square, without the bias of their first steps.

    decoupled_weight_decay: shrink the parameter itself instead of adding to its gradient, as AdamW does. foreach, fused
    and capturable, which say how PyTorch is to compute the same, are taken and ignored.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check("learning rate", lr)
        check("epsilon value", eps)
        for place, beta in enumerate(betas):
            if not 0.0 <= number(beta) < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        check("weight_decay value", weight_decay)
        settings = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, settings)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr, decay, decoupled = number(group["lr"]), group["weight_decay"], group["decoupled_weight_decay"]
        for parameter in params:
            grad = -parameter._grad if group["maximize"] else parameter._grad
            state = self.state[parameter] or self._begin(self.state[parameter], parameter, group)
            state["step"] += 1
            if decay and decoupled:
                parameter.mul_(1 - lr * decay)
            elif decay:
                grad = grad.add(parameter, alpha=decay)
            self._move(parameter, grad, state, lr, group)

    def _begin(self, state: dict[str, Any], parameter: Any, group: dict[str, Any]) -> dict[str, Any]:
        state["step"] = at.zeros((), float32, None)
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group["amsgrad"]
        for name in names:
            state[name] = at.zeros_like(parameter, None, None, None)
        return state

    def _move(self, parameter: Any, grad: Any, state: dict[str, Any], lr: float, group: dict[str, Any]) -> None:
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        mean, square, step = state["exp_avg"], state["exp_avg_sq"], state["step"].item()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            highest = state["max_exp_avg_sq"]
            square = highest.copy_(highest.maximum(square))
        # Both means began at zero; dividing by how much of them has been filled makes them whole.
        scale = math.sqrt(1 - beta2**step)
        denominator = (square.sqrt() / scale).add_(group["eps"])
        parameter.addcdiv_(mean, denominator, value=-lr / (1 - beta1**step))
