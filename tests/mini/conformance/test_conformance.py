"""Every entry of PyTorch's operator database that mini has, in every dtype: no check of any kind may fail."""

import pytest
import torch

from . import checks, database
from .database import DTYPES
from .exclusions import EXCLUSIONS
from .ledger import Ledger

# In the quick suite; --full takes every sample in every layout.
QUICK_SAMPLES = 300
ENTRIES = list(database.entries())


def _assert_nothing_failed(ledger: Ledger) -> None:
    told = [f"{kind}: {message}" for kind, messages in ledger.messages.items() for message in messages]
    assert not ledger.failed, f"{ledger.entry}: {dict(ledger.failed)}\n" + "\n".join(told)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_agrees_with_pytorch(name: str, dtype: torch.dtype, full: bool) -> None:
    _assert_nothing_failed(checks.check(database.entries()[name], dtype, None if full else QUICK_SAMPLES, full))


@pytest.mark.parametrize("name", [name for name in ENTRIES if database.error_samples(database.entries()[name].info)])
def test_what_pytorch_refuses_is_refused(name: str) -> None:
    _assert_nothing_failed(checks.check_errors(database.entries()[name]))


def test_the_database_is_covered() -> None:
    # Fewer would mean that an operator lost its name.
    assert len(ENTRIES) >= 220
    for name in (
        "add",
        "sum",
        "matmul",
        "nn.functional.conv2d",
        "nn.functional.cross_entropy",
        "index_put",
        "__getitem__",
    ):
        assert name in ENTRIES


def test_every_exclusion_names_an_entry_and_says_why() -> None:
    for each in EXCLUSIONS:
        assert each.entry in ENTRIES
        assert len(each.reason) > 20


def test_a_wrong_result_is_found() -> None:
    """The harness itself: a function that is off by a little, in another layout, or lets errors pass must fail."""
    entry = database.entries()["add"]
    wrongs = {
        "values": lambda self, *args, **kwargs: entry.function(self, *args, **kwargs) * 1.0001,
        "layout": lambda *args, **kwargs: entry.function(*args, **kwargs).reshape(-1),
        "aliasing": lambda self, *args, **kwargs: self.copy_(entry.function(self, *args, **kwargs)),
    }
    for kind, function in wrongs.items():
        wrong = database.Entry(entry.info, function, entry.method, entry.inplace, entry.rule)
        assert checks.check(wrong, torch.float64, 12, False).failed[kind] > 0
