"""Lab 2, the dispatcher: eight steps of a call, seven of them pieces of mini, and four things that it lacks.

The oracle is the real PyTorch throughout: throwaway operators registered and called as a case says, or hooks
around its own kernels. Nothing here, nor elsewhere in this package, answers an extension task.
"""

from __future__ import annotations

from .batching import pick_rule
from .calls import compute_key_set, effective_key_set
from .casting import plan_casts
from .highest import highest_backend, highest_functionality
from .key_sets import key_set, remove_key
from .predicting import predict_hops
from .resolving import resolve_kernel
from .rewriting import rewrite_call
from .running import run_call

TASKS = (
    key_set,
    remove_key,
    highest_functionality,
    highest_backend,
    compute_key_set,
    effective_key_set,
    resolve_kernel,
    run_call,
    plan_casts,
    rewrite_call,
    pick_rule,
    predict_hops,
)
