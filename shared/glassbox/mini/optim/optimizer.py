"""Optimizer: groups of parameters with their settings and state (PyTorch: torch/optim/optimizer.py)."""

import copy
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..c10.grad_mode import grad_enabled
from ..c10.tensor_impl import TensorImpl
from ..nn.modules.module import forget_grad


class Optimizer:
    """The base of every optimizer: a subclass writes `update`, which moves the parameters of one group.

    params: tensors, (name, tensor) pairs, or dicts with such "params" and settings of their own. defaults: every
    setting. param_groups: the dicts as they came to be; state: parameter -> what the optimizer keeps for it.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, TensorImpl):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got a Tensor"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._post_hooks: OrderedDict[int, Any] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Parameters with settings of their own; what the dict does not say is as in `defaults`, and written into it.

        TypeError for what holds no tensors in a fixed order, ValueError for a tensor that is no leaf or is in a group
        already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        entries = [given] if isinstance(given, TensorImpl) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        tensors = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        if names and len(names) != len(tensors):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        for tensor in tensors:
            self._check(tensor)
        if len(set(tensors)) != len(tensors):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        known = {parameter for each in self.param_groups for parameter in each["params"]}
        if not known.isdisjoint(tensors):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in self.param_groups[0]) != bool(names):
            raise ValueError("all optimizer param groups should be with/without names")
        param_group["params"] = tensors
        if names:
            param_group["param_names"] = names
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        self.param_groups.append(param_group)

    def _check(self, tensor: Any) -> None:
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(tensor).__name__}")
        if not (self.defaults.get("differentiable") or tensor.is_leaf or tensor.retains_grad):  # type: ignore[attr-defined]
            raise ValueError("can't optimize a non-leaf Tensor")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients: they add up until they are forgotten."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter._grad is not None:
                    if set_to_none:
                        parameter._grad = None
                    else:
                        forget_grad(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with the gradients that are there; closure computes them anew and returns the loss."""
        if self._pre_hooks or self._post_hooks:
            return self._step_with_hooks(closure)
        return self._step(closure)

    def _step(self, closure: Callable[[], Any] | None) -> Any:
        token = grad_enabled.set(True)
        try:
            loss = None if closure is None else closure()
            # A differentiable step becomes part of the graph.
            grad_enabled.set(bool(self.defaults.get("differentiable")))
            for group in self.param_groups:
                self.update(group, [p for p in group["params"] if p._grad is not None])
        finally:
            grad_enabled.reset(token)
        return loss

    def _step_with_hooks(self, closure: Callable[[], Any] | None) -> Any:
        args: Any = (closure,)
        kwargs: Any = {}
        for hook in list(self._pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        loss = self._step(*args, **kwargs)
        for hook in list(self._post_hooks.values()):
            hook(self, args, kwargs)
        return loss

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before each step; may return other (args, kwargs)."""
        return RemovableHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after each step."""
        return RemovableHandle(self._post_hooks, hook)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        """What a kind of optimizer does with the parameters of a group that have a gradient."""
        raise NotImplementedError

    # State

    def state_dict(self) -> dict[str, Any]:
        """The state with parameters by number, and the settings; the tensors themselves, not copies."""
        numbers: dict[Any, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(parameter, len(numbers))
        return {
            "state": {numbers[parameter]: state for parameter, state in self.state.items()},
            "param_groups": [
                {
                    **{name: value for name, value in group.items() if name != "params"},
                    "params": [numbers[parameter] for parameter in group["params"]],
                }
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state again, as copies of each parameter's dtype and device.

        ValueError where the groups do not match.
        """
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, other in zip(self.param_groups, saved, strict=True):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
        numbers = [number for other in saved for number in other["params"]]
        parameters = dict(zip(numbers, (p for group in self.param_groups for p in group["params"]), strict=True))
        self.state = defaultdict(dict)
        for number, state in state_dict["state"].items():
            parameter = parameters[number]
            self.state[parameter] = {name: _cast(parameter, name, value) for name, value in state.items()}
        for nr, (group, other) in enumerate(zip(self.param_groups, saved, strict=True)):
            self.param_groups[nr] = {**other, "params": group["params"]}

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for nr, group in enumerate(self.param_groups):
            text += f"\nParameter Group {nr}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"


def _cast(parameter: Any, name: str, value: Any) -> Any:
    """A value of a saved state as the parameter's own state has it: a count of steps keeps its dtype."""
    if not isinstance(value, TensorImpl):
        return copy.deepcopy(value)
    if name == "step":
        return value.clone()  # type: ignore[attr-defined]
    dtype = parameter._dtype if parameter._dtype.is_floating_point else value._dtype
    return value.to(dtype=dtype, device=parameter._device, copy=True)  # type: ignore[attr-defined]


def number(value: Any) -> Any:
    """A setting that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, TensorImpl) else value  # type: ignore[attr-defined]


def check(name: str, value: Any) -> None:
    """ValueError for a negative setting; one that is a tensor must have a single element."""
    if isinstance(value, TensorImpl) and value.numel() != 1:  # type: ignore[attr-defined]
        raise ValueError(f"Tensor {name} must be 1-element")
    if not number(value) >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")
