"""aten: what can be done with tensors (PyTorch: aten/src/ATen)."""
