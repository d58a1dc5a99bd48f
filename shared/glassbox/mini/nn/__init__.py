"""nn: layers with state, just enough to train what the course trains (PyTorch: torch/nn)."""

from . import functional, init
from .modules.activation import LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from .modules.batchnorm import BatchNorm2d
from .modules.container import ModuleList, Sequential
from .modules.conv import Conv2d
from .modules.dropout import Dropout
from .modules.flatten import Flatten, Identity
from .modules.linear import Linear
from .modules.loss import CrossEntropyLoss, MSELoss
from .modules.module import Module
from .modules.normalization import LayerNorm
from .modules.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from .modules.sparse import Embedding
from .parameter import Buffer, Parameter

__all__ = [
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
    "init",
]
