"""What demo and dev print: steps with their time, findings, and checks that count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


class Screen:
    """Prints a story and keeps count of what did not hold."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self.failures = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Shows ``title`` while the block runs, and how many seconds it took."""
        began = time.monotonic()
        with self._console.status(f"{title} …"):
            yield
        self._console.print(f"  [green]up[/]  {title} [dim]{time.monotonic() - began:.1f} s[/]")

    def chapter(self, title: str) -> None:
        """Begins a part of the story."""
        self._console.print(f"\n[bold]{escape(title)}[/]")

    def line(self, text: str) -> None:
        """A line as it is."""
        self._console.print(f"      {escape(text)}")

    def plain(self, text: str) -> None:
        """A line to be copied: neither indented nor wrapped."""
        self._console.print(escape(text))

    def check(self, sentence: str, *, holds: bool) -> None:
        """States what was expected; counts it if it does not hold."""
        self.failures += not holds
        mark = "[green] ok [/]" if holds else "[bold red]FAIL[/]"
        self._console.print(f" {mark} {escape(sentence)}")
