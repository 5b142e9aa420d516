"""The parts of Hindsight 1.1.0's answers that we rely on; everything else is ignored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", hide_input_in_errors=True, allow_inf_nan=False
    )


class NotFoundAnswer(_Answer):
    """A 404. ``detail`` says what is missing: only that tells "gone" from "no such route"."""

    detail: str


class Scores(_Answer):
    """Scores of one hit. ``semantic`` is a cosine similarity; None if that arm did not find it."""

    semantic: float | None = None


class RecallResult(_Answer):
    """One hit. ``document_id`` is None for observations."""

    document_id: str | None = None
    scores: Scores | None = None


class RecallAnswer(_Answer):
    """``POST …/memories/recall``."""

    results: list[RecallResult]


class RetainAnswer(_Answer):
    """``POST …/memories``, synchronous."""

    success: bool


class DocumentAnswer(_Answer):
    """``GET …/documents/{id}``."""

    id: str
    original_text: str | None
    memory_unit_count: int = Field(ge=0)


class UnitsAnswer(_Answer):
    """``GET …/memories/list``."""

    total: int = Field(ge=0)


class OperationAnswer(_Answer):
    """One entry of ``GET …/operations``."""

    id: str
    operation_type: str
    status: str


class OperationsAnswer(_Answer):
    """``GET …/operations``."""

    total: int = Field(ge=0)
    operations: list[OperationAnswer]


class OperationPayloadAnswer(_Answer):
    """``GET …/operations/{id}?include_payload=true``."""

    status: str
    task_payload: dict[str, object] | None = None
