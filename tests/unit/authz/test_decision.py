"""The whole table of RPC, role, presence, entry and administrator, against expectations written by hand."""

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
    decide_company,
    needs_session,
)

YES, NO_PERSON, NO_ROLE = "allowed", "PRESENCE_REQUIRED", "ROLE_NOT_ALLOWED"
NO_ENTRY = "ENTRY_NOT_ALLOWED"

# Written out, not derived: a change of who may call what must be made here a second time, by a person.
# Columns: by web or channel with the person present, and with nobody present; by schedule.
RECALLING = (YES, YES, YES)
DECIDING = (YES, NO_PERSON, NO_ENTRY)
CLOSED = (NO_ROLE, NO_ROLE, NO_ROLE)
EXPECTED: dict[tuple[str, str], tuple[str, str, str]] = {
    ("Remember", "bot-runtime"): DECIDING,
    ("Remember", "channel-gateway"): DECIDING,
    ("Remember", "control-plane"): CLOSED,
    ("Remember", "operator"): CLOSED,
    ("Recall", "bot-runtime"): RECALLING,
    ("Recall", "channel-gateway"): RECALLING,
    ("Recall", "control-plane"): CLOSED,
    ("Recall", "operator"): CLOSED,
    ("GetMemory", "bot-runtime"): RECALLING,
    ("GetMemory", "channel-gateway"): RECALLING,
    ("GetMemory", "control-plane"): CLOSED,
    ("GetMemory", "operator"): CLOSED,
    ("ListMemories", "bot-runtime"): CLOSED,
    ("ListMemories", "channel-gateway"): DECIDING,
    ("ListMemories", "control-plane"): CLOSED,
    ("ListMemories", "operator"): CLOSED,
    ("ForgetMemories", "bot-runtime"): CLOSED,
    ("ForgetMemories", "channel-gateway"): DECIDING,
    ("ForgetMemories", "control-plane"): CLOSED,
    ("ForgetMemories", "operator"): CLOSED,
    ("GetForget", "bot-runtime"): CLOSED,
    ("GetForget", "channel-gateway"): DECIDING,
    ("GetForget", "control-plane"): CLOSED,
    ("GetForget", "operator"): CLOSED,
    ("ApplyAuthority", "bot-runtime"): CLOSED,
    ("ApplyAuthority", "channel-gateway"): CLOSED,
    ("ApplyAuthority", "control-plane"): (YES, YES, YES),
    ("ApplyAuthority", "operator"): CLOSED,
    ("GetAuthority", "bot-runtime"): CLOSED,
    ("GetAuthority", "channel-gateway"): CLOSED,
    ("GetAuthority", "control-plane"): (YES, YES, YES),
    ("GetAuthority", "operator"): CLOSED,
}

WITHOUT_A_SESSION = {"ApplyAuthority", "GetAuthority"}


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
def test_the_table_is_as_written_cell_by_cell(method: str, role: str) -> None:
    with_person, alone, by_schedule = EXPECTED[method, role]
    for entry in (Entry.WEB, Entry.CHANNEL):
        assert answer(method, principal(ServiceRole(role), entry, present=True)) == with_person
        assert answer(method, principal(ServiceRole(role), entry, present=False)) == alone
    for present in (True, False):  # that nobody is present in a scheduled session is not relied on
        assert answer(method, principal(ServiceRole(role), Entry.SCHEDULE, present=present)) == by_schedule


@pytest.mark.parametrize(("method", "role"), EXPECTED)
def test_an_administrators_session_reaches_no_memory(method: str, role: str) -> None:
    reachable = method not in WITHOUT_A_SESSION and EXPECTED[method, role] is not CLOSED
    for entry, present in itertools.product(Entry, (True, False)):
        administrator = principal(ServiceRole(role), entry, present=present, company_admin=True)
        expected = "COMPANY_ADMIN_SEES_NO_MEMORY" if reachable else EXPECTED[method, role][0]
        assert answer(method, administrator) == expected


@pytest.mark.parametrize(("method", "role"), EXPECTED)
def test_a_service_without_a_session_reaches_no_memory(method: str, role: str) -> None:
    service = Service("spiffe://openbot.example/workload", ServiceRole(role))
    allowed = EXPECTED[method, role][0] == YES
    expected = (
        "SESSION_REQUIRED" if allowed and method not in WITHOUT_A_SESSION else EXPECTED[method, role][0]
    )
    assert answer(method, service) == expected


def test_only_the_control_planes_methods_go_without_a_session() -> None:
    assert {method for method in DECISIONS if not needs_session(method)} == WITHOUT_A_SESSION
    assert needs_session("NoSuchMethod")


@pytest.mark.parametrize(
    ("companies", "company", "allowed"),
    [
        ((), "acme", False),
        (("acme",), "acme", True),
        (("acme",), "acme2", False),
        (("acme",), "ACME", False),
        (("eu-*",), "eu-acme", True),
        (("eu-*",), "us-acme", False),
        (("*",), "anything", True),
    ],
)
def test_a_control_plane_writes_its_own_companies_only(
    companies: tuple[str, ...], company: str, *, allowed: bool
) -> None:
    service = Service("spiffe://openbot.example/plane", ServiceRole.CONTROL_PLANE, companies)
    if allowed:
        decide_company(service, company)
        return
    with pytest.raises(PermissionDenied) as caught:
        decide_company(service, company)
    assert caught.value.reason is Denial.COMPANY_NOT_YOURS


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
