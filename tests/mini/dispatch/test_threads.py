"""Facts about threads: each has its own modes, key sets and transforms, and one does not disturb the other."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from glassbox import mini
from glassbox.mini.aten.core.dispatcher import dispatcher
from glassbox.mini.c10.local_dispatch_key_set import local_keys
from glassbox.mini.modes import current_modes

from .programs import logging_mode


def together(*works: Callable[[Callable[[], None]], Any], rounds: int = 30) -> list[Any]:
    """The results of every work(step) in a thread of its own; step() waits for the others, so they take turns."""
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)
    problems: list[BaseException] = []

    def run(nr: int, work: Callable[[Callable[[], None]], Any]) -> None:
        try:
            for _ in range(rounds):
                results[nr] = work(lambda: barrier.wait(20))
        except BaseException as problem:
            problems.append(problem)
            barrier.abort()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results


def plain(step: Callable[[], None]) -> Any:
    x = mini.ones(2, 2, requires_grad=True)
    step()
    y = x @ x
    step()
    assert y.dtype is mini.float32 and y.grad_fn is not None
    y.sum().backward()
    step()
    return x.grad.tolist()


def without_grad(step: Callable[[], None]) -> Any:
    x = mini.ones(2, 2, requires_grad=True)
    with mini.no_grad():
        step()
        y = x @ x
        step()
        assert y.grad_fn is None and not mini.is_grad_enabled()
    step()
    return y.tolist()


def in_inference(step: Callable[[], None]) -> Any:
    with mini.inference_mode():
        step()
        y = mini.ones(2, 2) @ mini.ones(2, 2)
        step()
        assert y.is_inference() and not mini._C._dispatch_keys(y).has("AutogradCPU")
    step()
    return y.tolist()


def in_autocast(step: Callable[[], None]) -> Any:
    x = mini.ones(2, 2, requires_grad=True)
    with mini.autocast("cpu"):
        step()
        y = x @ x
        step()
        assert y.dtype is mini.bfloat16
    step()
    return y.float().tolist()


def in_a_mode(step: Callable[[], None]) -> Any:
    x = mini.ones(2, 2)
    log: list[str] = []
    with logging_mode(mini, log):
        step()
        x @ x
        step()
    step()
    assert log == ["f32[2, 2] = aten.mm.default(f32[2, 2], f32[2, 2])"]
    return log


def in_vmap(step: Callable[[], None]) -> Any:
    def function(x: Any) -> Any:
        step()
        y = x * 2
        step()
        return y.sum()

    result = mini.vmap(function)(mini.ones(3, 2))
    step()
    return result.tolist()


def in_functionalize(step: Callable[[], None]) -> Any:
    def function(x: Any) -> Any:
        step()
        y = x.clone()
        y.add_(1)
        step()
        return y

    result = mini.functionalize(function)(mini.ones(2))
    step()
    return result.tolist()


def recording(step: Callable[[], None]) -> Any:
    x = mini.ones(2)
    with mini.record() as seen:
        step()
        x + x
        step()
    step()
    assert seen.ops.names() == ["aten.add.Tensor"]
    return seen.ops.text()


WORKS = (plain, without_grad, in_inference, in_autocast, in_a_mode, in_vmap, in_functionalize, recording)


@pytest.mark.parametrize("one", WORKS, ids=lambda work: work.__name__)
def test_a_program_is_not_disturbed_by_any_other(one: Callable[..., Any]) -> None:
    alone = {work: work(lambda: None) for work in WORKS}
    for other in WORKS:
        assert together(one, other, rounds=5) == [alone[one], alone[other]]


def test_all_of_them_at_once() -> None:
    alone = [work(lambda: None) for work in WORKS]
    before = local_keys.get()
    assert together(*WORKS, rounds=20) == alone
    assert local_keys.get() == before and current_modes() == () and dispatcher.watchers == []


def test_a_new_thread_begins_with_nothing_on() -> None:
    found: list[Any] = []

    def look() -> None:
        x = mini.ones(2, 2, requires_grad=True)
        y = x @ x
        found.extend([y.dtype, y.grad_fn is not None, current_modes(), local_keys.get()])

    fresh = local_keys.get()
    with mini.no_grad(), mini.autocast("cpu"), logging_mode(mini, []):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [mini.float32, True, (), fresh]


def test_registering_while_others_call_never_runs_a_kernel_that_is_gone() -> None:
    stop = threading.Event()
    wrong: list[Any] = []

    with mini.library.Library("raced", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        f, x = mini.ops.raced.f.default, mini.ones(1)

        def call() -> None:
            while not stop.is_set():
                if f(x).item() not in (2.0, 3.0):
                    wrong.append(f(x).item())

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            with mini.library.Library("raced", "IMPL") as more:
                more.impl("f", lambda x: x + 2, "CPU")
                assert f(x).item() == 3.0
            assert f(x).item() == 2.0
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_no_thread_is_warned_by_numpy() -> None:
    code = (
        "import threading\n"
        "from glassbox import mini\n"
        "x = mini.tensor([0.0, -1.0, 1e38])\n"
        "def work():\n"
        "    results.append([(x / 0).tolist()[2], x.log().tolist()[0], (x * 1e10).tolist()[2], x.exp().tolist()[2]])\n"
        "results = []\n"
        "for run in (work, lambda: [t.start() or t.join() for t in [threading.Thread(target=work)]]):\n"
        "    run()\n"
        "inf = float('inf')\n"
        "assert results == [[inf, -inf, inf, inf]] * 2, results\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
