"""Hooks around a module's forward (PyTorch: torch/nn/modules/module.py)."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...autograd.hooks import RemovableHandle


class ForwardHooks:
    """What a Module does before and after its forward for those who asked."""

    forward: Callable[..., Any]
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: set[int]
    _forward_hooks_always_called: set[int]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: set[int]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) runs before forward and may return other args.

        with_kwargs: hook(module, args, kwargs), which returns None or (args, kwargs).
        """
        handle = RemovableHandle(self._forward_pre_hooks, hook)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs.add(handle.id)
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) runs after forward and may return another output.

        with_kwargs: hook(module, args, kwargs, output). always_call: also where forward raises, with
        None for the output.
        """
        handle = RemovableHandle(self._forward_hooks, hook)
        if with_kwargs:
            self._forward_hooks_with_kwargs.add(handle.id)
        if always_call:
            self._forward_hooks_always_called.add(handle.id)
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        output: Any = None
        try:
            for number, hook in list(self._forward_pre_hooks.items()):
                if number in self._forward_pre_hooks_with_kwargs:
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not isinstance(changed, tuple) or len(changed) != 2:
                            raise RuntimeError(
                                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                                f"{changed}."
                            )
                        args, kwargs = changed
                else:
                    changed = hook(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
            output = self.forward(*args, **kwargs)
            for number, hook in list(self._forward_hooks.items()):
                called.add(number)
                changed = self._forward_hook_call(number, hook, args, kwargs, output)
                output = output if changed is None else changed
        except Exception:
            self._call_the_rest(called, args, kwargs, output)
            raise
        return output

    def _forward_hook_call(self, number: int, hook: Callable[..., Any], args: Any, kwargs: Any, output: Any) -> Any:
        if number in self._forward_hooks_with_kwargs:
            return hook(self, args, kwargs, output)
        return hook(self, args, output)

    def _call_the_rest(self, called: set[int], args: Any, kwargs: Any, output: Any) -> None:
        """After an exception: the hooks that are called whatever happens, and have not been."""
        for number, hook in list(self._forward_hooks.items()):
            if number not in self._forward_hooks_always_called or number in called:
                continue
            try:
                changed = self._forward_hook_call(number, hook, args, kwargs, output)
                output = output if changed is None else changed
            except Exception as problem:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {problem}",
                    stacklevel=2,
                )
