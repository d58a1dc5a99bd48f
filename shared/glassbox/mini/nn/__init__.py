"""nn: layers with state, just enough to train what the course trains (PyTorch: torch/nn)."""

from . import functional, init
from .modules.activation import GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from .modules.batchnorm import BatchNorm1d, BatchNorm2d
from .modules.container import ModuleDict, ModuleList, Sequential
from .modules.conv import Conv1d, Conv2d
from .modules.dropout import Dropout
from .modules.flatten import Flatten
from .modules.linear import Identity, Linear
from .modules.loss import CrossEntropyLoss, MSELoss, NLLLoss
from .modules.module import Module
from .modules.normalization import LayerNorm
from .modules.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from .modules.sparse import Embedding
from .parameter import Buffer, Parameter

__all__ = [
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "Identity",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "functional",
    "init",
]
