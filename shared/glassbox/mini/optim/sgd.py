"""SGD: against the gradient, with momentum if asked (PyTorch: torch/optim/sgd.py)."""

from collections.abc import Iterable
from typing import Any

from ..aten import ops as at
from .optimizer import Optimizer, check, number


class SGD(Optimizer):
    """p -= lr * grad; with momentum a running sum of gradients takes the gradient's place.

    foreach and fused, which say how PyTorch is to compute the same, are taken and ignored.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check("learning rate", lr)
        check("momentum value", momentum)
        check("weight_decay value", weight_decay)
        settings = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, settings)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        lr, decay = number(group["lr"]), number(group["weight_decay"])
        momentum, maximize = group["momentum"], group["maximize"]
        for parameter in params:
            grad = -parameter._grad if maximize else parameter._grad
            if decay:
                grad = at.add_Tensor(grad, parameter, decay)
            if momentum:
                grad = self._with_momentum(self.state[parameter], grad, group)
            at.add__Tensor(parameter, grad, -lr)

    def _with_momentum(self, state: dict[str, Any], grad: Any, group: dict[str, Any]) -> Any:
        momentum = group["momentum"]
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
        return grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
