"""Python's operators on tensors: a + b and its kin (PyTorch: the nb_ slots of python_variable_methods.cpp).

Each slot tests for the common case, two tensors, and hands on to the op's call; a number becomes a wrapped number. Anything
else is NotImplemented, so the other operand may know what to do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .aten.core.dispatcher import dispatcher
from .aten.core.source import compile_source
from .c10 import tensor_impl
from .c10.tensor_impl import TensorImpl
from .python_arg_parser import wrapped_number

# slot -> (operator on tensors, operator on a number or "", further arguments)
BINARY = {
    "add": ("add.Tensor", "", ", 1"),
    "sub": ("sub.Tensor", "", ", 1"),
    "mul": ("mul.Tensor", "", ""),
    "truediv": ("div.Tensor", "", ""),
    "floordiv": ("floor_divide", "", ""),
    "mod": ("remainder.Tensor", "remainder.Scalar", ""),
    "pow": ("pow.Tensor_Tensor", "pow.Tensor_Scalar", ""),
    "matmul": ("matmul", None, ""),
    "and": ("bitwise_and.Tensor", "bitwise_and.Scalar", ""),
    "or": ("bitwise_or.Tensor", "bitwise_or.Scalar", ""),
    "xor": ("bitwise_xor.Tensor", "bitwise_xor.Scalar", ""),
}
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
INPLACE = {
    "iadd": ("add_.Tensor", "", ", 1"),
    "isub": ("sub_.Tensor", "", ", 1"),
    "imul": ("mul_.Tensor", "", ""),
    "itruediv": ("div_.Tensor", "", ""),
    "ifloordiv": ("floor_divide_.Tensor", "", ""),
    "imod": ("remainder_.Tensor", "remainder_.Scalar", ""),
    "ipow": ("pow_.Tensor", "pow_.Scalar", ""),
    "iand": ("bitwise_and_.Tensor", "bitwise_and_.Scalar", ""),
    "ior": ("bitwise_or_.Tensor", "bitwise_or_.Scalar", ""),
    "ixor": ("bitwise_xor_.Tensor", "bitwise_xor_.Scalar", ""),
}
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def _slot(name: str, tensor_op: str, number_op: str | None, more: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {
        "Tensor": tensor_impl.Tensor,
        "TensorImpl": TensorImpl,
        "NUMBERS": NUMBERS,
        "wrapped_number": wrapped_number,
        "call": dispatcher.find_schema_or_throw(tensor_op).call,
    }
    text = f"def {name}(self, other):\n    if type(other) is Tensor:\n        return call(self, other{more})\n"
    if number_op is not None:
        text += "    if isinstance(other, NUMBERS):\n"
        if number_op:
            namespace["call_number"] = dispatcher.find_schema_or_throw(number_op).call
            text += f"        return call_number(self, other{more})\n"
        else:
            text += f"        return call(self, wrapped_number(other){more})\n"
    text += "    if isinstance(other, TensorImpl):\n"
    text += f"        return call(self, other{more})\n    return NotImplemented\n"
    return compile_source(text, f"Tensor.{name}", namespace)[name]


def _reflected() -> dict[str, Callable[..., Any]]:
    """number op tensor, where the order matters or not."""
    at = dispatcher.find_schema_or_throw
    add, sub, mul = (at(f"{name}.Tensor").call for name in ("add", "sub", "mul"))
    floor, rpow, remainder = (
        at("floor_divide").call,
        at("pow.Scalar").call,
        at("remainder.Scalar_Tensor").call,
    )
    logic = {name: at(f"bitwise_{name}.Tensor").call for name in ("and", "or", "xor")}

    def of_numbers(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def slot(self: Any, other: Any) -> Any:
            return function(self, other) if isinstance(other, NUMBERS) else NotImplemented

        return slot

    return {
        "__radd__": of_numbers(lambda self, other: add(self, wrapped_number(other), 1)),
        "__rsub__": of_numbers(lambda self, other: sub(wrapped_number(other), self, 1)),
        "__rmul__": of_numbers(lambda self, other: mul(self, wrapped_number(other))),
        # PyTorch's own way, which rounds twice: the reciprocal first.
        "__rtruediv__": of_numbers(lambda self, other: mul(at("reciprocal").call(self), wrapped_number(other))),
        "__rfloordiv__": of_numbers(lambda self, other: floor(wrapped_number(other), self)),
        "__rpow__": of_numbers(lambda self, other: rpow(other, self)),
        "__rmod__": of_numbers(lambda self, other: remainder(other, self)),
        "__rand__": of_numbers(lambda self, other: logic["and"](self, wrapped_number(other))),
        "__ror__": of_numbers(lambda self, other: logic["or"](self, wrapped_number(other))),
        "__rxor__": of_numbers(lambda self, other: logic["xor"](self, wrapped_number(other))),
    }


def slots() -> dict[str, Callable[..., Any]]:
    """Every operator slot of Tensor by its dunder name."""
    found = {f"__{name}__": _slot(f"__{name}__", *rule) for name, rule in (BINARY | INPLACE).items()}
    for name in COMPARE:
        found[f"__{name}__"] = _slot(f"__{name}__", f"{name}.Tensor", f"{name}.Scalar", "")
    for name, op in (("neg", "neg"), ("abs", "abs"), ("invert", "bitwise_not")):
        found[f"__{name}__"] = _unary(f"__{name}__", op)
    return found | _reflected()


def _unary(name: str, op: str) -> Callable[..., Any]:
    namespace = {"call": dispatcher.find_schema_or_throw(op).call}
    return compile_source(f"def {name}(self):\n    return call(self)\n", f"Tensor.{name}", namespace)[name]
