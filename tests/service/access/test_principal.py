import pytest

from fetchstash.service.access import is_tenant


@pytest.mark.parametrize("name", ["a", "team-7", "0", "a" * 63])
def test_a_name_of_letters_digits_and_hyphens_can_be_a_tenant(name: str) -> None:
    assert is_tenant(name)


@pytest.mark.parametrize("name", ["", "-a", "A", "a/b", "..", "a" * 64, "a\n", "é", "a_b"])
def test_a_name_that_could_leave_its_folder_is_no_tenant(name: str) -> None:
    assert not is_tenant(name)
