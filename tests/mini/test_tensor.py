"""Facts about tensors beside their views: creation, conversion, identity, printing, errors."""

import os
import re
import subprocess
import sys
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini

DTYPES = ("float32", "float64", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


def test_mini_and_glassbox_load_neither_torch_nor_figures() -> None:
    code = (
        "import sys, glassbox, glassbox.mini as m; m.zeros(2, 3).T.clone().tolist();"
        "print([n for n in ('torch', 'matplotlib', 'ipywidgets') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "data",
    [
        1,
        2.5,
        True,
        [1, 2.5],
        [True, 2],
        [True, False],
        [],
        [[], []],
        [[1, 2], [3, 4]],
        ((1,), (2,)),
        [[[1.0]]],
    ]
    + [1e300, float("nan"), -0.0],
)
@pytest.mark.parametrize("dtype", [None, "float32", "bfloat16", "uint8", "bool"])
def test_tensor_of_python_numbers_is_torchs(data: object, dtype: str | None) -> None:
    try:
        theirs = torch.tensor(data, dtype=dtype and getattr(torch, dtype))
    except RuntimeError:
        with pytest.raises(RuntimeError, match="overflow"):
            mini.tensor(data, dtype=dtype and getattr(mini, dtype))
        return
    ours = mini.tensor(data, dtype=dtype and getattr(mini, dtype))
    assert repr(ours) == repr(theirs).replace("torch.", "mini.")
    assert ours.shape == tuple(theirs.shape)
    assert ours.stride() == theirs.stride()
    assert ours._version == theirs._version == 0


def nested(levels: int | None) -> list[object]:
    """A list in a list in a list; None: one that holds itself."""
    innermost: list[object] = [1]
    if levels is None:
        innermost[0] = innermost
    for _ in range(levels or 0):
        innermost = [innermost]
    return innermost


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda t: t.tensor([[1, 2], [3]]), ValueError),
        (lambda t: t.tensor([1, [2]]), TypeError),
        (lambda t: t.tensor("x"), TypeError),
        (lambda t: t.tensor(None), RuntimeError),
        (lambda t: t.tensor([300], dtype=t.uint8), RuntimeError),
        (lambda t: t.tensor(float("inf"), dtype=t.int64), RuntimeError),
        (lambda t: t.zeros(-1), RuntimeError),
        (lambda t: t.zeros(2.5), TypeError),
        (lambda t: t.zeros(), TypeError),
        (lambda t: t.arange(1, 5, 0), RuntimeError),
        (lambda t: t.arange(5, 1), RuntimeError),
        (lambda t: t.full((1,), 1e300), RuntimeError),
        (lambda t: t.zeros(2).fill_("x"), TypeError),
        (lambda t: t.zeros(2).fill_(t.zeros(2)), RuntimeError),
        (lambda t: t.zeros(2, dtype=t.uint8).fill_(300), RuntimeError),
        (lambda t: t.zeros(2).copy_("x"), TypeError),
        (lambda t: t.zeros(2).copy_(t.zeros(3)), RuntimeError),
        (lambda t: t.zeros(2).__setitem__(0, [1]), TypeError),
        (lambda t: t.zeros(2).__setitem__(0, "a"), TypeError),
        (lambda t: t.zeros(2, 2).__setitem__(0, t.zeros(2, 2)), RuntimeError),
        (lambda t: t.zeros(2).item(), RuntimeError),
        (lambda t: bool(t.zeros(2)), RuntimeError),
        (lambda t: bool(t.zeros(0)), RuntimeError),
        (lambda t: float(t.zeros(2)), ValueError),
        (lambda t: int(t.zeros(2)), ValueError),
        (lambda t: len(t.tensor(1)), TypeError),
        (lambda t: list(t.tensor(1)), TypeError),
        (lambda t: [1, 2][t.tensor(1.0)], TypeError),
        (lambda t: t.zeros(2)["a"], TypeError),
        (lambda t: t.zeros(2)[1.0], IndexError),
        (lambda t: t.zeros(2)[0:1.5], TypeError),
        (lambda t: t.zeros(())[0], IndexError),
        (lambda t: t.zeros(())[:], IndexError),
        (lambda t: t.zeros(2, 3).view(), TypeError),
        (lambda t: t.zeros(2, 3).view(2.0, 3), TypeError),
        (lambda t: t.zeros(2, 3).size(2), IndexError),
        (lambda t: t.zeros(2, 3).stride(-3), IndexError),
        (lambda t: t.zeros(()).size(0), IndexError),
        (lambda t: t.zeros(2, 3, 4).t(), RuntimeError),
        (lambda t: t.zeros(2).mT, RuntimeError),
        (lambda t: t.zeros(2).view_as(3), TypeError),
        (
            lambda t: t.zeros(2).bfloat16().numpy() if t is torch else t.zeros(2).to(t.bfloat16).numpy(),
            TypeError,
        ),
        (lambda t: t.device("nowhere"), RuntimeError),
        (lambda t: t.device("cpu:x"), RuntimeError),
        (lambda t: t.zeros(2).as_strided((2,), (4,)), RuntimeError),
        (lambda t: t.zeros(2).as_strided((2,), (-1,)), RuntimeError),
        (lambda t: t.zeros(2).as_strided((2,), (1, 1)), RuntimeError),
        (lambda t: t.zeros(2).as_strided((2,), (1,), 1), RuntimeError),
        (lambda t: t.zeros(2).as_strided((2,), (1,), -1), RuntimeError),
        (lambda t: t.zeros(2, 3).expand(), TypeError),
        (lambda t: t.tensor(nested(None)), ValueError),
        (lambda t: t.tensor(nested(200)), ValueError),
        (lambda t: t.tensor({1}), RuntimeError),
        (lambda t: t.tensor(b"ab"), TypeError),
        (lambda t: t.zeros(True), TypeError),
        (lambda t: t.ones((True, 2)), TypeError),
        (lambda t: t.zeros(1).view(True), TypeError),
        (lambda t: t.zeros(range(3)), TypeError),
        (lambda t: t.full(2, 1), TypeError),
        (lambda t: t.full((2,), "x"), TypeError),
        (lambda t: t.full((2,), None), TypeError),
        (lambda t: t.zeros(2**62), RuntimeError),
        (lambda t: t.zeros(2**40, 2**40), RuntimeError),
        (lambda t: t.zeros(1).expand(2**45).clone(), RuntimeError),
        (lambda t: t.zeros(2, 1).expand(2, 2**45).T.reshape(-1), RuntimeError),
        (lambda t: t.arange(2**62), RuntimeError),
        (lambda t: t.arange(1e30), RuntimeError),
        (lambda t: t.arange(float("nan")), RuntimeError),
        (lambda t: t.arange(float("-inf"), 1), RuntimeError),
        (lambda t: t.arange(0, 1, float("nan")), RuntimeError),
        (lambda t: t.arange(3, dtype=t.bool), NotImplementedError),
        (lambda t: t.arange("3"), TypeError),
        (lambda t: t.arange(None), TypeError),
        (lambda t: t.zeros(1, dtype="x"), TypeError),
        (lambda t: t.full((1,), 1, dtype="float32"), TypeError),
        (lambda t: t.tensor(1, dtype=3), TypeError),
        (lambda t: t.tensor(np.zeros(1), dtype="x"), TypeError),
        (lambda t: t.arange(2, dtype="x"), TypeError),
        (lambda t: t.zeros_like(t.zeros(1), dtype="x"), TypeError),
        (lambda t: t.ones_like(3), TypeError),
        (lambda t: t.zeros(1).to(dtype="x"), TypeError),
        (lambda t: t.zeros(1).to(np.float32), TypeError),
        (lambda t: "a" in t.zeros(2), RuntimeError),
        (lambda t: [0.0] in t.zeros(2), RuntimeError),
        (lambda t: t.zeros(3) in t.zeros(2), RuntimeError),
        (lambda t: f"{t.ones(1):.3f}", TypeError),
        (lambda t: t.zeros(2).__setitem__(0, 1e39), RuntimeError),
        (lambda t: t.zeros(2, dtype=t.bfloat16).fill_(1e39), RuntimeError),
        (lambda t: t.zeros(2, 1).__setitem__((0, ...), t.zeros(2, 1)), RuntimeError),
    ],
)
def test_bad_input_raises_torchs_type_and_says_why(make, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(torch)
    with pytest.raises(error) as caught:
        make(mini)
    assert type(caught.value) is error
    assert len(str(caught.value)) > 15


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.tensor(range(3)),
        lambda t: t.tensor([range(2), (3, 4)]),
        lambda t: t.tensor(deque([1.5, 2])),
        lambda t: t.tensor(bytearray(b"ab")),
        lambda t: t.tensor([np.arange(2), np.arange(2)]),
        lambda t: t.tensor([t.tensor(2), 3]),
        lambda t: t.tensor(range(0)),
        lambda t: t.zeros(2, True),
        lambda t: t.zeros(1, dtype=float),
        lambda t: t.ones(1, dtype=int).to(bool),
        lambda t: t.arange(3, dtype=float),
        lambda t: t.full((1,), t.tensor(2.5)),
        lambda t: t.full((1,), 1e39, dtype=t.bfloat16),
        lambda t: t.arange(0, 1, float("inf")),
        lambda t: written(t.zeros(2, dtype=t.bfloat16), 0, 1e39),
        lambda t: t.zeros(2, dtype=t.bfloat16).copy_(1e39),
        lambda t: (lambda x: written(x, None, x))(t.arange(6).view(2, 3)),
        lambda t: (lambda x: written(x, 0, x.narrow(0, 1, 1)))(t.arange(2).view(2, 1)),
        lambda t: (lambda x: x.fill_(x[1]))(t.arange(3)),
        lambda t: f"{t.tensor(1.5):.3f} {t.tensor(3):5d} {t.tensor(True)} {t.ones(2)}",
        lambda t: [
            n in t.arange(4.0).view(2, 2) for n in (1, 1.5, True, 1j, np.float32(2), t.tensor([9.0, 3.0]))
        ],
        lambda t: [1 in t.tensor(1), 1 in t.zeros(0), float("nan") in t.tensor([float("nan")])],
        lambda t: [1.1 in t.tensor([1.1], dtype=d) for d in (t.float32, t.float64, t.bfloat16)],
    ],
)
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy:UserWarning")
def test_what_torch_takes_is_taken_and_gives_the_same(make) -> None:
    assert repr(make(mini)).replace("mini.", "torch.") == repr(make(torch))


def written(tensor, key, value):
    tensor[key] = value
    return tensor


def test_more_dimensions_than_numpy_has_are_named() -> None:
    deep = mini.zeros(1).view([1] * 65)
    assert deep.stride() == torch.zeros(1).view([1] * 65).stride()
    for use in (deep.tolist, deep.clone, lambda: mini.zeros([1] * 65)):
        with pytest.raises(RuntimeError, match="65 dimensions .* at most 64"):
            use()
    assert mini.zeros([1] * 64).reshape([1] * 65).dim() == 65


@pytest.mark.parametrize("key", [[0, 1], True, False, (0, [1]), ([0, 1], [1, 2]), (slice(None), [2, 0])])
def test_indexing_that_picks_elements_copies(key: object) -> None:
    ours, theirs = mini.arange(6).view(2, 3), torch.arange(6).view(2, 3)
    assert ours[key].tolist() == theirs[key].tolist()
    assert ours[key].shape == tuple(theirs[key].shape)
    assert ours[key]._base is None


def test_a_second_ellipsis_leaves_no_dimension_to_index() -> None:
    assert mini.zeros(2, 3)[..., ...].shape == (2, 3)
    with pytest.raises(IndexError, match="out of range"):
        mini.zeros(2, 3)[..., ..., :]


def test_a_0d_integer_tensor_is_an_index() -> None:
    assert mini.arange(5)[mini.tensor(3)].item() == 3
    assert [10, 11][mini.tensor([1])] == 11


def test_arange() -> None:
    for args in [(5,), (1, 5), (1, 6, 2), (5, 1, -2), (3.0,), (0, 1, 0.25), (1, 2, 0.3), (0,)]:
        assert repr(mini.arange(*args)) == repr(torch.arange(*args)).replace("torch.", "mini.")


def test_storage_of_the_figure() -> None:
    base = mini.arange(12, dtype=mini.float32)
    a = base.view(3, 4)
    t, corner = a.T, a[1:, :2]
    assert (corner.shape, corner.stride(), corner.storage_offset()) == ((2, 2), (4, 1), 4)
    s = a.untyped_storage()
    assert t.untyped_storage() is s is corner.untyped_storage()
    assert s.nbytes() == s.size() == len(s) == 48
    assert corner.data_ptr() - s.data_ptr() == 16
    assert corner._base is base
    # Counted outside of assert, since pytest keeps the parts of an expression alive to show them.
    five = s.use_count()
    del t
    four = s.use_count()
    assert (five, four) == (5, 4)


def test_a_lone_tensor_shares_its_storage_with_nobody() -> None:
    x = mini.zeros(12)
    alone = x.untyped_storage().use_count()
    unique = x.untyped_storage().unique()
    s = x.untyped_storage()
    named = s.use_count()
    theirs = torch.zeros(12)
    wrapper = theirs.untyped_storage()
    assert (alone, unique, named) == (1, True, 2)
    assert torch._C._storage_Use_Count(wrapper._cdata) == named


def test_bytes_are_those_of_the_elements() -> None:
    x = mini.tensor([1, 256], dtype=mini.int16)
    assert x.untyped_storage().tolist() == [1, 0, 0, 1]
    x.untyped_storage().bytes()[0] = 7
    assert x.tolist() == [7, 256]
    y = mini.tensor([1.5], dtype=mini.bfloat16)
    assert y.untyped_storage().tolist() == [0xC0, 0x3F]
    assert y.element_size() == y.itemsize == y.nbytes == 2


def test_an_empty_storage_has_no_address() -> None:
    assert mini.zeros(0).data_ptr() == mini.zeros(0).untyped_storage().data_ptr() == 0
    assert mini.zeros(4)[4:].data_ptr() == torch.zeros(4)[4:].data_ptr() == 0


def test_versions_are_shared_by_views_and_detach_but_not_by_data() -> None:
    x = mini.zeros(2, 3)
    view, detached, data, copy = x.T, x.detach(), x.data, x.clone()
    view.fill_(1)
    x[0] = 2
    assert [t._version for t in (x, view, detached, data, copy)] == [2, 2, 2, 0, 0]
    data.zero_()
    assert (data._version, x._version) == (1, 2)
    assert x.tolist() == detached.tolist() == [[0.0] * 3] * 2


def test_numpy_shares_the_bytes() -> None:
    x = mini.zeros(2, 3)
    array = x.T.numpy()
    array[2, 1] = 5
    assert x[1, 2].item() == 5
    assert array.strides == (4, 12)
    assert np.asarray(x[1]).tolist() == [0.0, 0.0, 5.0]
    assert mini.tensor(np.arange(6, dtype=np.int32).reshape(2, 3).T).stride() == (2, 1)


def test_writing_through_overlap() -> None:
    x = mini.arange(4)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].copy_(x[:-1])
    with pytest.raises(RuntimeError, match="single memory location"):
        mini.zeros(2, 1).expand(2, 3).copy_(mini.zeros(3))
    with pytest.raises(RuntimeError, match="single memory location"):
        mini.zeros(2, 1).expand(2, 3)[0] = 1
    assert mini.zeros(2, 1).expand(2, 3).fill_(1).tolist() == [[1.0] * 3] * 2
    assert x.tolist() == [0, 1, 2, 3]
    assert x._version == 0
    assert mini.zeros(0).expand(2, 0).copy_(mini.zeros(0)).tolist() == [[], []]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_to_converts_as_torch_does(source: str, target: str) -> None:
    values = [0, 1, 2.5, 3.49, 100, 127] + ([] if source in ("uint8", "bool") else [-1, -1.5, -100])
    if source.endswith(("32", "64", "float16")):
        values += [300, 70000, -70000, 1.00390625, 1.01171875]
    if "float" in source and "int" not in target:
        values += [float("nan"), float("inf"), 1e38, 1e-40]
    theirs = torch.tensor(values, dtype=getattr(torch, source)).to(getattr(torch, target))
    ours = mini.tensor(values, dtype=getattr(mini, source)).to(getattr(mini, target))
    assert repr(ours.tolist()) == repr(theirs.tolist())
    assert ours.dtype is getattr(mini, target)


def test_to_returns_the_tensor_itself_where_nothing_has_to_change() -> None:
    x = mini.zeros(2)
    assert x.to(mini.float32) is x is x.to("cpu") is x.to(device="cpu", dtype=mini.float32) is x.to(x)
    assert x.to(mini.float32, copy=True) is not x
    assert x.to(mini.zeros(1, dtype=mini.int32)).dtype is mini.int32
    assert x.contiguous() is x


def test_types_and_places_have_names() -> None:
    assert str(mini.float32) == "mini.float32"
    assert mini.bool.itemsize == 1
    assert mini.bfloat16.is_floating_point and not mini.int64.is_floating_point
    assert mini.device("cpu") == mini.zeros(1).device
    assert mini.device("cpu") != mini.device("cpu:0")
    assert str(mini.device("cpu:0")) == "cpu:0"
    assert repr(mini.device("cpu")) == repr(torch.device("cpu"))


def test_a_shape_is_a_tuple_that_counts() -> None:
    shape = mini.zeros(2, 3, 4).shape
    assert shape == (2, 3, 4) == tuple(shape)
    assert shape.numel() == 24
    assert isinstance(shape[1:], mini.Size) and isinstance(shape + (1,), mini.Size)
    assert repr(shape) == "mini.Size([2, 3, 4])"


def test_equal_compares_whole_tensors_and_the_sign_elements() -> None:
    x = mini.tensor([1.0, 2.0])
    assert x.equal(mini.tensor([1, 2]))
    assert not x.equal(mini.tensor([[1.0, 2.0]]))
    assert not mini.equal(mini.tensor(float("nan")), mini.tensor(float("nan")))
    assert {x: 1}[x] == 1
    assert (x == x).tolist() == [True, True]


def test_what_a_tensor_is_cannot_be_overwritten() -> None:
    x = mini.zeros(2)
    for name in ("shape", "dtype", "device", "ndim"):
        with pytest.raises(AttributeError):
            setattr(x, name, None)


def test_t_warns_off_matrices_as_torch_does() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        assert mini.zeros(2, 3, 4).T.shape == (4, 3, 2)


printable = st.one_of(
    st.floats(width=32),
    st.floats(-100, 100, width=32),
    st.floats(0, 0.0010000000474974513, width=32),
    st.integers(-2000, 2000).map(float),
    st.sampled_from([0.0, 1.0, float("nan"), float("inf"), -float("inf"), 1e8, 2e8, 1e-4, 9.99e-5, 123456.0]),
)


@given(
    st.sampled_from(
        [(), (1,), (7,), (2, 3), (3, 1, 2), (0,), (2, 0), (1, 40), (1001,), (2, 501), (9, 9, 13)]
    ),
    st.lists(printable, min_size=1, max_size=6),
    st.sampled_from(DTYPES),
)
def test_a_tensor_prints_as_torchs(shape: tuple[int, ...], values: list[float], dtype: str) -> None:
    if dtype in ("int64", "int32", "int16", "int8", "uint8"):
        values = [float(int(v)) % 100 if abs(v) < 1e6 else 0.0 for v in values]
    n = mini.Size(shape).numel()
    flat = (values * (n // len(values) + 1))[:n]
    theirs = torch.tensor(flat, dtype=getattr(torch, dtype)).reshape(shape)
    ours = mini.tensor(flat, dtype=getattr(mini, dtype)).reshape(shape)
    # "mini." is shorter than "torch.", so the suffix may fit on a line where torch's does not.
    ours_text, theirs_text = (re.sub(r",\s+dtype", ", dtype", repr(t)) for t in (ours, theirs))
    assert ours_text == theirs_text.replace("torch.", "mini.")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
@pytest.mark.parametrize("shape", [(2**40,), (2, 2**38), (2**20, 2**18)])
def test_a_tensor_larger_than_memory_prints(shape: tuple[int, ...], dtype: str) -> None:
    texts = [repr(lib.ones(1, dtype=getattr(lib, dtype)).expand(shape)) for lib in (mini, torch)]
    assert texts[0] == texts[1].replace("torch.", "mini.")


def test_how_it_prints() -> None:
    assert (
        repr(mini.tensor([[1.0, 2.5], [-3.0, 4.0]]))
        == "tensor([[ 1.0000,  2.5000],\n        [-3.0000,  4.0000]])"
    )
    assert repr(mini.tensor([1, 2], dtype=mini.uint8)) == "tensor([1, 2], dtype=mini.uint8)"
    assert repr(mini.zeros(2, 0)) == "tensor([], size=(2, 0))"
    assert repr(mini.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert repr(mini.tensor([1e-5, 1.0])) == "tensor([1.0000e-05, 1.0000e+00])"
