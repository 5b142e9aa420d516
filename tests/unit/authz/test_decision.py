"""The whole matrix of RPC, role, entry, presence and administrator, against expectations written by hand."""

import itertools

import pytest
from authz import (
    DECISIONS,
    Denial,
    Entry,
    PermissionDenied,
    Principal,
    Service,
    ServiceRole,
    decide,
)

# Written out, not derived: a change of who may call what must be made here a second time, by a person.
# Columns: the role; then the answer with a person present, and with nobody present.
EXPECTED: dict[tuple[str, str], tuple[str, str]] = {
    ("Remember", "bot-runtime"): ("allowed", "PRESENCE_REQUIRED"),
    ("Remember", "channel-gateway"): ("allowed", "PRESENCE_REQUIRED"),
    ("Remember", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("Remember", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("Recall", "bot-runtime"): ("allowed", "allowed"),
    ("Recall", "channel-gateway"): ("allowed", "allowed"),
    ("Recall", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("Recall", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("GetMemory", "bot-runtime"): ("allowed", "allowed"),
    ("GetMemory", "channel-gateway"): ("allowed", "allowed"),
    ("GetMemory", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("GetMemory", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("ListMemories", "bot-runtime"): ("allowed", "PRESENCE_REQUIRED"),
    ("ListMemories", "channel-gateway"): ("allowed", "PRESENCE_REQUIRED"),
    ("ListMemories", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("ListMemories", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("ForgetMemories", "bot-runtime"): ("allowed", "PRESENCE_REQUIRED"),
    ("ForgetMemories", "channel-gateway"): ("allowed", "PRESENCE_REQUIRED"),
    ("ForgetMemories", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("ForgetMemories", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("GetForget", "bot-runtime"): ("allowed", "PRESENCE_REQUIRED"),
    ("GetForget", "channel-gateway"): ("allowed", "PRESENCE_REQUIRED"),
    ("GetForget", "control-plane"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
    ("GetForget", "operator"): ("ROLE_NOT_ALLOWED", "ROLE_NOT_ALLOWED"),
}

# What an administrator's session gets instead, whoever is present.
EXPECTED_OF_ADMINISTRATORS = {
    "bot-runtime": "COMPANY_ADMIN_SEES_NO_MEMORY",
    "channel-gateway": "COMPANY_ADMIN_SEES_NO_MEMORY",
    "control-plane": "ROLE_NOT_ALLOWED",
    "operator": "ROLE_NOT_ALLOWED",
}


def principal(role: ServiceRole, entry: Entry, *, present: bool, company_admin: bool = False) -> Principal:
    return Principal(
        service=Service("spiffe://openbot.example/workload", role),
        company="acme",
        user="ada",
        bot="muse",
        entry=entry,
        present=present,
        company_admin=company_admin,
    )


def answer(method: str, caller: Principal | Service) -> str:
    try:
        decide(method, caller)
    except PermissionDenied as denied:
        return str(denied.reason)
    return "allowed"


def test_every_method_and_role_has_an_expectation() -> None:
    assert set(EXPECTED) == set(itertools.product(DECISIONS, (str(role) for role in ServiceRole)))


@pytest.mark.parametrize(("method", "role"), EXPECTED)
def test_the_matrix_is_as_written_by_every_entry(method: str, role: str) -> None:
    for entry in Entry:  # the entry never changes the answer (I14)
        for present, expected in zip((True, False), EXPECTED[method, role], strict=True):
            assert answer(method, principal(ServiceRole(role), entry, present=present)) == expected


@pytest.mark.parametrize(("method", "role"), EXPECTED)
def test_an_administrators_session_reaches_no_memory(method: str, role: str) -> None:
    for entry, present in itertools.product(Entry, (True, False)):
        administrator = principal(ServiceRole(role), entry, present=present, company_admin=True)
        assert answer(method, administrator) == EXPECTED_OF_ADMINISTRATORS[role]


@pytest.mark.parametrize("method", sorted({method for method, _ in EXPECTED}))
def test_a_service_without_a_session_reaches_no_memory(method: str) -> None:
    for role in ServiceRole:
        service = Service("spiffe://openbot.example/workload", role)
        assert answer(method, service) in {"SESSION_REQUIRED", "ROLE_NOT_ALLOWED"}


@pytest.mark.parametrize("method", ["", "remember", "Remember ", "DropMemories", "MemoryService/Recall"])
def test_a_method_outside_the_table_is_closed(method: str) -> None:
    for role, entry in itertools.product(ServiceRole, Entry):
        with pytest.raises(PermissionDenied) as caught:
            decide(method, principal(role, entry, present=False))
        assert caught.value.reason is Denial.METHOD_UNKNOWN
        assert str(caught.value) == "No rule allows this method."


def test_the_table_cannot_be_changed_at_run_time() -> None:
    with pytest.raises(TypeError):
        DECISIONS["Recall"] = DECISIONS["Remember"]  # type: ignore[index]
