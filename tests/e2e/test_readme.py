"""The README's example does what the README says."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from devstack.control_plane import Company
from devstack.issuer import BOT_RUNTIME
from devstack.paths import CHECKOUT
from devstack.stack import Stack

from tests.authority import state_facts

pytestmark = pytest.mark.e2e


async def test_the_example_for_python_remembers_and_recalls(stack: Stack) -> None:
    company = "readme-example"
    await state_facts(
        stack.dsns["authority_writer"], Company(company, members=("lin",), bots={"assistant": True})
    )
    found = re.search(r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    namespace: dict[str, Any] = {}
    exec(compile(found[1], "README.md", "exec"), namespace)  # noqa: S102 - our own page
    example: Callable[[str, str, str], list[str]] = namespace["remember_and_recall"]

    texts = example(
        stack.address,
        stack.issuer.service_token(BOT_RUNTIME),
        stack.issuer.session_token(user="lin", company=company, bot="assistant", actor=BOT_RUNTIME),
    )

    assert texts == ["汇报先讲风险，再讲进展。"]
