"""Writes random functions of tensors, with views, changes in place and derivatives, that are called compiled."""

from __future__ import annotations

import re

from .program import Program
from .statement_writer import write_valid_statements
from .writer import Writer

_LEAF = re.compile(r"(v\d+) = (T\.(?:tensor|zeros)\(.*?)(\.requires_grad_\(\))?$")
_MADE = re.compile(r"(?:with [^:]*: )?((?:[vg]\d+, ?)*[vg]\d+),?(?:, \*_)? = ")


class _Function(Writer):
    def write(self, seed: int) -> Program:
        statements = list(write_valid_statements(seed))
        leaves: list[tuple[str, str, bool]] = []
        while statements and (leaf := _LEAF.match(statements[0])):
            leaves.append((leaf[1], leaf[2], leaf[3] is not None))
            del statements[0]
        after = self.derivatives(statements)
        self.line("log = []")
        self.line(f"def function({', '.join(name for name, _, _ in leaves)}):")
        for each in statements:
            self.line(each, 1)
        made = sorted({name for each in statements for name in self.names(each)})
        given = [name for name, _, _ in leaves]
        kept = self.random.sample(made, min(len(made), self.random.randint(1, 4))) + [
            name for name in given if self.chance(0.15)
        ]
        # Nothing is promised about the strides of derivatives.
        dense = [f"{name} if {name} is None else {name}.contiguous()" if name[0] == "g" else name for name in kept]
        self.line(f"return [{', '.join(dense)}]", 1)
        self.line("compiled = compile(function)")
        self.calls(leaves, given, kept, after)
        return self.program()

    def names(self, statement: str) -> list[str]:
        found = _MADE.match(statement)
        return re.split(r", ?", found[1]) if found else []

    def derivatives(self, statements: list[str]) -> bool:
        """Whether derivatives are taken of the results: then the function itself takes none, but now and then."""
        inside = self.chance(0.4)
        if not inside:
            statements[:] = [each for each in statements if "autograd" not in each]
            known: set[str] = set()
            for each in list(statements):
                if set(re.findall(r"\bg\d+\b", each)) - known:
                    statements.remove(each)
        return not inside or self.chance(0.3)

    def calls(self, leaves: list[tuple[str, str, bool]], given: list[str], kept: list[str], after: bool) -> None:
        self.line(f"for turn in range({self.pick((6, 7, 9))}):")
        for name, text, requires_grad in leaves:
            move = self.pick(("turn % 3", "turn % 3", "0", "turn == 5"))
            self.line(f"{name} = {text} + 0.125 * ({move})", 1)
            if requires_grad:
                self.line(f"{name}.requires_grad_({self.pick(('',) * 6 + ('turn != 5',))})", 1)
        forms = ("{0}",) * 5 + ("{0} * 1", "{0}[...]", "{0}.detach()", "{0} if turn != 5 else {0} * 1")
        called = [self.pick(forms).format(name) for name in given]
        if len(given) > 1 and self.chance(0.1):
            called[-1] = called[0]
        call = f"compiled({', '.join(called)})"
        if self.chance(0.1):
            self.line("with torch.no_grad():", 1)
            self.line(f"results = {call}", 2)
        else:
            self.line(f"results = {call}", 1)
        self.line("see(results)", 1)
        if after:
            self.line("for each in results:", 1)
            self.line("if each is not None and each.requires_grad and each.is_floating_point():", 2)
            self.line("each.pow(2).sum().backward(retain_graph=True)", 3)
        if kept and self.chance(0.2):
            self.line("with torch.no_grad():", 1)
            self.line("results[0] is not None and results[0].mul_(2)", 2)
            self.line("see(results)", 1)
        self.line(f"see([{', '.join(given)}], [{', '.join(f'{name}.grad' for name in given)}], log)", 1)


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Function(seed).write(seed)
