"""The second line, inside Hindsight: what each of the real version's hooks allows to whom."""

import pytest
from hindsight_guard.operations import CONFIGURABLE, OPERATIONS

from tests.contract.inside import HookAnswer, Inside

pytestmark = pytest.mark.hindsight

#: Hooks that answer with something else than yes or no, and the answer that lets nobody see anything.
SILENT: dict[str, object] = {
    "bank_list_scope": [],
    "filter_bank_list": [],
    "filter_mcp_tools": [],
    "resolve_tag_scope": None,
    "resolve_write_tag_scope": None,
}

#: What each operation needs inside Hindsight, and no more: (hook, what it is asked about).
NEEDED: dict[str, set[tuple[str, str | None]]] = {
    "recall": {
        ("precheck", "recall"),
        ("validate_recall", None),
        ("validate_bank_read", "get_bank_profile"),
    },
    "bank.create": {
        ("validate_create_bank", None),
        ("validate_bank_read", "get_bank_profile"),
        ("validate_bank_write", "update_bank"),
    },
    "bank.configure": {
        ("validate_bank_write", "update_bank_config"),
        ("validate_bank_read", "get_bank_config"),
    },
    "bank.read": {("validate_bank_read", "get_bank_config")},
    "document.retain": {
        ("precheck", "retain"),
        ("validate_retain", None),
        ("validate_bank_read", "get_bank_profile"),
    },
    "document.read": {
        ("validate_bank_read", "get_document"),
        ("validate_bank_read", "get_bank_profile"),
    },
    "document.delete": {
        ("validate_bank_write", "delete_document"),
        ("validate_bank_write", "submit_async_graph_maintenance"),
    },
    "units.list": {
        ("validate_bank_read", "list_memory_units"),
        ("validate_bank_read", "get_bank_profile"),
    },
    "operations.list": {("validate_bank_read", "list_operations")},
    "operations.read": {("validate_bank_read", "get_operation_status")},
    "operations.delete": {("validate_bank_write", "delete_operation")},
}


@pytest.fixture
def answers(inside: Inside) -> list[HookAnswer]:
    return inside["hooks"]


def allowed(answers: list[HookAnswer], token: str) -> set[tuple[str, str | None]]:
    return {
        (each["hook"], each["asked"])
        for each in answers
        if each["token"] == token and each["answer"] == "allowed"
    }


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_opens_the_hooks_it_needs_and_no_other(
    answers: list[HookAnswer], operation: str
) -> None:
    assert allowed(answers, operation) == NEEDED[operation]


@pytest.mark.parametrize("token", ["none", "garbage", "another bank", "another bank, recall"])
def test_whoever_has_no_token_for_the_bank_opens_nothing(answers: list[HookAnswer], token: str) -> None:
    assert allowed(answers, token) == set()


def test_a_worker_may_do_the_work_that_follows_a_delete_and_nothing_else(answers: list[HookAnswer]) -> None:
    assert allowed(answers, "worker") == {("validate_bank_write", "submit_async_graph_maintenance")}


def test_hooks_that_a_newer_version_adds_are_closed(answers: list[HookAnswer]) -> None:
    for hook in ("validate_novelty", "resolve_novelty"):
        assert {each["answer"] for each in answers if each["hook"] == hook} == {"refused"}


def test_no_hook_lists_anything(answers: list[HookAnswer]) -> None:
    for hook, silence in SILENT.items():
        given = [each["answer"] for each in answers if each["hook"] == hook]
        assert given
        assert all(answer == silence for answer in given)


def test_every_hook_answers_yes_or_no_or_nothing(answers: list[HookAnswer]) -> None:
    known = {*SILENT, "authenticate", "get_allowed_config_fields"}
    assert all(each["answer"] in {"allowed", "refused"} for each in answers if each["hook"] not in known)


def test_only_our_tokens_are_authenticated_and_mcp_never(answers: list[HookAnswer]) -> None:
    for each in answers:
        if each["hook"] == "authenticate":
            assert each["answer"] == (
                "refused" if each["token"] in {"none", "garbage", "worker"} else "public"
            )
        if each["hook"] == "authenticate_mcp":
            assert each["answer"] == "refused"
        if each["hook"] == "get_allowed_config_fields":
            assert each["answer"] == sorted(CONFIGURABLE)
