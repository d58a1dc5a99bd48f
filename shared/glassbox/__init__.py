"""Glassbox: a mini-framework that rebuilds PyTorch's core in small, and instruments for the real one.

Nothing heavy is imported here: `glassbox.mini` needs NumPy only, `glassbox.xray` loads torch when it is asked
about a torch tensor.
"""

__version__ = "0.1.0"
