"""TensorIterator: how the operands of a pointwise op are walked together (PyTorch: ATen/TensorIterator.cpp).

Shapes are broadcast, dtypes promoted, the result's strides chosen, and dimensions sorted and joined so that
the loop is as short as the layouts allow. All of it follows from shapes, strides and dtypes alone, so the
whole iterator is kept for the next call with the same (see `build`); tensors come in only when it is run.

Inside the iterator dimension 0 is the innermost, as in PyTorch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..c10 import geometry, layout, promotion
from ..c10.device import device as Device  # noqa: N812
from ..c10.dtype import bfloat16, bool_
from ..c10.dtype import dtype as DType  # noqa: N812
from ..c10.pieces import cached, replaced
from ..c10.tensor_impl import WRAPPED_NUMBER, TensorImpl
from . import loop_layout
from .loop_layout import loop_order
from .memory_overlap import assert_no_internal_overlap, assert_no_partial_overlap, is_dense
from .native.resize import scalar_type

Ints = tuple[int, ...]
# The pieces that make a plan.
PIECES = ("broadcast_shapes", "promote_types", "result_type", "output_strides", "coalesce_dimensions")
# shape, strides, dtype, whether it is a wrapped number
Meta = tuple[Ints, Ints, DType, bool]


@dataclass(frozen=True, eq=False)
class TensorIteratorConfig:
    """What an op asks of its iterator; the fields are PyTorch's.

    static_dtype: the dtype of a fresh result, where it is not the common one.
    check_all_same_dtype: a given output must have exactly the common dtype.
    scalars_have_layout: whether a wrapped number is an operand like any other; for an op whose schema says
    Scalar it has a say in the dtype only, in which it must fit.
    """

    promote_inputs_to_common_dtype: bool = True
    promote_integer_inputs_to_float: bool = False
    enforce_safe_casting_to_output: bool = True
    static_dtype: DType | None = None
    check_all_same_dtype: bool = False
    scalars_have_layout: bool = True


BINARY_OP = TensorIteratorConfig()
UNARY_OP = TensorIteratorConfig(check_all_same_dtype=True)
SCALAR_OP = TensorIteratorConfig(check_all_same_dtype=True, scalars_have_layout=False)
BINARY_FLOAT_OP = UNARY_FLOAT_OP = TensorIteratorConfig(promote_integer_inputs_to_float=True)
COMPARISON_OP = TensorIteratorConfig(enforce_safe_casting_to_output=False, static_dtype=bool_)


class Operand:
    """One operand of an iterator: what it is, and what the iterator decided for it."""

    __slots__ = (
        "shape",
        "stride",
        "dtype",
        "wrapped",
        "is_output",
        "is_read_write",
        "will_resize",
        "strides",
    )

    def __init__(self, meta: Meta, is_output: bool = False, is_read_write: bool = False) -> None:
        self.shape, self.stride, self.dtype, self.wrapped = meta
        self.is_output = is_output
        self.is_read_write = is_read_write
        self.will_resize = False
        self.strides: Ints = ()

    def category(self) -> promotion.Category:
        if self.wrapped:
            return self.dtype.name, promotion.NUMBER
        return self.dtype.name, promotion.TENSOR if self.shape else promotion.ZERO_DIM


class TensorIterator:
    """The plan for one call. Make it with `build`, or step by step to watch it (`steps` names them in order).

    shape                    the broadcast shape
    common_dtype             what is computed in
    result_dtype             what a fresh result holds
    output_stride            strides of a fresh result
    perm                     dimensions from the innermost loop to the outermost
    loop_shape, loop_strides what is left to loop over, per operand, innermost first
    """

    steps = (
        "compute_shape",
        "mark_resize_outputs",
        "compute_types",
        "compute_strides",
        "reorder_dimensions",
        "allocate_outputs",
        "coalesce_dimensions",
    )

    def __init__(
        self,
        config: TensorIteratorConfig,
        inputs: Sequence[Meta],
        output: Meta | None = None,
        read_write: bool = False,
    ) -> None:
        self.config = config
        self.inputs = [Operand(meta) for meta in inputs]
        self.output = None if output is None else Operand(output, True, read_write)
        self.shape: Ints = ()
        self.common_dtype: DType = self.inputs[0].dtype
        self.result_dtype: DType = self.common_dtype
        self.output_stride: Ints = ()
        self.perm: Ints = ()
        self.loop_shape: Ints = ()
        self.loop_strides: tuple[Ints, ...] = ()
        # What `load` and `store` look at: set by _finish.
        self.views: tuple[tuple[Ints, Ints], ...] | None = None
        self.adopts = False
        self.casts: tuple[bool, ...] = ()
        self.plain = False
        self.direct = False

    def build(self) -> "TensorIterator":
        for step in self.steps:
            getattr(self, step)()
        self._finish()
        return self

    def operands(self) -> list[Operand]:
        """Those that have a say in the layout, a given output first, as in PyTorch."""
        inputs = self.inputs
        if not self.config.scalars_have_layout:
            inputs = [operand for operand in inputs if not operand.wrapped]
        if self.output is None or self.output.will_resize:
            return inputs
        return [self.output, *inputs]

    def compute_shape(self) -> None:
        """Broadcast the inputs. An output does not count: it is resized, or must have the shape already."""
        self.shape = self.inputs[0].shape
        for operand in self.inputs[1:]:
            if operand.shape != self.shape:
                self.shape = loop_layout.broadcast_shapes(self.shape, operand.shape)

    def mark_resize_outputs(self) -> None:
        """An output of another shape is resized, unless it is an input too; then RuntimeError."""
        if self.output is not None and self.output.shape != self.shape:
            if self.output.is_read_write:
                raise RuntimeError(
                    f"output with shape {list(self.output.shape)} doesn't match the broadcast shape {list(self.shape)}"
                )
            self.output.will_resize = True

    def compute_types(self) -> None:
        """The common dtype, and whether a given output can take it; RuntimeError where it cannot."""
        config = self.config
        if config.promote_inputs_to_common_dtype:
            self.common_dtype = promotion.common_dtype(tuple(operand.category() for operand in self.inputs))
        if config.promote_integer_inputs_to_float and not self.common_dtype.is_floating_point:
            self.common_dtype = promotion.DEFAULT_DTYPE
        self.result_dtype = config.static_dtype or self.common_dtype
        if self.output is None:
            return
        if config.enforce_safe_casting_to_output and not promotion.can_cast(self.common_dtype, self.output.dtype):
            raise RuntimeError(
                f"result type {scalar_type(self.common_dtype)} can't be cast to the desired output type "
                f"{scalar_type(self.output.dtype)}"
            )
        if config.check_all_same_dtype and self.output.dtype is not self.common_dtype:
            raise RuntimeError(
                f"Found dtype {scalar_type(self.output.dtype)} but expected {scalar_type(self.common_dtype)}"
            )
        self.result_dtype = self.output.dtype

    def compute_strides(self) -> None:
        """Strides of every operand over the whole shape: 0 where it is repeated."""
        for operand in [*self.operands(), *self.inputs]:
            stride = self._converted_stride(operand)
            missing = len(self.shape) - len(operand.shape)
            operand.strides = (0,) * missing + tuple(
                0 if had == 1 and size != 1 else step
                for had, step, size in zip(operand.shape, stride, self.shape[missing:], strict=True)
            )

    def _converted_stride(self, operand: Operand) -> Ints:
        # An input of another dtype is converted first, and a copy lies densely.
        if operand.is_output or not self.config.promote_inputs_to_common_dtype or operand.dtype is self.common_dtype:
            return operand.stride
        return geometry.dense_strides(operand.shape, operand.stride)

    def reorder_dimensions(self) -> None:
        """Sort the dimensions by stride, innermost first."""
        same = self._same_layout()
        if same is not None:
            self.perm = _by_stride(self.shape, same)
        else:
            self.perm = loop_order(self.shape, [operand.strides for operand in self.operands()])

    def allocate_outputs(self) -> None:
        """Choose the strides of a fresh or resized output; a given one keeps its own."""
        if self.output is not None and not self.output.will_resize:
            self.output_stride = self.output.stride
            return
        same = self._same_layout()
        if same is not None:
            self.output_stride = same
        else:
            self.output_stride = loop_layout.output_strides(
                self.shape, tuple(operand.strides for operand in self.inputs)
            )

    def _same_layout(self) -> Ints | None:
        """The strides of equally shaped operands that all lie densely in one way (PyTorch: fast_set_up)."""
        operands = self.operands()
        if any(operand.shape != self.shape for operand in operands):
            return None
        strides = [self._converted_stride(operand) for operand in operands]
        if all(geometry.is_contiguous(self.shape, stride) for stride in strides):
            return geometry.contiguous_strides(self.shape)
        if len(self.shape) == 4:
            innermost = loop_layout.laid_out(self.shape, loop_layout.CHANNELS_INNERMOST)
            if all(_differs_only_in_ones(self.shape, stride, innermost) for stride in strides):
                return innermost
        if is_dense(self.shape, strides[0]) and all(stride == strides[0] for stride in strides):
            return strides[0]
        return None

    def coalesce_dimensions(self) -> None:
        """Join dimensions that every operand, the output included, walks in one go."""
        strides = [self.output_stride, *(operand.strides for operand in self.inputs)]
        permuted = tuple(tuple(stride[dim] for dim in self.perm) for stride in strides)
        self.loop_shape, self.loop_strides = loop_layout.coalesce_dimensions(
            tuple(self.shape[dim] for dim in self.perm), permuted
        )

    def _finish(self) -> None:
        promotes = self.config.promote_inputs_to_common_dtype
        self.casts = tuple(promotes and operand.dtype is not self.common_dtype for operand in self.inputs)
        canonical = self.output_stride == geometry.contiguous_strides(self.shape)
        self.plain = self.common_dtype is not bfloat16 and not any(self.casts)
        if canonical and own_pieces() or 0 in self.shape or self.output is not None:
            # NumPy walks such operands as well as we could: no need to show it other views of them.
            # A learner's plan is walked as it is, unless it writes into a given tensor.
            self.adopts = canonical
            self.direct = self.plain and canonical and self.shape != () and self.output is None
            return
        # The result is made in the order of the loop, which is that of its memory, and needs no second copy.
        step = 1
        self.adopts = True
        for size, stride in zip(self.loop_shape, self.loop_strides[0], strict=True):
            self.adopts = self.adopts and (size == 1 or stride == step)
            step *= size
        self.adopts = self.adopts and step == layout.numel(self.shape)
        if self.adopts:
            outer_first = self.loop_shape[::-1]
            self.views = tuple(
                (
                    tuple(1 if s == 0 else n for n, s in zip(outer_first, stride[::-1], strict=True)),
                    stride[::-1],
                )
                for stride in self.loop_strides[1:]
            )


@cached
def build(
    config: TensorIteratorConfig,
    inputs: tuple[Meta, ...],
    output: Meta | None = None,
    read_write: bool = False,
) -> TensorIterator:
    """The iterator for operands with these shapes, strides and dtypes, remembered.

    output: the tensor of out= or an in-place op; read_write: it is one of the inputs. Raises RuntimeError for
    shapes that do not broadcast, an in-place result that does not fit, a dtype that the output cannot take.
    """
    return TensorIterator(config, inputs, output, read_write).build()


def own_pieces() -> bool:
    """Whether all that makes a plan is the framework's own; if not, every loop is planned."""
    return not replaced(*PIECES)


def meta(self: TensorImpl) -> Meta:
    """What an iterator needs to know of a tensor."""
    return self._shape, self._stride, self._dtype, self._meta is WRAPPED_NUMBER


def compute_mem_overlaps(output: TensorImpl, inputs: Sequence[TensorImpl]) -> None:
    """RuntimeError where writing the output would change an input that is still to be read."""
    assert_no_internal_overlap(output)
    for each in inputs:
        if each is not output:
            assert_no_partial_overlap(output, each)


def common_device(tensors: Sequence[TensorImpl]) -> Device:
    """The device of an op's tensors; one 0-d tensor may be on the CPU. RuntimeError for two devices."""
    device = next((t._device for t in tensors if t._device.type != "cpu"), tensors[0]._device)
    scalars = 0
    for each in tensors:
        if each._device == device:
            continue
        if each._shape or each._device.type != "cpu":
            raise RuntimeError(
                "Expected all tensors to be on the same device, but got at least two devices, "
                f"{device} and {each._device}!"
            )
        scalars += 1
    if scalars > 1:
        raise RuntimeError("Trying to pass too many CPU scalars to non-CPU kernel!")
    return device


def _by_stride(shape: Ints, stride: Ints) -> Ints:
    """Dimensions of a dense layout from the innermost to the outermost; those of size 1 first."""
    return tuple(sorted(range(len(shape)), key=lambda dim: (shape[dim] != 1, stride[dim])))


def _differs_only_in_ones(shape: Ints, a: Ints, b: Ints) -> bool:
    return all(size == 1 or x == y for size, x, y in zip(shape, a, b, strict=True))
