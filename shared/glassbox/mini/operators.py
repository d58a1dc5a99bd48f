"""Python's operators on tensors: a + b and its kin (PyTorch: the nb_ slots of python_variable_methods.cpp).

Each slot tests for the common case, two tensors, and hands on to the op's call; a number becomes a wrapped number.
Anything else is NotImplemented, so the other operand may know what to do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .aten.core.dispatcher import dispatcher
from .aten.core.source import compile_source
from .c10 import tensor_impl
from .c10.tensor_impl import TensorImpl
from .factories import from_numpy
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
    text += f"        return call(self, other{more})\n"
    if name == "__eq__":
        # As PyTorch, which compares with an array for equality only.
        namespace |= {"ndarray": np.ndarray, "from_numpy": from_numpy}
        text += "    if isinstance(other, ndarray):\n        return call(self, from_numpy(other))\n"
    text += "    return NotImplemented\n"
    return compile_source(text, f"Tensor.{name}", namespace)[name]


def _tensor(value: Any) -> Any:
    return value if isinstance(value, TensorImpl) else wrapped_number(value)


def _subtract(of: Any, what: Any) -> Any:
    overload = "rsub.Tensor" if isinstance(of, TensorImpl) else "rsub.Scalar"
    return dispatcher.find_schema_or_throw(overload).call(what, of, 1)


def _powers(base: Any, exponent: Any) -> Any:
    overload = "pow.Tensor_Tensor" if isinstance(base, TensorImpl) else "pow.Scalar"
    return dispatcher.find_schema_or_throw(overload).call(base, exponent)


def _remainders(of: Any, by: Any) -> Any:
    overload = "remainder.Tensor" if isinstance(of, TensorImpl) else "remainder.Scalar_Tensor"
    return dispatcher.find_schema_or_throw(overload).call(of, by)


def _reflected() -> dict[str, Callable[..., Any]]:
    """number op tensor, where the order matters or not."""
    at = dispatcher.find_schema_or_throw
    add, mul = (at(f"{name}.Tensor").call for name in ("add", "mul"))
    floor = at("floor_divide").call
    logic = {name: at(f"bitwise_{name}.Tensor").call for name in ("and", "or", "xor")}

    def of_numbers(
        function: Callable[[Any, Any], Any], strict: bool = False, arrays: bool = False
    ) -> Callable[..., Any]:
        # strict: PyTorch has this slot from C, which refuses a self that is no tensor by itself.
        def slot(self: Any, other: Any) -> Any:
            if not isinstance(self, TensorImpl):
                if strict:
                    raise TypeError(f"this slot of Tensor doesn't apply to a {type(self).__name__}")
                return NotImplemented
            known = isinstance(other, (*NUMBERS, TensorImpl)) or arrays and isinstance(other, np.ndarray)
            return function(self, other) if known else NotImplemented

        return slot

    def divides(self: Any, other: Any) -> Any:
        # PyTorch's own way, which rounds twice: the reciprocal first. NumPy knows what to do with an array.
        inverse = at("reciprocal").call(self)
        return inverse * other if isinstance(other, np.ndarray) else mul(inverse, _tensor(other))

    return {
        "__radd__": of_numbers(lambda self, other: add(self, _tensor(other), 1), True),
        "__rsub__": of_numbers(lambda self, other: _subtract(other, self)),
        "__rmul__": of_numbers(lambda self, other: mul(self, _tensor(other)), True),
        "__rtruediv__": of_numbers(divides, arrays=True),
        "__rfloordiv__": of_numbers(lambda self, other: floor(_tensor(other), self)),
        "__rpow__": of_numbers(lambda self, other: _powers(other, self)),
        "__rmod__": of_numbers(lambda self, other: _remainders(other, self)),
        "__rand__": of_numbers(lambda self, other: logic["and"](self, _tensor(other)), True),
        "__ror__": of_numbers(lambda self, other: logic["or"](self, _tensor(other)), True),
        "__rxor__": of_numbers(lambda self, other: logic["xor"](self, _tensor(other)), True),
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
