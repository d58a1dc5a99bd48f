"""Facts about drawings of graphs, read from the SVG: nothing overlaps, no line runs through a box, all is said."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassbox import mini, xray
from glassbox.draw import forward_figure, forward_layout, graph_figure, graph_layout
from glassbox.draw._clusters import clusters, rectangle, room_above
from glassbox.draw._folding import folded
from glassbox.draw._node_words import described
from glassbox.draw._ordering import crossings, order_rows
from glassbox.draw._ranks import ranks
from glassbox.draw._rowed import Line, Rowed, Size, in_rows
from glassbox.draw.layered import bends, layout, path_data, upside_down, with_heights
from glassbox.draw.scene import Chip, Link, Part, Scene, picture
from glassbox.draw.svg import DARK, LIGHT, mono_width
from glassbox.records import ForwardGraph, Graph, GraphNode, OpCall, OpLog, SavedTensor, TensorMeta

torchvision = pytest.importorskip("torchvision")

Box = tuple[float, float, float, float]


def classes(element):
    return element.get("class", "").split()


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def rect_of(element):
    x, y, w, h = (float(element.get(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


def text_box(element) -> Box:
    x, y, size = (float(element.get(name)) for name in ("x", "y", "font-size"))
    wide = mono_width(element.text or "", size)
    left = x - wide / 2 if element.get("text-anchor") == "middle" else x
    return left, y - 0.76 * size, left + wide, y + 0.2 * size


def overlap(a: Box, b: Box, by: float = 0.05) -> bool:
    return a[0] < b[2] - by and b[0] < a[2] - by and a[1] < b[3] - by and b[1] < a[3] - by


def inside(a: Box, b: Box, by: float = 0.6) -> bool:
    """Whether a lies in b."""
    return a[0] >= b[0] - by and a[1] >= b[1] - by and a[2] <= b[2] + by and a[3] <= b[3] + by


def colliding(boxes):
    """Pairs of boxes that overlap, by a sweep from the top."""
    found, active = [], []
    for box in sorted(boxes, key=lambda each: each[1]):
        active = [each for each in active if each[3] > box[1]]
        found += [(each, box) for each in active if overlap(each, box)]
        active.append(box)
    return found


def points_of(d: str):
    """Points along a path of M, V, H and C commands."""
    found, x, y = [], 0.0, 0.0
    for command, rest in re.findall(r"([MVHC])([^MVHC]*)", d):
        n = [float(each) for each in re.findall(r"-?[\d.]+", rest)]
        if command == "M":
            x, y = n
            found.append((x, y))
            continue
        end = (x, n[0]) if command == "V" else (n[0], y) if command == "H" else (n[4], n[5])
        handles = n[:4] if command == "C" else [x, y, *end]
        for nr in range(1, 25):
            t = nr / 24
            u = 1 - t
            weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            xs, ys = (x, handles[0], handles[2], end[0]), (y, handles[1], handles[3], end[1])
            found.append(tuple(sum(w * v for w, v in zip(weights, values, strict=True)) for values in (xs, ys)))
        x, y = end
    return found


class Seen:
    """A figure as one sees it: boxes, chips, texts and lines with their places."""

    def __init__(self, figure):
        self.figure = figure
        self.root = ET.fromstring(figure.text)
        groups = [each for each in self.root.iter() if tag(each) == "g"]
        self.nodes = [each for each in groups if "node" in classes(each)]
        self.chips = [each for each in groups if "chip" in classes(each) and list(each)[-1].tag.endswith("text")]
        self.links = [each for each in groups if "link" in classes(each)]
        self.texts = [each for each in self.root.iter() if tag(each) == "text"]
        self.frames = [rect_of(each) for each in self.root.iter() if "frame" in classes(each)]

    def box(self, group) -> Box:
        return rect_of(next(each for each in group if tag(each) == "rect"))

    def words(self):
        return [each.text for each in self.texts]

    def within(self, node):
        """Texts and chips of a box."""
        return [each for each in node.iter() if tag(each) == "text"]

    def boxes(self):
        """key -> (the class that colours the box, the texts in it)."""
        return {
            node.get("data-node"): (classes(node)[1], [each.text for each in self.within(node)]) for node in self.nodes
        }

    def outer_chips(self):
        inner = {id(chip) for node in self.nodes for chip in node.iter()}
        return [chip for chip in self.chips if id(chip) not in inner]

    def titles(self):
        return [each.text for each in self.root.iter() if tag(each) == "title"]


def check(figure) -> Seen:
    """All that must hold of every drawing."""
    seen = Seen(figure)
    boxes = [seen.box(node) for node in seen.nodes]
    solid = boxes + [seen.box(chip) for chip in seen.outer_chips()]
    assert colliding(solid) == []
    assert colliding([text_box(each) for each in seen.texts]) == []
    sheet = (0.0, 0.0, figure.width, figure.height)
    for each in [*solid, *seen.frames, *map(text_box, seen.texts)]:
        assert inside(each, sheet), each
    for node, box in zip(seen.nodes, boxes, strict=True):
        for each in seen.within(node):
            assert inside(text_box(each), box), each.text
        for chip in node.iter():
            if "chip" in classes(chip):
                assert inside(seen.box(chip), box)
    for chip in seen.chips:
        assert inside(text_box(list(chip)[-1]), seen.box(chip))
    check_lines(seen, solid)
    for one, two in ((a, b) for nr, a in enumerate(seen.frames) for b in seen.frames[:nr]):
        assert not overlap(one, two) or inside(one, two, by=-5) or inside(two, one, by=-5)
    for frame in seen.frames:
        for box in solid:
            assert not overlap(frame, box) or inside(box, frame), (frame, box)
    return seen


def check_lines(seen, solid):
    """No line runs through a box; it may touch those at its ends."""
    ordered = sorted(solid, key=lambda box: box[1])
    tallest = max((box[3] - box[1] for box in solid), default=0)
    tops = [box[1] for box in ordered]
    for link in seen.links:
        edge = next(each for each in link if "edge" in classes(each))
        for x, y in points_of(edge.get("d")):
            for box in ordered[bisect_left(tops, y - tallest - 1) : bisect_right(tops, y)]:
                through = box[0] + 1 < x < box[2] - 1 and box[1] + 1 < y < box[3] - 1
                assert not through, (edge.get("d"), box)


# Graphs to draw


def graph(*edges, names=()):
    """A backward graph: node k leads to the nodes of edges[k]; those that lead nowhere are leaves."""
    count = 1 + max([len(edges) - 1, *(to for each in edges for to in each if to is not None)])
    nodes = []
    for nr in range(count):
        targets = edges[nr] if nr < len(edges) else ()
        leaf = not targets
        nodes.append(
            GraphNode(
                nr,
                "AccumulateGrad" if leaf else f"Op{nr}Backward0",
                None if leaf else count - nr,
                tuple(None if to is None else (to, 0) for to in targets),
                ((2, 3),),
                leaf=(2, 3) if leaf else None,
                kind="leaf" if leaf else "",
                variables=((0, names[nr]),) if nr < len(names) and names[nr] else (),
                dtypes=("float32",),
            )
        )
    return Graph(tuple(nodes), ((0, 0, "loss"),))


def of_model(model, *inputs, loss=lambda out: out.sum()):
    out = model(*inputs)
    return xray.grad_graph(loss(out), model=model)


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    model = torchvision.models.resnet18()
    return of_model(model, torch.randn(2, 3, 32, 32))


def lstm():
    # In float64 no fused kernel takes it all in one node.
    net = torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True).double()
    return of_model(net, torch.randn(4, 1, 3).double(), loss=lambda out: out[0].sum() + out[1][0].mean())


def transformer():
    return of_model(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(2, 5, 16))


def densenet():
    return of_model(torchvision.models.densenet121(), torch.randn(2, 3, 32, 32))


def googlenet():
    model = torchvision.models.googlenet(init_weights=False, aux_logits=False)
    return of_model(model, torch.randn(2, 3, 32, 32))


@pytest.mark.parametrize("make", [lstm, transformer, googlenet], ids=lambda make: make.__name__)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_drawings_of_models_are_in_order(make, direction):
    torch.manual_seed(0)
    check(make().figure(direction=direction))


@pytest.mark.parametrize("leaves", ["beside", "nodes"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_resnet18_is_in_order(resnet, leaves, direction):
    seen = check(resnet.figure(leaves=leaves, direction=direction))
    assert len(seen.nodes) == len(resnet) - (62 if leaves == "beside" else 0) + 1


def test_densenet121_is_in_order_folded_and_whole():
    torch.manual_seed(0)
    found = densenet()
    seen = check(found.figure())
    assert len(seen.nodes) <= 151
    assert "Too many to draw one by one" in " ".join(seen.words())
    whole = check(found.figure(limit=10_000))
    assert len(whole.nodes) == len(found) - len(found.leaves()) + 1


edges_of = st.integers(1, 26).flatmap(
    lambda count: st.tuples(
        *(st.lists(st.integers(nr + 1, count), min_size=0, max_size=4) for nr in range(count)),
    )
)


@given(edges_of, st.sampled_from(["forward", "backward"]), st.sampled_from(["nodes", "beside"]))
def test_random_graphs_are_in_order(edges, direction, leaves):
    check(graph(*map(tuple, edges)).figure(direction=direction, leaves=leaves))


modules = st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "e", "e.f"])


def in_modules(edges, data):
    plain = graph(*map(tuple, edges))
    return replace(plain, nodes=tuple(replace(node, module=data.draw(modules)) for node in plain))


@given(edges_of, st.data())
def test_random_graphs_with_modules_are_in_order(edges, data):
    plain = graph(*map(tuple, edges))
    placed = [
        GraphNode(n.id, n.name, n.sequence_nr, n.edges, n.outputs, leaf=n.leaf, module=data.draw(modules))
        for n in plain
    ]
    check(graph_figure(Graph(tuple(placed), plain.roots), leaves=data.draw(st.sampled_from(["nodes", "beside"]))))


@given(edges_of, st.integers(1, 12), st.data())
def test_random_graphs_are_in_order_folded(edges, limit, data):
    plain = graph(*map(tuple, edges))
    placed = [
        GraphNode(n.id, n.name, n.sequence_nr, n.edges, n.outputs, leaf=n.leaf, module=data.draw(modules))
        for n in plain
    ]
    check(graph_figure(Graph(tuple(placed), plain.roots), limit=limit))


# Layout


def test_rows_leaves_stand_right_above_their_use():
    assert ranks(5, [(0, 1), (1, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]
    assert ranks(4, [(0, 3), (1, 2), (2, 3)]) == [1, 0, 1, 2]
    assert ranks(0, []) == []


def test_rows_what_nothing_ties_to_the_rest_stands_beside_what_comes_next():
    assert ranks(6, [(0, 1), (1, 2), (2, 4), (4, 5)]) == [0, 1, 2, 3, 3, 4]


def test_rows_refuse_a_cycle():
    with pytest.raises(ValueError, match="cycle"):
        ranks(2, [(0, 1), (1, 0)])


@given(edges_of)
def test_every_link_goes_down(edges):
    links = [(source, target) for source, targets in enumerate(edges) for target in targets]
    found = ranks(len(edges) + 1, links)
    assert all(found[source] < found[target] for source, target in links)
    assert min(found) == 0


def test_crossings_are_counted_and_taken_away():
    up, down = [[], [], [1], [0]], [[3], [2], [], []]
    assert crossings([[0, 1], [2, 3]], down, [0, 1, 0, 1]) == 1
    found = order_rows([[0, 1], [2, 3]], up, down)
    place = {node: nr for row in found for nr, node in enumerate(row)}
    assert crossings(found, down, [place[nr] for nr in range(4)]) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14))
def test_crossings_agree_with_counting_pair_by_pair(links):
    down = [[] for _ in range(12)]
    for source, target in links:
        down[source].append(6 + target)
    expected = sum((a - c) * (b - d) < 0 for nr, (a, b) in enumerate(links) for c, d in links[:nr])
    assert crossings([list(range(6)), list(range(6, 12))], down, [*range(6), *range(6)]) == expected


def square(side=40.0):
    return Size(side / 2, side / 2, side, side / 2 - 4)


def test_a_chain_is_a_straight_line():
    found = layout([square()] * 4, [Line(0, 1), Line(1, 2), Line(2, 3)])
    assert len({node.x for node in found.nodes}) == 1
    assert all(len({x for x, _ in line}) == 1 for line in found.lines)


def test_a_chain_stays_straight_beside_what_ends_at_it_and_leaves_it():
    """Node 4 is a leaf of 2, node 5 hangs on 1 and leads nowhere, and 0 skips to 3."""
    lines = [Line(0, 1), Line(1, 2), Line(2, 3), Line(4, 2), Line(1, 5), Line(0, 3)]
    found = layout([square()] * 6, lines)
    assert len({round(found.nodes[nr].x, 6) for nr in (0, 1, 2, 3)}) == 1


def test_links_from_one_port_are_one_line_until_they_branch():
    lines = [Line(0, 1), Line(1, 2), Line(2, 3), Line(3, 4), Line(0, 3), Line(0, 4)]
    found = layout([square()] * 5, lines)
    shared = set(found.lines[4]) & set(found.lines[5])
    assert len(shared) >= 2
    apart = layout([square()] * 5, [*lines[:5], Line(0, 4, port=1)])
    assert not set(apart.lines[4]) & set(apart.lines[5])


def test_a_line_begins_and_ends_at_its_boxes():
    lines = [Line(0, 1), Line(0, 2), Line(1, 3), Line(2, 3), Line(0, 3)]
    found = layout([square(), square(80), square(20), square()], lines)
    for line, points in zip(lines, found.lines, strict=True):
        source, target = found.nodes[line.source], found.nodes[line.target]
        assert points[0][1] == source.bottom and source.left < points[0][0] < source.right
        assert points[-1][1] == target.y and target.left < points[-1][0] < target.right
        assert all(a[1] <= b[1] for a, b in pairwise(points))


def test_two_links_between_the_same_boxes_end_apart():
    found = layout([square(), square()], [Line(0, 1), Line(0, 1)])
    assert abs(found.lines[0][-1][0] - found.lines[1][-1][0]) >= 8


def test_upside_down_keeps_what_is_above_what():
    found = layout([square(), square(80), square(20)], [Line(0, 1), Line(0, 2)])
    turned = upside_down(found)
    assert turned.nodes[0].y > turned.nodes[1].bottom
    assert upside_down(turned) == found


def test_a_path_is_written_with_upright_ends():
    points = ((0.0, 0.0), (0.0, 10.0), (20.0, 40.0))
    assert path_data(points, lambda value: f"{value:g}") == "M0 0V10C0 25 20 25 20 40"
    assert bends(points)[1] == ((0.0, 10.0), (0.0, 25.0), (20.0, 25.0), (20.0, 40.0))


def test_frames_hold_their_modules_and_nothing_else():
    rowed = in_rows([square()] * 4, [Line(0, 1), Line(1, 2), Line(2, 3)], ["", "a.x", "a.y", "b"], 10)
    found = clusters(rowed, ["", "a.x", "a.y", "b"])
    assert [(frame.module, frame.nodes) for frame in found] == [("a", (1, 2))]
    placed = with_heights(rowed, lambda row: room_above(found, row))
    x, y, w, h = rectangle(found[0], found, placed)
    assert placed.nodes[0].bottom <= y <= placed.nodes[1].y - 15
    assert placed.nodes[2].bottom < y + h <= placed.nodes[3].y
    assert x < placed.nodes[1].left and x + w > placed.nodes[1].right


def test_a_frame_that_would_hold_another_module_is_not_drawn():
    rowed = in_rows([square()] * 3, [Line(0, 1), Line(1, 2)], ["a", "b", "a"], 10)
    assert clusters(rowed, ["a", "b", "a"]) == []


def test_of_two_frames_that_would_overlap_one_is_drawn():
    """a goes down to the right, b to the left of it: neither frame holds a node of the other, but they meet."""
    rowed = Rowed((square(),) * 4, (), (0, 1, 1, 2), (0.0, 140.0, -60.0, 60.0), {}, {})
    assert [frame.module for frame in clusters(rowed, ["a", "a", "b", "b"])] == ["a"]
    apart = Rowed((square(),) * 4, (), (0, 1, 2, 3), (0.0, 140.0, -60.0, 60.0), {}, {})
    assert [frame.module for frame in clusters(apart, ["a", "a", "b", "b"])] == ["a", "b"]


# Folding


def test_runs_follow_the_innermost_modules_that_are_few_enough():
    paths = ["", "a.0", "a.0", "a.1", "a.1", "b"]
    links = [(nr, nr + 1) for nr in range(5)]
    assert [run.nodes for run in folded(paths, links, 6)] == [(nr,) for nr in range(6)]
    assert [(run.module, run.nodes) for run in folded(paths, links, 4)] == [
        ("", (0,)),
        ("a.0", (1, 2)),
        ("a.1", (3, 4)),
        ("b", (5,)),
    ]
    assert [(run.module, run.nodes) for run in folded(paths, links, 3)] == [
        ("", (0,)),
        ("a", (1, 2, 3, 4)),
        ("b", (5,)),
    ]


def test_chains_become_one_and_what_is_left_is_cut_in_equal_runs():
    chain = [(nr, nr + 1) for nr in range(9)]
    assert [run.nodes for run in folded([""] * 10, chain, 5)] == [tuple(range(10))]
    assert [len(run.nodes) for run in folded([""] * 10, [], 4)] == [3, 3, 3, 1]


@given(edges_of, st.integers(1, 10), st.data())
def test_runs_hold_each_node_once_in_order_and_form_no_cycle(edges, limit, data):
    count = len(edges) + 1
    links = [(source, target) for source, targets in enumerate(edges) for target in targets]
    runs = folded([data.draw(modules) for _ in range(count)], links, limit)
    assert [nr for run in runs for nr in run.nodes] == list(range(count))
    assert len(runs) <= max(limit, 1)
    run_of = {node: nr for nr, run in enumerate(runs) for node in run.nodes}
    assert all(run_of[source] <= run_of[target] for source, target in links)


def test_a_chain_of_20_000_nodes_is_drawn_as_one_box_and_says_so():
    deep = graph(*((nr + 1,) for nr in range(20_000)))
    seen = check(deep.figure())
    assert "20,001 nodes, 1 leaf, 0 B saved for backward. Too many to draw one by one:" in " ".join(seen.words())
    assert "20,000 nodes, 1 leaf" in seen.words()


# What a backward graph's drawing says


def small():
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(3.0, requires_grad=True)
    c = torch.tensor(4.0, requires_grad=True)
    z = (a + b) * c
    return xray.grad_graph(z)


def test_the_graph_of_a_plus_b_times_c():
    """Leaves in green above, operators in blue, the result in pink below; each with what it keeps."""
    seen = check(small().figure())
    boxes = {
        node.get("data-node"): (classes(node)[1], [each.text for each in seen.within(node)]) for node in seen.nodes
    }
    assert boxes == {
        "n4": ("r1", ["a", "f32[]"]),
        "n3": ("r1", ["b", "f32[]"]),
        "n1": ("r0", ["AddBackward0", "f32[]"]),
        "n2": ("r1", ["c", "f32[]"]),
        "n0": ("r0", ["MulBackward0", "f32[]", "other 4 B", "self 4 B"]),
        "root0": ("r3", ["z", "f32[]"]),
    }
    assert "5 nodes, 3 leaves, 8 B saved for backward" in seen.words()
    order = {name: seen.box(node)[1] for name, node in zip(boxes, seen.nodes, strict=True)}
    assert order["n4"] < order["n1"] < order["n0"] < order["root0"]


def test_direction_turns_boxes_and_arrows():
    forward, backward = Seen(small().figure()), Seen(small().figure(direction="backward"))

    def tops(seen):
        return {node.get("data-node"): seen.box(node)[1] for node in seen.nodes}

    assert tops(forward)["root0"] > tops(forward)["n0"] > tops(forward)["n4"]
    assert tops(backward)["root0"] < tops(backward)["n0"] < tops(backward)["n4"]
    for seen in (forward, backward):
        for link in seen.links:
            ends = points_of(next(each for each in link if "edge" in classes(each)).get("d"))
            assert ends[0][1] < ends[-1][1]


def test_pointing_at_a_box_tells_all_of_a_node_and_at_an_arrow_whose_gradient_it_is():
    titles = Seen(small().figure()).titles()
    assert (
        "MulBackward0 (node 0, number 1)\nvariable: z\noutput: f32[] cpu\n"
        "keeps other: float32[], 4 B, leaf, c\nkeeps self: float32[], 4 B, another node's output"
    ) in [re.sub(r"number \d+", "number 1", title) for title in titles]
    assert "gradient 0 of MulBackward0 (node 0) goes to AddBackward0 (node 1), input 0" in titles


def test_what_is_kept_is_coloured_by_whose_it_is_and_by_what_became_of_it():
    def chip(**what):
        node = GraphNode(0, "XBackward0", 1, (), ((2,),), (SavedTensor("self", (2,), "float32", 8, **what),))
        seen = Seen(graph_figure(Graph((node,), ())))
        return classes(seen.chips[0])[1:-1], list(seen.chips[0])[-1].text

    assert chip(kind="inner") == (["hot", "hot"], "self 8 B")
    assert chip(kind="result") == (["hot", "hot"], "self 8 B")
    assert chip(kind="parameter") == (["r1", "kept-leaf"], "self 8 B")
    assert chip(kind="constant") == (["out", "kept-other"], "self 8 B")
    assert chip(state="freed") == (["out", "gone", "gone"], "self freed")
    assert chip(state="packed") == (["r2", "kept-packed"], "self packed")
    assert chip(state="changed") == (["bad", "bad"], "self 8 B, changed")


def test_an_input_without_gradient_is_a_ring_on_the_edge():
    x = torch.randn(3, requires_grad=True)
    seen = check(xray.grad_graph(x * torch.ones(3)).figure())
    assert sum(tag(each) == "circle" for each in seen.root.iter()) == 1


def test_in_a_large_graph_leaves_stand_beside_their_use_and_what_is_kept_is_dots_and_a_sum(resnet):
    seen = check(resnet.figure())
    conv = next(node for node in resnet if node.module == "layer1.0.conv1" and node.leaf is None)
    box = next(node for node in seen.nodes if node.get("data-node") == f"n{conv.id}")
    assert [each.text for each in seen.within(box)][:2] == ["ConvolutionBackward0", "f32[2, 64, 8, 8]"]
    weight = resnet.named("layer1.0.conv1.weight")
    chip = next(chip for chip in seen.chips if f"n{weight.id}" in classes(chip))
    assert list(chip)[-1].text == "weight [64, 64, 3, 3]"
    assert seen.box(chip)[2] < seen.box(box)[0]
    dots = [each for each in box.iter() if "chip" in classes(each) and tag(list(each)[-1]) == "rect"]
    assert len(dots) == 2


def test_frames_of_resnet18_are_its_blocks(resnet):
    seen = Seen(resnet.figure())
    frames = {each.get("data-module") for each in seen.root.iter() if each.get("data-module")}
    blocks = {f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2)}
    downsamples = {f"layer{stage}.0.downsample" for stage in range(2, 5)}
    assert frames == {"layer1", "layer2", "layer3", "layer4", *blocks, *downsamples}


def test_a_skip_connection_is_a_line_of_its_own_beside_its_block(resnet):
    places = graph_layout(resnet, leaves="beside")
    scene_links = list(resnet.edges())
    add = next(node for node in reversed(resnet.nodes) if node.name == "AddBackward0")
    assert len(scene_links) > len(places.links) > 0
    x, y, w, _ = places.boxes[f"n{add.id}"]
    arriving = [line for line in places.links if line[-1][1] == y and x <= line[-1][0] <= x + w]
    longest = max(arriving, key=len)
    assert len(arriving) == 2
    block = [places.boxes[f"n{n.id}"] for n in resnet if n.module.startswith("layer1.0") and n.leaf is None]
    aside = max(px for px, _ in longest)
    assert aside > max(bx + bw for bx, _, bw, _ in block)


def test_the_layout_is_data_by_the_same_keys():
    found = small()
    places, seen = graph_layout(found), Seen(found.figure())
    assert set(places.boxes) == {node.get("data-node") for node in seen.nodes}
    for node in seen.nodes:
        x, y, w, h = places.boxes[node.get("data-node")]
        assert seen.box(node) == pytest.approx((x, y, x + w, y + h), abs=0.011)
    assert len(places.links) == len(seen.links) == 5
    assert (places.width, places.height) == (seen.figure.width, seen.figure.height)


def test_a_graph_is_drawn_the_same_each_time(resnet):
    first, second = resnet.figure(), resnet.figure()
    assert first == second


def test_options_that_are_unknown_are_refused():
    for options, words in (
        ({"direction": "up"}, 'use "forward" or "backward"'),
        ({"leaves": "none"}, 'use "auto", "nodes" or "beside"'),
        ({"limit": 0}, "use 1 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            graph_figure(small(), **options)


def test_no_graph_and_one_node_can_be_drawn():
    check(graph_figure(Graph(())))
    check(graph_figure(graph(())))


def test_a_large_figure_scrolls_and_has_a_choice_of_scales_without_script(resnet):
    large, tiny = resnet.figure(), small().figure()
    assert large.scrolls and not tiny.scrolls
    html = large._repr_html_()
    assert html.count('type="radio"') == 3 and "overflow:auto" in html and "<script" not in html
    assert "max-width:100%;height:auto" not in large.text
    assert tiny._repr_html_().startswith("<svg")


def test_the_record_shows_its_figure_and_its_table():
    html = small()._repr_html_()
    assert html.startswith("<svg") and "<table" in html and "<details" in html


def test_the_text_alternative_tells_a_small_graph_whole():
    assert described(small(), "caption") == (
        "caption. 0 is MulBackward0 of z keeping other, self, leading to AddBackward0 1, AccumulateGrad 2; "
        "1 is AddBackward0, leading to AccumulateGrad 4, AccumulateGrad 3; "
        "2 is AccumulateGrad of c; 3 is AccumulateGrad of b; 4 is AccumulateGrad of a."
    )
    seen = Seen(small().figure())
    assert next(each for each in seen.root.iter() if tag(each) == "desc").text.startswith("5 nodes, 3 leaves")


def test_long_names_are_cut_and_markup_is_escaped():
    odd = graph((1,), names=["", "<b>" + "x" * 90])
    seen = check(graph_figure(odd))
    assert any(word.startswith("<b>xxx") and word.endswith("…") for word in seen.words())


def test_mini_and_real_graphs_have_the_same_drawing():
    def picture_of(m):
        x, w = m.ones(3, 4, requires_grad=True), m.ones(4, 2, requires_grad=True)
        loss = ((x @ w).relu() * 2).sum()
        seen = check(xray.grad_graph(loss, names={"x": x, "w": w}).figure())
        return sorted([text.text for text in seen.within(node)] for node in seen.nodes)

    assert picture_of(torch) == picture_of(mini)


# Forward graphs


def test_a_forward_graph_is_in_order_and_ties_calls_to_backward_nodes():
    x, w = torch.ones(3, 4), torch.ones(4, 2, requires_grad=True)

    def net(x):
        h = x @ w
        h[0].mul_(2)
        return h.sum()

    found = xray.forward_graph(net, x)
    seen = check(found.figure())
    boxes = {
        node.get("data-node"): (classes(node)[1], [each.text for each in seen.within(node)]) for node in seen.nodes
    }
    assert boxes["c0"] == ("r0", ["mm", "h: f32[3, 2]", "MmBackward0 keeps 48 B"])
    assert boxes["c1"][0] == "r4" and boxes["c1"][1][0] == "select.int"
    assert boxes["c2"][0] == "r5" and boxes["c2"][1][0] == "mul_.Tensor"
    assert boxes["result0"] == ("r3", ["result", "f32[]"])
    lines = [classes(link)[-1] for link in seen.links]
    assert lines.count("alias") == 1 and lines.count("memory") == 1


def test_forward_graphs_of_models_are_in_order():
    torch.manual_seed(0)
    net = torchvision.models.resnet18()
    seen = check(xray.forward_graph(net, torch.randn(2, 3, 32, 32)).figure())
    assert {"layer1.0", "layer4.1", "bn1"} <= {each.get("data-module") for each in seen.root.iter()}
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    check(forward_figure(xray.forward_graph(layer, torch.randn(2, 5, 16)), inputs="nodes"))


def chain_of_calls(count):
    metas = [TensorMeta(nr, (2,), storage=nr + 1) for nr in range(count + 1)]
    calls = [OpCall("aten.sin.default", (), (), "", (metas[nr],), (metas[nr + 1],)) for nr in range(count)]
    return ForwardGraph.of_log(OpLog(tuple(calls)), results=[(count, "y")])


def test_a_long_program_is_drawn_folded_and_says_so():
    seen = check(chain_of_calls(5000).figure())
    assert "5,000 calls" in seen.words()
    assert "Too many to draw one by one" in " ".join(seen.words())


def test_forward_layout_has_the_same_keys():
    found = chain_of_calls(3)
    assert set(forward_layout(found).boxes) == {"t0", "c0", "c1", "c2", "result0"}
    with pytest.raises(ValueError, match='use "auto", "nodes" or "beside"'):
        forward_figure(found, inputs="all")


# Scenes


def test_chips_wrap_into_rows_of_their_box():
    chips = tuple(Chip(f"saved number {nr}", "hot") for nr in range(9))
    part = Part("a", "T", "r0", ("line",), chips, tuple(Chip(f"leaf {nr}", "r1") for nr in range(5)))
    scene = Scene((part, Part("b", "U", "r0")), (Link("a", "b"),), "t", "d", "caption " * 20, (("r0", "x"),))
    seen = check(picture(scene))
    box = seen.box(seen.nodes[0])
    assert box[2] - box[0] < 300
    assert len({seen.box(chip)[1] for chip in seen.chips if inside(seen.box(chip), box)}) == 5


def contrast(a, b):
    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_muted_lines_in_boxes_are_readable(palette):
    for fill in ("r0", "r1", "r2", "r3", "r4", "r5", "out"):
        assert contrast(palette[fill], palette["muted"]) >= 4.5, fill


def test_drawing_graphs_needs_neither_torch_nor_a_program():
    code = (
        "import sys, os; os.environ['PATH'] = ''; from glassbox.records import Graph, GraphNode\n"
        "print(len(Graph((GraphNode(0, 'A', 1, ()),)).figure().text) > 0, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
