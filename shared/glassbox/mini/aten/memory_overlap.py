"""Memory overlap: may this tensor be written while that one is read? (PyTorch: ATen/MemoryOverlap.cpp)."""

from ..c10 import layout
from ..c10.pieces import cached
from ..c10.tensor_impl import TensorImpl

FULL, PARTIAL, NO, TOO_HARD = "full", "partial", "no", "too hard"


@cached
def is_dense(shape: layout.Ints, stride: layout.Ints) -> bool:
    """layout.is_dense, remembered."""
    return layout.is_dense(shape, stride)


@cached
def has_internal_overlap(shape: layout.Ints, stride: layout.Ints) -> bool:
    """Whether elements certainly share a cell; only repeated dimensions are looked for, as that is quick."""
    return 0 not in shape and any(step == 0 and size > 1 for size, step in zip(shape, stride, strict=True))


def get_overlap_status(a: TensorImpl, b: TensorImpl) -> str:
    """FULL where both are the same cells in the same order, PARTIAL where some are shared, NO where none is.

    TOO_HARD where a layout has gaps or overlaps within itself: comparing the spans would prove nothing.
    """
    if a is b:
        return FULL
    if a._storage is not b._storage or 0 in a._shape or 0 in b._shape:
        return NO
    if not (is_dense(a._shape, a._stride) and is_dense(b._shape, b._stride)):
        return TOO_HARD
    a_begin, a_end = _byte_span(a)
    b_begin, b_end = _byte_span(b)
    if (a_begin, a_end) == (b_begin, b_end):
        return FULL if a._stride == b._stride else PARTIAL
    return PARTIAL if a_begin < b_end and b_begin < a_end else NO


def _byte_span(self: TensorImpl) -> tuple[int, int]:
    itemsize = self._dtype.itemsize
    begin = self._offset * itemsize
    return begin, begin + layout.numel(self._shape) * itemsize


def assert_no_internal_overlap(self: TensorImpl) -> None:
    """RuntimeError where writing `self` would write a cell twice."""
    if has_internal_overlap(self._shape, self._stride):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def assert_no_partial_overlap(written: TensorImpl, read: TensorImpl) -> None:
    """RuntimeError where the two share cells without being the same elements."""
    if get_overlap_status(written, read) is PARTIAL:
        raise _overlapping()


def assert_no_overlap(written: TensorImpl, read: TensorImpl) -> None:
    """RuntimeError where the two share cells."""
    if get_overlap_status(written, read) in (PARTIAL, FULL):
        raise _overlapping()


def _overlapping() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation."
    )
