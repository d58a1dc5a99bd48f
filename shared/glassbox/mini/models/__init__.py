"""models: networks built of nn (PyTorch: torchvision/models)."""

from .mlp import MLP
from .resnet import ResNet, resnet18

__all__ = ["MLP", "ResNet", "resnet18"]
