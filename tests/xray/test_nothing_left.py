"""Every instrument leaves PyTorch as it found it, also where the program raises."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from glassbox import xray


def logged(fn: Any, *args: Any) -> None:
    with xray.op_log(places=True):
        fn(*args)


INSTRUMENTS: dict[str, Callable[..., Any]] = {
    "op_log": logged,
    "profile": lambda fn, x: xray.profile(fn, x, repeats=1),
    "observe": lambda fn, x: xray.observe(fn, fn, x, inside=True),
    "hidden_copies": xray.hidden_copies,
    "keys": xray.keys,
    "why": xray.why,
    "onion": xray.onion,
    "call_path": xray.call_path,
    "forward_graph": xray.forward_graph,
    "saved_memory": xray.saved_memory,
    "timeline": xray.timeline,
}


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError((x + 1).sum().item())


def state() -> dict[str, Any]:
    """What an instrument could leave behind."""
    registries = {
        name: list(value)
        for name in dir(hooks)
        if name.startswith("_global") and isinstance(value := getattr(hooks, name), dict)
    }
    tables = [torch._C._dispatch_dump_table(f"aten::{op}") for op in ("add.Tensor", "addmm", "relu", "copy_", "detach")]
    included, excluded = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    return {
        **registries,
        "tables": tables,
        "local": (included.raw_repr(), excluded.raw_repr()),
        "modes": list(_get_current_dispatch_mode_stack()),
        "grad": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "random": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("fails", [False, True], ids=["a model", "a model that raises"])
@pytest.mark.parametrize("name", INSTRUMENTS)
def test_nothing_is_left(name: str, fails: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), *([Fails()] if fails else []))
    x = torch.ones(2, 3)
    before = state()
    if fails:
        with pytest.raises(ZeroDivisionError):
            INSTRUMENTS[name](model, x)
    else:
        INSTRUMENTS[name](model, x)
    after = state()
    assert {key for key in before if before[key] != after[key]} == set()
    assert len([key for key in before if key.startswith("_global")]) > 5
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
