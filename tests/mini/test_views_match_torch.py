"""Random programs of views and in-place writes behave the same in mini and in PyTorch."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini

Step = tuple[str, Callable[[Any], Any]]
DTYPES = ("float32", "float64", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")

dims = st.integers(-4, 3)
sizes = st.lists(st.sampled_from([0, 1, 1, 2, 2, 3, 4]), max_size=4)
# Random sizes alone are empty or tiny too often for layouts to become interesting.
starts = (
    st.sampled_from([[4, 6], [2, 3, 4], [3, 1, 4], [2, 1, 6], [6], [1, 4, 1, 3], [3, 1], [2, 0, 3]]) | sizes
)
bounds = st.none() | st.integers(-6, 6)
slices = st.builds(slice, bounds, bounds, st.none() | st.sampled_from([1, 1, 2, 3, 0, -1]))
index_items = st.one_of(st.integers(-4, 3), slices, slices, st.none(), st.just(Ellipsis))
# Of two Ellipses PyTorch lets the second step past the last dimension and reads a size that is not there.
keys = st.one_of(
    index_items, st.lists(index_items, max_size=5).map(tuple).filter(lambda key: key.count(Ellipsis) < 2)
)


@st.composite
def shapes_near(draw: st.DrawFn, shape: tuple[int, ...]) -> list[int]:
    """Sizes for view and reshape: mostly ones that fit, made by splitting, joining and adding ones."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.lists(st.sampled_from([-2, -1, -1, 0, 1, 2, 3, 4, 6]), max_size=4))
    size: list[int] = []
    for n in shape:
        kind = draw(st.sampled_from(["keep", "keep", "join", "split", "one"]))
        if kind == "join" and size:
            size[-1] *= n
        elif kind == "split" and n in (4, 6):
            size += [2, n // 2]
        elif kind == "one":
            size += [1, n]
        else:
            size.append(n)
    if size and draw(st.integers(0, 3)) == 0:
        size[draw(st.integers(0, len(size) - 1))] = -1
    if draw(st.integers(0, 5)) == 0:
        size = [n for n in size if n != 1]
    return size


@st.composite
def expansions_of(draw: st.DrawFn, shape: tuple[int, ...]) -> list[int]:
    """Sizes for expand: mostly ones that fit."""
    body = []
    for n in shape:
        kept = draw(st.sampled_from([n, n, -1]))
        body.append(draw(st.sampled_from([0, 1, 2, 3, 3])) if n == 1 and draw(st.booleans()) else kept)
    if body and draw(st.integers(0, 9)) == 0:
        body[0] = draw(st.integers(-1, 4))
    # Not -1 over a 0-d tensor: test_layout.py says where PyTorch lets a negative size through.
    new = [0, 1, 1, 2, 2, 3, 3, 2, 1] + ([-1] if shape else [])
    lead = draw(st.lists(st.sampled_from(new), max_size=2))
    return lead + body


@st.composite
def steps(draw: st.DrawFn, x: torch.Tensor) -> Step:
    """One operation that makes a tensor from a tensor, described and applicable in both worlds."""
    shape = tuple(x.shape)
    name = draw(st.sampled_from(OPS))
    if name == "index":
        key = draw(keys)
        return f"[{key}]", lambda t: t[key]
    if name in ("view", "reshape"):
        size = draw(shapes_near(shape))
        return f"{name}({size})", lambda t: getattr(t, name)(size)
    if name == "expand":
        size = draw(expansions_of(shape))
        return f"expand({size})", lambda t: t.expand(size)
    if name == "permute":
        order = list(draw(st.permutations(range(len(shape)))))
        if draw(st.integers(0, 4)) == 0:
            order = draw(st.lists(dims, max_size=4))
        order = [d - len(shape) if draw(st.booleans()) else d for d in order]
        return f"permute({order})", lambda t: t.permute(order)
    if name in ("transpose", "flatten"):
        d0, d1 = draw(dims), draw(dims)
        return f"{name}({d0}, {d1})", lambda t: getattr(t, name)(d0, d1)
    if name in ("unsqueeze", "squeeze_dim"):
        d = draw(dims)
        return f"{name}({d})", lambda t: t.unsqueeze(d) if name == "unsqueeze" else t.squeeze(d)
    if name == "squeeze_dims":
        some = tuple(draw(st.lists(dims, max_size=3)))
        return f"squeeze({some})", lambda t: t.squeeze(some)
    if name == "select":
        d, i = draw(dims), draw(st.integers(-4, 3))
        return f"select({d}, {i})", lambda t: t.select(d, i)
    if name == "narrow":
        d, start, length = draw(dims), draw(st.integers(-4, 4)), draw(st.integers(-1, 4))
        return f"narrow({d}, {start}, {length})", lambda t: t.narrow(d, start, length)
    if name == "movedim":
        src, dst = draw(st.lists(dims, max_size=2)), draw(st.lists(dims, max_size=2))
        return f"movedim({src}, {dst})", lambda t: t.movedim(tuple(src), tuple(dst))
    if name == "split":
        size, d, at = draw(st.integers(-1, 3)), draw(dims), draw(st.integers(0, 2))
        return f"split({size}, {d})[{at}]", lambda t: t.split(size, d)[at]
    if name == "split_sizes":
        parts, d = draw(st.lists(st.integers(-1, 3), min_size=1, max_size=3)), draw(dims)
        return f"split({parts}, {d})[-1]", lambda t: t.split(parts, d)[-1]
    if name == "unbind":
        d, at = draw(dims), draw(st.integers(0, 2))
        return f"unbind({d})[{at}]", lambda t: t.unbind(d)[at]
    if name == "as_strided":
        size = draw(sizes)
        stride = [draw(st.sampled_from([0, 1, 1, 2, 3, 5, -1])) for _ in size]
        if draw(st.integers(0, 9)) == 0:
            stride = stride[:-1]
        offset = draw(st.none() | st.integers(-1, 5))
        return f"as_strided({size}, {stride}, {offset})", lambda t: t.as_strided(size, stride, offset)
    if name == "to":
        other = draw(st.sampled_from(DTYPES))
        return f"to({other})", lambda t: t.to(getattr(torch if isinstance(t, torch.Tensor) else mini, other))
    return name, PLAIN[name]


PLAIN: dict[str, Callable[[Any], Any]] = {
    "T": lambda t: t.T,
    "mT": lambda t: t.mT if t.ndim else t.t(),
    "t": lambda t: t.t(),
    "squeeze": lambda t: t.squeeze(),
    "contiguous": lambda t: t.contiguous(),
    "clone": lambda t: t.clone(),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "view_as": lambda t: t.view_as(t),
    "expand_as": lambda t: t.expand_as(t.unsqueeze(0)),
    "zeros_like": lambda t: (torch if isinstance(t, torch.Tensor) else mini).zeros_like(t),
    "fill_": lambda t: t.fill_(3),
    "zero_": lambda t: t.zero_(),
    "set_first": lambda t: (t.__setitem__(0, 2), t)[1],
    "copy_row": lambda t: t.copy_(t.clone()[:1]),
    "copy_lead": lambda t: t.copy_(t.clone().unsqueeze(0)),
    "set_row": lambda t: (t.__setitem__((Ellipsis, 0), t.clone()[None, ..., -1]), t)[1],
    "set_all": lambda t: (t.__setitem__(Ellipsis, t.clone()), t)[1],
    "set_itself": lambda t: (t.__setitem__(None, t), t)[1],
    "copy_itself": lambda t: t.copy_(t.detach()),
    "fill_first": lambda t: t.fill_(t[(0,) * t.ndim]),
}
OPS = (
    ["index"] * 4
    + ["view", "reshape", "expand", "permute"] * 3
    + ["transpose", "flatten", "unsqueeze", "squeeze_dim", "squeeze_dims", "select", "narrow"]
    + ["movedim", "split", "split_sizes", "unbind", "as_strided", "as_strided", "to"]
    + list(PLAIN)
)


def attempt(step: Callable[[Any], Any], tensor: Any) -> Any:
    try:
        return step(tensor)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error)


def plain(tensor: Any) -> dict[str, Any]:
    """What a program can see of a tensor, in words that both worlds share."""
    return {
        "shape": tuple(tensor.shape),
        "stride": tuple(tensor.stride()),
        "offset": tensor.storage_offset(),
        "dtype": str(tensor.dtype).split(".")[1],
        "contiguous": tensor.is_contiguous(),
        "version": tensor._version,
        "is_view": tensor._is_view(),
        "storage bytes": tensor.untyped_storage().nbytes(),
        "address": tensor.data_ptr() - tensor.untyped_storage().data_ptr() if tensor.numel() else 0,
        "values": tensor.tolist(),
    }


def same_storage(a: Any, b: Any) -> bool:
    if isinstance(a, mini.Tensor):
        return a.untyped_storage() is b.untyped_storage()
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def start(shape: list[int], dtype: str) -> tuple[torch.Tensor, mini.Tensor]:
    theirs = torch.arange(torch.Size(shape).numel()).to(getattr(torch, dtype)).reshape(shape).clone()
    n = mini.Size(shape).numel()
    ours = mini.arange(n).to(getattr(mini, dtype)).reshape(shape).clone()
    return theirs, ours


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(st.data())
def test_a_random_program_sees_the_same_tensors(data: st.DataObject) -> None:
    shape, dtype = data.draw(starts), data.draw(st.sampled_from(DTYPES))
    theirs, ours = start(shape, dtype)
    made = [(theirs, ours)]
    program = [f"{dtype} {shape}"]
    for _ in range(data.draw(st.sampled_from([3, 6, 8, 1, 12]))):
        at = data.draw(st.integers(max(0, len(made) - 2), len(made) - 1))
        theirs, ours = made[at]
        description, step = data.draw(steps(theirs))
        program.append(f"{at}: {description}")
        expected, got = attempt(step, theirs), attempt(step, ours)
        if isinstance(expected, type):
            assert got is expected, program
            continue
        assert not isinstance(got, type), (program, got)
        known = [known_pair for known_pair in made if known_pair[0] is expected]
        assert [pair[1] for pair in known] == ([got] if known else []) or known[0][1] is got, program
        if not known:
            made.append((expected, got))
        for position, (a, b) in enumerate(made):
            assert plain(b) == plain(a), (program, position)
            assert same_storage(b, got) == same_storage(a, expected), (program, position)
            assert (b._base is got) == (a._base is expected), (program, position)
            assert b.is_set_to(got) == a.is_set_to(expected), (program, position)
            assert b.equal(b) == a.equal(a), (program, position)


VIEWS: list[Callable[[Any], Any]] = [
    lambda t: t,
    lambda t: t.narrow(0, 1, 1),
    lambda t: t.narrow(-1, 0, 1),
    lambda t: t.transpose(0, -1),
    lambda t: t.unsqueeze(0),
    lambda t: t.unsqueeze(-1),
    lambda t: t.expand(2, *t.shape),
    lambda t: t[::2],
    lambda t: t[-1],
    lambda t: t.detach(),
    lambda t: t.clone(),
]


@given(
    st.lists(st.sampled_from([0, 1, 1, 2, 2, 3]), max_size=3),
    st.lists(st.sampled_from(VIEWS), max_size=2),
    st.lists(st.sampled_from(VIEWS), max_size=2),
    keys,
)
def test_assigning_one_view_to_part_of_another_matches(
    shape: list[int], to: list[Callable[[Any], Any]], of: list[Callable[[Any], Any]], key: Any
) -> None:
    seen = []
    for base in start(shape, "int64"):
        target = source = base
        try:
            for view in to:
                target = view(target)
            for view in of:
                source = view(source)
        except (RuntimeError, IndexError) as error:
            seen.append((type(error),))
            continue
        outcome = attempt(lambda t, source=source: t.__setitem__(key, source), target)
        # Which element arrives last where one is read and written is PyTorch's own affair.
        fixed = not same_storage(target, source) or isinstance(outcome, type)
        seen.append((outcome, base._version, target._version, target.tolist() if fixed else None))
    assert seen[1] == seen[0]


@given(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4), st.lists(st.integers(0, 5), max_size=4))
def test_contiguity_and_copies_of_any_strides_match(shape: list[int], stride: list[int]) -> None:
    shape, stride = shape[: len(stride)], stride[: len(shape)]
    theirs = torch.arange(64.0).as_strided(shape, stride, 1)
    ours = mini.arange(64.0).as_strided(shape, stride, 1)
    for make in (lambda t: t, lambda t: t.clone(), lambda t: t.contiguous(), lambda t: t.reshape(-1)):
        assert plain(make(ours)) == plain(make(theirs))


def test_the_program_test_would_notice_a_wrong_stride() -> None:
    with (
        mini.using(contiguous_strides=lambda shape: (1,) * len(shape)),
        pytest.raises(AssertionError),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        assert plain(mini.zeros(2, 3)) == plain(torch.zeros(2, 3))
