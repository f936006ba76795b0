"""A proxy in front of a scripted model, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from envsynth.cache import Cache
from envsynth.llm import Ledger
from envsynth.llm.scripted import Script, ScriptedModel
from envsynth.proxy import ProxiedCall, Proxy, Record, Upstream, read_record


class Bench:
    """What a test of the proxy needs."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.out = root / "record"
        self.ledger_path = root / "spend.sqlite"
        self._root, self._stack = root, stack

    def start(self, script: Script, *, budget: float | None = None, patience: float = 60.0, **more: Any) -> Proxy:
        self.model = self._stack.enter_context(ScriptedModel(script, key=more.pop("key", "")))
        settings = self.model.settings(**more)
        upstream = Upstream(settings, Cache(self._root / "cache"), Ledger(self.ledger_path, budget))
        self._stack.callback(upstream.close)
        record = self._stack.enter_context(Record(self.out))
        self.proxy = self._stack.enter_context(Proxy(upstream, record, ("127.0.0.1", 0), patience=patience))
        return self.proxy

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}/v1"

    def harness(self, **more: Any) -> openai.OpenAI:
        options: dict[str, Any] = {"api_key": "the-harness's-own", "base_url": self.url, "max_retries": 0, **more}
        return self._stack.enter_context(openai.OpenAI(**options))

    def ask(self, prompt: str = "hello", **more: Any) -> Any:
        with openai.OpenAI(api_key="none", base_url=self.url, max_retries=0) as client:
            said: Any = [{"role": "user", "content": prompt}]
            answer = client.chat.completions.create(model="whatever", messages=said, **more)
            return list(answer) if more.get("stream") else answer

    def recorded(self) -> list[ProxiedCall]:
        self.proxy.close()
        return sorted(read_record(self.out), key=lambda call: call.number)

    def spent(self) -> Any:
        return Ledger(self.ledger_path).total()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)
