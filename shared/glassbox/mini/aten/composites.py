"""Composite operators: made of other operators, so autograd and every backend get them for free.

PyTorch: CompositeImplicitAutograd kernels in ATen/native/*.cpp. They call operators from the top again, so what a
dispatch mode sees below autograd are the operators that they are made of.
"""

from typing import Any

from ..c10 import dtype as dtypes
from ..c10 import geometry, layout
from ..c10.dispatch_key import DispatchKey
from ..c10.dispatch_key_set import PYTHON, bits
from ..c10.local_dispatch_key_set import local_keys
from . import composite_outs, loop_layout
from . import ops as at
from .core.dispatcher import watchers

Ints = tuple[int, ...]
NONE, MEAN, SUM = 0, 1, 2
# The keys of tensors that stand for others.
TRANSFORMED = bits(DispatchKey.FuncTorchBatched, DispatchKey.Functionalize)


# Shapes


def reshape(ks: int, self: Any, shape: Ints) -> Any:
    """A view where strides allow it, else a copy with contiguous strides."""
    full, stride, copies = geometry.reshape(self._shape, self._stride, shape)
    if not copies:
        if geometry.is_contiguous(self._shape, self._stride) or _is_looked_at(self):
            return at.view(self, full)
        return at._reshape_alias(self, full, stride)
    return at._unsafe_view(at.clone(self, "contiguous_format"), full)


def _is_looked_at(self: Any) -> bool:
    """Whether a mode, a recording or a transform gets to see what is called: PyTorch shows those plain operators."""
    return bool(watchers or local_keys.get()[0] & PYTHON or self._key_set & TRANSFORMED)


def reshape_as(ks: int, self: Any, other: Any) -> Any:
    return reshape(ks, self, other._shape)


def view_as(ks: int, self: Any, other: Any) -> Any:
    return at.view(self, other._shape)


def expand_as(ks: int, self: Any, other: Any) -> Any:
    return at.expand(self, other._shape)


def flatten_using_ints(ks: int, self: Any, start_dim: int, end_dim: int) -> Any:
    """Dimensions start_dim..end_dim joined into one: a view if strides allow, else a copy."""
    ndim = len(self._shape)
    first, last = layout.wrap_dim(start_dim, ndim), layout.wrap_dim(end_dim, ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if ndim == 0:
        return reshape(ks, self, (1,))
    if first == last:
        return self
    joined = layout.numel(self._shape[first : last + 1])
    return reshape(ks, self, (*self._shape[:first], joined, *self._shape[last + 1 :]))


def numpy_T(ks: int, self: Any) -> Any:  # noqa: N802
    return at.permute(self, tuple(range(len(self._shape) - 1, -1, -1)))


def mT(ks: int, self: Any) -> Any:  # noqa: N802
    if len(self._shape) < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {len(self._shape)}-D tensor."
        )
    return at.transpose_int(self, -2, -1)


def movedim_int(ks: int, self: Any, source: int, destination: int) -> Any:
    return movedim_intlist(ks, self, (source,), (destination,))


def movedim_intlist(ks: int, self: Any, source: Ints, destination: Ints) -> Any:
    """Dimensions `source` moved to `destination`; the others keep their order."""
    ndim = len(self._shape)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: {len(source)} dimensions cannot move to {len(destination)} places")
    moved = [layout.wrap_dim(dim, ndim) for dim in source]
    places = [layout.wrap_dim(dim, ndim) for dim in destination]
    for dims, given in ((moved, source), (places, destination)):
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"movedim: a dimension is repeated in {list(given)}")
    if ndim == 0:
        return at.alias(self)
    order = [dim for dim in range(ndim) if dim not in moved]
    for place, dim in sorted(zip(places, moved, strict=True)):
        order.insert(place, dim)
    return at.permute(self, tuple(order))


def narrow(ks: int, self: Any, dim: int, start: int, length: int) -> Any:
    """`length` indices from `start` on; unlike a slice it refuses bounds that do not fit."""
    if not self._shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._shape[layout.wrap_dim(dim, len(self._shape))]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return at.slice_Tensor(self, dim, start, start + length, 1)


def split_sizes(ks: int, self: Any, split_size: Ints, dim: int) -> Any:
    return at.split_with_sizes(self, split_size, dim)


def chunk(ks: int, self: Any, chunks: int, dim: int) -> Any:
    """At most `chunks` views of equal size along a dimension, the last one smaller where it does not divide."""
    if not self._shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._shape[layout.wrap_dim(dim, len(self._shape))]
    part = (size + chunks - 1) // chunks
    if part == 0:
        return at.split_with_sizes(self, (0,) * chunks, dim)
    return at.split_Tensor(self, part, dim)


def contiguous(ks: int, self: Any, memory_format: str) -> Any:
    """`self` if it is contiguous already, else a copy that is."""
    if memory_format == "preserve_format":
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if geometry.is_contiguous(self._shape, self._stride):
        return self
    return at.clone(self, memory_format)


# Conversions


def to_dtype(ks: int, self: Any, dtype: Any, non_blocking: bool, copy: bool, memory_format: Any) -> Any:
    return _to(self, dtype, self._device, non_blocking, copy, memory_format)


def to_device(ks: int, self: Any, device: Any, dtype: Any, non_blocking: bool, copy: bool, memory_format: Any) -> Any:
    return _to(self, dtype, device, non_blocking, copy, memory_format)


def to_dtype_layout(
    ks: int, self: Any, dtype: Any, device: Any, non_blocking: bool, copy: bool, memory_format: Any
) -> Any:
    return _to(
        self,
        self._dtype if dtype is None else dtype,
        self._device if device is None else device,
        non_blocking,
        copy,
        memory_format,
    )


def to_other(ks: int, self: Any, other: Any, non_blocking: bool, copy: bool, memory_format: Any) -> Any:
    return _to(self, other._dtype, other._device, non_blocking, copy, memory_format)


def _to(self: Any, dtype: Any, device: Any, non_blocking: bool, copy: bool, memory_format: Any) -> Any:
    if dtype is self._dtype and device.type == self._device.type and not copy:
        return self
    return at._to_copy(
        self,
        None if dtype is self._dtype and not copy else dtype,
        None if device.type == self._device.type and not copy else device,
        non_blocking,
        memory_format,
    )


def type_as(ks: int, self: Any, other: Any) -> Any:
    return _to(self, other._dtype, other._device, False, False, None)


def sum_to_size(ks: int, self: Any, size: Ints) -> Any:
    """What broadcasting repeated added up again: the inverse of expand."""
    shape = self._shape
    if not size:
        return at.sum(self, None)
    if shape == size:
        return self
    dims = geometry.expanded_dims(size, shape)
    if dims is None:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    summed = at.sum_dim_IntList(self, dims, True, None) if dims else self
    return at.view(summed, size) if len(shape) > len(size) else summed


# Products


def matmul(ks: int, self: Any, other: Any) -> Any:
    """The matrix product of vectors, matrices and batches of them, by dot, mv, mm and bmm."""
    left, right = len(self._shape), len(other._shape)
    if left == 0 or right == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if left == 1 and right == 1:
        return at.dot(self, other)
    if left == 2 and right == 1:
        return at.mv(self, other)
    if left == 1 and right == 2:
        return at.squeeze__dim(at.mm(at.unsqueeze(self, 0), other), 0)
    if left == 2 and right == 2:
        return at.mm(self, other)
    if left >= 3 and right <= 2 and _should_fold(self, other, False):
        return _folded(self, other)
    if right >= 3 and left <= 2 and _should_fold(at.transpose_int(other, -2, -1), self, True):
        return _folded_right(self, other)
    return _batched(self, other)


def matmul_out(ks: int, self: Any, other: Any, out: Any) -> Any:
    if len(self._shape) == 1 and len(other._shape) == 2:
        # PyTorch's own way, so that `out` is resized to a row first.
        return at.squeeze__dim(at.mm_out(at.unsqueeze(self, 0), other, out), 0)
    return composite_outs.write(out, matmul(ks, self, other))


def linear_out(ks: int, input: Any, weight: Any, bias: Any, out: Any) -> Any:  # noqa: A002
    if bias is not None and len(input._shape) == 2:
        return at.addmm_out(bias, input, at.t(weight), 1, 1, out)
    product = at.matmul_out(input, at.t(weight), out)
    return product if bias is None else at.add__Tensor(product, bias, 1)


def _should_fold(big: Any, small: Any, small_first: bool) -> bool:
    """Whether a batch times one matrix can be one large product without a copy that it does not pay for."""
    if small._requires_grad:
        return True
    if small_first and len(small._shape) == 2:
        # The product would have to be transposed back, which is the copy.
        return False
    if layout.numel(big._shape) == 0:
        return True
    shape, stride = big._shape, big._stride
    # The leading dimensions can be joined without a copy.
    return all(stride[dim] == shape[dim + 1] * stride[dim + 1] for dim in range(len(shape) - 2))


def _folded(self: Any, other: Any) -> Any:
    rows = self._shape[:-1]
    flat = at.reshape(self, (layout.numel(rows), self._shape[-1]))
    if len(other._shape) == 1:
        return at._unsafe_view(at.mv(flat, other), rows)
    return at._unsafe_view(at.mm(flat, other), (*rows, other._shape[1]))


def _folded_right(self: Any, other: Any) -> Any:
    # a @ B = (B^T @ a^T)^T with the batch in front.
    turned = at.transpose_int(other, -2, -1)
    if len(self._shape) == 1:
        return _folded(turned, self)
    product = _folded(turned, at.t(self))
    return at.contiguous(at.transpose_int(product, -2, -1), "contiguous_format")


def _batched(self: Any, other: Any) -> Any:
    vector_left, vector_right = len(self._shape) == 1, len(other._shape) == 1
    if vector_left:
        self = at.unsqueeze(self, 0)
    if vector_right:
        other = at.unsqueeze(other, 1)
    rows, inner = self._shape[-2:]
    inner_right, columns = other._shape[-2:]
    batch = broadcast(self._shape[:-2], other._shape[:-2])
    left = at.reshape(at.expand(self, (*batch, rows, inner), False), (layout.numel(batch), rows, inner))
    right = at.reshape(
        at.expand(other, (*batch, inner_right, columns), False), (layout.numel(batch), inner_right, columns)
    )
    shape = batch + (() if vector_left else (rows,)) + (() if vector_right else (columns,))
    return at._unsafe_view(at.bmm(left, right), shape)


def broadcast(left: Ints, right: Ints) -> Ints:
    """The shape that two shapes broadcast to; RuntimeError where they do not."""
    return tuple(loop_layout.broadcast_shapes(left, right))


def outer(ks: int, self: Any, vec2: Any) -> Any:
    if len(self._shape) != 1 or len(vec2._shape) != 1:
        raise RuntimeError("outer: Expected 1-D arguments")
    return at.mul_Tensor(at.reshape(self, (self._shape[0], 1)), vec2)


def linear(ks: int, input: Any, weight: Any, bias: Any) -> Any:  # noqa: A002
    """input @ weight.T + bias over the last dimension."""
    if bias is not None:
        if len(input._shape) == 2:
            return at.addmm(bias, input, at.t(weight), 1, 1)
        flat_bias = len(bias._shape) == 1 and geometry.is_contiguous(bias._shape, bias._stride)
        if flat_bias and input._shape and geometry.is_contiguous(input._shape, input._stride):
            lead = input._shape[:-1]
            flat = at.view(input, (layout.numel(lead), input._shape[-1]))
            return at.view(at.addmm(bias, flat, at.t(weight), 1, 1), (*lead, weight._shape[0]))
    product = at.matmul(input, at.t(weight))
    return product if bias is None else at.add__Tensor(product, bias, 1)


# Pointwise


def square(ks: int, self: Any) -> Any:
    return at.pow_Tensor_Scalar(self, 2)


def square_(ks: int, self: Any) -> Any:
    return at.pow__Scalar(self, 2)


def isfinite(ks: int, self: Any) -> Any:
    if not self._dtype.is_floating_point:
        return at.ones_like(self, dtypes.bool_, None, None)
    return at.mul_Tensor(at.eq_Tensor(self, self), at.ne_Scalar(at.abs(self), float("inf")))


# Neural networks


def softmax_int(ks: int, self: Any, dim: int, dtype: Any) -> Any:
    return at._softmax(self if dtype is None else at.to_dtype(self, dtype, False, False, None), dim, False)


def log_softmax_int(ks: int, self: Any, dim: int, dtype: Any) -> Any:
    return at._log_softmax(self if dtype is None else at.to_dtype(self, dtype, False, False, None), dim, False)


def nll_loss_nd(ks: int, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The negative log likelihood of classes: self is (N, C), (C) or (N, C, d1, ...)."""
    return _nll_of_any_shape(self, target, weight, reduction, ignore_index)


def nll_loss(ks: int, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    return at.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def cross_entropy_loss(
    ks: int,
    self: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Any:
    """log_softmax over the classes, then the negative log likelihood of the target.

    self: (C), (N, C) or (N, C, d1, ...); target: class indices without the C, or probabilities in self's shape.
    """
    class_dim = 0 if len(self._shape) == 1 else 1
    if target._shape == self._shape and not target._dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target._dtype.name}"
        )
    logs = at.log_softmax_int(self, class_dim, self._dtype)
    if target._dtype.is_floating_point:
        return _soft_cross_entropy(logs, target, weight, reduction, label_smoothing, class_dim)
    hard = _nll_of_any_shape(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return hard
    return _smoothed(logs, hard, target, weight, reduction, ignore_index, label_smoothing, class_dim)


def _nll_of_any_shape(logs: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    shape, given = logs._shape, target._shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) == 1:
        if len(given) == 1 and given[0] != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {given[0]}")
    elif given[:1] != shape[:1]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({list(given)[:1]}).")
    if len(shape) <= 2:
        return at.nll_loss(logs, target, weight, reduction, ignore_index)
    if len(shape) == 4:
        return at.nll_loss2d_forward(logs, target, weight, reduction, ignore_index)[0]
    if given != (shape[0], *shape[2:]):
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(given)}")
    # As a picture of one row, whatever the dimensions are.
    spots = layout.numel(shape[2:])
    picture = at.reshape(logs, (shape[0], shape[1], 1, spots))
    rows = at.reshape(target, (shape[0], 1, spots))
    found = at.nll_loss2d_forward(picture, rows, weight, reduction, ignore_index)[0]
    return at.view(found, given) if reduction == NONE else found


def _soft_cross_entropy(
    logs: Any, target: Any, weight: Any, reduction: int, label_smoothing: float, class_dim: int
) -> Any:
    if logs._shape != target._shape:
        raise RuntimeError("Expected floating point type for target with class probabilities, of the input's shape")
    classes = logs._shape[class_dim]
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    picked = logs * target
    if weight is not None:
        view = [1] * len(logs._shape)
        view[class_dim] = classes
        picked = picked * at.view(weight, tuple(view))
    if reduction == NONE:
        return -at.sum_dim_IntList(picked, (class_dim,), False, None)
    total = -at.sum(picked, None)
    return total / (layout.numel(logs._shape) // classes) if reduction == MEAN else total


def _smoothed(
    logs: Any,
    hard: Any,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    class_dim: int,
) -> Any:
    classes = logs._shape[class_dim]
    weighted = logs
    if weight is not None:
        view = [1] * len(logs._shape)
        view[class_dim] = classes
        weighted = logs * at.view(weight, tuple(view))
    smooth = -at.sum_dim_IntList(weighted, (class_dim,), False, None)
    ignored = at.eq_Scalar(target, ignore_index)
    smooth = at.masked_fill_Scalar(smooth, ignored, 0.0)
    if reduction == SUM:
        smooth = at.sum(smooth, None)
    elif reduction == MEAN:
        if weight is not None:
            kept = at.masked_fill_Scalar(target, ignored, 0)
            weights = at.reshape(at.index_select(weight, 0, at.reshape(kept, (-1,))), target._shape)
            total = at.sum(at.masked_fill_Scalar(weights, ignored, 0.0), None)
            smooth = at.sum(smooth, None) / total
        else:
            smooth = at.sum(smooth, None) / at.sum(at.logical_not(ignored), None)
    return hard * (1 - label_smoothing) + smooth * (label_smoothing / classes)


def conv2d(
    ks: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,  # noqa: A002
) -> Any:
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 2)


def conv1d(
    ks: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,  # noqa: A002
) -> Any:
    return _convolve(input, weight, bias, stride, padding, dilation, groups, 1)


def _convolve(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    dims: int,  # noqa: A002
) -> Any:
    if len(weight._shape) != dims + 2:
        raise RuntimeError(f"conv{dims}d takes a weight with {dims + 2} dimensions, but got {list(weight._shape)}")
    if len(input._shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to conv{dims}d, but got input of size: "
            f"{list(input._shape)}"
        )
    single = len(input._shape) == dims + 1
    batch = at.unsqueeze(input, 0) if single else input
    numbers = [each * dims if len(each) == 1 else each for each in (stride, padding, dilation)]
    result = at.convolution(batch, weight, bias, numbers[0], numbers[1], numbers[2], False, (0,) * dims, groups)
    return at.squeeze_dim(result, 0) if single else result


def batch_norm(
    ks: int,
    input: Any,  # noqa: A002
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    if layout.numel(input._shape) == 0:
        out = at.clone(input, None)
        out = out if weight is None else at.mul_Tensor(out, at.select_int(weight, 0, 0))
        return out if bias is None else at.add_Tensor(out, at.select_int(bias, 0, 0), 1)
    # PyTorch sets room aside for what cuDNN would keep for backward, on every device.
    at.empty_memory_format((0,), dtypes.uint8, input._device, None)
    return at.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def layer_norm(
    ks: int,
    input: Any,
    normalized_shape: Ints,
    weight: Any,
    bias: Any,
    eps: float,
    cudnn_enable: bool,  # noqa: A002
) -> Any:
    return at.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def max_pool2d(
    ks: int, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:
    return at.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def adaptive_avg_pool2d(ks: int, self: Any, output_size: Ints) -> Any:
    """The mean over the whole picture where one number per channel is asked for, else over a grid of areas."""
    if len(output_size) != 2:
        raise RuntimeError("adaptive_avg_pool2d: output_size must be 2")
    if any(n < 0 for n in output_size):
        raise RuntimeError(
            f"adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received "
            f"{{{output_size[0]}, {output_size[1]}}}"
        )
    if tuple(output_size) == (1, 1) and len(self._shape) in (3, 4) and 0 not in self._shape:
        return at.mean_dim(self, (-1, -2), True, None)
    return at._adaptive_avg_pool2d(self, output_size)


def dropout(ks: int, input: Any, p: float, train: bool) -> Any:  # noqa: A002
    """Each element zeroed with probability p while training, the others scaled up to keep the mean."""
    noise = _dropout_noise(input, p, train)
    return input if noise is None else at.mul_Tensor(input, noise)


def dropout_(ks: int, self: Any, p: float, train: bool) -> Any:
    noise = _dropout_noise(self, p, train)
    return self if noise is None else at.mul__Tensor(self, noise)


def _dropout_noise(input: Any, p: float, train: bool) -> Any:  # noqa: A002
    """What the elements are multiplied by: 0 or 1 / (1 - p); None where nothing is dropped."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or layout.numel(input._shape) == 0:
        return None
    if p == 1:
        return at.zeros((), input._dtype, input._device)
    noise = at.bernoulli__float(at.empty_like(input, None, None, None), 1 - p, None)
    return noise.div_(1 - p)
