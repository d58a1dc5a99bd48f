"""Views and in-place writes in the graph: rebased histories, versions, what is refused."""

from typing import Any

import pytest

from glassbox import mini

from .both import Programs, agree, name_of, raised

programs = Programs()


def leaf(m: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return (m.arange(count, dtype=m.float32) + 1).reshape(shape).detach().requires_grad_()


def path(node: Any, depth: int = 3) -> Any:
    """A node and what its edges lead to, by names."""
    if node is None or depth == 0:
        return name_of(node)
    return name_of(node), tuple(path(each, depth - 1) for each, _ in node.next_functions)


@programs
def a_write_through_a_view_is_the_base_s_history(m: Any) -> Any:
    x = leaf(m, 3, 2)
    base = x.clone()
    view = base[0]
    view.mul_(2)
    found = path(base.grad_fn), path(view.grad_fn), base._version, view._version
    (base * base).sum().backward()
    return found, x.grad


@programs
def every_view_of_the_base_sees_it(m: Any) -> Any:
    x = leaf(m, 3, 2)
    base = x.clone()
    before, other = base[0], base.t()
    names = name_of(before.grad_fn), name_of(other.grad_fn)
    base.mul_(3)
    after = name_of(before.grad_fn), name_of(other.grad_fn), name_of(base.grad_fn)
    (before.sum() + (other * other).sum()).backward()
    return names, after, x.grad


@programs
def the_base_written_with_a_view_alive(m: Any) -> Any:
    x, w = leaf(m, 4), leaf(m, 2)
    base = x * 1
    view = base[1:3]
    view.mul_(w)
    base.add_(view.sum())
    view.exp_()
    (base * m.arange(4)).sum().backward()
    return x.grad, w.grad


@programs
def views_of_views(m: Any) -> Any:
    x = leaf(m, 4, 3)
    base = x.clone()
    inner = base[1:3].t()[1]
    inner.mul_(10)
    found = path(base.grad_fn), path(inner.grad_fn), inner._base is base
    outer = base[1:3]
    outer.sub_(1)
    (base.sum() * inner.sum()).backward()
    return found, path(inner.grad_fn), x.grad


@programs
def chains_of_writes(m: Any) -> Any:
    x = leaf(m, 4)
    base = x * 1
    for nr in range(4):
        base[nr].mul_(base[(nr + 1) % 4].detach().clone())
        base[nr:].add_(1)
    base.sum().backward()
    return x.grad, base


@programs
def copies_into_a_plain_base(m: Any) -> Any:
    x = leaf(m, 2)
    base = m.zeros(4)
    base[1:3] = x
    found = base.requires_grad, base.is_leaf, path(base.grad_fn)
    base[0] = 7.0
    base[3:] = x[:1] * 2
    (base * base).sum().backward()
    return found, base, x.grad


@programs
def an_expanded_source(m: Any) -> Any:
    x, s = leaf(m, 3), m.tensor(2.0, requires_grad=True)
    base = m.zeros(2, 3)
    base.copy_(x)
    base[:, 0] = s
    base[1].fill_(s)
    base.sum().backward()
    return path(base.grad_fn), x.grad, s.grad


@programs
def copy_between_dtypes(m: Any) -> Any:
    x = leaf(m, 3)
    wide, whole = m.zeros(3, dtype=m.float64), m.zeros(3, dtype=m.int64)
    wide.copy_(x * 2)
    whole.copy_(x)
    (wide * 1.5).sum().backward()
    return wide.grad_fn, whole.requires_grad, x.grad


@programs
def in_place_on_leaves_is_refused(m: Any) -> Any:
    x = leaf(m, 3)
    with m.no_grad():
        x.add_(1)
    w = m.ones(3, requires_grad=True)
    plain = m.zeros(3)
    return (
        [
            raised(lambda f=f: f())
            for f in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.copy_(m.ones(3)), lambda: x[0].add_(1))
        ],
        raised(lambda: x.view(3).mul_(2)),
        raised(lambda: x.__setitem__(0, 1.0)),
        raised(lambda: plain.add_(w)),
        plain.requires_grad,
        x,
        x._version,
    )


@programs
def a_view_made_without_grad(m: Any) -> Any:
    x = leaf(m, 3)
    base = x * 1
    with m.no_grad():
        view = base[:2]
        inside = base[1:]
        inside.mul_(2)
    return (
        raised(lambda: view.mul_(2)),
        raised(lambda: view.mul_(leaf(m, 2))),
        view.requires_grad,
        raised(lambda: view.grad_fn),
        base,
    )


@programs
def a_view_of_a_view_that_may_not_be_written(m: Any) -> Any:
    base = leaf(m, 4) * 1
    with m.no_grad():
        view = base[:3]
        inside = base.view(2, 2)[0]
    part = base.chunk(2)[0]
    return [raised(lambda t=t: t.mul_(2)) for t in (view[:2], part[:1], inside[:1], base[:2])]


@programs
def a_view_made_without_grad_of_what_needs_none(m: Any) -> Any:
    base = m.zeros(3)
    with m.no_grad():
        view = base[:2]
    view.add_(1)
    problem = raised(lambda: view.mul_(leaf(m, 2)))
    return problem, base.requires_grad, base


@programs
def several_views_at_once(m: Any) -> Any:
    found = []
    for split in (
        lambda t: t.split(2),
        lambda t: t.chunk(2),
        lambda t: t.unbind(0),
        lambda t: t.split_with_sizes([1, 3]),
    ):
        x = leaf(m, 4)
        base = x * 1
        parts = split(base)
        found.append(raised(lambda parts=parts: parts[0].mul_(2)))
        base.mul_(2)
        found.append(raised(lambda parts=parts: parts[0].grad_fn))
        plain = split(m.zeros(4))
        plain[0].add_(1)
        found.append((raised(lambda plain=plain: plain[0].add_(m.ones((), requires_grad=True))), plain[0]))
    return found


@programs
def versions_are_shared(m: Any) -> Any:
    x = m.zeros(4)
    view, detached, data, copy = x[:2], x.detach(), x.data, x.clone()
    view.add_(1)
    detached.add_(1)
    data.add_(1)
    x[1] = 5.0
    x.t_() if hasattr(x, "never") else None
    return [each._version for each in (x, view, detached, data, copy)], x


@programs
def a_saved_tensor_that_changed(m: Any) -> Any:
    found = []
    for change in (
        lambda t: t.add_(1),
        lambda t: t[:1].add_(1),
        lambda t: t.detach().add_(1),
        lambda t: t.data.add_(1),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.zero_(),
    ):
        x = leaf(m, 3)
        y = x * 2
        z = (y * y).sum()
        with m.no_grad():
            change(y)
        found.append(raised(z.backward))
    for op in ("exp", "sigmoid", "relu", "tanh", "sqrt"):
        x = leaf(m, 3)
        y = getattr(x, op)()
        y.mul_(2)
        found.append(raised(lambda y=y: y.sum().backward()))
    return found


@programs
def what_is_not_saved_may_change(m: Any) -> Any:
    x, w = leaf(m, 3), m.ones(3)
    a = x * 2
    b = a + 1
    a.mul_(5)
    c = b * w
    b.add_(1)
    (a + b + c).sum().backward()
    return x.grad


@programs
def formulas_that_need_self_as_it_was(m: Any) -> Any:
    found = []
    for change in (
        lambda t: t.pow_(3),
        lambda t: t.log_(),
        lambda t: t.clamp_(1.5, 3.5),
        lambda t: t.sin_(),
        lambda t: t.abs_(),
        lambda t: t.div_(t.detach() + 1),
        lambda t: t.mul_(t.detach().clone()),
        lambda t: t.reciprocal_(),
        lambda t: t.exp_(),
        lambda t: t.sigmoid_(),
        lambda t: t.relu_(),
        lambda t: t.sqrt_(),
        lambda t: t.neg_(),
    ):
        x = leaf(m, 4)
        y, z = x.clone(), x.clone()
        change(y)
        change(z[1:3])
        (y * y + z * z).sum().backward()
        found.append((name_of(y.grad_fn), x.grad))
    return found


@programs
def the_other_operand_of_a_write(m: Any) -> Any:
    x, w = leaf(m, 3), leaf(m, 3)
    y = x.clone()
    y.mul_(w)
    y[0].mul_(w[1])
    y.div_(w)
    y.addcmul_(w, x)
    y.sum().backward()
    return x.grad, w.grad


@programs
def self_times_itself(m: Any) -> Any:
    x = leaf(m, 3)
    y = x.clone()
    y.mul_(y)
    z = x.clone()
    z.add_(z)
    z.sum().backward()
    return raised(lambda: y.sum().backward()), x.grad


@programs
def fill_and_zero(m: Any) -> Any:
    x = leaf(m, 4)
    y = x.clone()
    y[:2].zero_()
    y[3].fill_(9.0)
    names = path(y.grad_fn, 2)
    (y * y).sum().backward()
    z = x.clone().zero_()
    z.sum().backward()
    return names, x.grad, z.grad_fn


@programs
def masks_and_indices(m: Any) -> Any:
    x, v, s = leaf(m, 2, 3), leaf(m, 2), m.tensor(4.0, requires_grad=True)
    y = x.clone()
    y.masked_fill_(y > 4, 0.0)
    y[m.tensor([0, 1]), m.tensor([1, 1])] = v
    y[y < 2] = s
    y[0].index_add_(0, m.tensor([0, 0]), v)
    y[:, 1:].masked_fill_(m.tensor([True, False]), s)
    (y * y).sum().backward()
    return y, x.grad, v.grad, s.grad


@programs
def comparisons_written_in_place(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 1
    y.gt_(2)
    z = x * 1
    z.logical_and_(x)
    w = x * 1
    w.uniform_()
    (y + w).sum().backward()
    return y.grad_fn, z.grad_fn, w.grad_fn, x.grad


@programs
def requires_grad_of_views_of_leaves(m: Any) -> Any:
    base = m.zeros(3)
    view = base[:2]
    base.requires_grad_()
    found = view.requires_grad, view.is_leaf, view.grad_fn
    other = base[:2]
    return (
        found,
        other.requires_grad,
        other.is_leaf,
        other.grad_fn,
        raised(lambda: view.mul_(2)),
        raised(lambda: other.mul_(2)),
    )


@programs
def a_view_that_requires_grad_itself(m: Any) -> Any:
    base = m.zeros(3)
    view = base[:2].requires_grad_()
    found = base.requires_grad, view.is_leaf, raised(lambda: view.add_(1))
    (view * 2).sum().backward()
    return found, view.grad, base.grad


@programs
def as_strided_over_gaps_and_overlaps(m: Any) -> Any:
    x = leaf(m, 6)
    windows = (x * 1).as_strided((3, 3), (1, 1), 1)
    (windows * m.arange(9).reshape(3, 3)).sum().backward()
    y = leaf(m, 2, 3)
    gaps = (y * 1)[:, ::2].as_strided((2,), (2,), 1)
    gaps.mul(m.tensor([2.0, 5.0])).sum().backward()
    return x.grad, y.grad


@programs
def an_expanded_view(m: Any) -> Any:
    x = leaf(m, 3)
    y = x.clone()
    wide = y.expand(2, 3)
    problem = raised(lambda: wide.mul_(2))
    y.mul_(2)
    (wide * wide).sum().backward()
    return problem, wide.grad_fn, x.grad


@programs
def transposed_base(m: Any) -> Any:
    x = leaf(m, 2, 3)
    base = x.t().clone()
    base[:, 0].mul_(3)
    base.t()[0, 1:].exp_()
    (base * base).sum().backward()
    return base.stride(), x.grad


@programs
def double_backward_through_a_write(m: Any) -> Any:
    x, w = leaf(m, 4), leaf(m, 2)
    base = x * x
    base[1:3].mul_(w)
    base[0].exp_()
    (g,) = m.autograd.grad((base * base).sum(), x, create_graph=True)
    (g * g).sum().backward()
    return x.grad, w.grad


@programs
def a_write_freed(m: Any) -> Any:
    x = leaf(m, 4)
    base = x.clone()
    base[:2].mul_(2)
    y = base.sum()
    y.backward()
    return raised(y.backward)


@programs
def without_recording_views_are_still_views(m: Any) -> Any:
    x = leaf(m, 4)
    base = x * 1
    with m.no_grad():
        base[:2].mul_(2)
        version = base._version
    (base * base).sum().backward()
    return version, base.grad_fn, x.grad


@programs
def a_detached_view_changes_the_values_alone(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 1
    y.detach()[0] = 100.0
    y.sum().backward()
    return y, x.grad, y.detach()._is_view(), y.detach().requires_grad, y[0].detach()._is_view()


@programs
def detached_in_place(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    z = (y + 1).sum()
    same = y.detach_() is y
    z.backward()
    x.detach_()
    view = raised(lambda: y[:2].detach_())
    return same, y._version, y.requires_grad, y.grad_fn, y.is_leaf, x.requires_grad, x.grad, view


@programs
def set_data_goes_unnoticed(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * x
    x.data = m.full((3,), 10.0)
    y.sum().backward()
    return x, x.grad, x._version


@programs
def slices_and_selects_by_index(m: Any) -> Any:
    x = leaf(m, 3, 4)
    y = x.clone()
    y[1, ::2] = y[0, 1::2] * 2
    y[..., -1] += y[..., 0]
    y[None, 2, :2] *= 3
    (y * m.arange(12).reshape(3, 4)).sum().backward()
    return y, x.grad


@programs
def resize_is_refused_where_grad_is_wanted(m: Any) -> Any:
    x = leaf(m, 3)
    return raised(lambda: x.resize_(2)), raised(lambda: (x * 1).resize_(2)), m.zeros(3).resize_(2).shape == (2,)


@programs
def out_variants_record_nothing(m: Any) -> Any:
    x, out = leaf(m, 3), m.zeros(3)
    problem = raised(lambda: m.mul(x, 2, out=out)), raised(lambda: m.mul(m.ones(3), 2, out=leaf(m, 3)))
    with m.no_grad():
        m.mul(x, 2, out=out)
    return problem, out, out._version


@programs
def requires_grad_can_be_set_where_it_makes_sense(m: Any) -> Any:
    x = leaf(m, 3)
    y = x * 2
    return (
        raised(lambda: y.requires_grad_(False)),
        raised(lambda: m.arange(3).requires_grad_()),
        y.requires_grad_().requires_grad,
        x.requires_grad_(False).requires_grad,
        (x * 2).requires_grad,
    )


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_agrees_with_pytorch(program: Any) -> None:
    agree(program)


def test_messages_say_what_to_do() -> None:
    x = mini.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used"):
        x[0].add_(1)
    base = x * 1
    with mini.no_grad():
        view = base[:2]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        view.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of SplitBackward0 is a view and is being modified inplace"):
        base.split(2)[0].add_(1)
    y = x * 2
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"output 0 of AddBackward0, is at version 1; expected version 0 instead"):
        z.backward()
