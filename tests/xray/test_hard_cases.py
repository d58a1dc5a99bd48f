"""Facts that a breaker found: threads, freed storages, compiled models, missing streams, failing entries."""

import io
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from glassbox import xray
from glassbox.xray import TorchInternalsError


def test_copies_in_another_thread_are_safe_while_hooks_come_and_go() -> None:
    """In a process of its own, since a fault here ends it."""
    program = """
import threading, torch
from glassbox import xray
torch.set_num_threads(1)
a, b, stop = torch.randn(300, 300), torch.randn(3, 4), threading.Event()
def copy():
    while not stop.is_set():
        a.t().contiguous()
thread = threading.Thread(target=copy)
thread.start()
try:
    found = {xray.hidden_copies(lambda: b.t().reshape(-1)).times for _ in range(150)}
finally:
    stop.set()
    thread.join()
print(found)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "{1}")


def test_copies_are_watched_by_one_at_a_time() -> None:
    inside, go_on, found = threading.Event(), threading.Event(), []

    def program() -> torch.Tensor:
        inside.set()
        go_on.wait(30)
        return torch.ones(2, 3).t().reshape(-1)

    thread = threading.Thread(target=lambda: found.append(xray.hidden_copies(program)))
    thread.start()
    assert inside.wait(30)
    with pytest.raises(RuntimeError, match="copies are watched already"):
        xray.hidden_copies(lambda: torch.ones(2, 3).t().reshape(-1))
    go_on.set()
    thread.join()
    assert found[0].times == 1 and torch.ones(2, 3).t().reshape(-1).shape == (6,)


def test_a_storage_that_was_freed_is_not_read() -> None:
    tensor = torch.ones(1024)
    tensor.untyped_storage().resize_(0)
    model = nn.Identity()
    model.register_buffer("empty", tensor)
    assert xray.profile(model, tensor, repeats=0).parts == ()
    assert xray.saved_memory(model, tensor, backward=False).nbytes() == 0
    (call,) = xray.observe(model, model, tensor)
    assert call.outputs[0].note == "no data"


def test_a_compiled_module_is_profiled_as_the_module_and_its_buffers_are_put_back() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).train()
    x = torch.randn(4, 2)
    plain = xray.profile(model, x, repeats=0)
    before = {name: value.clone() for name, value in model.named_buffers()}
    compiled = xray.profile(torch.compile(model, backend="eager"), x, repeats=0)
    assert compiled.counts() == plain.counts() and compiled.counts("backward")
    assert all(torch.equal(before[name], value) for name, value in model.named_buffers())


def test_a_log_that_cannot_be_entered_leaves_no_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_swap_tensor_impl")
    with pytest.raises(TorchInternalsError, match="_swap_tensor_impl"), xray.op_log():
        pass
    assert _get_current_dispatch_mode_stack() == []


@pytest.mark.parametrize("closed", [False, True])
def test_without_a_stream_for_errors_it_is_quiet(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = None
    if closed:
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert xray.profile(nn.Linear(2, 2), torch.ones(1, 2), repeats=1).counts()["aten.addmm.default"] == 1
    assert xray.overhead("add", sizes=[1], seconds=0.2).whole is not None
