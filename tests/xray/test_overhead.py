"""Facts about the cost ledger: its statistics, what each layer is, and that nothing is left behind.

Real time is never asserted: clocks are made up, or only the shape of the record is looked at.
"""

import gc
import math
import random
import statistics
from collections import Counter
from fractions import Fraction

import pytest
import torch
from torch.utils import benchmark

from glassbox.records.overhead import CostCurve, CostLayer, Overhead, Spread, crossing_of, short
from glassbox.xray import TorchInternalsError, overhead, use_count
from glassbox.xray import _measuring as measuring
from glassbox.xray._timed_calls import timed_call
from glassbox.xray.ledger import _growing, build_plan, ledger_of


class FakeClock:
    """Nanoseconds that pass only when a call says so."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def costing(self, ns, made=None):
        """A function that takes so long; `made` counts its calls."""

        def call(*args):
            self.now += ns(self.now) if callable(ns) else ns
            if made is not None:
                made.append(self.now)

        return call


def near(spread, us):
    return all(math.isclose(each, us, abs_tol=1e-9) for each in (spread.median, spread.low, spread.high))


# Statistics


@pytest.mark.parametrize("n", [6, 7, 8, 11, 20, 37, 60, 101, 400])
def test_the_interval_has_the_outermost_ranks_that_do_not_lose_its_95_percent(n):
    spread = Spread.of([float(nr) for nr in range(1, n + 1)])
    rank = int(spread.low)
    assert spread.high == n + 1 - rank

    def coverage(r):
        outside = sum(math.comb(n, k) for k in range(r))
        return 1 - Fraction(2 * outside, 2**n)

    assert coverage(rank) >= Fraction(95, 100) > coverage(rank + 1)


def test_median_and_quartiles_are_those_of_statistics_and_of_torchs_own_benchmark():
    rounds = [2.0, 9.0, 4.0, 4.5, 3.0, 8.0, 30.0, 1.0, 5.0]
    spread = Spread.of(rounds)
    q1, median, q3 = statistics.quantiles(rounds, n=4, method="inclusive")
    assert (spread.q1, spread.median, spread.q3) == (q1, median, q3)
    peer = benchmark.Measurement(1, rounds, benchmark.TaskSpec("x", ""))
    assert (spread.median, spread.q3 - spread.q1) == pytest.approx((peer.median, peer.iqr))
    assert str(spread) == "4.50 us (2.00 to 9.00)"


def test_one_wild_round_moves_nothing_far():
    calm = [1.0 + nr / 1000 for nr in range(21)]
    assert Spread.of([*calm[:-1], 1e6]).high < 1.03


def test_fewer_than_six_rounds_give_no_interval():
    with pytest.raises(ValueError, match="5 rounds are too few for a 95 % interval; measure at least 6"):
        Spread.of([1.0] * 5)


def test_a_layer_whose_interval_holds_zero_is_said_not_to_be_distinguishable():
    noise = [-0.02, 0.01, 0.03, -0.01, 0.0, 0.02, -0.03, 0.01]
    layer = CostLayer("hop", "a minus b", Spread.of(noise))
    assert layer.verdict() == "not distinguishable from 0 (-0.030 to 0.030 us)"
    assert CostLayer("hop", "", Spread.of([each + 1 for each in noise])).verdict() == "1.00 us (0.97 to 1.03)"
    below = Spread.of([each - 1 for each in noise])
    assert below.distinguishable and below.median < 0


def test_the_crossing_is_where_a_call_takes_twice_as_long_as_the_smallest():
    sizes = [1, 10, 100, 1000]
    # T = 2 + n / 50 crosses at 100; between sizes, time follows a power of the size.
    assert crossing_of(sizes, [2.0, 2.2, 4.0, 22.0]) == pytest.approx(100)
    assert crossing_of(sizes, [2.0, 2.0, 2.0, 8.0]) == pytest.approx(10 ** (2 + 0.5))
    assert crossing_of(sizes, [2.0, 2.0, 2.0, 3.9]) == math.inf
    assert crossing_of([1], [2.0]) == math.inf


@pytest.mark.parametrize(
    ("us", "text"),
    [(0.0213, "0.021"), (0.27, "0.27"), (1.378, "1.38"), (12.04, "12.0"), (118.7, "119"), (12345.0, "12,345")],
)
def test_times_are_written_with_the_digits_that_mean_something(us, text):
    assert short(us) == text


# Measuring


def test_the_time_of_a_call_is_found_whatever_it_is():
    clock = FakeClock()
    costs = {"short": 40, "middle": 1_300, "long": 7_000_000}
    samples = {name: measuring.calling(clock.costing(ns), ()) for name, ns in costs.items()}
    times = measuring.measure(samples, seconds=1, rounds=7, clock=clock)
    assert {name: set(each) for name, each in times.items()} == {
        "short": {0.04}, "middle": {1.3}, "long": {7000.0}
    }  # fmt: skip


def test_every_round_times_every_call_once_in_an_order_of_its_own():
    order = []

    def sample(name):
        def run(calls, clock):
            order.append(name)
            return calls * 1000

        return run

    names = "abcdef"
    samples = {name: sample(name) for name in names}
    before = random.getstate()
    measuring.measure(samples, seconds=1, rounds=20, clock=lambda: 0)
    assert random.getstate() == before
    rounds = [tuple(order[-6 * nr : len(order) - 6 * nr + 6]) for nr in range(1, 21)]
    assert all(sorted(each) == list(names) for each in rounds)
    assert len(set(rounds)) > 15


def test_a_machine_that_gets_slower_makes_no_difference_between_equal_calls():
    clock = FakeClock()

    def drifting(now):
        return 1000 + now // 20_000

    a, b = (measuring.calling(clock.costing(drifting), ()) for _ in range(2))
    times = measuring.measure({"a": a, "b": b}, seconds=1, rounds=101, clock=clock)
    assert times["a"][-1] > 2 * times["a"][0]
    difference = Spread.of([x - y for x, y in zip(times["a"], times["b"], strict=True)])
    assert not difference.distinguishable


def test_without_a_number_of_rounds_time_decides_and_eleven_are_the_least():
    clock = FakeClock()
    quick = measuring.measure({"a": measuring.calling(clock.costing(1000), ())}, seconds=0.01, clock=clock)
    assert 60 < len(quick["a"]) < 68
    slow = measuring.measure({"a": measuring.calling(clock.costing(10**9), ())}, seconds=0.01, clock=clock)
    assert len(slow["a"]) == 11


def test_an_interruption_while_finding_out_does_not_leave_too_few_calls_in_a_sample():
    clock = FakeClock()
    made = []

    def once_slow(now):
        return 10**6 if len(made) == 3 else 1000

    measuring.measure({"a": measuring.calling(clock.costing(once_slow, made), ())}, 1, rounds=6, clock=clock)
    assert len(made) > 6 * 140


def test_entering_and_leaving_what_a_call_is_made_in_is_not_timed():
    clock = FakeClock()

    class Slow:
        def __enter__(self):
            clock.now += 10**9

        def __exit__(self, *error):
            clock.now += 10**9

    assert measuring.calling(clock.costing(500), (), within=Slow)(10, clock) == 5000


def test_a_device_is_waited_for_before_each_reading_of_the_clock():
    said = []
    sample = measuring.calling(lambda: said.append("call"), (), settle=lambda: said.append("wait"))
    sample(2, lambda: said.append("clock") or 0)
    assert said[-6:] == ["wait", "clock", "call", "call", "wait", "clock"]


def test_progress_is_told_and_taken_back_where_somebody_looks(monkeypatch, capsys):
    with measuring.progress("x", True) as report:
        report(0.5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with measuring.progress("overhead of add", True) as report:
        monkeypatch.setattr(measuring.time, "monotonic", lambda: 1e9)
        report(0.5)
    assert capsys.readouterr().err == "\roverhead of add: 50%\r" + " " * 20 + "\r"


# Layers


def plan_of(fn, make=None, sizes=(1, 16)):
    return build_plan(timed_call(fn, make, "cpu"), sizes, "cpu", None)


MODEL = torch.nn.Linear(4, 4)
CALLS = {
    "add": "add",
    "mul": torch.ops.aten.mul.Tensor,
    "mm": "mm",
    "relu": torch.relu,
    "sum": "sum",
    "layer_norm": "layer_norm",
    "cat": "cat",
    "linear": "linear",
    "gelu": torch.nn.functional.gelu,
    "a function": lambda x, y: torch.relu(x) * y,
    "a model": lambda x: MODEL(x.reshape(1, 1).expand(1, 4)),
}


@pytest.mark.parametrize("fn", CALLS.values(), ids=CALLS.keys())
def test_the_layers_add_up_to_the_whole_call_by_definition(fn):
    plan = plan_of(fn, sizes=(1,))
    total = Counter()
    for layer in plan.layers:
        for name, sign in layer.terms:
            total[name] += sign
    assert {name: count for name, count in total.items() if count} == {plan.whole: 1}
    assert {name for layer in [*plan.layers, *plan.hops] for name, _ in layer.terms} <= plan.samples.keys()


def test_what_the_layers_of_add_are():
    assert [(layer.name, layer.stations) for layer in plan_of("add").layers] == [
        ("Python call", "1"),
        ("argument parsing", "2"),
        ("dispatcher", "3, 4"),
        ("Autograd kernel", "4, 6"),
        ("node and saved values", "5"),
        ("kernel set-up", "7"),
        ("result", "7"),
    ]


def test_an_operator_without_in_place_and_out_keeps_set_up_and_result_together():
    assert [layer.name for layer in plan_of("sum").layers][-1] == "kernel set-up and result"
    assert "with out=" in plan_of("mm").layers[-1].definition
    assert "in place" in plan_of("relu").layers[-1].definition


def test_of_a_function_only_what_lies_around_all_its_operators_is_told_apart():
    assert [layer.name for layer in plan_of(CALLS["a function"]).layers] == [
        "Autograd kernel", "node and saved values", "below autograd"
    ]  # fmt: skip


def test_parameters_that_ask_for_gradients_themselves_count_as_recording():
    plan = plan_of(MODEL, lambda n: (torch.ones(n, 4, dtype=torch.float32),))
    terms = {layer.name: layer.terms for layer in plan.layers}
    assert terms["Autograd kernel"] == (("no_grad 1", 1), ("below", -1)) == plan.hops[0].terms
    assert terms["node and saved values"] == (("requires_grad 1", 1), ("no_grad 1", -1))
    table = torch.nn.Embedding(3, 2)
    assert list(plan_of(lambda i: {"out": table(i)}, lambda n: (torch.zeros(n, dtype=torch.int64),)).curves) == [
        "requires_grad", "plain", "no_grad", "inference_mode"
    ]  # fmt: skip


def test_below_autograd_views_that_a_kernel_makes_are_not_tracked():
    # sum's kernel views its own result; with ADInplaceOrView left on, that costs more than the Autograd kernel does.
    from glassbox.xray._torch_internals.dispatch import key_names, local_sets
    from glassbox.xray._torch_internals.tracing import below_autograd

    with below_autograd():
        _, excluded = local_sets()
        assert "ADInplaceOrView" in key_names(excluded)
        assert not (torch.ones(2, requires_grad=True) * 2).requires_grad


def test_nothing_in_a_plan_holds_on_to_the_arguments_but_the_calls():
    # A tensor with a live view is passed faster than one without, by about 0.1 us.
    a, b = torch.rand(3), torch.rand(3)
    before = use_count(a), use_count(b)
    plan = plan_of(torch.add, lambda n: (a, b), sizes=(3,))
    assert {"vmap", "vmap twice", "requires_grad 3"} <= plan.samples.keys()
    assert (use_count(a), use_count(b)) == before


COSTS = {
    "nothing": 0.02, "parsed": 0.15, "dispatched": 0.18, "pair": 0.30, "in place, below": 0.90, "below": 1.20,
    "plain 1": 1.35, "requires_grad 1": 2.45, "no_grad 1": 1.40, "inference_mode 1": 1.20,
    "plain 1000": 3.35, "requires_grad 1000": 4.45, "no_grad 1000": 3.40, "inference_mode 1000": 3.20,
    "a + b": 1.36, "a.add(b)": 1.30, "torch.ops.aten.add.Tensor": 2.50, "out=": 1.10, "in place": 0.95,
    "autocast": 1.35, "TorchFunctionMode": 2.80, "TorchDispatchMode": 6.80, "op_log": 25.0,
    "mm": 1.20, "matmul": 1.40, "mm bfloat16": 1.50, "mm autocast": 1.65, "vmap": 3.00, "vmap twice": 4.00,
}  # fmt: skip


def made_up(noise=lambda nr: 0.0, rounds=9):
    plan = plan_of("add", sizes=(1, 1000))
    assert plan.samples.keys() <= COSTS.keys()
    return ledger_of(plan, {n: [COSTS[n] + noise(nr) for nr in range(rounds)] for n in plan.samples}, "made up")


def test_times_become_layers_alternatives_and_hops():
    ledger = made_up()
    assert {layer.name: layer.time.median for layer in ledger.layers} == pytest.approx({
        "Python call": 0.02, "argument parsing": 0.25, "dispatcher": 0.03, "Autograd kernel": 0.15,
        "node and saved values": 1.10, "kernel set-up": 0.60, "result": 0.30,
    })  # fmt: skip
    assert near(ledger.whole, 2.45)
    extra = {each.name: each.extra.median for each in ledger.alternatives}
    assert extra["TorchDispatchMode"] == pytest.approx(5.45) and extra["inference_mode"] == pytest.approx(-0.15)
    assert {hop.name: hop.time.median for hop in ledger.hops} == pytest.approx({
        "Autograd kernel": 0.15, "composite": 0.20, "Autocast kernel": 0.15, "vmap": 1.65, "vmap, second level": 1.0,
    })  # fmt: skip
    # T(1) = 1.35, T(1000) = 3.35: twice 1.35 lies at log(2) / log(3.35 / 1.35) of the way.
    assert near(ledger.curve("plain").crossing, 1000 ** (math.log(2) / math.log(3.35 / 1.35)))
    assert ledger.curve("requires_grad").crossing is None
    assert ledger.layer("dispatcher").definition.startswith("torch.is_distributed(a), whose kernel only says False")
    with pytest.raises(KeyError, match="its curves are requires_grad, plain, no_grad, inference_mode"):
        ledger.curve("grad")


def test_what_slows_a_whole_round_down_is_in_no_difference():
    ledger = made_up(noise=lambda nr: 5.0 if nr % 2 else 0.0)
    assert ledger.whole.q3 > 7
    assert ledger.layer("node and saved values").time.high == pytest.approx(1.10)


def test_the_ledger_as_text():
    ledger = made_up()
    assert ledger.caption() == (
        "add.Tensor over 1 element: 2.45 us (2.45 to 2.45) in all; "
        "with requires_grad the overhead is the larger part up to 1,000 elements; "
        "with plain the kernel outgrows the overhead at 190 elements (190 to 190); "
        "made up; medians of 9 rounds with 95 % intervals"
    )
    lines = [(row["part"], row["what"], row["us"], row["says"]) for row in ledger.rows()]
    assert lines[2:3] == [("layer", "dispatcher", 0.03, "0.030 us (0.030 to 0.030)")]
    assert lines[7:10] == [
        ("layer", "whole call", 2.45, "2.45 us (2.45 to 2.45)"),
        ("over 1", "requires_grad", 2.45, "2.45 us (2.45 to 2.45)"),
        ("over 1", "plain", 1.35, "1.35 us (1.35 to 1.35)"),
    ]
    assert ("instead", "autocast", 1.35, "1.35 us (1.35 to 1.35), not distinguishable from the plain call") in lines
    assert ("instead", "inference_mode", 1.2, "1.20 us (1.20 to 1.20), -0.15 us") in lines
    assert lines[-1] == ("hop", "vmap, second level", 1.0, "1.00 us (1.00 to 1.00)")
    assert all(row["definition"] for row in ledger.rows())
    html = ledger._repr_html_()
    assert "<svg" in html and "operator.is_(a, b)" in html
    assert ledger.to_markdown().startswith("| part | what | us |")


# What may be timed


def test_what_names_a_call():
    def name(fn, make=None):
        return timed_call(fn, make, "cpu").name

    # add.default, which torch.ops.aten has too, adds two numbers.
    assert name("add") == name("aten::add") == name("aten.add.Tensor") == name(torch.add) == "add.Tensor"
    assert timed_call("add", None, "cpu").function is torch.add
    assert name(torch.ops.aten.relu.default) == name(torch.relu) == "relu"
    assert name(lambda a: a) == "the function"
    assert name(torch.nn.Linear(2, 2), lambda n: (torch.rand(n, 2),)) == "Linear"
    along = timed_call(torch.sum, lambda n: (torch.rand(n), 0), "cpu")
    assert along.name == "sum" and [type(each) for each in along.make(2)] == [torch.Tensor, int]
    assert name(torch.softmax, lambda n: (torch.rand(n), 0)) == "softmax"


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (3, TypeError, 'int cannot be timed; give an operator such as "add" or a function of tensors'),
        ("index_select", ValueError, r"aten\.index_select\.default needs dim too; give its arguments for n elements"),
        ("nowhere", ValueError, "there is no operator 'nowhere'"),
        (lambda *args: None, ValueError, "what to call <lambda> with is not known; give its arguments"),
    ],
)
def test_what_cannot_be_timed_is_said(fn, error, message):
    with pytest.raises(error, match=message):
        overhead(fn)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": ()}, "sizes are whole numbers of elements from 1 on"),
        ({"sizes": (0, 4)}, "sizes are whole numbers of elements from 1 on"),
        ({"rounds": 5}, "5 rounds give no 95 % interval; use at least 6"),
        ({"seconds": 0}, "seconds is how long to measure, more than 0"),
        ({"threads": 0}, "threads is at least 1"),
    ],
)
def test_what_cannot_be_asked_for_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        overhead(**options)


def test_sizes_grow_until_the_kernel_is_most_of_the_call():
    clock = FakeClock()
    size = []

    def call(n):
        clock.now += 1000 + n * 10
        size.append(n)

    fake = timed_call(call, lambda n: (n,), "cpu")
    assert _growing(fake, clock, None) == [4**k for k in range(7)]
    flat = timed_call(clock.costing(1000), lambda n: (), "cpu")
    assert _growing(flat, clock, None) == [4**k for k in range(9)]


def test_numbers_that_can_have_no_gradient_have_no_grad_curves():
    plan = plan_of(lambda a: a + 1, lambda n: (torch.arange(n),))
    assert list(plan.curves) == ["plain", "inference_mode"] and plan.whole == "plain 1"


def test_what_does_not_work_is_left_out_with_its_reason():
    plan = plan_of(lambda a: a.sum().item())
    assert any(each.startswith("vmap (") and "vmap" in each[6:] for each in plan.left_out)
    inplace = plan_of(lambda a: a.add_(1))
    assert any(each.startswith("requires_grad over 1 (a leaf Variable") for each in inplace.left_out)
    assert "requires_grad" not in inplace.curves and inplace.whole == "plain 1"


# On this machine


def test_a_ledger_of_the_installed_torch():
    ledger = overhead("add", sizes=(64, 1), rounds=6)
    assert isinstance(ledger, Overhead) and (ledger.op, ledger.base_size, ledger.rounds) == ("add.Tensor", 1, 6)
    assert [curve.name for curve in ledger.curves] == ["requires_grad", "plain", "no_grad", "inference_mode"]
    assert all([size for size, _ in curve.points] == [1, 64] for curve in ledger.curves)
    assert all(isinstance(curve, CostCurve) and time.median > 0 for curve in ledger.curves for _, time in curve.points)
    names = [each.name for each in ledger.alternatives]
    assert names[:5] == ["a + b", "a.add(b)", "torch.ops.aten.add.Tensor", "out=", "in place"]
    assert {"no_grad", "inference_mode", "autocast", "TorchFunctionMode", "TorchDispatchMode"} <= set(names)
    assert ledger.machine.startswith(f"torch {torch.__version__.partition('+')[0]}") and "1 thread" in ledger.machine


def state():
    return (
        torch.get_rng_state().tolist(), random.getstate(), torch.get_num_threads(), gc.isenabled(),
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.overrides._get_current_function_mode_stack(), torch._C._len_torch_dispatch_stack(),
    )  # fmt: skip


@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_everything_is_afterwards_as_it_was(around):
    a, b = torch.rand(3), torch.rand(3, requires_grad=True)
    copies = a.clone(), b.detach().clone()
    seen = set()

    def call(x, y):
        seen.add((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), gc.isenabled(), torch.get_num_threads()))
        return torch.nn.functional.dropout(x) * y

    gc.enable()
    threads = 1 if torch.get_num_threads() == 2 else 2
    with around():
        before = state()
        ledger = overhead(call, make=lambda n: (a, b), sizes=(3,), rounds=6, threads=threads)
        assert state() == before
    assert gc.isenabled()
    # Inside no_grad and inference_mode too, gradients are on where the ledger says so.
    assert seen == {(grad, inference, False, threads) for grad, inference in [(1, 0), (0, 0), (0, 1)]}
    assert torch.equal(a, copies[0]) and torch.equal(b.detach(), copies[1])
    assert a.grad is None and b.grad is None and b.requires_grad and b._version == 0
    assert f"{threads} thread" in ledger.machine and ledger.curves[0].name == "requires_grad"


@pytest.mark.parametrize("calls", [0, 3, 500])
def test_everything_is_as_it_was_after_an_error_in_the_middle(calls):
    left = [calls]

    def failing(x):
        left[0] -= 1
        if left[0] < 0:
            raise ZeroDivisionError("in the middle")
        return x * torch.rand(1)

    gc.enable()
    before = state()
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        overhead(failing, make=lambda n: (torch.rand(n),), sizes=(1,), rounds=6)
    assert state() == before


def test_a_torch_without_the_guard_is_one_clear_sentence(monkeypatch):
    before = state()
    monkeypatch.delattr(torch._C, "_AutoDispatchBelowADInplaceOrView")
    with pytest.raises(TorchInternalsError, match=r"has no torch\._C\._AutoDispatchBelowADInplaceOrView"):
        overhead("add", sizes=(1,), rounds=6)
    assert state() == before
