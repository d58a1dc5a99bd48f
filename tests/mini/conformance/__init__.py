"""Conformance: mini held against PyTorch's own operator database, op by op, dtype by dtype, sample by sample.

`python -m tests.mini.conformance` prints the table; the tests beside it assert that nothing in it fails.
"""
