"""Optimizer: groups of parameters with their settings and state (PyTorch: torch/optim/optimizer.py)."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..c10.grad_mode import grad_enabled
from ..tensor import Tensor


class Optimizer:
    """param_groups: dicts with "params" and settings; state: parameter -> its own running values."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Parameters with settings of their own; the rest is as in `defaults`."""
        chosen = group["params"]
        tensors = [chosen] if isinstance(chosen, Tensor) else list(chosen)
        known = {id(tensor) for each in self.param_groups for tensor in each["params"]}
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(tensor).__name__}")
            if not tensor.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(tensor) in known:
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({**self.defaults, **group, "params": tensors})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients: they add up until they are forgotten."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter._grad is not None:
                    if set_to_none:
                        parameter._grad = None
                    else:
                        parameter._grad = parameter._grad.detach()
                        parameter._grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with the gradients that are there; closure computes them anew and returns the loss."""
        loss = closure() if closure is not None else None
        token = grad_enabled.set(False)
        try:
            for group in self.param_groups:
                self.update(group, [p for p in group["params"] if p._grad is not None])
        finally:
            grad_enabled.reset(token)
        return loss

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        """What a kind of optimizer does with the parameters of a group that have a gradient."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state with parameters by number, and the settings."""
        numbers = {
            id(p): nr for nr, p in enumerate(p for group in self.param_groups for p in group["params"])
        }
        return {
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": [
                {**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state again; ValueError where the groups do not match."""
        saved = state_dict["param_groups"]
        if [len(group["params"]) for group in saved] != [len(group["params"]) for group in self.param_groups]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameters = [p for group in self.param_groups for p in group["params"]]
        self.state = defaultdict(dict)
        for nr, state in state_dict["state"].items():
            self.state[parameters[nr]] = {
                name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()
            }
        for group, other in zip(self.param_groups, saved, strict=True):
            group.update({name: value for name, value in other.items() if name != "params"})

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for nr, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {nr}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])
