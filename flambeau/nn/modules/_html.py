"""Modules as notebooks show them: a tree that can be folded, with the parameters of each part."""

from __future__ import annotations

from html import escape
from typing import Any

_OPEN_LEVELS = 1
"""How many levels are unfolded at first."""


def module_html(module: Any, name: str = "", level: int = 0) -> str:
    """A module and all below it."""
    own = sum(each.numel() for each in module._parameters.values() if each is not None)
    total = sum(each.numel() for each in module.parameters())
    frozen = sum(each.numel() for each in module.parameters() if not each.requires_grad)
    facts = [f"{total:,} parameters"] if total else []
    if total and frozen:
        facts.append(f"{frozen:,} frozen")
    if own and own != total:
        facts.append(f"{own:,} its own")
    title = f"<b>{escape(module._get_name())}</b>"
    if name:
        title = f"<code>{escape(name)}</code> {title}"
    extra = module.extra_repr()
    options = f" <code>{escape(extra)}</code>" if extra else ""  # notebooks draw a box around code, an empty one too
    line = f"{title}{options} <small>{', '.join(facts)}</small>"
    children = [module_html(each, key, level + 1) for key, each in module._modules.items() if each is not None]
    if not children:
        return f'<div style="margin-left:{1.2 if level else 0}em">{line}</div>'
    is_open = " open" if level < _OPEN_LEVELS else ""
    indent = f"margin-left:{1.2 if level else 0}em"
    return f'<details style="{indent}"{is_open}><summary>{line}</summary>{"".join(children)}</details>'
