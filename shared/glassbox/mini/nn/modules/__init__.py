"""modules: the layers (PyTorch: torch/nn/modules)."""
