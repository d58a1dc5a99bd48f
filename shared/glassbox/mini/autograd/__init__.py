"""autograd: the layer of the dispatcher that records, and the engine that plays it back (PyTorch: torch/csrc/autograd)."""
