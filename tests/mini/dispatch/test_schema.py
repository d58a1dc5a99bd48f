"""Facts about schema lines: what they say, how they are written again, and what cannot be read."""

import pytest
import torch

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.aten.core.function_schema import parse


def listed() -> list[str]:
    return [
        op.name
        for op in dispatcher.operators.values()
        if op.schema.namespace == "aten" and torch._C._dispatch_has_kernel(op.name)
    ]


def test_nearly_every_operator_is_one_of_torchs() -> None:
    mine = [op.name for op in dispatcher.operators.values() if op.schema.namespace == "aten"]
    assert len(mine) > 450
    assert [name for name in mine if name not in listed()] == []


# The names of its results were written by hand in PyTorch, where a generator would say out0, out1, out2.
OTHER_NAMES = ("aten::native_batch_norm.out",)


@pytest.mark.parametrize("name", [name for name in listed() if name not in OTHER_NAMES])
def test_an_operators_schema_is_torchs_less_options(name: str) -> None:
    mine = dispatcher.find_schema_or_throw(name).schema
    base, _, overload = name.partition(".")
    its = torch._C._get_schema(base, overload)
    arguments = {argument.name: argument for argument in its.arguments}
    # What PyTorch's Python binding checks out= of a factory against, its schema leaves out.
    extra = {"dtype", "device"} if mine.is_out else set()
    names = [argument.name for argument in mine.arguments if argument.name in arguments or argument.name not in extra]
    assert [argument.name for argument in its.arguments if argument.name in names] == names
    left_out = [argument.name for argument in its.arguments if argument.name not in names]
    assert set(left_out) <= {"layout", "pin_memory", "memory_format"}, left_out
    for argument in mine.arguments:
        if argument.name not in names:
            continue
        other = arguments[argument.name]
        assert argument.kwarg_only == other.kwarg_only, argument
        assert argument.has_default_value() == other.has_default_value(), argument
        assert (argument.alias_info is None) == (other.alias_info is None), argument
        if argument.alias_info is not None:
            assert argument.alias_info.is_write == other.alias_info.is_write, argument
            assert set(argument.alias_info.before_set) == set(other.alias_info.before_set), argument
    assert len(mine.returns) == len(its.returns)
    assert mine.is_mutable == its.is_mutable
    assert (mine.name, mine.overload_name) == (its.name, its.overload_name)


def test_defaults_are_torchs() -> None:
    written = {None: "None", True: "True", False: "False"}
    for name in listed():
        base, _, overload = name.partition(".")
        its = {argument.name: argument.default_value for argument in torch._C._get_schema(base, overload).arguments}
        for argument in dispatcher.find_schema_or_throw(name).schema.arguments:
            default = its.get(argument.name)
            if (
                argument.name not in its
                or not argument.has_default
                or isinstance(argument.default_value, mini.dtype | str)
                or argument.type.base == "MemoryFormat"
            ):
                continue
            mine = list(argument.default_value) if isinstance(argument.default_value, tuple) else argument.default_value
            if isinstance(default, list) and not isinstance(mine, list):
                default = default[0]
            assert (
                written.get(mine, mine) == written.get(default, default)
                if not isinstance(mine, list)
                else mine == default
            ), (name, argument.name)


LINES = [
    "mine::f(Tensor x) -> Tensor",
    "mine::f.overload(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "mine::f(Tensor?[] indices, int[2] sizes=0, float f=1.5, bool b=True, str s='none') -> (Tensor values, Tensor "
    "indices)",
    "mine::f(Tensor(a -> *) self, int n, int dim=0) -> Tensor(a)[]",
    "mine::f(Tensor x, *, ScalarType? dtype=None, Device? device=None) -> ()",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_as_torch_reads_it(line: str) -> None:
    mine, its = parse(line), torch._C.parse_schema(line)
    assert (mine.name, mine.overload_name, len(mine.returns)) == (its.name, its.overload_name, len(its.returns))
    for argument, other in zip(mine.arguments, its.arguments, strict=True):
        assert (argument.name, argument.kwarg_only) == (other.name, other.kwarg_only)
        assert argument.has_default_value() == other.has_default_value()
        assert (argument.alias_info is None) == (other.alias_info is None)


@pytest.mark.parametrize("line", LINES)
def test_what_a_schema_prints_can_be_read_again(line: str) -> None:
    assert parse(str(parse(line))) == parse(line)


WRONG = {
    "f(Tensorx) -> Tensor": "'Tensorx' is no argument",
    "f(Tensor x -> Tensor": "a parenthesis is not closed",
    "f(Tensor x)": "name\\(arguments\\) -> results",
    "f(Foo x) -> Tensor": "'Foo' is no type; known are .*Tensor",
    "f(Tensor x, Tensor x) -> Tensor": "two arguments are called 'x'",
    "f(Tensor x=None, Tensor y) -> Tensor": "'y' has no default but comes after",
    "f(int n=many) -> Tensor": "'many' is no default",
    "1f!(Tensor x) -> Tensor": "is no operator name",
    "": "name\\(arguments\\) -> results",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_line_that_cannot_be_read_is_a_runtime_error_that_says_where(line: str) -> None:
    with pytest.raises(RuntimeError, match=WRONG[line]) as caught:
        parse(line)
    assert repr(line.strip()) in str(caught.value)
    if line not in ("f(Tensor x, Tensor x) -> Tensor", "f(Tensor x=None, Tensor y) -> Tensor"):
        with pytest.raises(RuntimeError):
            torch._C.parse_schema(line)
