"""Facts about which ops alias: the truth table that is measured, here written down for both frameworks."""

import pytest
import torch

from glassbox import mini
from glassbox.xray import aliases

BOTH = pytest.mark.parametrize("lib", [torch, mini], ids=["torch", "mini"])

# expression: itself, same storage, same data_ptr, has base, shares version
TABLE = {
    "x.view(-1)": (False, True, True, True, True),
    "x.reshape(-1)": (False, True, True, True, True),
    "x.T": (False, True, True, True, True),
    "x[1:]": (False, True, False, True, True),
    "x.expand(2, 3, 4)": (False, True, True, True, True),
    "x.squeeze()": (False, True, True, True, True),
    "x.contiguous()": (True, True, True, False, True),
    "x.T.reshape(-1)": (False, False, False, False, False),
    "x.T.contiguous()": (False, False, False, False, False),
    "x.clone()": (False, False, False, False, False),
    "x.detach()": (False, True, True, False, True),
    "x.data": (False, True, True, False, False),
}


def fresh(lib):
    return lib.tensor([[0.0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])


@BOTH
@pytest.mark.parametrize("expression", TABLE)
def test_truth_table(lib, expression):
    line = aliases(fresh(lib))[expression]
    seen = (line.itself, line.same_storage, line.same_data_ptr, line.has_base, line.shares_version)
    assert seen == TABLE[expression]
    assert line.error == ""


@BOTH
def test_view_of_a_transposed_tensor_raises(lib):
    line = aliases(fresh(lib))["x.T.view(-1)"]
    assert line.error == "RuntimeError"
    assert line.same_storage is None


@BOTH
def test_to_copies_only_for_another_dtype(lib):
    table = aliases(fresh(lib))
    name = lib.__name__.rsplit(".", 1)[-1]
    assert table[f"x.to({name}.float32)"].itself
    assert table[f"x.to({name}.float64)"].same_storage is False


def test_view_dtype_shares_storage_and_version_but_has_no_base():
    line = aliases(fresh(torch))["x.view(torch.int32)"]
    assert (line.same_storage, line.shares_version, line.has_base) == (True, True, False)


@BOTH
def test_layouts_are_measured(lib):
    table = aliases(fresh(lib))
    assert (table["x.T"].shape, table["x.T"].stride) == ((4, 3), (1, 4))
    assert (table["x[1:]"].shape, table["x[1:]"].offset) == ((2, 4), 4)
    assert table["x.expand(2, 3, 4)"].stride == (0, 4, 1)
    assert table["x.T.contiguous()"].stride == (3, 1)


@BOTH
def test_contiguous_copies_a_tensor_that_is_not(lib):
    line = aliases(fresh(lib).T)["x.contiguous()"]
    assert (line.itself, line.same_storage) == (False, False)


def test_the_tensor_asked_about_is_not_touched():
    x = torch.ones(3, 4, requires_grad=True)
    y = (x * x).T
    before = (y._version, y.clone())
    aliases(y)
    assert y._version == before[0]
    assert torch.equal(y, before[1])
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3, 4), 2.0))


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (1, 1)])
def test_other_numbers_of_dimensions(shape):
    table = aliases(torch.zeros(shape))
    assert table["x.view(-1)"].same_storage
    assert table["x.clone()"].same_storage is False


def test_the_default_is_a_3_by_4_torch_tensor():
    assert aliases().caption() == "x: shape (3, 4), stride (4, 1), torch.float32, contiguous"


@BOTH
def test_a_tensor_whose_elements_share_a_cell(lib):
    table = aliases(lib.zeros(1).expand(4))
    assert table["x[1:]"].same_storage and table["x[1:]"].shares_version
    assert table["x.contiguous()"].same_storage is False


@BOTH
def test_what_would_copy_terabytes_is_refused(lib):
    with pytest.raises(ValueError, match=r"shape \(1099511627776,\) would take 8.8 TB for each op"):
        aliases(lib.zeros(1).expand(2**40))
    with pytest.raises(ValueError, match="would take 400 MB"):
        aliases(lib.empty(10_000, 10_000)[:2])


def test_a_tensor_without_data_may_be_of_any_size():
    assert aliases(torch.zeros(1, device="meta").expand(2**40))["x.clone()"].same_storage is False


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kinds_that_cannot_be_copied_are_refused_with_a_sentence():
    per_channel = torch.quantize_per_channel(torch.ones(2, 3), torch.ones(2), torch.zeros(2), 0, torch.qint8)
    emptied = torch.zeros(3)
    emptied.untyped_storage().resize_(0)
    for kind in (per_channel, emptied):
        with pytest.raises(TypeError, match=r"^aliases: this tensor cannot be copied \(.*\); pass a plain"):
            aliases(kind)


def test_what_cannot_be_asked_about():
    with pytest.raises(ValueError, match="0-d tensor has no rows"):
        aliases(torch.tensor(1.0))
    with pytest.raises(TypeError, match="int is not a tensor"):
        aliases(3)
    with pytest.raises(KeyError, match="was not measured"):
        aliases()["x.flip(0)"]


def test_the_table_converts_to_markdown_and_rows():
    table = aliases()
    assert len(table.rows()) == len(table.lines) == len(table.to_markdown().splitlines()) - 2
    assert "<table>" in table._repr_html_()
