"""core: the dispatcher and what it keeps about each operator (PyTorch: aten/src/ATen/core)."""
