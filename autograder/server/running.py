"""Work for a panel in a process of its own: a notebook that runs for a minute must not stop the server, whose
kernels and pages everybody else is using.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass

from .. import labs


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, and what it wrote to its two streams."""

    code: int
    out: str
    log: str


async def python(*words: str) -> Ended:
    """Runs `python -m WORDS` in the course's folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *words,
        cwd=labs.ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:replace"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, log = await process.communicate()
    except BaseException:
        # The server is going down: work that nobody waits for any more goes with it.
        if process.returncode is None:
            process.terminate()
        raise
    return Ended(process.returncode or 0, out.decode(errors="replace"), log.decode(errors="replace"))
