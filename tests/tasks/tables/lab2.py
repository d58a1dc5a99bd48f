"""Lab 2: its points, learners' slips, and what is no thought at all."""

from glassbox.mini.aten.core import boxing, dispatch_table, function_schema
from glassbox.mini.c10 import dispatch_key_set, promotion
from glassbox.mini.modes import autocast, batch_rules, vmap, vmap_randomness

from .lab2_slips import SLIPS
from .lab2_ways import RIGHT, TRANSCRIBED, WRONG

POINTS = {
    "key_set": 5,
    "remove_key": 4,
    "highest_functionality": 3,
    "highest_backend": 3,
    "compute_key_set": 6,
    "effective_key_set": 8,
    "resolve_kernel": 11,
    "run_call": 10,
    "plan_casts": 13,
    "rewrite_call": 12,
    "pick_rule": 12,
    "predict_hops": 13,
}
CORE = 8
CORE_WITHOUT_PIECE = ("run_call",)
WRITTEN = "written_why_key_sets"
READ = "notebook 02, "
CALLS: dict[str, tuple[str, ...]] = {}


def _united(key_bits):
    def key_set(keys):
        bits = 0
        for key in keys:
            bits |= key_bits(*key)
        return bits

    return key_set


AS_PIECE = {
    "key_set": _united,
    "resolve_kernel": lambda piece: lambda key, *names: piece(key, *map(frozenset, names)),
}

PIECES = {"key_set": "key_bits"}

TELLING = ("plan_cast", "cast_plan", "rewrite", "pick_rule", "predict_hop", "set_opt_dtype")
NEAR = (
    *(autocast, batch_rules, boxing, dispatch_key_set, dispatch_table, function_schema),
    *(promotion, vmap, vmap_randomness),
)

SHARES = [
    ("resolve_kernel", lambda value: value is None or value[1] in ("backend fallback", "kernel"), 0.05),
]

TRIVIAL = {
    "unites the first": lambda *args: sum(args[0]) if isinstance(args[0], tuple) else args[0],
    "own kernel": lambda *args: (args[0], "kernel"),
    "own fallback": lambda *args: (args[0], "backend fallback"),
    "the first registered": lambda *args: (args[1][0], "kernel"),
    "an autograd kernel": lambda *args: ("Autograd", "autograd kernel"),
    "a math kernel": lambda *args: ("CompositeImplicitAutograd", "math kernel"),
    "the backend only": lambda *args: [(0, args[1], "CPU")],
    "as given, nothing cast": lambda *args: (tuple(one and one[1] for one in args[3]), args[4]),
    "all cast to float32": lambda *args: (("float32",) * len(args[3]), None),
    "arguments as written": lambda *args: (args[1], args[2]),
    "the numbers themselves": lambda *args: ((args[0], args[4]), 0, args[5]),
    "every operator on the CPU": lambda *args: [(op, "CPU") for call in args[0] for op, _ in call],
    "Autograd and CPU": lambda *args: [(call[0][0], key) for call in args[0] for key in ("AutogradCPU", "CPU")],
}
RIGHT_THERE: set[tuple[str, str]] = set()

# What a slip loses on every seed, and nothing else.
LOST = {
    ("remove_key", "subtracted"): {"keys that are not there, or only in part"},
    ("highest_backend", "how many"): {
        "sets of one backend",
        "sets of several backends",
        "no backend, no functionality",
    },
    ("compute_key_set", "backends excluded"): {"excluded keys leave their backend"},
    ("compute_key_set", "nothing without tensors"): {"calls without tensors"},
    ("effective_key_set", "nothing left is 0"): {"nothing is left"},
    ("resolve_kernel", "never ambiguous"): {"AutogradOther"},
    ("resolve_kernel", "no decomposition"): {"rows of the other layers, and of no key at all"},
    ("resolve_kernel", "sparse filled"): {"rows of backends"},
    ("run_call", "goes on after a missing kernel"): {"a kernel is missing"},
    ("run_call", "a missing kernel is no entry"): {"a kernel is missing"},
    ("plan_casts", "no error"): {"promotion meets the other 16-bit dtype"},
    ("plan_casts", "dtype overridden"): {"operators with a dtype argument of their own"},
    ("rewrite_call", "unknown keywords ignored"): {"calls that do not fit the schema"},
    ("pick_rule", "error only with a batch"): {"randomness that was not decided on"},
    ("predict_hops", "no way back"): {"vmap, once and twice"},
}

__all__ = ["RIGHT", "SLIPS", "TRANSCRIBED", "WRONG"]
