"""Facts about small tensors that keep large storages alive."""

import gc
import weakref

import pytest
import torch

from glassbox import mini
from glassbox.xray import leaks

BOTH = pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])

keep: dict[str, object] = {}


class Cache:
    pass


@pytest.fixture(autouse=True)
def _clean():
    keep.clear()
    gc.collect()
    yield
    keep.clear()


def mine(report, total=4_000_000):
    return [leak for leak in report if leak.storage_bytes == total]


@BOTH
def test_a_row_keeps_four_megabytes_alive(lib):
    """4 kB of 4 MB in zeros(1000, 1000)[:1]."""
    row = lib.zeros(1000, 1000)[:1]
    (leak,) = mine(leaks())
    assert (leak.tensor_bytes, leak.storage_bytes, leak.ratio) == (4000, 4_000_000, 1000)
    assert leak.shape == tuple(row.shape) == (1, 1000)
    assert any(place.startswith("row in ") for place in leak.where)
    assert leak.fix == "row.clone()"


@BOTH
def test_a_clone_cures_it(lib):
    row = lib.zeros(1000, 1000)[:1].clone()
    assert mine(leaks()) == []
    assert row.numel() == 1000


@BOTH
def test_a_slice_beside_its_whole_is_no_leak(lib):
    whole = lib.zeros(1000, 1000)
    row = whole[:1]
    assert mine(leaks()) == []
    del whole
    assert len(mine(leaks())) == 1
    assert row.numel() == 1000


def test_places_in_attributes_containers_and_modules():
    cache = Cache()
    cache.row = torch.zeros(1000, 1000)[5]
    keep["rows"] = [None, torch.zeros(1000, 1001)[:, 0]]
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(torch.zeros(1000, 1002)[:2])
    report = leaks()
    assert mine(report)[0].where == ("Cache.row",)
    assert mine(report, 4_004_000)[0].where[0].endswith("keep['rows'][1]")
    assert mine(report, 4_008_000)[0].where == ("Module.weight",)


def test_what_a_notebook_keeps_as_output_is_named_so():
    import __main__

    __main__.Out = {3: torch.zeros(1000, 1004)[3]}
    try:
        (leak,) = mine(leaks(), 4_016_000)
    finally:
        del __main__.Out
    assert leak.where == ("Out[3]",)
    assert leak.fix == "%reset -f out"


def test_expand_repeats_without_seeing_more():
    spread = torch.zeros(1000, 1000)[:1].expand(1000, 1000)
    (leak,) = mine(leaks())
    assert leak.tensor_bytes == 4000
    assert spread.shape == (1000, 1000)


def test_views_that_cover_the_storage_together_are_no_leak():
    top, bottom = torch.zeros(1000, 1000).split(500)
    assert mine(leaks()) == []
    assert top.shape == bottom.shape


def test_thresholds():
    row = torch.zeros(1000, 1000)[:1]
    assert mine(leaks(min_bytes=4_000_000)) == []
    assert mine(leaks(min_ratio=1001)) == []
    assert len(mine(leaks(min_ratio=1000))) == 1
    assert row.numel() == 1000
    with pytest.raises(ValueError, match="use 1 or more"):
        leaks(min_ratio=0.5)


@pytest.mark.parametrize("bad", ["a", None, [], True, 1j, torch.tensor(4.0)])
def test_a_threshold_that_is_no_number_is_refused(bad):
    with pytest.raises(TypeError, match=f"leaks: min_ratio is a {type(bad).__name__}; give a number"):
        leaks(bad)
    with pytest.raises(TypeError, match="leaks: min_bytes"):
        leaks(min_bytes=bad)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1])
def test_a_threshold_that_compares_with_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="leaks: min_bytes is .* finite number that is not negative"):
        leaks(min_bytes=bad)
    with pytest.raises(ValueError, match="leaks: min_ratio"):
        leaks(bad)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_of_every_kind_may_be_alive():
    parts = [torch.ones(2), torch.ones(3)]
    keep["kinds"] = [
        torch.nn.LazyLinear(3),
        torch.nested.nested_tensor(parts),
        torch.nested.nested_tensor(parts, layout=torch.jagged),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        torch.eye(3).to_sparse(),
        torch.zeros(3, device="meta"),
    ]
    row = torch.zeros(1000, 1000)[:1]
    (leak,) = mine(leaks())
    assert leak.shape == row.shape


def test_a_report_counts_what_nobody_sees():
    rows = list(torch.zeros(1000, 1000)[:2].unbind())
    report = leaks()
    assert len(mine(report)) == 2
    alone = type(report)(tuple(mine(report)))
    assert alone.wasted() == 4_000_000 - 2 * 4000
    assert alone.caption() == "2 tensors keep 3.99 MB alive that nobody sees"
    assert len(alone.rows()) == 2
    assert rows[0].numel() == 1000


def test_looking_keeps_nothing_alive():
    lone = torch.zeros(1000, 1003)
    gone = weakref.ref(lone)
    assert mine(leaks(), 4_012_000) == []
    del lone
    assert gone() is None


def test_looking_leaves_a_functions_own_locals_alone():
    row = torch.zeros(3)
    variables = locals()
    assert mine(leaks(), 12) == []
    assert variables["row"] is row


def test_an_empty_report_says_so():
    assert str(type(leaks())(())) == "no small tensor keeps a large storage alive"
