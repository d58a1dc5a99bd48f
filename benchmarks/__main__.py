"""`python -m benchmarks [PART ...]`: the mini-framework's and the instruments' speed beside PyTorch's, here."""

from __future__ import annotations

import argparse
import os
import sys

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> int:
    """Prints the tables; the exit code is 0 whatever the ratios are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help="ratios, networks, graphs, memory, hips, xray; all without")
    parser.add_argument("--rounds", type=int, default=25, help="rounds in which all ways alternate (25)")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # NumPy's and PyTorch's thread pools take their size when they are loaded.
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], {**os.environ, **ONE_THREAD})
    import torch

    from benchmarks import mini, xray
    from glassbox.records import text_table

    torch.set_num_threads(1)
    parts = {
        "ratios": lambda: mini.ratios(options.rounds),
        "networks": mini.networks,
        "graphs": mini.long_graphs,
        "memory": mini.training_memory,
        "hips": mini.hips_autograd,
        "xray": lambda: xray.log_costs(options.rounds),
    }
    unknown = [part for part in options.parts if part not in parts]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; the parts are {', '.join(parts)}")
    for name, part in parts.items():
        if not options.parts or name in options.parts:
            rows = list(part())
            if rows:
                print(text_table(rows), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
