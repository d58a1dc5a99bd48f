"""The exchange: plain words for what goes wrong, and nothing lost whatever happens at once or half-way."""

from __future__ import annotations

import itertools
import os
import resource
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.exchange import ExchangeError

from autograder.handover import base, carrying, places, release, submit
from autograder.settings import find_scripts

from .school import COURSE, LAB, NOTEBOOK, Elsewhere, Person, School, names, notebook, said


@pytest.fixture
def school(tmp_path: Path) -> School:
    return School(tmp_path)


@pytest.fixture
def released(school: School) -> School:
    school.instructor.do("ReleaseAssignment")
    return school


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A gradebook with the lab, as bytes."""
    find_scripts()
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with Gradebook(f"sqlite:///{path}", COURSE) as book:
        book.add_assignment(LAB, course_id=COURSE)
    return path.read_bytes()


def due_on(school: School, due: datetime, gradebook: bytes) -> None:
    path = school.instructor.course / "gradebook.db"
    path.write_bytes(gradebook)
    with Gradebook(f"sqlite:///{path}", COURSE) as book:
        book.update_or_create_assignment(LAB, duedate=due, course_id=COURSE)


def feedback(school: School, student: str, text: str) -> Path:
    """A page of feedback on what is collected, as generate_feedback would make it."""
    collected = school.submitted(student)
    folder = school.instructor.course / "feedback" / student / LAB
    folder.mkdir(parents=True, exist_ok=True)
    for file in collected.glob("*.txt"):
        (folder / file.name).write_bytes(file.read_bytes())
    page = folder / f"{LAB}.html"
    page.write_text(text)
    return page


# What a class meets, in words


@pytest.mark.parametrize("step", ["FetchAssignment", "Submit", "FetchFeedback", "List"])
def test_a_learner_without_an_exchange_folder_is_told_whom_to_ask(school: School, step: str) -> None:
    ada = school.learner("ada", fetch=False)
    said_so = ada.refused(step)
    assert f"{school.exchange} is not there" in said_so
    assert "ask your instructor, or hand your notebook in in another way" in said_so
    school.exchange.write_text("")
    assert "is a file, not a folder" in ada.refused(step)


def test_an_instructor_lists_nothing_before_the_first_release_which_makes_the_folder(school: School) -> None:
    assert school.instructor.result("List")[1] == []
    assert not school.exchange.exists()
    school.instructor.do("ReleaseAssignment")
    assert [item["assignment_id"] for item in school.instructor.result("List")[1]] == [LAB]
    modes = {place.name: oct(place.stat().st_mode & 0o7777) for place in (school.exchange, school.inbound)}
    assert modes == {"exchange": "0o755", "inbound": "0o2733"}


def test_what_is_out_can_be_read_by_all_whatever_the_instructors_umask(school: School) -> None:
    before = os.umask(0o077)
    try:
        school.instructor.do("ReleaseAssignment")
        school.learner("ada").do("Submit")
        school.instructor.do("Collect")
        feedback(school, "ada", "good")
        school.instructor.do("ReleaseFeedback")
    finally:
        os.umask(before)
    course = school.exchange / COURSE
    modes = {
        str(place.relative_to(school.root)): oct(place.stat().st_mode & 0o777)
        for place in (school.exchange, course, course / "outbound", *course.glob("outbound/*"))
    }
    assert set(modes.values()) == {"0o755"}
    assert [oct(file.stat().st_mode & 0o777) for file in course.glob("outbound/*/*")] == ["0o644"]
    assert oct((course / "feedback").stat().st_mode & 0o777) == "0o711"
    assert [oct(file.stat().st_mode & 0o777) for file in course.glob("feedback/*")] == ["0o644"]
    assert {oct(file.stat().st_mode & 0o777) for file in school.handed_in()[0].iterdir()} == {"0o644"}


def test_the_rights_of_a_folder_that_is_there_are_left_alone(school: School) -> None:
    school.exchange.mkdir(mode=0o750)
    log = school.instructor.do("ReleaseAssignment")
    assert school.exchange.stat().st_mode & 0o777 == 0o750
    assert f"{school.exchange}: put the exchange where all can enter" in log


def test_feedback_needs_an_exchange(school: School) -> None:
    school.exchange.mkdir()
    (school.instructor.course / "feedback" / "ada" / LAB).mkdir(parents=True)
    assert "generate it first" in school.instructor.refused("ReleaseFeedback")
    (school.instructor.course / "feedback" / "ada" / LAB / f"{LAB}.html").touch()
    assert "hand the pages in feedback/ over yourself" in school.instructor.refused("ReleaseFeedback")


def test_collecting_before_any_release_says_so(school: School) -> None:
    school.exchange.mkdir()
    assert f"release {LAB} first" in school.instructor.refused("Collect")


def test_a_lab_that_is_not_out_is_told_with_those_that_are(school: School) -> None:
    school.exchange.mkdir()
    ada = school.learner("ada", fetch=False)
    assert "no lab is" in ada.refused("FetchAssignment")
    school.instructor.do("ReleaseAssignment")
    assert f"'lab9' is not out at present; these are: {LAB}." in ada.refused("FetchAssignment", "lab9")


def test_a_lab_that_was_not_generated_is_told(school: School) -> None:
    (school.instructor.course / "labs" / LAB / NOTEBOOK).unlink()
    assert "press Generate in Formgrader" in school.instructor.refused("ReleaseAssignment")
    school.generate("another", "lab2_other")
    assert "there is lab2_other." in school.instructor.refused("ReleaseAssignment", "lab9")


def test_what_is_fetched_already_stays(released: School) -> None:
    ada = released.learner("ada")
    ada.work("hours of work")
    assert f"You have {LAB} already, in {ada.lab}" in ada.refused("FetchAssignment")
    assert said(ada.lab) == "hours of work"


def test_a_missing_file_can_be_fetched_again_alone(released: School) -> None:
    released.generate("first", helper="x = 1")
    released.instructor.do("ReleaseAssignment", force=True)
    ada = released.learner("ada")
    ada.work("hours of work")
    (ada.lab / "helper.py").unlink()
    ada.do("FetchAssignment", replace_missing_files=True)
    assert ((ada.lab / "helper.py").read_text(), said(ada.lab)) == ("x = 1", "hours of work")


def test_released_twice_is_told_and_force_replaces(released: School) -> None:
    ada = released.learner("ada")
    released.generate("second")
    out = released.exchange / COURSE / "outbound"
    told = released.instructor.refused("ReleaseAssignment")
    assert "is out already" in told
    assert "--force" in told
    assert "who has fetched it keeps the old one" in told
    assert said(out / LAB) == "first"
    released.instructor.do("ReleaseAssignment", force=True)
    assert (said(out / LAB), said(ada.lab), names(out)) == ("second", "first", [LAB])


def test_a_lab_taken_back_is_gone_for_those_who_come_later(released: School) -> None:
    ada = released.learner("ada")
    released.instructor.do("List", remove=True)
    assert names(released.exchange / COURSE / "outbound") == []
    assert "is not out" in released.learner("bob", fetch=False).refused("FetchAssignment")
    assert "is not out" in ada.refused("Submit")
    assert said(ada.lab) == "first"


def test_handing_in_before_fetching_is_told(released: School) -> None:
    assert "fetch it first" in released.learner("ada", fetch=False).refused("Submit")


@pytest.mark.parametrize("present", [[], [f"{LAB} (1).ipynb"]])
def test_a_notebook_under_another_name_is_not_handed_in(released: School, present: list[str]) -> None:
    ada = released.learner("ada")
    (ada.lab / NOTEBOOK).unlink()
    for name in present:
        (ada.lab / name).write_text(notebook("mine"))
    told = ada.refused("Submit")
    assert f"must be called {NOTEBOOK}" in told
    assert (present or ["no notebook"])[0] in told
    assert names(released.inbound) == []


def test_what_comes_late_is_taken_with_a_word(released: School, gradebook: bytes) -> None:
    ada = released.learner("ada")
    assert "late" not in ada.do("Submit")
    due = base.now() - timedelta(hours=2, minutes=5)
    due_on(released, due, gradebook)
    assert "ada's came 2 hours after" in released.instructor.do("Collect")
    assert "it was taken, 2 hours late" in ada.do("Submit")
    assert len(released.handed_in()) == 2
    released.instructor.do("ReleaseAssignment", force=True)
    assert "2 hours late" in ada.do("Submit")


@pytest.mark.parametrize("text", [b"soon", b"\xff", b"12:" + b"9" * 30, b""])
def test_a_due_date_that_cannot_be_read_stops_no_handing_in(released: School, text: bytes) -> None:
    ada = released.learner("ada")
    release.due_file(released.exchange / COURSE / "outbound", LAB).write_bytes(text)
    assert "WARNING" not in ada.do("Submit")
    release.due_file(released.exchange / COURSE / "outbound", LAB).write_text("2026-01-05T10:00:00+02:00")
    assert "was due on 2026-01-05 at 08:00 UTC" in ada.do("Submit")


def test_a_gradebook_that_is_not_ours_stops_a_collect(released: School) -> None:
    (released.instructor.course / "gradebook.db").write_text("no gradebook")
    released.learner("ada").do("Submit")
    assert "damaged" in released.instructor.refused("Collect")


def test_feedback_is_told_to_be_missing_or_to_be_on_an_earlier_attempt(released: School) -> None:
    ada = released.learner("ada")
    assert "You have handed in no" in ada.refused("FetchFeedback")
    ada.do("Submit")
    assert "There is no feedback on your" in ada.refused("FetchFeedback")
    released.instructor.do("Collect")
    feedback(released, "ada", "on the first")
    released.instructor.do("ReleaseFeedback")
    assert "WARNING" not in ada.do("FetchFeedback")
    ada.do("Submit")
    assert "no feedback yet on what you handed in last" in ada.do("FetchFeedback")


def test_a_submission_that_came_without_the_exchange_stops_no_feedback(released: School) -> None:
    ada = released.learner("ada")
    ada.do("Submit")
    released.instructor.do("Collect")
    released.submitted("bob").mkdir(parents=True)
    (released.submitted("bob") / NOTEBOOK).write_text(notebook("mailed"))
    feedback(released, "ada", "to ada")
    page = feedback(released, "bob", "to bob")
    log = released.instructor.do("ReleaseFeedback")
    assert "Released to ada" in log
    assert f"bob's came without the exchange: hand the feedback over yourself: {page}" in log
    ada.do("FetchFeedback")
    assert [file.read_text() for file in ada.lab.glob("feedback/*/*.html")] == ["to ada"]


def test_feedback_for_one_student_leaves_the_others(released: School) -> None:
    for name in ("ada", "bob"):
        released.learner(name).do("Submit")
    released.instructor.do("Collect")
    for name in ("ada", "bob"):
        feedback(released, name, f"to {name}")
    released.instructor.name = "bob"
    released.instructor.do("ReleaseFeedback")
    pages = (released.exchange / COURSE / "feedback").iterdir()
    assert [page.read_text() for page in pages] == ["to bob"]


@pytest.mark.parametrize("name", ["a/b", "..", ".ada", "a+b", "a*", "a{b", "x\ny", "-ada"])
def test_a_name_that_leads_elsewhere_is_refused(released: School, name: str) -> None:
    assert "cannot be a student's name" in released.learner(name).refused("Submit")
    assert names(released.inbound) == []


# Nothing is lost


def test_handing_in_again_keeps_the_earlier_and_the_newest_is_collected(released: School) -> None:
    ada = released.learner("ada")
    for text in ("one", "two", "three"):
        ada.work(text)
        ada.do("Submit")
        if text != "two":
            released.instructor.do("Collect", update=True)
            assert said(released.submitted("ada")) == text
    assert [said(folder) for folder in released.handed_in()] == ["one", "two", "three"]
    kept = ada.home / "cache" / COURSE
    assert [said(kept / name) for name in names(kept)] == ["one", "two", "three"]


def test_an_older_submission_never_replaces_a_newer_one(released: School) -> None:
    ada = released.learner("ada")
    for text in ("one", "two"):
        ada.work(text)
        ada.do("Submit")
    released.instructor.do("Collect")
    released.handed_in()[1].rename(released.root / "lost")
    log = released.instructor.do("Collect", update=True)
    assert "nothing newer" in log
    assert said(released.submitted("ada")) == "two"


def test_without_update_what_is_collected_stays(released: School) -> None:
    ada = released.learner("ada")
    ada.do("Submit")
    released.instructor.do("Collect")
    ada.work("two")
    ada.do("Submit")
    assert "add --update" in released.instructor.do("Collect")
    assert said(released.submitted("ada")) == "first"


def test_the_last_one_in_time_can_be_asked_for(released: School, gradebook: bytes) -> None:
    for day in (1, 2, 3):
        if day == 3:
            due_on(released, base.now(), gradebook)
        said_so = base.now() + (timedelta(minutes=2) if day == 3 else timedelta(days=day - 3))
        released.forge("ada", said_so.strftime(submit.FORMAT), f"day {day}")
    released.instructor.do("Collect")
    assert said(released.submitted("ada")) == "day 3"
    released.instructor.do("Collect", before_duedate=True)
    assert said(released.submitted("ada")) == "day 2"


def test_what_was_put_into_submitted_by_hand_stays(released: School) -> None:
    released.submitted("ada").mkdir(parents=True)
    (released.submitted("ada") / NOTEBOOK).write_text(notebook("mailed"))
    released.learner("ada").do("Submit")
    assert "by hand and stays" in released.instructor.do("Collect", update=True)
    assert said(released.submitted("ada")) == "mailed"


def test_the_feedback_on_each_attempt_is_kept_apart(released: School) -> None:
    ada = released.learner("ada")
    for text in ("one", "two"):
        ada.do("Submit")
        released.instructor.do("Collect", update=True)
        feedback(released, "ada", f"on {text}")
        released.instructor.do("ReleaseFeedback")
        ada.do("FetchFeedback")
    feedback(released, "ada", "on two, corrected")
    released.instructor.do("ReleaseFeedback")
    ada.do("FetchFeedback")
    pages = sorted((ada.lab / "feedback").glob("*/*.html"))
    assert [page.read_text() for page in pages] == ["on one", "on two, corrected"]


def test_many_who_hand_in_at_the_same_instant_all_arrive(released: School) -> None:
    ada = released.learner("ada")
    start = time.time() + 0.5

    def twice() -> str:
        while time.time() < start:
            pass
        return ada.do("Submit") + ada.do("Submit")

    running = [Elsewhere(twice) for _ in range(4)]
    assert all(process.answer().count("Handed in") == 2 for process in running)
    assert len(released.handed_in()) == 8
    assert sorted(path.name.rsplit("+", 1)[0] for path in released.handed_in()) == names(
        ada.home / "cache" / COURSE
    )


def test_two_of_one_learner_never_have_the_same_time(
    released: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([datetime(2026, 1, 5)] * 3 + [datetime(2026, 1, 6)] * 3)
    monkeypatch.setattr(submit, "now", lambda: next(times))
    ada = released.learner("ada")
    for text in ("one", "two"):
        ada.work(text)
        ada.do("Submit")
    assert [(path.name.split("+")[2][:10], said(path)) for path in released.handed_in()] == [
        ("2026-01-05", "one"),
        ("2026-01-06", "two"),
    ]


def test_a_time_that_another_process_is_just_taking_is_left_to_it(
    released: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([datetime(2026, 1, 5), datetime(2026, 1, 6)])
    monkeypatch.setattr(submit, "now", lambda: next(times))
    ada = released.learner("ada")
    taken = ada.home / "cache" / COURSE / f".ada+{LAB}+2026-01-05 00:00:00.000000 UTC"
    taken.mkdir(parents=True)
    ada.do("Submit")
    assert [path.name.split("+")[2][:10] for path in released.handed_in()] == ["2026-01-06"]
    assert names(taken) == []


def test_the_key_to_the_feedback_can_be_read_by_its_learner_alone(released: School) -> None:
    ada = released.learner("ada")
    ada.do("Submit")
    (kept,) = (ada.home / "cache" / COURSE).iterdir()
    assert (kept / "submission_secret.txt").read_text() == (
        released.handed_in()[0] / "submission_secret.txt"
    ).read_text()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert (released.exchange / COURSE).stat().st_mode & 0o022 == 0


def test_a_folder_whose_replacement_fails_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    (place / "work").touch()
    with pytest.raises(FileNotFoundError):
        places.put(tmp_path / "missing", place)
    assert (names(tmp_path), names(place)) == (["lab"], ["work"])


def hidden(folder: Path) -> list[str]:
    return [name for name in names(folder) if name[0] == "."]


def cut_short(person: Person, step: str, folder: Path, **traits: Any) -> None:
    """Takes a step in a process that copies slowly, and kills it while it copies."""

    def slowly() -> str:
        carrying.CHUNK = 1
        return person.do(step, **traits)

    def at_work() -> list[str]:
        return hidden(folder) if folder.is_dir() else []

    before = at_work()
    process = Elsewhere(slowly)
    while not any(any((folder / name).rglob("*.ipynb")) for name in at_work() if name not in before):
        assert process.running()
    process.kill()


def large(folder: Path) -> None:
    (folder / NOTEBOOK).write_text(notebook("large " * 100_000))


def test_a_submission_cut_short_is_none(released: School) -> None:
    ada = released.learner("ada")
    large(ada.lab)
    cut_short(ada, "Submit", released.inbound)
    assert released.handed_in() == []
    assert [name for name in names(ada.home / "cache" / COURSE) if name[0] != "."] == []
    assert "Nobody has handed in" in released.instructor.do("Collect")
    ada.work("two")
    ada.do("Submit")
    assert [said(path) for path in released.handed_in()] == ["two"]


def test_a_release_cut_short_is_none_and_leaves_the_one_before(school: School) -> None:
    large(school.instructor.course / "labs" / LAB)
    cut_short(school.instructor, "ReleaseAssignment", school.exchange / COURSE / "outbound")
    assert "is not out" in school.learner("ada", fetch=False).refused("FetchAssignment")
    school.generate("second")
    school.instructor.do("ReleaseAssignment")
    large(school.instructor.course / "labs" / LAB)
    cut_short(school.instructor, "ReleaseAssignment", school.exchange / COURSE / "outbound", force=True)
    assert said(school.learner("ada").lab) == "second"


def test_a_fetch_cut_short_is_none(school: School) -> None:
    large(school.instructor.course / "labs" / LAB)
    school.instructor.do("ReleaseAssignment")
    ada = school.learner("ada", fetch=False)
    cut_short(ada, "FetchAssignment", ada.lab.parent)
    assert not ada.lab.exists()
    ada.do("FetchAssignment")
    assert names(ada.lab) == [NOTEBOOK]


def test_a_collect_cut_short_leaves_the_old_copy(released: School) -> None:
    ada = released.learner("ada")
    ada.do("Submit")
    released.instructor.do("Collect")
    large(ada.lab)
    ada.do("Submit")
    cut_short(released.instructor, "Collect", released.submitted("ada").parent, update=True)
    assert said(released.submitted("ada")) == "first"
    released.instructor.do("Collect", update=True)
    assert said(released.submitted("ada")).startswith("large")


def test_a_collect_ended_between_its_two_renames_is_mended(
    released: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = released.learner("ada")
    ada.do("Submit")
    released.instructor.do("Collect")
    released.submitted("ada").rename(released.submitted("ada").with_name(f".{LAB}.old"))
    for path in released.handed_in():
        path.rename(released.root / "lost")
    released.forge("ada", "2020-01-01 10:00:00.000000 UTC", "older")
    released.instructor.do("Collect", update=True)
    assert said(released.submitted("ada")) == "first"
    assert hidden(released.submitted("ada").parent) == []


def a_day_later(*folders: Path) -> None:
    yesterday = time.time() - places.STALE_SECONDS - 1
    for folder in folders:
        for item in folder.iterdir():
            os.utime(item, (yesterday, yesterday))


def test_what_a_killed_submit_left_is_cleared_away_by_the_next_a_day_later(released: School) -> None:
    ada, bob = released.learner("ada"), released.learner("bob")
    kept = ada.home / "cache" / COURSE
    for person in (ada, bob):
        large(person.lab)
        cut_short(person, "Submit", released.inbound)
    assert len(names(released.inbound)) == 2
    ada.work("two")
    ada.do("Submit")
    assert len(hidden(released.inbound)) == 2  # it may be at work
    a_day_later(released.inbound, kept)
    ada.do("Submit")
    assert [name.split("+")[0] for name in hidden(released.inbound)] == [".bob"]
    assert (len(released.handed_in()), len(names(kept)), hidden(kept)) == (2, 2, [])


def test_the_key_of_a_submission_that_arrived_just_before_the_kill_is_not_lost(
    released: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = released.learner("ada")
    kept = ada.home / "cache" / COURSE

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        patch.setattr(places, "remove", lambda place: None)
        with pytest.raises(KeyboardInterrupt):
            ada.do("Submit")
    assert (len(released.handed_in()), len(hidden(kept))) == (1, 1)
    a_day_later(kept)
    ada.do("Submit")
    assert sorted(path.name.rsplit("+", 1)[0] for path in released.handed_in()) == names(kept)
    assert names(kept / names(kept)[0]) == [NOTEBOOK, "submission_secret.txt", "timestamp.txt"]


def test_what_killed_steps_left_is_cleared_away_a_day_later(released: School) -> None:
    large(released.instructor.course / "labs" / LAB)
    out = released.exchange / COURSE / "outbound"
    cut_short(released.instructor, "ReleaseAssignment", out, force=True)
    released.instructor.do("ReleaseAssignment", force=True)
    ada = released.learner("ada", fetch=False)
    cut_short(ada, "FetchAssignment", ada.lab.parent)
    ada.do("FetchAssignment")
    ada.do("Submit")
    collected = released.submitted("ada").parent
    cut_short(released.instructor, "Collect", collected)
    released.instructor.do("Collect")
    assert [len(hidden(folder)) for folder in (out, ada.lab.parent, collected)] == [1, 1, 1]
    a_day_later(out, ada.lab.parent, collected)
    released.instructor.do("ReleaseAssignment", force=True)
    ada.lab.rename(ada.home / "away")
    ada.do("FetchAssignment")
    released.instructor.do("Collect")
    assert [names(folder) for folder in (out, ada.lab.parent, collected)] == [[LAB]] * 3


def test_what_another_left_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (f".{LAB}.0123456789abcdef", f".{LAB}.old", ".ipynb_checkpoints", f".{LAB}.0123456789abcdeX"):
        (tmp_path / name).mkdir()
    a_day_later(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    places.clear(tmp_path / LAB)
    assert len(names(tmp_path)) == 4
    monkeypatch.undo()
    places.clear(tmp_path / LAB)
    assert len(names(tmp_path)) == 3


def test_two_collects_do_not_meet(released: School) -> None:
    released.learner("ada").do("Submit")
    released.instructor.do("Collect")
    with places.alone(released.instructor.course / "submitted"):
        told = Elsewhere(lambda: released.instructor.do("Collect")).answer()
    assert "refused: Another collect is under way" in told
    assert "nothing newer" in released.instructor.do("Collect", update=True)


def test_a_full_disk_changes_nothing(released: School) -> None:
    """A limit on the size of a file stands for the full disk: it fails the same write in the same place."""

    def full(person: Person, step: str, **traits: Any) -> str:
        def act() -> str:
            resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
            return person.do(step, **traits)

        return Elsewhere(act).answer()

    ada = released.learner("ada")
    ada.do("Submit")
    released.instructor.do("Collect")
    large(ada.lab)
    assert "could not be read or written" in full(ada, "Submit")
    assert len(released.handed_in()) == 1
    assert len(names(ada.home / "cache" / COURSE)) == 1
    ada.do("Submit")
    assert "could not be collected" in full(released.instructor, "Collect", update=True)
    assert said(released.submitted("ada")) == "first"
    assert hidden(released.submitted("ada").parent) == []


def test_no_room_is_told_in_words_and_ends_a_collect(
    released: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = released.learner("ada")
    ada.do("Submit")

    def full(*arguments: object) -> None:
        raise OSError(28, os.strerror(28), "/somewhere")

    with monkeypatch.context() as patch:
        patch.setattr(base, "carry", full)
        assert "no room left on the disk of /somewhere" in ada.refused("Submit")
        assert "no room left on the disk of /somewhere" in released.instructor.refused("Collect")
    assert len(released.handed_in()) == 1
    assert hidden(released.inbound) == []


def test_whoever_fetches_while_a_lab_is_replaced_gets_one_of_the_two_whole(released: School) -> None:
    def version(number: int) -> None:
        released.generate(str(number), **{f"part{i}": str(number) for i in range(20)})

    version(0)
    released.instructor.do("ReleaseAssignment", force=True)
    ada = released.learner("ada", fetch=False)
    fetched = []

    enough = released.root / "enough"

    def often() -> str:
        for number in itertools.count(1):
            version(number)
            released.instructor.do("ReleaseAssignment", force=True)
            if enough.exists():
                break
        return "done"

    process = Elsewhere(often)
    while len(set(fetched)) < 5:
        assert process.running()
        try:
            ada.do("FetchAssignment")
        except ExchangeError as error:
            assert "being put out anew" in str(error) or "is not out" in str(error)  # noqa: PT017
            continue
        parts = {file.read_text() for file in ada.lab.glob("*.py")} | {said(ada.lab)}
        assert len(parts) == 1
        assert len(names(ada.lab)) == 21
        fetched.append(parts.pop())
        ada.lab.rename(ada.lab.with_name(f"old{len(fetched)}"))
    enough.touch()
    assert process.answer() == "done"
