"""The list of scripts/faults fits the sources: each row can be planted."""

import tomllib
from collections import Counter

from scripts.parts.faults import TABLE, TESTS, Fault
from scripts.setup import ROOT

FAULTS = [Fault(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["fault"]]


def test_each_line_that_a_fault_changes_stands_once_in_its_file() -> None:
    times = {
        fault.rule: (ROOT / fault.file).read_text(encoding="utf-8").count(fault.line)
        for fault in FAULTS
    }
    assert {rule: count for rule, count in times.items() if count != 1} == {}


def test_each_fault_is_of_a_room_and_changes_something_and_breaks_one_rule() -> None:
    assert {fault.room for fault in FAULTS} <= set(TESTS)
    assert [fault.rule for fault in FAULTS if fault.line == fault.fault] == []
    assert [
        rule for rule, times in Counter(fault.rule for fault in FAULTS).items() if times > 1
    ] == []


def test_the_tests_that_should_notice_a_fault_are_there() -> None:
    named = {test for fault in FAULTS for test in fault.tests.split()}
    named.update(test for tests in TESTS.values() for test in tests)
    assert [test for test in named if not (ROOT / test).exists()] == []
