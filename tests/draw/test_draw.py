"""Facts about the figures, read from the SVG as XML."""

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from glassbox.draw import Svg, course_map, layout_comparison, tensor_over_storage, views_over_storage
from glassbox.draw.cells import clip
from glassbox.draw.strip import strip_positions
from glassbox.draw.svg import DARK, LIGHT
from glassbox.records import StorageView

VALUES = [float(i) for i in range(12)]
A = StorageView.of_layout("A", (3, 4), (4, 1), values=VALUES)
AT = StorageView.of_layout("A.T", (4, 3), (1, 4), values=VALUES)
SLICE = StorageView.of_layout("A[1:, :2]", (2, 2), (4, 1), 4, values=VALUES)
EXPANDED = StorageView.of_layout("e", (3, 4), (0, 1), size=4)
LAYOUTS = [
    A,
    AT,
    SLICE,
    EXPANDED,
    StorageView.of_layout("scalar", (), (), 5, size=8),
    StorageView.of_layout("vector", (5,), (2,), 1, size=12),
    StorageView.of_layout("cube", (3, 2, 4), (8, 4, 1)),
    StorageView.of_layout("four", (2, 6, 3, 2), (36, 6, 2, 1)),
    StorageView.of_layout("five", (2, 2, 2, 2, 2), (16, 8, 4, 2, 1)),
    StorageView.of_layout("empty", (0, 3), (3, 1), size=0),
    StorageView.of_layout("six-empty", (2, 0, 2, 1, 3, 2), (6, 6, 6, 6, 2, 1), size=12),
    StorageView.of_layout("big", (1, 1000), (1000, 1), 500_000, size=1_000_000),
    StorageView.of_layout("outside", (4, 4), (4, 1), size=12),
    StorageView.of_layout("thin", (3, 4, 2, 1), (8, 2, 1, 1)),
    StorageView.of_layout("wide", (2, 20, 2, 12), (480, 24, 12, 1)),
]


def parse(figure):
    return ET.fromstring(figure.text)


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def cells(figure, kind):
    """The cells of the tensor ("t") or of the storage ("u"): their classes and first text."""
    found = []
    for element in parse(figure).iter():
        classes = element.get("class", "").split()
        if tag(element) == "g" and kind in classes:
            words = [child.text for child in element if tag(child) == "text"]
            found.append((classes, words[0]))
    return found


def with_class(figure, kind, name):
    return [text for classes, text in cells(figure, kind) if name in classes]


def words(figure):
    return [e.text for e in parse(figure).iter() if tag(e) == "text"]


FIGURES = [
    *(pytest.param(tensor_over_storage(v), id=f"over-{v.name}") for v in LAYOUTS),
    pytest.param(views_over_storage([A, AT, SLICE]), id="views"),
    pytest.param(views_over_storage(LAYOUTS[:1]), id="one-view"),
    *(pytest.param(views_over_storage([v]), id=f"alone-{v.name}") for v in LAYOUTS),
    *(pytest.param(layout_comparison(None, ("a", A), ("b", v)), id=f"compared-{v.name}") for v in LAYOUTS),
    pytest.param(layout_comparison(("input", A), ("expected", AT), ("yours", SLICE)), id="comparison"),
    pytest.param(layout_comparison(None, ("expected", AT), ("yours", None, "TypeError: no")), id="error"),
    pytest.param(course_map(), id="map"),
    pytest.param(course_map({"storage": 0.4}), id="map-progress"),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_text_alternative(figure):
    svg = parse(figure)
    assert svg.get("role") == "img"
    ids = {e.get("id"): e for e in svg.iter() if e.get("id")}
    title, desc = (ids[i] for i in svg.get("aria-labelledby").split())
    assert (tag(title), tag(desc)) == ("title", "desc")
    assert title.text
    assert len(desc.text) > 20
    assert " 48 b" not in desc.text


@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_lies_outside_the_view_box(figure):
    _, _, width, height = map(float, parse(figure).get("viewBox").split())
    for element in parse(figure).iter():
        if tag(element) == "rect":
            x, y, w, h = (float(element.get(k)) for k in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 0
            assert x + w <= width
            assert y + h <= height
        if tag(element) == "text":
            size = float(element.get("font-size"))
            length = len(element.text) * size * 0.62
            x, y = float(element.get("x")), float(element.get("y"))
            left = x - {"start": 0, "middle": length / 2, "end": length}[element.get("text-anchor", "start")]
            assert left >= 0
            assert left + length <= width
            assert 0 < y <= height


@pytest.mark.parametrize("figure", FIGURES)
def test_names_of_blocks_do_not_overlap(figure):
    boxes = []
    for element in parse(figure).iter():
        if tag(element) == "text" and re.fullmatch(r"\[[\d, ]+, :, :\]", element.text):
            x, y, size = (float(element.get(k)) for k in ("x", "y", "font-size"))
            boxes.append((x, x + len(element.text) * size * 0.61, y))
    for k, (left, right, y) in enumerate(boxes):
        for a, b, c in boxes[:k]:
            assert y != c or right < a or b < left


@pytest.mark.parametrize("figure", FIGURES)
def test_cells_do_not_overlap(figure):
    boxes = []
    for element in parse(figure).iter():
        classes = element.get("class", "").split()
        if tag(element) == "g" and {"t", "u"} & set(classes):
            box = next(child for child in element if tag(child) == "rect")
            boxes.append([float(box.get(k)) for k in ("x", "y", "width", "height")])
    for k, (x, y, w, h) in enumerate(boxes):
        for a, b, c, d in boxes[:k]:
            assert x >= a + c or a >= x + w or y >= b + d or b >= y + h


@pytest.mark.parametrize("figure", FIGURES)
def test_ids_are_unique_on_a_page(figure):
    page = ET.fromstring(f"<page>{figure._repr_html_()}{figure._repr_html_()}</page>")
    ids = [e.get("id") for e in page.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) == 6


def test_cells_of_a_row_share_a_colour_and_the_rest_of_the_storage_is_grey():
    figure = tensor_over_storage(SLICE)
    assert with_class(figure, "t", "r0") == ["4", "5"]
    assert with_class(figure, "t", "r1") == ["8", "9"]
    assert with_class(figure, "u", "r0") == ["4", "5"]
    assert with_class(figure, "u", "r1") == ["8", "9"]
    assert with_class(figure, "u", "out") == ["0", "1", "2", "3", "6", "7", "10", "11"]


def test_a_highlight_lights_the_cell_and_spells_its_address():
    figure = tensor_over_storage(A, (1, 2))
    assert with_class(figure, "t", "hot") == ["6"]
    assert with_class(figure, "u", "hot") == ["6"]
    assert "A[1,2] = storage[0 + 1*4 + 2*1] = storage[6]" in words(figure)
    assert "A[1,2] = storage[0 + 1*4 + 2*1] = storage[6]" in parse(figure).find("{*}desc").text


def test_several_highlights_and_negative_ones():
    assert with_class(tensor_over_storage(A, [(0, 0), (-1, -1)]), "u", "hot") == ["0", "11"]
    with pytest.raises(IndexError):
        tensor_over_storage(A, (3, 0))


def test_shared_cells_carry_how_many_indices_share_them():
    assert words(tensor_over_storage(EXPANDED)).count("×3") == 4
    assert not [w for w in words(tensor_over_storage(A)) if "×" in w]


def test_cells_show_values_where_they_are_known_and_positions_otherwise():
    view = StorageView.of_layout("v", (2, 2), (2, 1), values=[0.5, 1 / 3, True, 7])
    assert [text for _, text in cells(tensor_over_storage(view), "t")] == ["0.5", "0.3333", "T", "7"]
    assert [text for _, text in cells(tensor_over_storage(SLICE), "t")] == ["4", "5", "8", "9"]


def test_a_layout_past_its_storage_is_marked():
    figure = tensor_over_storage(StorageView.of_layout("outside", (4, 4), (4, 1), size=12))
    assert with_class(figure, "t", "bad") == ["12", "13", "14", "15"]


def test_long_dimensions_and_storages_say_what_is_left_out():
    big = StorageView.of_layout("big", (1, 1000), (1000, 1), 500_000, size=1_000_000)
    figure = tensor_over_storage(big)
    assert len(cells(figure, "t")) == 11
    left_out = [int(w.removesuffix(" more").replace(",", "")) for w in words(figure) if w.endswith(" more")]
    assert sum(left_out) + len(cells(figure, "u")) == 1_000_000


def test_blocks_of_a_cube_and_only_the_first_of_five_dimensions():
    cube = tensor_over_storage(StorageView.of_layout("x", (3, 2, 4), (8, 4, 1)))
    assert [w for w in words(cube) if w.startswith("[")] == ["[0, :, :]", "[1, :, :]", "[2, :, :]"]
    five = tensor_over_storage(StorageView.of_layout("x", (2,) * 5, (16, 8, 4, 2, 1)))
    assert "5 dimensions: only the first block is drawn" in words(five)
    assert len(cells(five, "t")) == 16


def test_figure_of_the_storage_chapter():
    """One float32 storage of 12 elements seen by A, A.T and A[1:, :2], with the slice's cells lit."""
    figure = views_over_storage([A, AT, SLICE])
    assert {"A", "A.T", "A[1:, :2]"} <= set(words(figure))
    assert "storage: 12 elements of float32, 48 B" in words(figure)
    assert with_class(figure, "u", "lit") == ["4", "5", "8", "9"]
    assert sorted(with_class(figure, "t", "lit"), key=float) == ["4"] * 3 + ["5"] * 3 + ["8"] * 3 + ["9"] * 3


def test_a_cell_keeps_the_colour_of_the_first_view():
    figure = views_over_storage([A, AT])
    assert sorted(with_class(figure, "t", "r1"), key=float) == ["4", "4", "5", "5", "6", "6", "7", "7"]


def test_a_view_can_be_chosen_for_lighting():
    figure = views_over_storage([SLICE, A, AT], highlight="A[1:, :2]")
    assert with_class(figure, "u", "lit") == ["4", "5", "8", "9"]
    with pytest.raises(ValueError, match="the names are A, A.T"):
        views_over_storage([A, AT], highlight="B")


def test_views_of_different_storages_are_refused():
    other = StorageView.of_layout("B", (2,), (1,), storage=1)
    with pytest.raises(ValueError, match="do not share one storage"):
        views_over_storage([A, other])
    with pytest.raises(ValueError, match="nothing to draw"):
        views_over_storage([])


def test_dtypes_of_two_sizes_are_drawn_in_the_smaller_unit():
    halves = StorageView.of_layout("h", (4,), (1,), size=24, dtype="bfloat16", itemsize=2)
    figure = views_over_storage([StorageView.of_layout("f", (3, 4), (4, 1), size=12), halves])
    assert len(cells(figure, "u")) == 24
    assert with_class(figure, "u", "lit") == ["0", "1", "2", "3"]


def test_hovering_ties_a_tensor_cell_to_its_storage_cell_without_script():
    figure = tensor_over_storage(SLICE)
    css = parse(figure).find("{*}style").text
    assert re.search(r"#gb-\w+:has\(\.c8:hover\) \.c8[,{]", css)
    assert [text for classes, text in cells(figure, "t") if "c8" in classes] == ["8"]
    assert "<script" not in figure.text


def test_comparison_marks_what_differs():
    wrong = StorageView.of_layout("yours", (4, 3), (4, 1), values=VALUES)
    figure = layout_comparison(("input", A), ("expected", AT), ("yours", wrong))
    assert len(with_class(figure, "t", "bad")) == 9
    assert "Differs in stride: 9 of 12 cells read something else" in words(figure)
    fine = layout_comparison(("input", A), ("expected", AT), ("yours", AT))
    assert "Same layout" in words(fine)
    assert with_class(fine, "t", "bad") == []


def test_comparison_by_value_where_the_storages_differ():
    copied = [0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]
    copy = StorageView.of_layout("yours", (4, 3), (3, 1), values=copied, storage=1)
    figure = layout_comparison(None, ("expected", AT), ("yours", copy))
    assert "Differs in stride: every cell reads the same" in words(figure)


def rows_of_panels(figure):
    """The titles of the panels, one list a row, from the top."""
    rows = {}
    for element in parse(figure).iter():
        if tag(element) == "text" and element.text in ("input", "expected", "yours"):
            rows.setdefault(float(element.get("y")), []).append(element.text)
    return [rows[y] for y in sorted(rows)]


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ((3, 4), [["input", "expected", "yours"]]),
        ((3, 7), [["input"], ["expected", "yours"]]),
        ((2, 2, 2, 3), [["input"], ["expected", "yours"]]),
        ((3, 12), [["input"], ["expected"], ["yours"]]),
        ((4, 4, 8, 12), [["input"], ["expected"], ["yours"]]),
    ],
)
def test_a_wide_comparison_goes_on_below_instead_of_shrinking(shape, rows):
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    view = StorageView.of_layout("v", shape, strides)
    figure = layout_comparison(("input", view), ("expected", view), ("yours", view))
    assert rows_of_panels(figure) == rows
    assert figure.width <= 760


def test_where_there_are_no_elements_the_verdict_says_so():
    def verdict(expected, yours):
        figure = layout_comparison(None, ("expected", expected), ("yours", yours))
        return words(figure)[-1]

    empty = StorageView.of_layout("e", (0, 3), (3, 1))
    other = StorageView.of_layout("o", (0, 3), (0, 1))
    assert verdict(empty, other) == "Differs in stride, though there are no elements to read"
    assert verdict(A, empty) == "Differs in shape and stride: yours has no elements"
    assert verdict(empty, A) == "Differs in shape and stride: 12 of 12 cells read something else"
    assert verdict(empty, empty) == "Same layout"


def test_cells_that_are_missing_are_not_said_to_read_the_same():
    part = StorageView.of_layout("part", (2, 4), (4, 1), values=VALUES)
    figure = layout_comparison(None, ("expected", A), ("yours", part))
    assert words(figure)[-1] == "Differs in shape: the cells that are there read the same"


def test_comparison_shows_an_error_in_place_of_a_layout():
    figure = layout_comparison(("input", A), ("expected", AT), ("yours", None, "TypeError: <bad> & worse"))
    assert "TypeError: <bad> & worse" in words(figure)
    assert "No picture of yours to compare with" in words(figure)
    with pytest.raises(ValueError, match="nothing to draw"):
        layout_comparison(None, None, None)


def test_course_map_names_the_four_branches_and_their_leaves():
    said = words(course_map())
    for word in ("c = a + b", "Tensor and Storage", "Dispatcher", "Autograd", "Call path"):
        assert word in said
    for leaf in ("shape, stride, offset", "native_functions.yaml", "grad_fn nodes", "ATen entry"):
        assert leaf in said


def test_course_map_shows_progress_and_checks_it():
    assert "01 · 40%" in words(course_map({"storage": 0.4}))
    assert "02 · 0%" in words(course_map({"storage": 0.4}))
    with pytest.raises(ValueError, match="no branch 'tensor'"):
        course_map({"tensor": 0.4})
    with pytest.raises(ValueError, match="fraction from 0 to 1"):
        course_map({"storage": 40})


def test_text_is_escaped():
    figure = tensor_over_storage(StorageView.of_layout("<b>&\x00", (1,), (1,)))
    assert "<b>&�" in words(figure)


def test_both_palettes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()


def contrast(a, b):
    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_in_cells_is_readable(palette):
    for fill in ("r0", "r1", "r2", "r3", "r4", "r5", "panel", "out", "hot", "bad"):
        ink = palette.get(f"{fill}-ink", palette["ink"])
        assert contrast(palette[fill], ink) >= 4.5, fill
    for ink in ("muted", "good", "bad-line"):
        assert contrast(palette["panel"], palette[ink]) >= 4.5, ink


def test_a_saved_figure_stands_alone(tmp_path):
    path = tensor_over_storage(A).save(tmp_path / "a.svg", theme="dark")
    text = path.read_text(encoding="utf-8")
    assert ET.fromstring(text.encode()).tag == "{http://www.w3.org/2000/svg}svg"
    assert DARK["r0"] in text
    assert LIGHT["r0"] not in text
    assert "prefers-color-scheme" in tensor_over_storage(A).save(tmp_path / "b.svg").read_text("utf-8")


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match='use "auto", "light" or "dark"'):
        Svg(1, 1, "t", "d", "", theme="blue")


def test_clip_and_strip_keep_the_ends():
    assert clip(3, 8) == [0, 1, 2]
    assert clip(100, 8) == [0, 1, 2, 3, 4, 5, None, 99]
    shown = strip_positions(1000, [500])
    assert (shown[0], shown[-1]) == (0, 999)
    assert {499, 500, 501} <= set(shown)
    assert shown.count(None) == 2


def test_drawing_needs_neither_torch_nor_widgets():
    code = (
        "import sys; import glassbox.draw, glassbox.records; "
        "heavy = {'torch', 'numpy', 'matplotlib', 'ipywidgets', 'anywidget'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
