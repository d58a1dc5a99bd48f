"""Module: attributes, tree, hooks, modes, conversions; the same program in mini and in PyTorch ends alike."""

import copy
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

from glassbox import mini
from glassbox.mini import nn

from .twins import Programs, agree

programs = Programs()


def net(lib: Any) -> Any:
    """A small net with a shared layer, a buffer that is kept and one that is not."""
    shared = lib.nn.Linear(2, 2)
    made = lib.nn.Sequential(lib.nn.Sequential(shared, lib.nn.ReLU()), shared, lib.nn.BatchNorm1d(2))
    made.register_buffer("kept", lib.ones(2))
    made.register_buffer("passing", lib.zeros(3), persistent=False)
    made.register_buffer("none", None)
    return made


# Attributes


@programs
def parameters_buffers_and_modules_by_assignment(lib: Any) -> Any:
    m = lib.nn.Module()
    m.p = lib.nn.Parameter(lib.ones(2))
    m.b = lib.nn.Buffer(lib.zeros(2))
    m.c = lib.nn.Buffer(lib.zeros(1), persistent=False)
    m.l = lib.nn.Linear(2, 1)
    m.t = lib.ones(3)
    m.n = 5
    named = [list(dict(kind())) for kind in (m.named_parameters, m.named_buffers, m.named_modules)]
    return named, list(m.state_dict()), "t" in vars(m), m


@programs
def a_name_moves_between_kinds(lib: Any) -> Any:
    m, seen = lib.nn.Module(), []
    for value in (5, lib.nn.Parameter(lib.ones(1)), lib.nn.Linear(1, 1), lib.nn.Parameter(lib.ones(2))):
        m.x = value
        seen.append(["x" in each for each in (vars(m), m._parameters, m._buffers, m._modules)])
    return seen


@programs
def a_buffer_takes_the_name_of_a_plain_attribute(lib: Any) -> Any:
    m = lib.nn.Module()
    m.x = 5
    m.x = lib.nn.Buffer(lib.ones(1))
    return "x" in vars(m), list(m._buffers), m.x


@programs
def a_plain_tensor_where_a_buffer_is(lib: Any) -> Any:
    m = net(lib)
    m.kept = lib.zeros(5)
    m.passing = None
    return list(m._buffers), m.kept, list(m.state_dict())


@programs
def a_parameter_set_to_none_and_back(lib: Any) -> Any:
    m = lib.nn.Linear(2, 2)
    m.bias = None
    before = m, list(m.state_dict()), m(lib.ones(2))
    m.bias = lib.nn.Parameter(lib.zeros(2))
    return before, list(m.state_dict())


@programs
def a_plain_tensor_where_a_parameter_is(lib: Any) -> Any:
    lib.nn.Linear(2, 2).weight = lib.ones(2, 2)


@programs
def a_number_where_a_buffer_is(lib: Any) -> Any:
    net(lib).kept = 3


@programs
def a_number_where_a_module_is(lib: Any) -> Any:
    setattr(net(lib), "0", 3)


@programs
def a_computed_parameter(lib: Any) -> Any:
    m = lib.nn.Module()
    m.register_parameter("p", lib.nn.Parameter(lib.ones(1)) * 2)


@programs
def before_init(lib: Any) -> Any:
    class M(lib.nn.Module):
        def __init__(self) -> None:
            self.p = lib.nn.Parameter(lib.ones(1))

    M()


@programs
def module_before_init(lib: Any) -> Any:
    class M(lib.nn.Module):
        def __init__(self) -> None:
            self.p = lib.nn.Linear(1, 1)

    M()


@programs
def number_before_init(lib: Any) -> Any:
    class M(lib.nn.Module):
        def __init__(self) -> None:
            self.p = 3
            super().__init__()

    return M().p


@programs
def unknown_attribute(lib: Any) -> Any:
    return net(lib).nope


@programs
def unknown_attribute_deleted(lib: Any) -> Any:
    del net(lib).nope


@programs
def attributes_deleted(lib: Any) -> Any:
    m = net(lib)
    del m.kept
    del m.passing
    del m[1].bias
    delattr(m, "2")
    return m, list(m.state_dict())


@programs
def what_dir_shows(lib: Any) -> Any:
    return {"kept", "passing", "none", "training"} <= set(dir(net(lib)))


for _name in ("a.b", "", "forward", "0", "training", 3):

    def register(lib: Any, name: Any = _name) -> Any:
        net(lib).register_parameter(name, None)

    def buffer(lib: Any, name: Any = _name) -> Any:
        net(lib).register_buffer(name, lib.ones(1))

    def module(lib: Any, name: Any = _name) -> Any:
        net(lib).add_module(name, lib.nn.ReLU())

    for _program in (register, buffer, module):
        _program.__name__ = f"{_program.__name__} as {_name!r}"
        programs(_program)


@programs
def parameter_that_is_none(lib: Any) -> Any:
    net(lib).register_parameter("p", lib.ones(1))


@programs
def buffer_that_is_none(lib: Any) -> Any:
    net(lib).register_buffer("p", 3)


@programs
def module_that_is_none(lib: Any) -> Any:
    net(lib).add_module("p", 3)


@programs
def empty_place_for_a_module(lib: Any) -> Any:
    m = net(lib)
    m.register_module("later", None)
    return m.later is None, [name for name, _ in m.named_modules()]


# Parameter and Buffer


@programs
def what_is_a_parameter(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    others = p.detach(), p.clone(), p.data, p + 1, p[:1], p.to(lib.float64), lib.ones(2), 3
    return isinstance(p, lib.nn.Parameter), [isinstance(each, lib.nn.Parameter) for each in others], p, repr(p)


@programs
def a_parameter_shares_its_data(lib: Any) -> Any:
    x = lib.ones(2)
    p = lib.nn.Parameter(x)
    x.fill_(3)
    return p, p.data_ptr() == x.data_ptr(), p.is_leaf, p._version, p._is_view()


@programs
def a_parameter_of_a_parameter(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    q = lib.nn.Parameter(p, requires_grad=False)
    return q is p, p.requires_grad, q.requires_grad, isinstance(q, lib.nn.Parameter)


@programs
def a_parameter_of_a_computed_tensor(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2, requires_grad=True) * 2)
    return p, p.is_leaf


@programs
def a_parameter_of_nothing(lib: Any) -> Any:
    return lib.nn.Parameter(), lib.nn.Buffer()


@programs
def a_parameter_of_a_list(lib: Any) -> Any:
    return lib.nn.Parameter([1.0])


@programs
def a_parameter_of_integers(lib: Any) -> Any:
    return lib.nn.Parameter(lib.tensor([1]))


@programs
def a_parameter_of_integers_without_grad(lib: Any) -> Any:
    return lib.nn.Parameter(lib.tensor([1]), requires_grad=False)


@programs
def what_is_a_buffer(lib: Any) -> Any:
    b = lib.nn.Buffer(lib.ones(2))
    kinds = [isinstance(each, lib.nn.Buffer) for each in (b, b.clone(), lib.ones(2), lib.nn.Parameter(lib.ones(1)))]
    return kinds, repr(b), b


@programs
def parameters_print(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    return repr(m.weight), repr(m.bias), str(m(lib.ones(2))), repr(m.weight.detach()), repr(m.weight[0])


@programs
def parameters_copied(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.arange(4.0).reshape(2, 2).t())
    p.grad = lib.ones(2, 2).t()
    p.register_hook(lambda grad: grad * 2)
    q = copy.deepcopy(p)
    (q * 3).sum().backward()
    return isinstance(q, lib.nn.Parameter), q, q.grad, p.grad


@programs
def tensors_copied(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3).t()
    y, z = copy.deepcopy((x, x[1:]))
    leaf = lib.ones(2, requires_grad=True)
    leaf.grad = lib.ones(2)
    other = copy.deepcopy(leaf)
    shared = y.untyped_storage().data_ptr() == z.untyped_storage().data_ptr()
    apart = y.data_ptr() != x.data_ptr(), other.data_ptr() != leaf.data_ptr()
    return y, z, shared, apart, z.storage_offset(), other, other.grad, y._is_view()


@programs
def what_cannot_be_copied(lib: Any) -> Any:
    return copy.deepcopy(lib.ones(2, requires_grad=True) * 2)


@programs
def pickled(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3).t()
    p = lib.nn.Parameter(x)
    p.grad = lib.ones(3, 2)
    y, z, q, b = pickle.loads(pickle.dumps((x, x[1:], p, lib.ones(3, dtype=lib.bfloat16))))
    return y, z, q, q.grad, isinstance(q, lib.nn.Parameter), b


# The tree


@programs
def names(lib: Any) -> Any:
    m = net(lib)
    return [
        [name for name, _ in each]
        for each in (
            m.named_parameters(),
            m.named_parameters(prefix="p", recurse=False),
            m.named_parameters("q", remove_duplicate=False),
            m.named_buffers(),
            m.named_buffers(recurse=False),
            m.named_modules(),
            m.named_modules(prefix="p", remove_duplicate=False),
            m.named_children(),
        )
    ]


@programs
def numbers_of(lib: Any) -> Any:
    m = net(lib)
    return [len(list(each())) for each in (m.parameters, m.buffers, m.modules, m.children)]


@programs
def tied_weights(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.Linear(2, 2, bias=False), lib.nn.Linear(2, 2, bias=False))
    m[1].weight = m[0].weight
    m(lib.ones(1, 2)).sum().backward()
    other = copy.deepcopy(m)
    kept = other[0].weight is other[1].weight
    return len(list(m.parameters())), list(m.state_dict()), m[0].weight.grad, kept


@programs
def by_path(lib: Any) -> Any:
    m = net(lib)
    found = m.get_submodule("0.0") is m[1], m.get_submodule("") is m
    return found, m.get_parameter("2.weight"), m.get_buffer("2.running_var")


for _kind, _path in (
    ("submodule", "0.5"),
    ("submodule", "5.0"),
    ("submodule", "0.0.weight"),
    ("submodule", "training"),
    ("parameter", "nope"),
    ("parameter", "kept"),
    ("parameter", "a.b"),
    ("parameter", "0.1"),
    ("buffer", "2.weight"),
    ("buffer", "nope"),
):

    def lost(lib: Any, kind: str = _kind, path: str = _path) -> Any:
        return getattr(net(lib), f"get_{kind}")(path)

    lost.__name__ = f"no {_kind} at {_path}"
    programs(lost)


@programs
def applied(lib: Any) -> Any:
    seen: list[str] = []
    m = net(lib)
    same = m.apply(lambda module: seen.append(type(module).__name__)) is m
    return same, seen


# Modes and conversions


@programs
def training_and_evaluation(lib: Any) -> Any:
    m = net(lib)
    modes = [[each.training for each in m.modules()]]
    modes.append([each.training for each in m.eval().modules()])
    m[2].train()
    modes.append([each.training for each in m.modules()])
    return modes, [each.training for each in m.train().modules()]


@programs
def train_takes_a_bool(lib: Any) -> Any:
    net(lib).train(1)


@programs
def a_class_with_its_own_train(lib: Any) -> Any:
    class Frozen(lib.nn.BatchNorm1d):  # type: ignore[name-defined, misc]
        def train(self, mode: bool = True) -> Any:
            return super().train(False)

    m = lib.nn.Sequential(Frozen(2), lib.nn.ReLU()).train()
    return m[0].training, m[1].training


@programs
def frozen(lib: Any) -> Any:
    m = net(lib).requires_grad_(False)
    before = [p.requires_grad for p in m.parameters()]
    m[2].requires_grad_()
    m(lib.ones(3, 2)).sum().backward()
    return before, [p.grad is None for p in m.parameters()]


@programs
def gradients_forgotten(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    m(lib.ones(1, 2)).sum().backward()
    grad = m.weight.grad
    m.zero_grad(set_to_none=False)
    zeroed = m.weight.grad is grad, grad.clone()
    m.zero_grad()
    return zeroed, m.weight.grad


@programs
def gradients_with_a_history_forgotten(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    (m(lib.ones(1, 2)) ** 2).sum().backward(create_graph=True)
    m.zero_grad(set_to_none=False)
    return m.weight.grad, m.weight.grad.grad_fn is None


@programs
def to_another_dtype(lib: Any) -> Any:
    m = net(lib)
    m(lib.ones(3, 2)).sum().backward()
    before = list(m.parameters()), m[1].weight.grad, m.kept
    same = m.to(lib.float64) is m
    kept = [a is b for a, b in zip(before[0], m.parameters(), strict=True)]
    grads = m[1].weight.grad, m[1].weight.grad is before[1]
    return same, kept, grads, m.kept is before[2], m.state_dict(), m[1].weight._version


@programs
def conversions(lib: Any) -> Any:
    m, seen = lib.nn.BatchNorm1d(2), []
    for each in (m.double, m.bfloat16, m.float):
        seen.append({name: str(value.dtype).split(".")[-1] for name, value in each().state_dict().items()})
    m.to(lib.ones(1, dtype=lib.float64))
    m.to("cpu", lib.bfloat16)
    m.to(dtype=lib.float32, device="cpu")
    return seen, m.state_dict()


@programs
def gradients_after_a_conversion(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    m(lib.ones(1, 2)).sum().backward()
    m.double()
    m(lib.ones(1, 2, dtype=lib.float64)).sum().backward()
    return m.weight.grad


@programs
def to_integers(lib: Any) -> Any:
    net(lib).to(lib.int64)


@programs
def buffers_without_grad_are_not_cast(lib: Any) -> Any:
    m = lib.nn.Module()
    m.register_buffer("count", lib.tensor([1, 2]))
    return m.double().count


@programs
def emptied(lib: Any) -> Any:
    m = lib.nn.Linear(2, 3)
    weight = m.weight
    return m.to_empty(device="cpu") is m, m.weight is weight, tuple(m.weight.shape), m.weight.requires_grad


@programs
def data_replaced(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    version = p._version
    p.data = lib.zeros(3, dtype=lib.float64)
    p.data.add_(1)
    return p, p._version - version, isinstance(p, lib.nn.Parameter), p.is_leaf


@programs
def data_replaced_by_integers(lib: Any) -> Any:
    lib.nn.Parameter(lib.ones(2)).data = lib.tensor([1])


@programs
def data_replaced_by_a_number(lib: Any) -> Any:
    lib.nn.Parameter(lib.ones(2)).data = 3


# Calls and hooks


@programs
def no_forward(lib: Any) -> Any:
    return lib.nn.Module()(1)


@programs
def hooks_in_order(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    for nr in range(3):
        m.register_forward_pre_hook(lambda m, args, nr=nr: seen.append(("pre", nr)), prepend=nr == 2)
        m.register_forward_hook(lambda m, args, out, nr=nr: seen.append(("post", nr)), prepend=nr == 2)
    m(lib.ones(1))
    return seen


@programs
def hooks_that_change_things(lib: Any) -> Any:
    m = lib.nn.ReLU()
    m.register_forward_pre_hook(lambda m, args: args[0] - 1)
    m.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    m.register_forward_hook(lambda m, args, out: out + args[0])
    m.register_forward_hook(lambda m, args, out: None)
    return m(lib.arange(4.0))


@programs
def hooks_with_keywords(lib: Any) -> Any:
    class Scale(lib.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any, by: float = 1.0) -> Any:
            return x * by

    m, seen = Scale(), []

    def pre(m: Any, args: Any, kwargs: Any) -> Any:
        seen.append((len(args), dict(kwargs)))
        return args, {"by": kwargs["by"] + 1}

    m.register_forward_pre_hook(pre, with_kwargs=True)
    m.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["by"], with_kwargs=True)
    m.register_forward_hook(lambda m, args, out: seen.append(len(args)))
    return m(lib.ones(2), by=2.0), seen


@programs
def a_pre_hook_with_keywords_that_returns_something_else(lib: Any) -> Any:
    m = lib.nn.ReLU()
    m.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    return m(lib.ones(2))


@programs
def hooks_removed(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    handle = m.register_forward_hook(lambda m, args, out: seen.append("a"))
    with m.register_forward_hook(lambda m, args, out: seen.append("b")):
        m(lib.ones(1))
    m(lib.ones(1))
    handle.remove()
    handle.remove()
    m(lib.ones(1))
    return seen, len(m._forward_hooks)


@programs
def a_hook_that_removes_itself(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []

    def once(m: Any, args: Any, out: Any) -> None:
        seen.append("once")
        handle.remove()

    handle = m.register_forward_hook(once)
    m.register_forward_hook(lambda m, args, out: seen.append("always"))
    m(lib.ones(1))
    m(lib.ones(1))
    return seen


@programs
def a_hook_that_raises(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    m.register_forward_hook(lambda m, args, out: 1 // 0)
    m.register_forward_hook(lambda m, args, out: seen.append("not reached"))
    try:
        m(lib.ones(1))
    except ZeroDivisionError:
        seen.append("raised")
    return seen


@programs
def hooks_that_are_always_called(lib: Any) -> Any:
    m, seen = lib.nn.Linear(2, 2), []

    def quiet(m: Any, args: Any, out: Any) -> Any:
        seen.append(("a", out))
        return 5

    m.register_forward_hook(quiet, always_call=True)
    m.register_forward_hook(lambda m, args, kwargs, out: seen.append(("b", out)), always_call=True, with_kwargs=True)
    m.register_forward_hook(lambda m, args, out: seen.append("c"))
    m.register_forward_hook(lambda m, args, out: 1 // 0, always_call=True)
    try:
        m(lib.ones(3))
    except RuntimeError:
        seen.append("raised")
    return seen


@programs
def a_hook_that_is_always_called_is_called_once(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    m.register_forward_hook(lambda m, args, out: seen.append("first"), always_call=True)
    m.register_forward_hook(lambda m, args, out: 1 // 0)
    m.register_forward_hook(lambda m, args, out: seen.append("last"), always_call=True)
    try:
        m(lib.ones(1))
    except ZeroDivisionError:
        seen.append("raised")
    return seen


@programs
def hooks_of_a_layer_inside(lib: Any) -> Any:
    m, seen = net(lib), []
    m[0].register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    m(lib.ones(5, 2))
    return seen


@programs
def hooks_are_copied(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    m.register_forward_hook(lambda m, args, out: seen.append("called"))
    copy.deepcopy(m)(lib.ones(1))
    return seen


@programs
def gradients_through_parameter_hooks(lib: Any) -> Any:
    m = lib.nn.Linear(2, 1)
    m.weight.register_hook(lambda grad: grad * 10)
    m(lib.ones(1, 2)).sum().backward()
    return m.weight.grad, m.bias.grad


# Containers


def some(lib: Any) -> list[Any]:
    return [lib.nn.Linear(1, 2), lib.nn.ReLU(), lib.nn.Linear(2, 3), lib.nn.Tanh()]


@programs
def sequential_sliced(lib: Any) -> Any:
    m = lib.nn.Sequential(*some(lib))
    part = m[1:3]
    return m[0], m[-1], part, list(part.state_dict()), part[1] is m[2], m[::2], len(m), m[5:]


@programs
def sequential_by_name(lib: Any) -> Any:
    m = lib.nn.Sequential(OrderedDict(a=lib.nn.Linear(1, 2), b=lib.nn.ReLU()))
    return m, m[1], m.a, list(m.state_dict()), m[:1]


@programs
def sequential_changed(lib: Any) -> Any:
    m = lib.nn.Sequential(*some(lib))
    m[1] = lib.nn.Sigmoid()
    m[-1] = lib.nn.SiLU()
    before = repr(m)
    del m[0]
    m.append(lib.nn.GELU())
    m.insert(1, lib.nn.Tanh())
    m.extend([lib.nn.ReLU(), lib.nn.ReLU()])
    popped = m.pop(0)
    return before, m, popped, list(m._modules)


@programs
def sequential_slices_deleted(lib: Any) -> Any:
    m = lib.nn.Sequential(*some(lib))
    del m[1:3]
    return m, list(m._modules)


@programs
def sequential_arithmetic(lib: Any) -> Any:
    a, b = lib.nn.Sequential(lib.nn.ReLU()), lib.nn.Sequential(lib.nn.Tanh())
    c, d = a + b, b * 2
    a += b
    b *= 3
    return a, b, c, d, 2 * c


for _nr, _wrong in enumerate(
    (
        lambda lib: lib.nn.Sequential(3),
        lambda lib: lib.nn.Sequential({"a": lib.nn.ReLU()}),
        lambda lib: lib.nn.Sequential(lib.nn.ReLU())[3],
        lambda lib: lib.nn.Sequential(lib.nn.ReLU())["a"],
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()) + 3,
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()) * 0,
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()) * "a",
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()).insert(5, lib.nn.ReLU()),
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()).insert(0, 3),
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()).append(3),
        lambda lib: lib.nn.Sequential(lib.nn.ReLU()).pop(4),
        lambda lib: lib.nn.ModuleList(3),
        lambda lib: lib.nn.ModuleList([3]),
        lambda lib: lib.nn.ModuleList([lib.nn.ReLU()])[1],
        lambda lib: lib.nn.ModuleList([lib.nn.ReLU()])(1),
        lambda lib: lib.nn.ModuleList().extend(lib.nn.ReLU()),
        lambda lib: lib.nn.ModuleDict(3),
        lambda lib: lib.nn.ModuleDict({"a": 3}),
        lambda lib: lib.nn.ModuleDict({"a.b": lib.nn.ReLU()}),
        lambda lib: lib.nn.ModuleDict()["a"],
    )
):
    _wrong.__name__ = f"misused container {_nr}"
    programs(_wrong)


@programs
def empty_sequential(lib: Any) -> Any:
    return lib.nn.Sequential(), lib.nn.Sequential()(5), lib.nn.ModuleList(), lib.nn.ModuleDict()


@programs
def module_list(lib: Any) -> Any:
    m = lib.nn.ModuleList(some(lib))
    part = m[1:]
    m.append(lib.nn.ReLU()).extend([lib.nn.ReLU(), lib.nn.Sequential(lib.nn.Tanh())])
    m.insert(0, lib.nn.GELU())
    del m[2]
    m += [lib.nn.SiLU()]
    both = m + part
    return m, part, list(part.state_dict()), list(m.state_dict()), len(both), m.pop(-1), [type(x).__name__ for x in m]


@programs
def module_dict(lib: Any) -> Any:
    m = lib.nn.ModuleDict({"b": lib.nn.Linear(1, 1), "a": lib.nn.ReLU()})
    m["c"] = lib.nn.Tanh()
    m.update([("d", lib.nn.ReLU())])
    del m["a"]
    seen = list(m), list(m.keys()), "b" in m, "a" in m, len(m), m["c"], list(m.state_dict())
    popped = m.pop("d")
    text = repr(m)
    m.clear()
    return seen, popped, text, m, [name for name, _ in m.items()], list(m.values())


@programs
def extra_lines(lib: Any) -> Any:
    class Spoken(lib.nn.Module):  # type: ignore[name-defined, misc]
        def extra_repr(self) -> str:
            return "one\ntwo"

    alone = Spoken()
    within = Spoken()
    within.child = Spoken()
    return alone, within, lib.nn.Sequential(within, lib.nn.ReLU())


@pytest.mark.parametrize("program", programs.all, ids=programs.names())
def test_a_program_ends_alike_in_both(program: Callable[[Any], Any]) -> None:
    agree(program)


def test_a_module_moves_to_the_simulated_device_and_back() -> None:
    m = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    before = list(m.parameters())
    values = [p.tolist() for p in before]
    assert m.sim() is m
    assert {t.device.type for t in m.state_dict().values()} == {"sim"}
    assert all(a is b for a, b in zip(before, m.parameters(), strict=True))
    m(mini.ones(4, 2, device="sim")).sum().backward()
    assert m[0].weight.grad.device.type == "sim"
    m.cpu()
    assert {t.device.type for t in m.state_dict().values()} == {"cpu"}
    assert m[0].weight.grad.device.type == "cpu"
    assert [p.tolist() for p in m.parameters()] == values
    m(mini.ones(4, 2)).sum().backward()


def test_a_layer_can_be_made_on_the_simulated_device_and_of_another_dtype() -> None:
    for layer in (
        nn.Linear(2, 2, device="sim", dtype=mini.float64),
        nn.Conv2d(2, 2, 1, device="sim", dtype=mini.float64),
        nn.BatchNorm2d(2, device="sim", dtype=mini.float64),
        nn.LayerNorm(2, device="sim", dtype=mini.float64),
        nn.Embedding(2, 2, device="sim", dtype=mini.float64),
    ):
        for name, value in layer.state_dict().items():
            assert value.device.type == "sim", name
            assert value.dtype is (mini.int64 if name == "num_batches_tracked" else mini.float64), name


def test_a_copied_or_pickled_tensor_stays_on_its_device() -> None:
    x = mini.arange(3.0, device="sim")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == x.device
        assert y.tolist() == [0, 1, 2]
        assert "device='sim" in repr(y)


def test_a_module_deletes_without_waiting_for_the_collector() -> None:
    import gc
    import weakref

    gc.disable()
    try:
        m = nn.Linear(2, 2)
        gone = weakref.ref(m)
        m(mini.ones(2)).sum().backward()
        del m
        assert gone() is None
    finally:
        gc.enable()


def test_always_called_hooks_that_fail_are_warned_of() -> None:
    for lib in (mini, torch):
        m = lib.nn.Linear(2, 2)
        m.register_forward_hook(lambda m, args, out: 1 // 0, always_call=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError):
                m(lib.ones(3))
        assert len(caught) == 1


def test_nn_is_there_under_its_name_and_not_imported_before() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from glassbox import mini; before = 'glassbox.mini.nn' in sys.modules; "
        "mini.nn.Linear(1, 1), mini.optim.SGD, mini.models.MLP; print(before, 'nn' in dir(mini)); mini.nope"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True"]
    assert "AttributeError: module 'glassbox.mini' has no attribute 'nope'" in done.stderr
