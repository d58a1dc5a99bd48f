"""Module: parameters, buffers and modules in a tree, and a forward (PyTorch: torch/nn/modules/module.py)."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Self

from ...c10 import dtype as dtypes
from ...c10.device import device as Device  # noqa: N812
from ...c10.dtype import dtype as DType  # noqa: N812
from ...c10.grad_mode import grad_enabled
from ...c10.tensor_impl import TensorImpl
from ..parameter import Buffer, Parameter, is_persistent
from . import state_dict as states
from .forward_hooks import ForwardHooks
from .tree import Tree


class Module(Tree, ForwardHooks):
    """The base of every layer: assign parameters and modules to attributes in __init__, and write a forward.

    _version: of the form in which the class writes its state into a state_dict.
    """

    training: bool
    _version = 1
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=set(),
            _forward_hooks_always_called=set(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=set(),
            _modules={},
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a subclass computes."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._forward_hooks and not self._forward_pre_hooks:
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._ready("parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{_kind(value)}' as parameter '{name}' (nn.Parameter or None expected)")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._ready("module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{_kind(value)}' as child module '{name}' (nn.Module or None expected)")
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self._ready("buffers")
            self.register_buffer(name, value, is_persistent(value))
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, TensorImpl):
                raise TypeError(f"cannot assign '{_kind(value)}' as buffer '{name}' (a Tensor or None expected)")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Only where Python found nothing, and in a module whose __init__ has not run there is nothing here either.
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in own and name in own[kind]:
                return own[kind][name]
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

    def _ready(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name: str, keep: str) -> None:
        """Take the name away from everything but its place in the dict `keep`."""
        self.__dict__.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """A parameter by name; None keeps the name for one.

        KeyError for a name that cannot be or is taken, TypeError for what is no Parameter, ValueError for one with a
        history.
        """
        self._ready("parameter")
        self._check_name(name, "parameter", self._parameters)
        is_parameter = isinstance(param, Parameter)
        if param is not None and not is_parameter:
            raise TypeError(
                f"cannot assign '{_kind(param)}' object to parameter '{name}' (nn.Parameter or None required)"
            )
        if param is not None and param._grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """A tensor that belongs to the state and is not trained; it is in state_dict if it is persistent."""
        self._ready("buffer")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, TensorImpl):
            raise TypeError(f"cannot assign '{_kind(tensor)}' object to buffer '{name}' (Tensor or None required)")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """A child by name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_kind(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: Any, what: str, own: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_kind(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in own and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # Modes, conversions

    def train(self, mode: bool = True) -> Self:
        """Training mode for this module and all below it: it touches neither autograd nor dispatch keys."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """For every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of every parameter, or fill them with zeros."""
        for parameter in self.parameters():
            forget_grad(parameter, set_to_none)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Every parameter and buffer becomes fn of itself; parameters stay the objects that they are."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        token = grad_enabled.set(False)
        try:
            for parameter in self._parameters.values():
                if parameter is not None:
                    parameter.data = fn(parameter)
                    grad = parameter._grad
                    if grad is not None:
                        grad.data = fn(grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        finally:
            grad_enabled.reset(token)
        return self

    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> Self:
        """To a dtype (floating point tensors only), a device, both, or those of a tensor, in place."""
        for arg in args:
            if isinstance(arg, TensorImpl):
                dtype, device = arg._dtype, arg._device
            elif isinstance(arg, DType):
                dtype = arg
            elif isinstance(arg, str | Device):
                device = arg
            elif isinstance(arg, bool):
                non_blocking = arg
            elif arg is not None:
                raise TypeError(f"to() takes a dtype, a device or a tensor, got {_kind(arg)}")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            wanted = dtype if t._dtype.is_floating_point else None
            return t.to(dtype=wanted, device=device, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """To a device without the values."""
        from ...aten import ops as at

        where = Device(device)
        return self._apply(lambda t: at.empty_like(t, None, where, None), recurse)

    def float(self) -> Self:
        return self.to(dtypes.float32)

    def double(self) -> Self:
        return self.to(dtypes.float64)

    def bfloat16(self) -> Self:
        return self.to(dtypes.bfloat16)

    def cpu(self) -> Self:
        return self.to("cpu")

    def sim(self) -> Self:
        return self.to("sim")

    # State

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Every parameter and persistent buffer by its dotted name: the same elements, detached if not told otherwise.

        Parameters first, then buffers, then the children's. destination: a dict to write into; prefix: what stands
        before each name.
        """
        return states.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copies values (tensors, arrays, PyTorch's tensors) into the parameters and buffers of the same names.

        RuntimeError where a shape differs, or with strict where names are missing or left over; then nothing is copied.
        assign: the tensors themselves take the places. Returns (missing_keys, unexpected_keys).
        """
        return states.load_state_dict(self, state_dict, strict, assign)

    def _upgrade_state_dict(self, values: dict[str, Any], prefix: str, version: int | None) -> None:
        """Brings what an older version of this class wrote into today's form; values: the whole dict, to be changed."""

    # For people

    def extra_repr(self) -> str:
        """What stands between the parentheses of the repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        body = "".join(f"\n  {line}" for line in extra + children)
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


def indented(text: str) -> str:
    """All lines but the first moved to the right."""
    return text.replace("\n", "\n  ")


def forget_grad(parameter: Any, set_to_none: bool) -> None:
    """Let go of a gradient, or make it zeros outside of any graph."""
    grad = parameter._grad
    if grad is None:
        return
    if set_to_none:
        parameter._grad = None
        return
    if grad.grad_fn is not None:
        grad = parameter._grad = grad.detach()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def _kind(value: Any) -> str:
    return type(value).__name__
