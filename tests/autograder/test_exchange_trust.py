"""The exchange believes nobody: what a student may write, by hand too, reaches only what is theirs."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import tempfile
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.handover import Collect, base, carrying, collect
from autograder.handover.base import now
from autograder.handover.submit import FORMAT
from autograder.settings import configure
from autograder.stamps import read

from .school import COURSE, LAB, NOTEBOOK, Elsewhere, Person, School, names, notebook, said

ACCOUNTS = [
    (entry.pw_name, entry.pw_uid, entry.pw_gid)
    for entry in pwd.getpwall()
    if entry.pw_uid not in (0, os.getuid()) and entry.pw_name.isalnum()
]
ROOT = os.getuid() == 0


@pytest.fixture
def school(tmp_path: Path) -> School:
    made = School(tmp_path)
    made.instructor.do("ReleaseAssignment")
    return made


def owned(path: Path, uid: int) -> None:
    for place in (path, *path.rglob("*")):
        os.chown(place, uid, -1, follow_symlinks=False)


# What lies in a submission


def test_links_pipes_and_sockets_are_left_behind(school: School) -> None:
    (school.instructor.course / "solutions" / LAB / NOTEBOOK).write_text(notebook("the solution"))
    forged = school.forge("ada")
    (forged / "solutions").symlink_to(school.instructor.course / "solutions")
    (forged / "helper.py").symlink_to(school.instructor.course / "gradebook.db")
    (forged / "loop").symlink_to(".")
    os.mkfifo(forged / "data.csv")
    (forged / "sub").mkdir()
    (forged / "sub" / "mine.py").write_text("x = 1")
    with socket.socket(socket.AF_UNIX) as open_socket:
        here = Path.cwd()
        os.chdir(forged)
        try:
            open_socket.bind("socket")
        finally:
            os.chdir(here)
        log = school.instructor.do("Collect")
    collected = school.submitted("ada")
    assert names(collected) == [NOTEBOOK, "sub", "timestamp.txt"]
    assert names(collected / "sub") == ["mine.py"]
    assert all(f"'{name}' (a link)" in log for name in ("solutions", "helper.py", "loop"))
    assert "'data.csv' (a pipe, socket or device)" in log


def test_a_submission_that_is_a_link_is_none_and_the_older_is_taken(school: School) -> None:
    school.forge("ada", "2026-01-05 10:00:00.000000 UTC", "rightful")
    link = school.inbound / f"ada+{LAB}+2026-01-06 10:00:00.000000 UTC+x"
    link.symlink_to(school.instructor.course / "labs" / LAB)
    (school.inbound / f"bob+{LAB}+2026-01-06 10:00:00.000000 UTC+x").write_text("a file")
    log = school.instructor.do("Collect")
    assert f"Left out {link.name!r}: a link" in log
    assert said(school.submitted("ada")) == "rightful"
    assert not school.submitted("bob").exists()


def test_a_notebook_that_is_a_link_is_none_and_the_older_is_taken(school: School) -> None:
    school.forge("ada", "2026-01-05 10:00:00.000000 UTC", "rightful")
    forged = school.forge("ada", "2026-01-06 10:00:00.000000 UTC")
    (forged / NOTEBOOK).unlink()
    (forged / NOTEBOOK).symlink_to(school.instructor.course / "labs" / LAB / NOTEBOOK)
    assert f"it holds no {NOTEBOOK}" in school.instructor.do("Collect")
    assert said(school.submitted("ada")) == "rightful"


def test_what_becomes_a_link_while_it_is_copied_is_left_behind(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = school.root / "secret"
    secret.mkdir()
    (secret / "key.py").write_text("secret")
    forged = school.forge("ada")
    (forged / "sub").mkdir()
    (forged / "sub" / "key.py").write_text("mine")
    (forged / "key.py").write_text("mine")
    copy = carrying._copy

    def swapped(source: int, parts: tuple[str, ...], *others: object) -> None:
        if parts == ("sub", "key.py"):
            shutil.rmtree(forged / "sub")
            (forged / "sub").symlink_to(secret)
        if parts == ("key.py",):
            (forged / "key.py").unlink()
            (forged / "key.py").symlink_to(secret / "key.py")
        copy(source, parts, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(carrying, "_copy", swapped)
    log = school.instructor.do("Collect")
    assert names(school.submitted("ada")) == [NOTEBOOK, "timestamp.txt"]
    assert log.count("cannot be read") == 2


def test_a_hard_link_to_another_users_file_is_left_behind(school: School) -> None:
    """Some systems let anybody make such a link, and a copy would then hold what it leads to."""
    forged = school.forge("ada")
    (school.root / "secret.py").write_text("secret")
    (forged / "helper.py").hardlink_to(school.root / "secret.py")
    done = carrying.Carried()
    target = school.root / "copy"
    target.mkdir()
    with carrying.opened(forged) as source:
        carrying._copy(source, ("helper.py",), target, done, 100, owner=os.getuid() + 1)
        carrying._copy(source, (NOTEBOOK,), target, done, 10_000, owner=os.getuid() + 1)
    assert done.left_out == ["'helper.py' (another user's file)"]
    assert names(target) == [NOTEBOOK]


def test_what_is_too_much_is_left_behind_and_the_notebook_comes_first(school: School) -> None:
    forged = school.forge("ada")
    for number in range(600):
        (forged / f"{number}.txt").write_text("x")
    with (forged / "data.bin").open("wb") as file:
        file.truncate(3_000_000_000)
    deep = forged.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    log = school.instructor.do("Collect")
    assert "and 98 more" in log
    collected = names(school.submitted("ada"))
    assert NOTEBOOK in collected
    assert "data.bin" not in collected
    assert len(collected) == 501


def test_a_folder_with_very_many_entries_is_not_read_to_its_end(school: School) -> None:
    forged = school.forge("ada")
    for number in range(carrying.ENTRIES + 100):
        (forged / f"{number}").mkdir()
    assert f"more than {carrying.ENTRIES} entries" in school.instructor.do("Collect")
    assert said(school.submitted("ada")) == "forged"


def test_names_of_files_cannot_write_into_the_log(school: School) -> None:
    forged = school.forge("ada")
    (forged / "a\nERROR: all is lost").touch()
    (forged / os.fsdecode(b"\xff\xfe.py")).touch()
    log = school.instructor.do("Collect")
    assert "\nERROR" not in log
    assert names(school.submitted("ada")) == [NOTEBOOK, "timestamp.txt"]
    log.encode()


# What a submission calls itself


@pytest.mark.parametrize(
    "name",
    [
        f"..+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"+{LAB}+2026-01-05 10:00:00 UTC+x",
        f".ada+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"a\nb+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"a+b+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"a*+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"{{ada}}+{LAB}+2026-01-05 10:00:00 UTC+x",
        f"ada+{LAB}+yesterday+x",
        f"ada+{LAB}+2026-13-45 99:99:99 UTC+x",
        f"ada+{LAB}+99999999999999999999+x",
        f"ada+{LAB}+12:{'9' * 30}+x",
        f"ada+{LAB}+2026-01-05 10:00:00 99999999999999+x",
        f"ada+{LAB}++",
        f"ada+{LAB}+2026-01-05 10:00:00 UTC+x+y+z",
        os.fsdecode(b"a\xffda+" + LAB.encode() + b"+2026-01-05 10:00:00 UTC+x"),
    ],
)
def test_a_strange_name_is_left_out_and_the_batch_goes_on(school: School, name: str) -> None:
    strange = school.inbound / name
    strange.mkdir()
    (strange / NOTEBOOK).write_text(notebook("strange"))
    school.learner("bob").do("Submit")
    log = school.instructor.do("Collect")
    assert all(line.startswith(("INFO: ", "WARNING: ")) for line in log.splitlines())
    log.encode()
    assert names(school.instructor.course / "submitted") == [".lock", "bob"]
    assert names(school.instructor.course) == ["autograded", "feedback", "labs", "solutions", "submitted"]


def test_a_time_in_the_future_gains_nothing(school: School) -> None:
    before = now()
    forged = school.forge("ada", "2999-01-01 00:00:00.000000 UTC", "from the future")
    os.utime(forged, (1_700_000_000, 1_700_000_000))
    assert f"is from the future: it counts as of {before:%Y-%m-%d}" in school.instructor.do("Collect")
    assert timedelta(0) < counted(school, "ada") - before + BLINK < timedelta(minutes=1)
    ada = school.learner("ada")
    ada.work("today")
    ada.do("Submit")
    school.instructor.do("Collect", update=True)
    assert said(school.submitted("ada")) == "today"


BLINK = timedelta(seconds=0.1)
"""By how much the times that the kernel gives may lag behind the clock, with room to spare."""


def counted(school: School, student: str) -> datetime:
    """The time that a collected submission counts as of."""
    moment = read((school.submitted(student) / "timestamp.txt").read_text())
    assert moment
    return moment


@pytest.fixture
def due(school: School, monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """A list whose last entry is when the lab is due, by the gradebook."""
    dates: list[datetime] = []
    monkeypatch.setattr(Collect, "due", lambda step: dates[-1] if dates else None)
    return dates


@pytest.mark.parametrize("asked", [False, True])
def test_a_name_that_says_a_time_before_the_due_date_gains_nothing(
    school: School, due: list[datetime], asked: bool
) -> None:
    before = now()
    due.append(before - timedelta(minutes=10, seconds=30))  # the kernel's times may lag: away from the full minute
    claimed = due[0] - timedelta(seconds=1)
    forged = school.forge("ada", claimed.strftime(FORMAT))
    for place in (forged, forged / NOTEBOOK):
        os.utime(place, (claimed.timestamp(), claimed.timestamp()))
    log = school.instructor.do("Collect", before_duedate=asked)
    assert f"{forged.name!r} came, or was changed, at {before:%Y-%m-%d}" in log
    assert "ada's came 10 minutes after" in log
    assert timedelta(0) < counted(school, "ada") - before + BLINK < timedelta(minutes=1)
    assert "nothing newer" in school.instructor.do("Collect", update=True)


def test_such_a_name_can_be_believed_as_the_word_says(school: School, due: list[datetime]) -> None:
    due.append(now() - timedelta(minutes=10))
    school.forge("ada", (due[0] - timedelta(seconds=1)).strftime(FORMAT))
    told = re.search(r"write (.* UTC) into (/.*timestamp\.txt)\.", school.instructor.do("Collect"))
    assert told
    Path(told[2]).write_text(told[1])
    assert "nothing newer" in school.instructor.do("Collect", update=True)
    assert counted(school, "ada") == due[0] - timedelta(seconds=1)


def test_what_was_collected_in_time_stays_so_when_the_exchange_is_restored(
    school: School, due: list[datetime]
) -> None:
    for hours in (2, 1):
        school.forge("ada", (now() - timedelta(hours=hours)).strftime(FORMAT), f"{hours} hours ago")
    school.instructor.do("Collect")
    in_time = counted(school, "ada")
    due.append(now() - timedelta(minutes=30))
    assert "nothing newer" in school.instructor.do("Collect", update=True)
    assert (said(school.submitted("ada")), counted(school, "ada")) == ("1 hours ago", in_time)


def test_clocks_may_differ_a_little(school: School, due: list[datetime]) -> None:
    claimed = now() - timedelta(minutes=2)
    due.append(claimed + timedelta(minutes=1))
    school.forge("ada", claimed.strftime(FORMAT))
    assert "WARNING" not in school.instructor.do("Collect")
    assert counted(school, "ada") == claimed


def test_a_notebook_changed_in_place_counts_as_of_its_change(
    school: School, due: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "CLOCKS_DIFFER", timedelta(0))
    school.forge("bob", (now() - 2 * BLINK).strftime(FORMAT), "in time")
    folders = {name: school.forge(name, (now() - BLINK).strftime(FORMAT)) for name in ("ada", "bob")}
    time.sleep(2 * BLINK.total_seconds())
    due.append(now() - BLINK)
    changed = folders["bob"] / NOTEBOOK
    before = changed.stat()
    changed.write_text(notebook("an hour more of work"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    school.instructor.do("Collect")
    assert counted(school, "ada") < due[0] < counted(school, "bob")
    school.instructor.do("Collect", before_duedate=True)
    assert said(school.submitted("bob")) == "in time"


@pytest.mark.parametrize(
    "text", [b"garbage", b"\xff\xfe", b"", b"2999-01-01 00:00:00 UTC", b"12:" + b"9" * 30]
)
def test_the_time_that_counts_is_the_names_not_the_files(school: School, text: bytes) -> None:
    forged = school.forge("ada", "2026-01-05 10:00:00.000000 UTC")
    (forged / "timestamp.txt").write_bytes(text)
    (forged / "submission_secret.txt").write_bytes(b"\xff\xfe")
    for _ in range(2):
        school.instructor.do("Collect", update=True)
        assert (school.submitted("ada") / "timestamp.txt").read_text() == "2026-01-05 10:00:00.000000 UTC"
    page = school.instructor.course / "feedback" / "ada" / LAB / f"{LAB}.html"
    page.parent.mkdir(parents=True)
    (page.parent / "submission_secret.txt").write_bytes(b"\xff\xfe")
    page.touch()
    assert "came without the exchange" in school.instructor.do("ReleaseFeedback")


@pytest.mark.parametrize("text", ["garbage", f"12:{'9' * 30}"])
def test_a_time_of_garbage_among_the_collected_is_replaced(school: School, text: str) -> None:
    school.forge("ada", text="good")
    collected = school.submitted("ada")
    collected.mkdir(parents=True)
    (collected / "timestamp.txt").write_text(text)
    (collected / "submission_secret.txt").write_text("x")
    school.instructor.do("Collect", update=True)
    assert said(collected) == "good"


# Whose a submission is


def lend(monkeypatch: pytest.MonkeyPatch, folders: list[Path], uid: int) -> None:
    """Lets folders seem another user's, so that this runs without root's rights too."""
    inodes = {folder.stat().st_ino for folder in folders}

    def wrap(look: Any) -> Any:
        def told(*arguments: Any, **options: Any) -> os.stat_result:
            state: os.stat_result = look(*arguments, **options)
            return os.stat_result((*state[:4], uid, *state[5:])) if state.st_ino in inodes else state

        return told

    for name in ("stat", "fstat"):
        monkeypatch.setattr(os, name, wrap(getattr(os, name)))


@pytest.mark.parametrize("lenient", [False, True])
def test_what_belongs_to_another_user_is_left_out_however_much_it_is(
    school: School, monkeypatch: pytest.MonkeyPatch, lenient: bool
) -> None:
    school.forge("ada", "2026-01-05 10:00:00.000000 UTC", "rightful")
    forged = [school.forge("ada", f"2026-02-{day:02} 10:00:00 UTC", "not hers") for day in range(1, 21)]
    stranger, uid, _ = ACCOUNTS[0]
    lend(monkeypatch, forged, uid)
    log = school.instructor.do("Collect", check_owner=not lenient)
    assert (log.count(f"it says that it is ada's and belongs to {stranger}") == 10) != lenient
    assert ("Left out 10 more: it is another user's." in log) != lenient
    assert said(school.submitted("ada")) == ("not hers" if lenient else "rightful")


def test_what_changes_hands_while_it_is_collected_is_left_out(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = school.forge("ada")
    lend(monkeypatch, [forged], ACCOUNTS[0][1])
    monkeypatch.setattr(Path, "lstat", lambda path: Path(__file__).stat())
    assert "it is another user's" in school.instructor.do("Collect")
    assert not school.submitted("ada").exists()


def test_an_owner_without_a_name_is_believed_only_for_a_student_without_an_account(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in classes whose every student has a container."""
    name, uid, _ = ACCOUNTS[0]
    taken, forged = school.forge("ada"), school.forge(name)
    numbers = {entry.pw_uid for entry in pwd.getpwall()}
    nobody = next(number for number in range(54321, 2**31) if number not in numbers)
    lend(monkeypatch, [taken, forged], nobody)
    log = school.instructor.do("Collect")
    assert f"belongs to a user without a name here, {nobody}: taken as it says, since ada has no" in log
    assert f"Left out {forged.name!r}: it is another user's, for it says that it is {name}'s" in log
    assert said(school.submitted("ada")) == "forged"
    assert not school.submitted(name).exists()


# How much it takes


def test_of_many_things_of_a_kind_ten_are_told(school: School) -> None:
    school.forge("ada")
    for number in range(30):
        (school.inbound / f"bob+{LAB}+yesterday+{number}").mkdir()
        (school.inbound / f"b+o+b+{LAB}+2026-01-05 10:00:00 UTC+{number}").mkdir()
    log = school.instructor.do("Collect")
    assert log.count("Left out '") == 20
    assert "Left out 20 more: its name holds no time." in log
    assert "Left out 20 more: its name is not one that submit gives." in log
    assert "Nobody" not in log
    assert said(school.submitted("ada")) == "forged"


def test_what_holds_no_notebook_is_not_copied_and_a_few_are_tried(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    for second in range(30):
        (school.forge("ada", f"2026-01-05 10:00:{second:02} UTC", str(second)) / NOTEBOOK).unlink()
    school.forge("bob")
    copied = []
    carry = base.carry

    def watched(source: int, *others: Any) -> Any:
        copied.append(source)
        return carry(source, *others)

    monkeypatch.setattr(base, "carry", watched)
    log = school.instructor.do("Collect")
    assert len(copied) == 1
    assert log.count("it holds no") == 5
    assert "10:00:29" in log
    assert "10:00:24" not in log
    assert "ada's could be collected; only the newest 5 of 30 were tried." in log
    assert names(school.submitted("ada").parent) == []
    assert said(school.submitted("bob")) == "forged"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every account can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="glassbox-class-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_two_users_with_homes_of_their_own_go_the_way_and_see_nothing_of_each_other(shared: Path) -> None:
    """Under root two other accounts of the system act, with their own rights. Without root both are this one
    under two names, which cannot show what the rights forbid.
    """
    school = School(shared)
    school.instructor.do("ReleaseAssignment")
    users: list[tuple[Person, tuple[int, int] | None]] = []
    for name, uid, gid in ACCOUNTS[:2]:
        person = school.learner("*" if ROOT else name, fetch=False)
        if ROOT:
            owned(person.home, uid)
        person.home.chmod(0o700)
        users.append((person, (uid, gid) if ROOT else None))

    for (person, account), (name, uid, _) in zip(users, ACCOUNTS, strict=False):

        def work(person: Person = person, name: str = name) -> str:
            person.do("FetchAssignment")
            person.work(f"by {name}")
            return person.do("Submit")

        assert f"for {name} at" in Elsewhere(work, account, person.home).answer()
        assert not ROOT or school.handed_in()[-1].stat().st_uid == uid
    if ROOT:
        curious, account = users[0]
        others = users[1][0].home / "cache"

        def look() -> str:
            found = []
            for place in (school.inbound, others):
                try:
                    found += names(place)
                except PermissionError:
                    found.append("forbidden")
            return " ".join(found)

        assert Elsewhere(look, account, curious.home).answer() == "forbidden forbidden"

        def claim() -> str:
            forged = school.forge(ACCOUNTS[1][0], "2026-11-30 23:00:00.000000 UTC")
            return str(forged)

        forged = Path(Elsewhere(claim, account, curious.home).answer())
        assert f"Left out {forged.name!r}" in school.instructor.do("Collect")
    else:
        school.instructor.do("Collect")
    for name, _, _ in ACCOUNTS[:2]:
        assert said(school.submitted(name)) == f"by {name}"
        page = school.instructor.course / "feedback" / name / LAB / f"{LAB}.html"
        page.parent.mkdir(parents=True)
        shutil.copy(school.submitted(name) / "submission_secret.txt", page.parent)
        page.write_text(f"to {name}")
    school.instructor.do("ReleaseFeedback")
    for (person, account), (name, _, _) in zip(users, ACCOUNTS, strict=False):
        assert (
            "Fetched feedback"
            in Elsewhere(lambda person=person: person.do("FetchFeedback"), account, person.home).answer()
        )
        assert [file.read_text() for file in person.lab.glob("feedback/*/*.html")] == [f"to {name}"]


def test_what_the_rights_forbid_is_told(shared: Path) -> None:
    """As another account under root; without root, as this one with the rights taken from it."""
    school = School(shared)
    school.instructor.do("ReleaseAssignment")
    name, uid, gid = ACCOUNTS[0]
    person = school.learner("*" if ROOT else name)
    if ROOT:
        owned(person.home, uid)

    def refusal(step: str) -> str:
        account = (uid, gid) if ROOT else None
        return Elsewhere(lambda: person.do(step), account, person.home).answer()

    assert "Handed in" in refusal("Submit")
    for place, mode, step, words in (
        (school.inbound, 0o700 if ROOT else 0o500, "Submit", "You may not hand anything in"),
        (school.exchange / COURSE / "outbound" / LAB, 0o700 if ROOT else 0o000, "Submit", "You may not read"),
        (school.exchange / COURSE, 0o700 if ROOT else 0o000, "Submit", "You have no right"),
        (school.exchange, 0o700 if ROOT else 0o000, "FetchFeedback", "You may not enter"),
    ):
        before = place.stat().st_mode
        place.chmod(mode)
        told = refusal(step)
        place.chmod(before)
        assert words in told
        assert "ask your instructor" in told
    assert len(school.handed_in()) == 1


# What others on the machine can reach


def test_a_release_warns_where_the_solutions_can_be_read(shared: Path) -> None:
    school = School(shared)
    course = school.instructor.course
    (course / "gradebook.db").touch()
    for folder in (course, course / "solutions"):
        folder.chmod(0o755)
    (course / "gradebook.db").chmod(0o644)
    log = school.instructor.do("ReleaseAssignment")
    told = f"chmod o-rwx {course / 'solutions'} {course / 'gradebook.db'}."
    assert told in log
    (course / "gradebook.db").chmod(0o640)
    (course / "solutions").chmod(0o711)
    log = school.instructor.do("ReleaseAssignment", force=True)
    assert f"chmod o-rwx {course / 'solutions'}." in log
    course.chmod(0o700)
    assert "WARNING" not in school.instructor.do("ReleaseAssignment", force=True)


def test_an_exchange_below_a_closed_folder_belongs_elsewhere(shared: Path) -> None:
    school = School(shared / "home")
    (shared / "home").chmod(0o700)
    log = school.instructor.do("ReleaseAssignment")
    assert f"may not enter {shared / 'home'}: put the exchange where all can enter" in log
    assert "course.py lab --exchange FOLDER" in log
    assert "chmod" not in log
    school.instructor.exchange = shared / "class"
    assert "WARNING" not in school.instructor.do("ReleaseAssignment")


@pytest.mark.parametrize(("group", "mode"), [(False, "0o700"), (True, "0o2770")])
@pytest.mark.parametrize("step", ["ReleaseAssignment", "Collect"])
def test_what_students_handed_in_is_closed_to_others(
    school: School, step: str, group: bool, mode: str
) -> None:
    course = school.instructor.course
    folders = [course / name for name in ("submitted", "autograded", "feedback")]
    for folder in folders[1:]:
        folder.rmdir()
    folders[0].chmod(0o755)
    school.instructor.options["CourseDirectory"] = {"groupshared": group}
    school.instructor.do(step, **({"force": True} if step == "ReleaseAssignment" else {}))
    modes = [oct(folder.stat().st_mode & 0o7777) for folder in folders]
    assert modes == ["0o755", mode, mode]


# What a learner hands in without meaning to


def test_what_goes_along_is_bounded_with_a_word(school: School) -> None:
    ada = school.learner("ada")
    (ada.lab / "helper.py").write_text("x = 1")
    with (ada.lab / "a_model.bin").open("wb") as file:
        file.truncate(2_000_000_000)
    (ada.lab / "elsewhere").symlink_to(Path.home())
    (ada.lab / ".git").mkdir()
    (ada.lab / ".git" / "HEAD").touch()
    (ada.lab / "feedback").mkdir()
    (ada.lab / "feedback" / "old.html").touch()
    (ada.lab / "data").mkdir()
    for number in range(3000):
        (ada.lab / "data" / f"{number}.txt").touch()
    log = ada.do("Submit")
    assert "'a_model.bin' (2000 MB; one file may have 100 MB)" in log
    assert "'elsewhere' (a link)" in log
    handed_in = school.handed_in()[0]
    assert names(handed_in) == ["data", "helper.py", NOTEBOOK, "submission_secret.txt", "timestamp.txt"]
    assert sum(1 for _ in handed_in.rglob("*.*")) <= 503


def test_a_notebook_too_large_or_a_link_is_refused(school: School) -> None:
    ada = school.learner("ada")
    os.truncate(ada.lab / NOTEBOOK, 200_000_000)
    assert "one file may have 100 MB" in ada.refused("Submit")
    (ada.lab / NOTEBOOK).rename(ada.home / "mine.ipynb")
    (ada.lab / NOTEBOOK).symlink_to(ada.home / "mine.ipynb")
    assert "(a link)" in ada.refused("Submit")
    assert names(school.inbound) == []


# What a learning platform gives out


ARCHIVES = {
    "moodle.zip": {
        "Ada Lovelace_12345_assignsubmission_file/lab1_storage.ipynb": "Ada Lovelace",
        "Mary Jones_12346_assignsubmission_file_lab1_storage.ipynb": "Mary Jones",
    },
    "canvas.zip": {
        "turingalan_12347_900_lab1_storage.ipynb": "turingalan",
        "hoppergrace_LATE_12348_901_lab1_storage-1.ipynb": "hoppergrace",
    },
    "blackboard.zip": {"lab1_storage_emmy_attempt_2026-01-30-15-00-00_lab1_storage.ipynb": "emmy"},
    "karen.zip": {"lab1_storage/lab1_storage.ipynb": "karen"},
    "plain.zip": {"radia/lab1_storage (1).ipynb": "radia", "shafi_lab1_storage.ipynb": "shafi"},
    "stray.zip": {"readme.txt": ""},
}


def test_the_archives_of_learning_platforms_are_collected(school: School) -> None:
    folder = school.instructor.course / "downloaded" / LAB / "archive"
    folder.mkdir(parents=True)
    for name, files in ARCHIVES.items():
        with zipfile.ZipFile(folder / name, "w") as archive:
            for path, student in files.items():
                archive.writestr(path, notebook(student))
    config = configure(Config(), school.instructor.course)
    config.CourseDirectory.assignment_id = LAB
    app = ZipCollectApp(config=config)
    app.coursedir = CourseDirectory(config=config)
    app.init_plugins()
    app.extract_archive_files()
    app.process_extracted_files()
    students = sorted(student for files in ARCHIVES.values() for student in files.values() if student)
    assert names(school.instructor.course / "submitted") == students
    for student in students:
        assert names(school.submitted(student)) == [NOTEBOOK]
        assert said(school.submitted(student)) == student
    assert names(school.root) == ["course", "exchange"]
