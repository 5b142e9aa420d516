"""The second line, inside Hindsight: what each of the real version's hooks allows to whom."""

import json
import subprocess
from pathlib import Path
from typing import TypedDict

import pytest
from devstack.bank_tokens import BankTokens
from devstack.process import base_environment
from devstack.stack import Stack
from hindsight_guard.operations import CONFIGURABLE, OPERATIONS

pytestmark = pytest.mark.hindsight

BANK = "bank-0123456789"

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


class Answer(TypedDict):
    """One line of hook_probe.py."""

    hook: str
    asked: str | None
    token: str
    answer: object


@pytest.fixture(scope="module")
def answers(stack: Stack, api: BankTokens, daemon: BankTokens) -> list[Answer]:
    """Every hook, asked with every kind of token about one bank."""
    tokens = {
        operation: (api if operation == "recall" else daemon).token(BANK, operation)
        for operation in OPERATIONS
    }
    others = {
        "none": None,
        "garbage": "garbage",
        "worker": None,
        "another bank": daemon.token("bank-9876543210", *OPERATIONS),
        "another bank, recall": api.token("bank-9876543210", *OPERATIONS),
    }
    assert stack.hindsight_config is not None
    done = subprocess.run(
        [stack.hindsight_config.venv / "bin" / "python", Path(__file__).with_name("hook_probe.py")],
        env=base_environment() | stack.hindsight_config.environment(),
        cwd=stack.directory,
        input=json.dumps({"bank": BANK, "tokens": tokens | others}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("ANSWERS "))
    found: list[Answer] = json.loads(line.removeprefix("ANSWERS "))
    return found


def allowed(answers: list[Answer], token: str) -> set[tuple[str, str | None]]:
    return {
        (each["hook"], each["asked"])
        for each in answers
        if each["token"] == token and each["answer"] == "allowed"
    }


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_opens_the_hooks_it_needs_and_no_other(answers: list[Answer], operation: str) -> None:
    assert allowed(answers, operation) == NEEDED[operation]


@pytest.mark.parametrize("token", ["none", "garbage", "another bank", "another bank, recall"])
def test_whoever_has_no_token_for_the_bank_opens_nothing(answers: list[Answer], token: str) -> None:
    assert allowed(answers, token) == set()


def test_a_worker_may_do_the_work_that_follows_a_delete_and_nothing_else(answers: list[Answer]) -> None:
    assert allowed(answers, "worker") == {("validate_bank_write", "submit_async_graph_maintenance")}


def test_hooks_that_a_newer_version_adds_are_closed(answers: list[Answer]) -> None:
    for hook in ("validate_novelty", "resolve_novelty"):
        assert {each["answer"] for each in answers if each["hook"] == hook} == {"refused"}


def test_no_hook_lists_anything(answers: list[Answer]) -> None:
    for hook, silence in SILENT.items():
        given = [each["answer"] for each in answers if each["hook"] == hook]
        assert given
        assert all(answer == silence for answer in given)


def test_every_hook_answers_yes_or_no_or_nothing(answers: list[Answer]) -> None:
    known = {*SILENT, "authenticate", "get_allowed_config_fields"}
    assert all(each["answer"] in {"allowed", "refused"} for each in answers if each["hook"] not in known)


def test_only_our_tokens_are_authenticated_and_mcp_never(answers: list[Answer]) -> None:
    for each in answers:
        if each["hook"] == "authenticate":
            assert each["answer"] == (
                "refused" if each["token"] in {"none", "garbage", "worker"} else "public"
            )
        if each["hook"] == "authenticate_mcp":
            assert each["answer"] == "refused"
        if each["hook"] == "get_allowed_config_fields":
            assert each["answer"] == sorted(CONFIGURABLE)
