"""Runs in Hindsight's own environment: asks every hook of the guard and the application for its routes.

Not a test module: inside.py starts it, with the guard's settings in the environment and the questions as
JSON on standard input, ``{"bank": …, "tokens": {name: token}}``, and knows the shape of what it prints. The
answer of a hook is ``allowed``, ``refused`` or what else came back.
"""

import asyncio
import inspect
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

from hindsight_api.extensions import OperationValidationError, OperationValidatorExtension
from hindsight_api.extensions import operation_validator as hooks
from hindsight_api.extensions.base import Extension
from hindsight_api.extensions.tenant import AuthenticationError
from hindsight_api.models import RequestContext


async def hook_of_a_newer_version(self: Any, ctx: Any) -> Any:
    """What upstream would add: accepts unless overridden."""
    return hooks.ValidationResult.accept()


def plain_hook_of_a_newer_version(self: Any, ctx: Any) -> Any:
    """The same, not a coroutine."""
    return hooks.ValidationResult.accept()


# Before the guard is imported, as a newer Hindsight would have them.
OperationValidatorExtension.validate_novelty = hook_of_a_newer_version
OperationValidatorExtension.resolve_novelty = plain_hook_of_a_newer_version

from hindsight_guard.tenant import GuardTenantExtension  # noqa: E402
from hindsight_guard.validator import GuardOperationValidator  # noqa: E402

#: Hooks that are asked once for each of these.
_KINDS = {
    "precheck": hooks.PrecheckOperation,
    "validate_bank_read": hooks.BankReadOperation,
    "validate_bank_write": hooks.BankWriteOperation,
}


async def answer(call: Any) -> object:
    try:
        result = call()
        result = await result if inspect.isawaitable(result) else result
    except (OperationValidationError, AuthenticationError):
        return "refused"
    if isinstance(result, hooks.ValidationResult):
        return "allowed" if result.allowed else "refused"
    if isinstance(result, hooks.BankListResult):
        return result.banks
    if isinstance(result, hooks.BankListScope):
        return result.bank_ids
    if isinstance(result, (set, frozenset)):
        return sorted(result)
    return result if isinstance(result, list | None) else getattr(result, "schema_name", "something else")


async def ask_hooks(asked: Any) -> list[dict[str, object]]:
    bank = asked["bank"]
    validator, tenant = GuardOperationValidator({}), GuardTenantExtension({})
    names = sorted(
        name
        for name in set(dir(OperationValidatorExtension)) - set(dir(Extension))
        if not name.startswith(("_", "on_"))
    )
    answers: list[dict[str, object]] = []
    for token_name, token in asked["tokens"].items():
        context = RequestContext(api_key=token, internal=token_name == "worker")
        for name in names:
            for kind in _KINDS.get(name, [None]):
                ctx = SimpleNamespace(
                    bank_id=bank,
                    request_context=context,
                    operation=kind,
                    attachments=[],
                    contents=[],
                    banks=[{"bank_id": bank}],
                )
                arguments: tuple[object, ...] = (ctx,)
                if name == "filter_mcp_tools":
                    arguments = (bank, context, frozenset({"recall"}))
                elif name == "bank_list_scope":
                    arguments = (context,)
                hook = getattr(validator, name)
                given = await answer(lambda hook=hook, arguments=arguments: hook(*arguments))
                answers.append(
                    {"hook": name, "asked": kind and kind.value, "token": token_name, "answer": given}
                )
        for name in ("authenticate", "authenticate_mcp"):
            given = await answer(lambda name=name, context=context: getattr(tenant, name)(context))
            answers.append({"hook": name, "asked": None, "token": token_name, "answer": given})
        fields = await answer(
            lambda context=context: tenant.get_allowed_config_fields(context, asked["bank"])
        )
        answers.append(
            {"hook": "get_allowed_config_fields", "asked": None, "token": token_name, "answer": fields}
        )
    return answers


def defaults() -> dict[str, str]:
    """Hindsight's settings when nothing is set, as they would stand in the environment."""
    from hindsight_api.config import HindsightConfig  # noqa: PLC0415

    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("HINDSIGHT_API_")}
    try:
        config = HindsightConfig.from_env()
    finally:
        os.environ.update(kept)
    return {
        f"HINDSIGHT_API_{name.upper()}": "" if value is None else str(value).lower()
        for name, value in vars(config).items()
    }


#: What a newer Hindsight might have: routes of a bank, new methods of old ones, and something beside them.
NOVEL_ROUTES = (
    ("GET", "/v1/default/banks/{bank_id}/novelty"),
    ("POST", "/v1/default/banks/{bank_id}/memories/novelty"),
    ("PUT", "/v1/default/banks/{bank_id}/memories"),
    ("PATCH", "/v1/default/banks/{bank_id}/documents/{document_id}"),
    ("POST", "/v1/default/banks/{bank_id}/memories/recall/novelty"),
    ("GET", "/v2/banks/{bank_id}/novelty"),
    ("GET", "/novelty"),
)


async def ask_novel_routes(app: Any, bank: str, tokens: list[str]) -> list[dict[str, object]]:
    """Adds routes to the real application: what it answers, and what the door in front of it does."""
    import httpx  # noqa: PLC0415
    from hindsight_guard.asgi import Door  # noqa: PLC0415
    from hindsight_guard.settings import verifier_from_environment  # noqa: PLC0415

    async def novelty() -> dict[str, str]:
        return {"detail": "novelty"}

    answers: list[dict[str, object]] = []
    door = Door(app, verifier_from_environment())
    for method, path in NOVEL_ROUTES:
        app.add_api_route(path, novelty, methods=[method])
        # First of all routes, lest an older pattern takes its place.
        app.router.routes.insert(0, app.router.routes.pop())
        target = path.replace("{bank_id}", bank).replace("{document_id}", "d-1")
        for name, application in (("behind", app), ("door", door)):
            transport = httpx.ASGITransport(app=application)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                for token in tokens:
                    given = await client.request(
                        method, target, json={}, headers={"authorization": f"Bearer {token}"}
                    )
                    answers.append(
                        {
                            "route": f"{method} {path}",
                            "asked": name,
                            "answer": [given.status_code, given.text],
                        }
                    )
    return answers


def main() -> None:
    asked = json.load(sys.stdin)
    inside: dict[str, object] = {"hooks": asyncio.run(ask_hooks(asked)), "defaults": defaults()}
    from hindsight_api.server import app  # noqa: PLC0415 - builds the whole of Hindsight

    routes: dict[str, set[str]] = {}
    for route in app.routes:
        routes.setdefault(route.path, set()).update(getattr(route, "methods", None) or [])
    documented = app.openapi()["paths"]
    inside["novel_routes"] = asyncio.run(ask_novel_routes(app, asked["bank"], asked["strongest"]))
    sys.stdout.write(
        "INSIDE "
        + json.dumps(
            inside
            | {
                "routes": {path: sorted(methods) for path, methods in routes.items()},
                "documented": {
                    path: sorted(method.upper() for method in methods) for path, methods in documented.items()
                },
            }
        )
        + "\n"
    )


main()
