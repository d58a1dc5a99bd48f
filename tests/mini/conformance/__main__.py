"""The report: `python -m tests.mini.conformance [entry ...] [--samples N] [--full] [--failures]`."""

import argparse
import fnmatch
import sys
import time
from collections import Counter

from . import checks, database
from .ledger import KINDS, Ledger

QUICK_SAMPLES = 300


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mini.conformance", description=__doc__)
    parser.add_argument("entries", nargs="*", help="names or patterns of op_db's entries; all without")
    parser.add_argument("--samples", type=int, default=QUICK_SAMPLES, help="most samples per entry and dtype")
    parser.add_argument("--full", action="store_true", help="every sample in every layout")
    parser.add_argument("--failures", action="store_true", help="list failures only")
    options = parser.parse_args()
    wanted = [
        entry
        for entry in database.entries().values()
        if not options.entries or any(fnmatch.fnmatchcase(entry.name, each) for each in options.entries)
    ]
    most = None if options.full else options.samples
    total, left_out, start = Ledger(), {}, time.monotonic()
    print(f"{'entry':<44}" + "".join(f"{kind:>14}" for kind in KINDS) + f"{'left out':>10}")
    for entry in wanted:
        begun = time.monotonic()
        ledger = Ledger(entry.name)
        for dtype in database.DTYPES:
            ledger.add(checks.check(entry, dtype, most, options.full))
        ledger.add(checks.check_errors(entry))
        total.add(ledger)
        left_out[entry.name] = ledger.left_out
        if ledger.failed or not options.failures:
            print(_row(entry.name, ledger) + f"  {time.monotonic() - begun:5.1f} s", flush=True)
        for kind, messages in ledger.messages.items():
            for message in messages:
                print(f"    {kind}: {message}")
    print(_row("total", total) + f"  {time.monotonic() - start:5.0f} s")
    reasons: Counter[str] = total.left_out
    print(f"\nleft out: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        names = [name for name, counts in left_out.items() if counts[reason]]
        print(f"  {count:6}  {reason}: {', '.join(names)}")
    missing = database.not_in_mini()
    print(f"\n{len(wanted)} entries checked; {len(missing)} of op_db's are not in mini")
    return 1 if total.failed else 0


def _row(name: str, ledger: Ledger) -> str:
    cells = []
    for kind in KINDS:
        checked = ledger.passed[kind] + ledger.failed[kind]
        cells.append(f"{ledger.passed[kind]}/{checked}" if checked else "")
    return f"{name:<44}" + "".join(f"{cell:>14}" for cell in cells) + f"{sum(ledger.left_out.values()) or '':>10}"


if __name__ == "__main__":
    sys.exit(main())
