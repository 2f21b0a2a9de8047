"""Replacing attributes of pyiceberg's classes and putting the very same objects back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hook:
    """One place: owner.name is replaced by a function that gets the original as its first argument."""

    owner: type
    name: str
    replacement: Callable[..., Any]

    @property
    def place(self) -> str:
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.name}"


class Installation:
    """Hooks in place. Calls go to the replacements while active() holds, else to the originals."""

    def __init__(self, hooks: tuple[Hook, ...], active: Callable[[], bool]) -> None:
        self._replaced: list[tuple[Hook, Any, Any]] = []
        for hook in hooks:
            original = hook.owner.__dict__[hook.name]
            standin = _standin(original, hook.replacement, active)
            setattr(hook.owner, hook.name, standin)
            self._replaced.append((hook, original, standin))

    def undo(self) -> None:
        """Put the originals back, except where something else has been put on top of ours meanwhile.

        What lies on top keeps calling ours, which then only passes calls on.
        """
        for hook, original, standin in reversed(self._replaced):
            if hook.owner.__dict__.get(hook.name) is standin:
                setattr(hook.owner, hook.name, original)


def _standin(
    original: Callable[..., Any], replacement: Callable[..., Any], active: Callable[[], bool]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        if active():
            return replacement(original, *arguments, **options)
        return original(*arguments, **options)

    return call
