"""Facts about storages, measured on torch and on the mini-framework by the same instruments."""

import subprocess
import sys

import pytest
import torch

from glassbox import mini
from glassbox.records import StorageView
from glassbox.xray import aliases, storage_map, use_count, view_of
from glassbox.xray._coverage import Coverage

BOTH = pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])


def grid(lib):
    return lib.arange(12, dtype=lib.float32).view(3, 4)


@BOTH
def test_view_of_reads_the_metadata(lib):
    view = view_of(grid(lib)[1:, :2], "part")
    assert (view.name, view.shape, view.stride, view.offset) == ("part", (2, 2), (4, 1), 4)
    assert (view.dtype, view.itemsize, view.device, view.nbytes) == ("float32", 4, "cpu", 48)
    assert view.base
    assert view.values == tuple(float(i) for i in range(12))


@BOTH
def test_data_ptr_moves_with_the_offset(lib):
    a = grid(lib)
    whole, part = view_of(a), view_of(a[1:])
    assert part.data_ptr - whole.data_ptr == 16
    assert part.storage == whole.storage


@BOTH
def test_version_counts_changes_in_place(lib):
    a = grid(lib)
    before = view_of(a).version
    a[0, 0] = 7.0
    assert view_of(a).version == before + 1
    assert view_of(a.T).version == before + 1


@BOTH
def test_values_only_for_small_storages(lib):
    assert view_of(lib.zeros(64)).values == (0.0,) * 64
    assert view_of(lib.zeros(65)).values is None
    assert view_of(lib.zeros(4), values=3).values is None


@BOTH
def test_looking_keeps_no_reference(lib):
    a = lib.zeros(12)
    view = view_of(a)
    assert isinstance(view, StorageView)
    assert use_count(a) == 2


@BOTH
def test_use_count_of_the_storage_chapter(lib):
    """2 for a lone tensor; 5 for A, A.T and A[1:, :2] over an arange that `_base` keeps."""
    assert use_count(lib.zeros(12)) == 2
    a = grid(lib)
    views = [a.T, a[1:, :2]]
    assert use_count(a) == 5
    del views
    assert use_count(a) == 3


@BOTH
def test_map_of_the_storage_chapter(lib):
    A = grid(lib)  # noqa: N806
    found = storage_map(A, A.T, A[1:, :2], copy=A.clone())
    assert [v.name for v in found.views] == ["A", "A.T", "A[1:, :2]", "copy"]
    assert [len(group) for group in found.groups()] == [3, 1]
    assert found.same_storage("A", "A.T", "A[1:, :2]")
    assert not found.same_storage("A", "copy")
    assert found.shared_bytes("A", "A.T") == 48
    assert found.shared_bytes("A.T", "A[1:, :2]") == 16
    assert found.shared_bytes("A", "copy") == 0
    rows = {row["tensor"]: row for row in found.shown()}
    assert rows["A[1:, :2]"]["bytes"] == "16..40"
    assert rows["A[1:, :2]"]["sees"] == "16 B of 48 B"
    assert rows["copy"]["shares"] == "-"


def test_neighbours_in_one_storage_may_share_no_byte():
    rows = torch.arange(12.0).view(3, 4)
    found = storage_map(first=rows[0], last=rows[2], left=rows[:, :2], right=rows[:, 2:])
    assert found.same_storage()
    assert found.shared_bytes("first", "last") == 0
    assert found.shared_bytes("left", "right") == 0
    assert found.shared_bytes("first", "left") == 8


def test_shared_bytes_of_large_and_repeated_views():
    big = torch.zeros(1000, 1000)
    found = storage_map(big=big, row=big[3], column=big[:, 3], spread=big[:1].expand(1000, 1000))
    assert found.shared_bytes("big", "row") == 4000
    assert found.shared_bytes("big", "column") == 4000
    assert found.shared_bytes("row", "column") == 4
    assert found.shown()[3]["sees"] == "4 kB of 4 MB"


def test_view_dtype_shares_and_to_dtype_copies():
    a = torch.arange(12.0)
    found = storage_map(a=a, bits=a.view(torch.int32), halves=a.view(torch.bfloat16), copy=a.to(torch.float64))
    assert found.same_storage("a", "bits", "halves")
    assert not found.same_storage("a", "copy")
    assert found.shared_bytes("a", "halves") == 48


def test_names_are_what_the_caller_wrote_or_else_positions():
    a = torch.zeros(3)
    many = [torch.zeros(2), torch.zeros(2)]
    assert [v.name for v in storage_map(*many).views] == ["$0", "$1"]
    assert [v.name for v in storage_map(*[a]).views] == ["a"]
    assert storage_map(a, twin=a)["twin"].shape == (3,)


def test_a_name_given_twice_and_no_tensor_are_refused():
    a = torch.zeros(3)
    with pytest.raises(ValueError, match="'a' is used twice"):
        storage_map(a, a=a)
    with pytest.raises(ValueError, match="at least one tensor"):
        storage_map()
    with pytest.raises(TypeError, match="list is not a tensor"):
        storage_map([1, 2])
    with pytest.raises(KeyError, match="the names are a"):
        storage_map(a)["b"]


def test_empty_storages_are_not_one_storage():
    found = storage_map(a=torch.empty(0), b=torch.empty(0))
    assert [v.data_ptr for v in found.views] == [0, 0]
    assert not found.same_storage()


def test_meta_and_fake_tensors_have_storages_without_data(recwarn):
    from torch._subclasses import FakeTensorMode

    meta = torch.zeros(3, 4, device="meta")
    found = storage_map(a=meta, b=meta.T, c=torch.zeros(3, device="meta"))
    assert found.same_storage("a", "b")
    assert not found.same_storage("a", "c")
    assert found["a"].values is None
    with FakeTensorMode():
        fake = torch.zeros(3)
    assert view_of(fake).data_ptr == 0
    assert [str(w.message) for w in recwarn if "data pointer" in str(w.message)] == []


def test_an_inference_tensor_has_no_version():
    with torch.inference_mode():
        a = torch.zeros(3)
    assert view_of(a).version is None


def test_a_sparse_tensor_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match="has no storage to look at"):
        view_of(torch.eye(3).to_sparse())


PARTS = [torch.ones(2), torch.ones(3)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: torch.nested.nested_tensor(PARTS), "a nested tensor holds tensors of several shapes"),
        (lambda: torch.nested.nested_tensor(PARTS, layout=torch.jagged), "a nested tensor holds"),
        (lambda: torch.eye(3).to_sparse(), "a torch.sparse_coo tensor has no storage"),
        (lambda: torch.eye(3).to_sparse_csr(), "a torch.sparse_csr tensor has no storage"),
        (lambda: torch.nn.UninitializedParameter(), "an uninitialized parameter has no shape yet"),
    ],
)
def test_kinds_without_strides_are_refused_by_name(make, reason):
    kind = make()
    for instrument in (storage_map, aliases, use_count, view_of):
        with pytest.raises(TypeError, match=f"{reason}.*; pass a plain strided tensor.$"):
            instrument(kind)


def test_a_tensor_that_vmap_wraps_is_refused_with_a_sentence():
    def look(x):
        with pytest.raises(TypeError, match=r"view_of: this tensor has no storage to look at \(.*Batched"):
            view_of(x)
        return x

    torch.vmap(look)(torch.zeros(2, 3))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_quantized_tensor_is_mapped_without_its_values():
    ones = torch.ones(2, 3)
    whole = torch.quantize_per_tensor(ones, 0.1, 0, torch.quint8)
    channels = torch.quantize_per_channel(ones, torch.ones(2), torch.zeros(2), 0, torch.qint8)
    found = storage_map(whole=whole, row=whole[1], channels=channels)
    assert found.shared_bytes("whole", "row") == 3
    assert [v.values for v in found.views] == [None] * 3
    assert found._repr_html_().count("<svg") == 2


def test_many_views_are_listed_without_comparing_every_pair(monkeypatch):
    asked = []
    monkeypatch.setattr(Coverage, "shared", lambda a, b: asked.append((a, b)) or 4)
    base = torch.zeros(100, 100)
    few = storage_map(*(base[k] for k in range(20)), other=torch.zeros(3))
    assert few.rows()[0]["shares"].startswith("4 B with $1, 4 B with $2")
    assert len(asked) == 20 * 19 / 2
    asked.clear()
    many = storage_map(*(base[k % 100, ::2] for k in range(2000)))
    assert [row["shares"] for row in many.rows()] == ["not compared with 1,999 others"] * 2000
    assert asked == []
    assert str(many).startswith("2,000 tensors over 1 storage; more than 20 over one are not compared: ask")


def test_what_a_regular_view_sees_is_reckoned_and_not_listed(monkeypatch):
    monkeypatch.setattr(StorageView, "cells", lambda self: pytest.fail(f"{self.name} was listed"))
    base = torch.zeros(40, 50)
    for view, count in (
        (base[::2, 3:9], 120),
        (base.T[::7], 320),
        (base[:1].expand(9, 50), 50),
        (base[:0], 0),
    ):
        assert Coverage(view_of(view)).seen() == 4 * count


def test_of_a_layout_that_overlaps_each_byte_counts_once():
    windows = torch.zeros(6).as_strided((4, 3), (1, 1))
    assert storage_map(windows).shown()[0]["sees"] == "24 B of 24 B"


def test_of_many_tensors_the_first_are_drawn_and_the_map_says_so():
    base = torch.zeros(40)
    found = storage_map(*(base[k:] for k in range(13)))
    assert [f.title for f in found.figures()] == ["the first 12 of 13 tensors over one storage"]
    assert "<p>Drawn: the first 12 of the 13 tensors over S0.</p>" in found._repr_html_()
    apart = storage_map(*(torch.zeros(2) for _ in range(15)))
    assert len(apart.figures()) == 15
    html = apart._repr_html_()
    assert html.count("<svg") == 12
    assert html.endswith("<p>3 more storages are not drawn.</p>")


def test_a_tensor_larger_than_memory_is_mapped():
    found = storage_map(a=torch.zeros(1).expand(2**40))
    assert found.shown()[0]["sees"] == "4 B of 4 B"
    assert "<svg" in found._repr_html_()


def test_a_parameter_is_looked_at_without_touching_its_graph():
    weight = torch.nn.Parameter(torch.ones(2, 2))
    assert view_of(weight).values == (1.0,) * 4
    assert weight.grad_fn is None


def test_the_map_is_drawn_once_per_storage():
    a = torch.arange(12.0)
    found = storage_map(a, a[:3], b=torch.zeros(2))
    assert [f.title for f in found.figures()] == ["a, a[:3] over one storage", "b over its storage"]
    html = found._repr_html_()
    assert html.count("<svg") == 2
    assert html.startswith("<table>")


def test_the_map_prints_and_converts():
    a = torch.arange(4.0)
    found = storage_map(a)
    assert str(found).splitlines()[0] == "1 tensor over 1 storage"
    assert found.to_markdown().splitlines()[0].startswith("| tensor | storage | shape |")


def test_mini_tensors_need_no_torch():
    code = (
        "import sys; from glassbox import mini, xray; a = mini.arange(12).view(3, 4); "
        "xray.storage_map(a, a.T)._repr_html_(); xray.aliases(a); xray.leaks(); xray.use_count(a); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
