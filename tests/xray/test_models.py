"""Facts about every classification model of torchvision: it can be logged, profiled and graphed, and the three agree.

The quick suite takes one model of each kind, --full all of them, the largest of which need 6 GB.
"""

import gc

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from glassbox import xray

models = pytest.importorskip("torchvision.models", reason="the models are torchvision's")

KINDS = (
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_v2_t",
    "vgg11",
    "vit_b_32",
)
# These draw truncated normal numbers one by one.
SLOW_TO_INITIALIZE = ("googlenet", "inception_v3")
# Constructor arguments and the side of the image, where 64 will not do.
SIZES = {"inception_v3": ({}, 299), "maxvit_t": ({"input_size": (224, 224)}, 224)}
ONE_IMAGE = ("maxvit_t",)
TRAINED = 100_000_000


def made(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    options, side = SIZES.get(name, ({}, 64))
    if name.startswith("vit_"):
        side = 64 if name.endswith("32") else 56 if name.endswith("14") else 64
        options = {"image_size": side}
    if name in SLOW_TO_INITIALIZE:
        options = {"init_weights": False}
    torch.manual_seed(0)
    return models.get_model(name, weights=None, **options), torch.rand(1 if name in ONE_IMAGE else 2, 3, side, side)


def state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


def test_there_is_one_of_each_kind() -> None:
    names = models.list_models(module=models)
    modules = {models.get_model_builder(name).__module__ for name in names}
    assert {models.get_model_builder(name).__module__ for name in KINDS} == modules
    assert len(names) >= 80


@pytest.mark.parametrize("name", models.list_models(module=models))
def test_logged_profiled_and_graphed(name: str, full: bool) -> None:
    if name not in KINDS and not full:
        pytest.skip("one of each kind is enough here; --full takes all")
    model, x = made(name)
    model.eval()
    one = x[:1]
    with torch.no_grad():
        portrait = xray.profile(model, one, repeats=0)
        with xray.op_log() as log:
            model(one)
        with FlopCounterMode(display=False) as flops:
            model(one)
    assert log.ops.counts() == portrait.counts()
    assert flops.get_total_flops() == portrait.flops() > 0
    if sum(p.numel() for p in model.parameters()) < TRAINED:
        check_training(model.train(), x)
    del model, portrait, log
    gc.collect()


def check_training(model: torch.nn.Module, x: torch.Tensor) -> None:
    before, random = state(model), torch.get_rng_state()
    portrait = xray.profile(model, x, repeats=0)
    saved = xray.saved_memory(model, x)
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(before[name], buffer) for name, buffer in model.named_buffers())
    assert all(p.grad is None for p in model.parameters())
    assert portrait.phases() == ("forward", "backward")
    assert portrait.flops("backward") > portrait.flops("forward") > 0
    assert 0 < saved.nbytes() <= saved.peak()
    assert saved.curve[-1] == ("backward", 0)
    output = model(x)
    outputs = [output] if isinstance(output, torch.Tensor) else [each for each in output if each is not None]
    graph = xray.grad_graph(*outputs, model=model)
    leaves = sum(node.leaf is not None for node in graph)
    assert leaves == sum(p.requires_grad for p in model.parameters())
    # A write through a view stands in the graph as CopySlices, around the node of the operator that wrote.
    wrapped = {each.name.partition(".")[0] for node in graph if node.name == "CopySlices" for each in node.saved}
    assert {value.node for value in saved.values} <= {node.name for node in graph} | wrapped
    assert {value.module for value in saved.values} <= {path for path, _ in model.named_modules()}
