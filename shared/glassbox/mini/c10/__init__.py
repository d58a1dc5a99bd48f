"""c10: what a tensor is made of, before there is any operator (PyTorch: c10/core)."""
