"""Functions that list the parts of a condition."""

from __future__ import annotations

from collections.abc import Container

from thresher.search.cql import ast


def attributes_in(condition: ast.Condition | ast.Term | None) -> list[ast.AttributeRef]:
    """Return all attributes, structures and labels that a condition names."""
    match condition:
        case ast.AndCondition(parts) | ast.OrCondition(parts):
            return [found for part in parts for found in attributes_in(part)]
        case ast.NotCondition(part):
            return attributes_in(part)
        case ast.Compare(left, _, right):
            return attributes_in(left) + attributes_in(right)
        case ast.AttributeRef():
            return [condition]
        case ast.FunctionCall(_, arguments):
            return [found for argument in arguments for found in attributes_in(argument)]
    return []


def labels_in(condition: ast.Condition | None) -> set[str]:
    """Return the labels that a condition mentions before a dot."""
    return {attribute.label for attribute in attributes_in(condition)} - {ast.HERE}


def bare_names(condition: ast.Condition | None) -> set[str]:
    """Return the names in a condition that have no label: attributes, structures, and labels themselves."""
    return {attribute.name for attribute in attributes_in(condition) if not attribute.label}


def mentions(condition: ast.Condition, labels: Container[str]) -> bool:
    """Return whether a condition mentions a label."""
    return bool(labels_in(condition)) or any(name in labels for name in bare_names(condition))


def comparisons_in(condition: ast.Condition | None) -> list[ast.Compare]:
    """Return all comparisons in a condition."""
    match condition:
        case ast.AndCondition(parts) | ast.OrCondition(parts):
            return [found for part in parts for found in comparisons_in(part)]
        case ast.NotCondition(part):
            return comparisons_in(part)
        case ast.Compare():
            return [condition]
    return []


def all_plain(condition: ast.Condition) -> bool:
    """Return whether a condition compares attributes with strings and nothing else."""
    match condition:
        case ast.AndCondition(parts) | ast.OrCondition(parts):
            return all(map(all_plain, parts))
        case ast.NotCondition(part):
            return all_plain(part)
        case ast.Compare(ast.AttributeRef(), _, ast.StringPattern()):
            return True
    return False


def written(term: ast.Term | ast.Condition) -> str:
    """Return a term roughly as the user wrote it, for messages."""
    match term:
        case ast.AttributeRef(name, label):
            return f"{label}.{name}" if label else name
        case ast.StringPattern(pattern):
            return f'"{pattern}"'
        case ast.NumberLiteral(value):
            return str(value)
        case ast.FunctionCall(name, arguments):
            return f"{name}({', '.join(map(written, arguments))})"
    return "this"
