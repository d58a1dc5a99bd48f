"""GradMode: whether calls record what a backward pass would need (PyTorch: c10/core/GradMode.h)."""

from contextvars import ContextVar

grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)
