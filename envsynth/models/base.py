"""What every noun shares: frozen, strict, identified by the sha256 of its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""sha256, 64 lower-case hexadecimal digits."""

SCHEMA_VERSION = 1


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, non-ASCII kept, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_of(value: Any) -> str:
    """sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


class Model(BaseModel):
    """Base of all nouns."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def document(self) -> dict[str, JsonValue]:
        """The JSON document of this noun."""
        result: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True)
        return result

    def digest(self) -> str:
        """Identity: sha256 of the canonical JSON of the document."""
        return digest_of(self.document())

    def to_json(self) -> str:
        """Canonical JSON text."""
        return canonical_json(self.document())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse what `to_json` wrote.

        Raises:
            pydantic.ValidationError: the text is not such a document.
        """
        return cls.model_validate_json(text)
