"""What the browser tests share: a copy of the course, a server, a browser, watched pages, pictures."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
import browsing  # noqa: E402
from browsing import Ran, Watch  # noqa: E402
from serving import Jupyter, copy_course  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "test-artifacts"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No name but this machine's is looked up: without a network, and without the slowness of intercepting.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"

NewPage = Callable[..., Page]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leaves a picture of each open page, and the end of each server's log, where a test failed."""
    report = yield
    if report.failed:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.name).strip("-")
        pages = [page for context in browsing.OPEN for page in context.pages]
        for number, page in enumerate(pages, start=1):
            # A page that is gone must not hide why the test failed.
            with suppress(Error):
                browsing.picture(page, ARTEFACTS, f"failed-{name}-{number}")
        for server in Jupyter.running:
            report.sections.append((f"JupyterLab of {server.user}: {server.log}", server.tail()))
    return report


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """The folder in which pictures are kept, without those of earlier failures."""
    ARTEFACTS.mkdir(exist_ok=True)
    for old in ARTEFACTS.glob("failed-*.png"):
        old.unlink()
    return ARTEFACTS


@pytest.fixture(scope="session")
def browser(artefacts: Path) -> Iterator[Browser]:
    """A Chromium of this machine."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"no browser: install Chromium so that one of {', '.join(BROWSERS)} is on the PATH")
    with sync_playwright() as playwright:
        argv = ["--no-sandbox", "--disable-gpu", ALONE]
        chromium = playwright.chromium.launch(executable_path=found, args=argv)
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    """Makes pages as `browsing.visiting` does, open until the test ends."""
    with ExitStack() as stack:
        yield lambda *args, **more: stack.enter_context(browsing.visiting(browser, *args, **more))


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    """The colour scheme that the system asks for, which JupyterLab follows here."""
    return request.param


@pytest.fixture
def watch() -> Watch:
    """What goes wrong in the test's `page`."""
    return Watch()


@pytest.fixture
def page(new_page: NewPage, theme: str, watch: Watch) -> Page:
    """A page in the test's theme."""
    return new_page(theme, watch)


@pytest.fixture(scope="session")
def course_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course that the tests of this session share."""
    return copy_course(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="session")
def server(course_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A server of that copy."""
    with Jupyter(course_copy, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="session")
def executed(browser: Browser, server: Jupyter) -> Iterator[Callable[[str], Ran]]:
    """Opens a notebook of the course and runs it whole at the first call; its page stays open."""
    with ExitStack() as stack:

        @cache
        def run(name: str) -> Ran:
            watch = Watch()
            page = stack.enter_context(browsing.visiting(browser, "light", watch))
            browsing.open_lab(page, server, f"notebooks/{name}.ipynb")
            return Ran(name, page, watch, browsing.run_all(page))

        yield run
