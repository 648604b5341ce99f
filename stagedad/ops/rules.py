"""The type rules of all families, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stagedad.ops import (
    called_rules,
    fft_rules,
    linalg_rules,
    random_rules,
    sequence_rules,
    type_rules,
)

MODULES = (type_rules, sequence_rules, linalg_rules, fft_rules, random_rules, called_rules)
RULES: dict[str, Callable[..., Any]] = {
    name: rule
    for module in MODULES
    for name, rule in vars(module).items()
    if not name.startswith("_")
    and getattr(rule, "__annotations__", {}).get("return") == "Results"
}
