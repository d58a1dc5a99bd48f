"""native: the kernels, each a plain function over the elements (PyTorch: aten/src/ATen/native)."""
