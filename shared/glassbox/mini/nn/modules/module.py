"""Module: parameters, buffers and modules in a tree, and a forward (PyTorch: torch/nn/modules/module.py)."""

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from ...c10.device import device as Device  # noqa: N812
from ...c10.dtype import dtype as DType  # noqa: N812
from ...tensor import Tensor
from ..parameter import Buffer, Parameter

IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])
_hook_ids = itertools.count()


class RemovableHandle:
    """What registering a hook returns: `remove()`, or the end of a `with` block, takes the hook away."""

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = next(_hook_ids)

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Module:
    """The base of every layer: assign parameters and modules to attributes in __init__, and write a forward."""

    training: bool

    def __init__(self) -> None:
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "_forward_pre_hooks", OrderedDict())
        object.__setattr__(self, "_forward_hooks", OrderedDict())
        object.__setattr__(self, "_hooks_with_kwargs", set())
        object.__setattr__(self, "training", True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._forward_hooks and not self._forward_pre_hooks:
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for number, hook in list(self._forward_pre_hooks.items()):
            if number in self._hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for number, hook in list(self._forward_hooks.items()):
            if number in self._hooks_with_kwargs:
                changed = hook(self, args, kwargs, result)
            else:
                changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, Module | Parameter | Buffer):
                raise AttributeError(f"cannot assign {name!r} before Module.__init__() call")
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif name in self._parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (a Parameter or None expected)"
                )
            self._parameters[name] = None
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (a Module or None expected)"
                )
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self.register_buffer(name, value.data, value.persistent)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' (a Tensor or None expected)"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name: str) -> None:
        self.__dict__.pop(name, None)
        for kind in (self._parameters, self._buffers, self._modules):
            kind.pop(name, None)

    def register_parameter(self, name: str, param: Any) -> None:
        """A parameter by name; None keeps the name free."""
        self._check_name(name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}'")
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly."
            )
        self._forget(name)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """A tensor that belongs to the state and is not trained; it is in state_dict if it is persistent."""
        self._check_name(name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}'")
        self._forget(name)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """A child by name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, self._modules)
        self._forget(name)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, own: Mapping[str, Any]) -> None:
        if "." in name:
            raise KeyError(f'a name cannot contain ".": {name!r}')
        if name == "":
            raise KeyError('a name cannot be the empty string ""')
        if hasattr(type(self), name):
            raise KeyError(f"attribute '{name}' already exists")

    # The tree

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator["Module"]:
        return (module for _, module in self.named_children())

    def named_modules(self, memo: set[int] | None = None, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator["Module"]:
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> "Module":
        """The module at a dotted path."""
        module = self
        for part in target.split(".") if target else ():
            child = module._modules.get(part)
            if child is None:
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = child
        return module

    def _named(self, kind: str, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in getattr(module, kind).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        return self._named("_parameters", prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        return self._named("_buffers", prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        return (value for _, value in self.named_buffers(recurse=recurse))

    # Modes, conversions

    def train(self, mode: bool = True) -> Self:
        """Training mode for this module and all below it: it touches neither autograd nor dispatch keys."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = parameter.grad.detach()
                    parameter.grad.zero_()

    def apply(self, fn: Callable[["Module"], Any]) -> Self:
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, convert: Callable[[Any], Any]) -> Self:
        for module in self.modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    _replace(parameter, convert(parameter.detach()))
                    if parameter._grad is not None:
                        parameter._grad = convert(parameter._grad.detach())
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = convert(buffer)
        return self

    def to(self, *args: Any, dtype: Any = None, device: Any = None) -> Self:
        """To a dtype (floating point tensors only), a device, or both, in place."""
        for arg in args:
            if isinstance(arg, DType):
                dtype = arg
            elif isinstance(arg, str | Device):
                device = arg
            else:
                raise TypeError(f"to() takes a dtype or a device, got {type(arg).__name__}")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={dtype}")
        return self._apply(lambda t: t.to(dtype=dtype if t.is_floating_point() else None, device=device))

    def float(self) -> Self:
        from ...c10.dtype import float32

        return self.to(float32)

    def double(self) -> Self:
        from ...c10.dtype import float64

        return self.to(float64)

    def bfloat16(self) -> Self:
        from ...c10.dtype import bfloat16

        return self.to(bfloat16)

    def cpu(self) -> Self:
        return self.to("cpu")

    # Hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) runs before forward and may return other args."""
        return self._register(self._forward_pre_hooks, hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args, result) runs after forward and may return another result."""
        return self._register(self._forward_hooks, hook, prepend, with_kwargs)

    def _register(
        self, hooks: "OrderedDict[int, Any]", hook: Callable[..., Any], prepend: bool, with_kwargs: bool
    ) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle.id)
        return handle

    # State

    def state_dict(self, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Every parameter and persistent buffer by its dotted name; detached, over the same elements."""
        found: dict[str, Any] = {}
        for path, module in self.named_modules_with_repeats(prefix.rstrip(".")):
            for name, value in (*module._parameters.items(), *module._buffers.items()):
                if value is not None and name not in module._non_persistent_buffers_set:
                    found[f"{path}.{name}" if path else name] = value if keep_vars else value.detach()
        return found

    def named_modules_with_repeats(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """The tree with a module as often as it stands there, for names that must all be found again."""
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules_with_repeats(f"{prefix}.{name}" if prefix else name)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Any:
        """Copies values into the parameters and buffers of the same names; tensors, or arrays of any kind.

        RuntimeError where a shape differs, or with strict where names are missing or left over; then nothing is copied.
        """
        own = self.state_dict(keep_vars=True)
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        problems = []
        if strict and missing:
            problems.append(f"Missing key(s) in state_dict: {', '.join(map(repr, missing))}.")
        if strict and unexpected:
            problems.append(f"Unexpected key(s) in state_dict: {', '.join(map(repr, unexpected))}.")
        values = {name: _as_mini(state_dict[name]) for name in own if name in state_dict}
        for name, value in values.items():
            if value.shape != own[name].shape:
                problems.append(
                    f"size mismatch for {name}: copying a param with shape {list(value.shape)} from checkpoint, the shape "
                    f"in current model is {list(own[name].shape)}."
                )
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        from ...c10.grad_mode import grad_enabled

        token = grad_enabled.set(False)
        try:
            for name, value in values.items():
                own[name].copy_(value)
        finally:
            grad_enabled.reset(token)
        return IncompatibleKeys(missing, unexpected)

    # For people

    def extra_repr(self) -> str:
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        extra = self.extra_repr()
        if not children:
            return f"{self._get_name()}({extra})"
        body = "".join(f"\n  {line}" for line in ([extra] if extra else []) + children)
        return f"{self._get_name()}({body}\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _as_mini(value: Any) -> Any:
    """A tensor of ours from one of ours, an array, or anything that gives an array, such as PyTorch's tensors."""
    if isinstance(value, Tensor):
        return value
    from ...factories import tensor

    import numpy as np

    detach = getattr(value, "detach", None)
    return tensor(np.asarray(value if detach is None else detach()))


def _replace(parameter: Any, value: Any) -> None:
    """Another storage under the same tensor object, as conversions of a module need it."""
    for slot in ("_storage", "_shape", "_stride", "_offset", "_dtype", "_device", "_key_set", "_array"):
        setattr(parameter, slot, getattr(value, slot))
