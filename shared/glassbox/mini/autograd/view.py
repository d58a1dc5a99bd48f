"""Views and in-place writes in the graph (PyTorch: torch/csrc/autograd/variable.cpp, functions/tensor.cpp).

A write into a view changes its base too. The graph says so by giving the base a new grad_fn, CopySlices, that sends the
part of the gradient under the view through the op that wrote and the rest on as it was; every other view of the base takes
its grad_fn anew when it is asked for it (node.refresh_view).
"""

from typing import Any

from .node import Node, gradient_edge, requires_grad, set_history

# How a view came about, where that forbids writing into it (PyTorch: CreationMeta).
NO_GRAD_MODE = "NO_GRAD_MODE"
MULTI_OUTPUT_NODE = "MULTI_OUTPUT_NODE"
INFERENCE_MODE = "INFERENCE_MODE"
IN_CUSTOM_FUNCTION = "IN_CUSTOM_FUNCTION"

_WHY = {
    NO_GRAD_MODE: (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
        "inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside "
        "(if you want the inplace to be tracked)."
    ),
    MULTI_OUTPUT_NODE: (
        "Output {nr} of {fn} is a view and is being modified inplace. This view is the output of a function that "
        "returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
        "replace the inplace operation by an out-of-place one."
    ),
    INFERENCE_MODE: (
        "A view was created in inference mode and is being modified inplace in normal mode, which autograd cannot "
        "follow. Make the view outside of inference mode."
    ),
    IN_CUSTOM_FUNCTION: (
        "Output {nr} of {fn} is a view and is being modified inplace. This view was created inside a custom Function "
        "(or because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
        "custom backward associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    ),
}


class AsStridedBackward0(Node):
    """A view seen from its base: the gradient goes back to the places that the view has in it."""

    __slots__ = ("base_shape", "base_stride", "base_offset", "shape", "stride", "offset")

    def apply(self, grad: Any) -> tuple[Any, ...]:  # type: ignore[override]
        if grad is None:
            return (None,)
        from .functions_manual import as_strided_backward

        return (
            as_strided_backward(
                grad, (self.base_shape, self.base_stride, self.base_offset), (self.shape, self.stride, self.offset)
            ),
        )


def as_strided_node(view: Any) -> AsStridedBackward0:
    """The node of `view` as a strided view of its base."""
    base = view._base
    node = AsStridedBackward0()
    node.begin()
    node.next_edges = (gradient_edge(base),)
    node.base_shape, node.base_stride, node.base_offset = base._shape, base._stride, base._offset
    node.shape, node.stride, node.offset = view._shape, view._stride, view._offset
    return node


class CopySlices(Node):
    """The base's node after a write through a view."""

    __slots__ = ("base_layout", "view_layout", "fn")

    def __init__(self, base: Any, view: Any, fn: Node) -> None:
        self.begin()
        self.base_layout = (base._shape, base._stride, base._offset)
        self.view_layout = (view._shape, view._stride, view._offset)
        self.fn: Node | None = fn
        # The view itself now hangs on the base, so the op's own edges are this node's, with the base's in front.
        self.next_edges = (gradient_edge(base), *fn.next_edges[1:])
        self.input_metadata = ((base._shape, base._dtype, base._device),)

    def apply(self, grad: Any) -> tuple[Any, ...]:  # type: ignore[override]
        if grad is None:
            return (None,) * len(self.next_edges)
        if self.fn is None:
            from .saved_variable import FREED

            raise RuntimeError(FREED)
        from .functions_manual import copy_slices_backward

        return copy_slices_backward(grad, self.base_layout, self.view_layout, self.fn, self.next_edges)

    def release_variables(self) -> None:
        self.fn = None


def as_view(base: Any, view: Any, creation: str | None) -> None:
    """Write down that `view` is a view of `base`; creation says how, where that forbids writing into it."""
    view._base = base if base._base is None else base._base
    view._attr_version = (base._version_counter or (0,))[0]
    if creation is None and base._base is not None and base._meta is not None:
        creation = base._meta.creation if hasattr(base._meta, "creation") else None
    if creation is not None:
        meta_of(view).creation = creation


class AutogradMeta:
    """What few tensors have: hooks before there is a node to hang them on, a view's creation, a name."""

    __slots__ = ("creation", "name", "tensor_pre", "after_accumulate", "retains_grad", "is_parameter", "attributes")

    def __init__(self) -> None:
        self.creation: str | None = None
        self.name: str | None = None
        self.tensor_pre: list[Any] | None = None
        self.after_accumulate: list[Any] | None = None
        self.retains_grad = False
        self.is_parameter = False
        self.attributes: dict[str, Any] | None = None

    def attach(self, node: Node) -> None:
        """Hang a leaf's hooks on its new AccumulateGrad."""
        if self.tensor_pre:
            node.hooks = node.hooks or {}
            node.hooks["tensor_pre"] = {0: self.tensor_pre}
        if self.after_accumulate:
            node.hooks = node.hooks or {}
            node.hooks["after_accumulate"] = self.after_accumulate


def meta_of(tensor: Any) -> AutogradMeta:
    """The tensor's AutogradMeta, made at first use."""
    meta = tensor._meta
    if not isinstance(meta, AutogradMeta):
        meta = tensor._meta = AutogradMeta()
    return meta


def check_inplace(tensor: Any, recording: bool) -> None:
    """RuntimeError where autograd could not follow a write into `tensor`.

    recording: whether this write goes into the graph.
    """
    counter = tensor._version_counter
    if counter is None:
        from ..c10 import inference_mode

        if not inference_mode.is_enabled():
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get "
                "a normal tensor before doing inplace update."
            )
        return
    if tensor._base is None:
        if recording and tensor._requires_grad and tensor._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return
    from ..c10.grad_mode import grad_enabled

    if not grad_enabled.get() or not (recording or requires_grad(tensor)):
        return
    creation = tensor._meta.creation if isinstance(tensor._meta, AutogradMeta) else None
    if creation is not None and requires_grad(tensor._base) or creation == MULTI_OUTPUT_NODE and recording:
        fn = tensor._grad_fn.name() if tensor._grad_fn is not None else "a view op"
        raise RuntimeError(_WHY[creation or MULTI_OUTPUT_NODE].format(nr=tensor._output_nr, fn=fn))
    base = tensor._base
    if base._requires_grad and base._grad_fn is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def rebase_history(tensor: Any, node: Node) -> None:
    """`tensor` was written to by the op of `node`: that is its history now, and a part of its base's."""
    base = tensor._base
    if base is None:
        tensor._grad_fn = None
        set_history(tensor, node)
        return
    node.input_metadata = ((tensor._shape, tensor._dtype, tensor._device),)
    copy_slices = CopySlices(base, tensor, node)
    base._grad_fn = copy_slices
    base._output_nr = 0
    base._requires_grad = True
    view_node = as_strided_node(tensor)
    tensor._grad_fn = None
    set_history(tensor, view_node)
    tensor._attr_version = tensor._version_counter[0]
