"""Automatic differentiation: the layer that records and the engine that plays back (PyTorch: torch/autograd)."""

from . import anomaly, function, graph
from .accumulate_grad import AccumulateGrad
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .checkpoint import checkpoint
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .python_engine import backward, grad

__all__ = [
    "AccumulateGrad",
    "Function",
    "GradcheckError",
    "anomaly",
    "backward",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
