"""Facts about saved memory: what the graph keeps, byte for byte, and what checkpointing saves, measured."""

import gc
import weakref
from functools import partial

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from glassbox.records import KeptCall, KeptValue, SavedMemory
from glassbox.xray import saved_memory

from .models import MODELS


def small(name):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    return make(), torch.rand(shape)


def kept(saved: SavedMemory) -> list[tuple[str, str]]:
    return [(value.node, value.name) for value in saved.values]


def leaf(*shape):
    return torch.rand(*shape, requires_grad=True)


def test_add_keeps_no_tensor():
    a, b = leaf(3), leaf(3)
    saved = saved_memory(lambda: torch.add(a, b, alpha=2))
    assert saved.values == ()
    assert str(saved) == "lambda, grad\n0 B of activations kept for backward in 0 values."


def test_mul_keeps_the_other_operand_of_each_that_needs_a_gradient():
    a, b, c = leaf(3), leaf(3), torch.rand(3)
    assert kept(saved_memory(lambda: a * c)) == [("MulBackward0", "other")]
    assert kept(saved_memory(lambda: c * a)) == [("MulBackward0", "self")]
    assert sorted(kept(saved_memory(lambda: a * b))) == [("MulBackward0", "other"), ("MulBackward0", "self")]
    assert kept(saved_memory(lambda: c * c)) == []


def test_a_table_of_a_small_network():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    saved = saved_memory(model, torch.rand(16, 4))
    place = saved.values[-1].place
    assert str(saved).replace(place, "HERE") == (
        """Sequential, train, grad
512 B of activations kept for backward in 2 values; alive anyway: parameters 64 B, inputs 256 B; \
peak 512 B in forward, 1, HERE.

node            values  activations  shared  alive anyway
ReluBackward0   1       512 B
AddmmBackward0  3                    512 B   320 B"""
    )


def test_kinds_of_what_is_kept():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(4))
            self.register_buffer("scale", torch.rand(4))

        def forward(self, x):
            return self.weight * x * self.scale * constant * torch.tensor([1.0, 2.0, 3.0, 4.0])

    constant = torch.rand(4)
    saved = saved_memory(Net(), torch.rand(4))
    assert [value.kind for value in saved.values] == ["input", "buffer", "other", "activation"]
    assert {kind: saved.nbytes(kind) for kind in ("activation", "parameter", "buffer", "input", "other", "")} == {
        "activation": 16,
        "parameter": 0,
        "buffer": 16,
        "input": 16,
        "other": 16,
        "": 64,
    }


def hooked_bytes(run) -> int:
    """The peer: bytes of the distinct storages that saved_tensors_hooks are told of."""
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        seen[storage._cdata] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        out = run()
    total = sum(seen.values())
    del out
    return total


@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_of_saved_tensors_hooks(name):
    model, x = small(name)
    torch.manual_seed(1)
    expected = hooked_bytes(lambda: model(x))
    torch.manual_seed(1)
    assert saved_memory(model, x).nbytes("") == expected > 0


class Alive(TorchDispatchMode):
    """Weak references to every storage that an operator makes."""

    def __init__(self):
        super().__init__()
        self.refs = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        out = op(*args, **(kwargs or {}))
        for each in torch.utils._pytree.tree_leaves(out):
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                self.refs.setdefault(storage._cdata, (StorageWeakRef(storage), storage.nbytes()))
        return out

    def nbytes(self, but):
        known = {tensor.untyped_storage()._cdata for tensor in but}
        return sum(n for key, (ref, n) in self.refs.items() if not ref.expired() and key not in known)


def alive_after_forward(model, x) -> int:
    with Alive() as mode:
        out = model(x)
        # What is alive now is kept by the graph, and the output by us.
        out = (out[0] if isinstance(out, tuple) else out).sum()
    gc.collect()
    return mode.nbytes([out, x, *model.parameters(), *model.buffers()])


@pytest.mark.parametrize("name", ["MLP", "convnet", "TransformerEncoder"])
def test_activations_are_what_the_graph_keeps_alive(name):
    model, x = small(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    expected = alive_after_forward(model, x)
    model.load_state_dict(before)
    assert saved_memory(model, x, loss=lambda out: out.sum()).nbytes() == expected > 0


def with_checkpoints(model, paths):
    for path in paths:
        module = model.get_submodule(path)
        module.forward = partial(checkpoint, module.forward, use_reentrant=False)
    return model


def blocks():
    """Blocks with a way around, so that what goes in is used outside of them too."""

    class Block(nn.Module):
        def __init__(self, n, m):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(n, 32), nn.GELU(), nn.Linear(32, m))

        def forward(self, x):
            return self.inner(x).tanh()

    return nn.Sequential(nn.Linear(4, 8), Block(8, 8), Block(8, 6), nn.Sigmoid(), Block(6, 2)), torch.rand(5, 4)


@pytest.mark.parametrize("paths", [("1",), ("2",), ("1", "2", "4"), ("0",), ("2.inner",), ("1.inner", "4"), ("3",)])
def test_checkpointing_saves_what_was_said(paths):
    model, x = blocks()
    plain = saved_memory(model, x)
    checkpointed = saved_memory(with_checkpoints(model, paths), x)
    assert plain.checkpointing(*paths) == plain.nbytes() - checkpointed.nbytes()


def test_checkpointing_each_of_a_class():
    model, x = blocks()
    saved = saved_memory(model, x)
    assert saved.checkpointing("Block") == saved.checkpointing("1", "2", "4")
    best = saved.checkpoints().rows()[0]
    assert best["checkpoint"] == "each Block (3)"
    assert best["saves"] == best["drops"] - best["keeps"] == saved.checkpointing("Block")
    # What lies inside of a checkpoint is computed again with it, so its own inputs are not kept.
    assert saved.checkpointing("1", "1.inner") == saved.checkpointing("1")
    with pytest.raises(KeyError, match="no module 'nowhere' was called; the modules are '0', '1'"):
        saved.checkpointing("nowhere")


@pytest.mark.parametrize("kind", ["BasicBlock", "layers"])
def test_checkpointing_real_networks(kind):
    if kind == "BasicBlock":
        models = pytest.importorskip("torchvision.models", reason="ResNet-18 is torchvision's")
        model, x = models.resnet18(), torch.rand(2, 3, 32, 32)
        paths = [f"layer{n}.{k}" for n in range(1, 5) for k in range(2)]
    else:
        model, x = small("TransformerEncoder")
        paths = ["layers.0", "layers.1"]
    plain = saved_memory(model, x)
    expected_alive = alive_after_forward(model, x)
    with_checkpoints(model, paths)
    less = plain.nbytes() - saved_memory(model, x).nbytes()
    assert plain.checkpointing(*paths) == less > 0
    if kind == "BasicBlock":
        assert plain.checkpointing(kind) == less
        # And so much less is really alive: all but the random numbers' state, which each checkpoint keeps.
        state = torch.get_rng_state().untyped_storage().nbytes()
        assert expected_alive - alive_after_forward(model, x) in (less, less - len(paths) * state)


def test_a_storage_counts_once_where_it_was_kept_first():
    w = leaf(4)
    saved = saved_memory(lambda: (lambda y: y.exp().sin() * y)(w * 2))
    rows = {row["node"]: (row["values"], row["activations"], row["shared"]) for row in saved.by_node().rows()}
    assert saved.nbytes() == sum(row["activations"] for row in saved.rows())
    assert rows == {"ExpBackward0": (1, 16, 0), "SinBackward0": (1, 0, 16), "MulBackward0": (2, 32, 0)}


def test_a_view_keeps_its_whole_base():
    w = leaf(1)
    saved = saved_memory(lambda: torch.ones(1000)[:1] * w)
    (value,) = (value for value in saved.values if value.kind == "activation")
    assert (value.shape, value.nbytes) == ((1,), 4000)


def test_what_an_autograd_function_keeps():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(x, square)
            return square * x

        @staticmethod
        def backward(ctx, grad):
            x, square = ctx.saved_tensors
            return 3 * square * grad

    w = leaf(5)
    saved = saved_memory(Cube.apply, w)
    assert [(v.node, v.name, v.kind) for v in saved.values] == [
        ("CubeBackward", "tensors[0]", "input"),
        ("CubeBackward", "tensors[1]", "activation"),
    ]


def test_places_are_lines_of_the_program():
    w = leaf(3)

    def program():
        y = w.exp()
        return y.sin()

    first = program.__code__.co_firstlineno
    saved = saved_memory(program)
    assert [value.place.rpartition(":")[2] for value in saved.values] == [str(first + 1), str(first + 2)]
    assert {value.place.rpartition(":")[0] for value in saved.values} == {"tests/xray/test_saved_memory.py"}
    assert [row["activations"] for row in saved.by_line().rows()] == [12, 0]


def test_modules_to_each_depth():
    model, x = blocks()
    saved = saved_memory(model, x)
    whole = {row["module"]: row["activations"] for row in saved.by_module().rows()}
    outer = {row["module"]: row["activations"] for row in saved.by_module(1).rows()}
    assert outer["1"] == sum(n for path, n in whole.items() if path.split(".")[0] == "1")
    assert sum(outer.values()) == saved.nbytes()
    with pytest.raises(ValueError, match="depth is -1"):
        saved.by_module(-1)


def test_the_curve_rises_and_falls():
    w = leaf(4)
    saved = saved_memory(lambda: w.exp().sin().cos())
    assert saved.curve == (
        ("forward", 16),
        ("forward", 32),
        ("backward", 16),
        ("backward", 0),
    )
    assert (saved.peak(), saved.peak_at.split(",")[0]) == (32, "forward")
    assert saved_memory(lambda: w.exp().sin().cos(), backward=False).curve == (("forward", 16), ("forward", 32))


def test_a_long_curve_is_thinned_and_keeps_its_peak_and_its_end():
    w = leaf(4)

    def program():
        y = w
        for _ in range(1500):
            y = y.exp()
        return y

    saved = saved_memory(program)
    assert len(saved.curve) == 1501
    assert saved.peak() == saved.nbytes() == 1500 * 16
    assert saved.curve[-1] == ("backward", 0)


def test_what_is_dropped_before_the_end_counts_for_the_peak_alone():
    w = leaf(4)

    def program():
        w.exp().sin().cos().tanh()
        return w.exp()

    saved = saved_memory(program)
    assert saved.nbytes() == 16
    assert saved.peak() == 48


def test_a_reentrant_checkpoint_peaks_in_backward():
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 4))

    def program(x):
        return checkpoint(model, x * 1, use_reentrant=True)

    saved = saved_memory(program, leaf(8, 4))
    assert saved.nbytes() == 8 * 4 * 4
    assert saved.peak() > saved.nbytes()
    assert saved.peak_at.startswith("backward, ")


def test_values_that_other_hooks_pack_are_said():
    w = leaf(4)

    def program():
        y = w.exp()
        with save_on_cpu():
            z = y.sin()
        return z.cos()

    saved = saved_memory(program)
    assert kept(saved) == [("ExpBackward0", "result"), ("CosBackward0", "self")]
    assert saved.notes == (
        "1 value more that hooks of the program pack (save_on_cpu, checkpoint, ...) are not in the bytes.",
    )


def test_without_a_graph_it_says_so():
    with torch.no_grad():
        saved = saved_memory(nn.Linear(2, 2), torch.rand(1, 2))
    assert saved.nbytes("") == 0
    assert saved.notes == ("Nothing that came out requires a gradient, so there is no graph to keep anything.",)
    with pytest.raises(ValueError, match="backward=True, but nothing that came out requires a gradient"):
        saved_memory(torch.sin, torch.rand(2), backward=True)
    with pytest.raises(TypeError, match="saved_memory: int cannot be called"):
        saved_memory(3)


def test_a_step_of_an_optimizer_is_said_and_transforms_allow_no_hooks():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        model(x).sum().backward()
        optimizer.step()

    assert saved_memory(step, torch.rand(1, 2)).notes[0] == (
        "The runs wrote to parameter weight and 1 more, which is not put back."
    )
    with pytest.raises(RuntimeError, match="saved tensor hooks"):
        saved_memory(torch.func.grad(lambda t: t.sin().sum()), torch.rand(3))
    assert not _get_current_dispatch_mode_stack()


def test_a_write_to_what_was_saved_is_caught_as_ever():
    w = leaf(3)

    def program():
        y = w.exp()
        z = y.sin()
        y.add_(1)
        return z

    with pytest.raises(RuntimeError, match="modified by an inplace operation: a float32 tensor of shape"):
        saved_memory(program)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program().sum().backward()


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_the_same_and_nothing_is_left_behind(name):
    model, x = small(name)
    gradients = []
    for look in (False, True):
        seen = []

        def loss(out, seen=seen):
            out = out[0] if isinstance(out, tuple) else out
            out.register_hook(lambda grad: seen.append(grad.clone()))
            return out.square().sum()

        torch.manual_seed(2)
        handles = [p.register_hook(lambda grad, seen=seen: seen.append(grad.clone())) for p in model.parameters()]
        before = {key: value.clone() for key, value in model.state_dict().items()}
        if look:
            saved_memory(model, x, loss=loss)
            assert all(p.grad is None for p in model.parameters())
            assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
        else:
            loss(model(x)).backward()
            model.load_state_dict(before)
            model.zero_grad()
        for handle in handles:
            handle.remove()
        gradients.append(seen)
    assert len(gradients[0]) == len(gradients[1]) > 0
    assert all(map(torch.equal, *gradients))


def test_after_an_exception_nothing_is_on():
    hooks = nn.modules.module
    model = nn.Linear(2, 2)
    model.weight.grad = grad = torch.ones(2, 2)
    x = torch.rand(1)
    before = len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), torch.get_rng_state()

    def program(x):
        model(torch.rand(1, 2)).exp()
        raise ArithmeticError("in the middle")

    with pytest.raises(ArithmeticError):
        saved_memory(program, x)
    after = len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), torch.get_rng_state()
    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])
    assert not _get_current_dispatch_mode_stack()
    assert model.weight.grad is grad
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        leaf(2).exp()
    assert len(packed) == 1
    assert type(leaf(2).exp().grad_fn._raw_saved_result.data) is torch.Tensor


def test_no_activation_outlives_the_call():
    alive = []

    def program(w):
        y = w.exp()
        alive.append(weakref.ref(y.untyped_storage()))
        alive.append(StorageWeakRef(y.untyped_storage()))
        return y.sin()

    for backward in (None, False):
        saved = saved_memory(program, leaf(1000), backward=backward)
        assert saved.nbytes() == 4000
        assert alive[-1].expired()


def test_fake_tensors_and_compiled_functions():
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = saved_memory(nn.Sequential(nn.Linear(4, 8), nn.Tanh()), torch.rand(2, 4))
    with FakeTensorMode():
        fake = saved_memory(nn.Sequential(nn.Linear(4, 8), nn.Tanh()), torch.rand(2, 4))
    assert (fake.nbytes(), kept(fake), fake.curve) == (real.nbytes(), kept(real), real.curve)
    compiled = saved_memory(torch.compile(nn.Sequential(nn.Linear(4, 8), nn.Tanh())), torch.rand(2, 4))
    assert kept(compiled) == kept(real)
    assert compiled.notes == ("It is compiled; shown is what its eager run keeps.",)


def test_the_estimate_from_records_alone():
    def value(storage, calls, kind="activation"):
        return KeptValue("Node", "self", "a", "f.py:1", (1,), "float32", storage, 10 * storage, kind, calls)

    saved = SavedMemory(
        "net",
        (value(1, (0, 1)), value(2, (0, 1)), value(2, (0,)), value(3, (0, 2)), value(4, (0, 1), "parameter")),
        (
            KeptCall(0, "", "Net", (), ()),
            KeptCall(1, "a", "A", (0,), ((5, 7),)),
            KeptCall(2, "b", "B", (0,), ((2, 20),)),
            KeptCall(3, "b.c", "C", (0, 2), ((9, 1000),)),
        ),
    )
    assert saved.nbytes() == 60
    # Storage 1 goes, 2 is kept outside too, the input of 7 bytes comes.
    assert saved.checkpointing("a") == 10 - 7
    assert saved.checkpointing("b") == 30
    assert saved.checkpointing("b", "b.c") == 30
    assert saved.checkpointing("a", "b") == 10 + 30 - 7
    assert saved.checkpoints().rows() == [
        {"checkpoint": "b", "drops": 30, "keeps": 0, "saves": 30},
        {"checkpoint": "a", "drops": 10, "keeps": 7, "saves": 3},
    ]


def test_the_mini_framework_keeps_the_same_values():
    from glassbox import mini

    expected = saved_memory(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.rand(2, 4))
    saved = saved_memory(mini.nn.Sequential(mini.nn.Linear(4, 3), mini.nn.ReLU()), mini.ones(2, 4))
    assert kept(saved) == kept(expected) == [("AddmmBackward0", "mat1"), ("ReluBackward0", "result")]
    assert saved.nbytes() == expected.nbytes() == 24
    a = mini.ones(3, requires_grad=True)

    def program():
        a.exp().sin()
        return a.exp()

    assert kept(saved_memory(program)) == [("ExpBackward0", "result")]
