"""The type rules of all families, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stagedad.ops import called_rules, sequence_rules, type_rules

RULES: dict[str, Callable[..., Any]] = {
    name: rule
    for module in (type_rules, sequence_rules, called_rules)
    for name, rule in vars(module).items()
    if getattr(rule, "__annotations__", {}).get("return") == "Results"
}
