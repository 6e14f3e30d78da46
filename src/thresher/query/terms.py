"""What conditions are made of, whatever they are asked of."""

from __future__ import annotations

from collections.abc import Container

from thresher.query import tree


def attributes_in(condition: tree.Condition | tree.Term | None) -> list[tree.Attribute]:
    """All attributes, structures and labels that a condition names."""
    match condition:
        case tree.All(parts) | tree.Some(parts):
            return [found for part in parts for found in attributes_in(part)]
        case tree.Not(part):
            return attributes_in(part)
        case tree.Compare(left, _, right):
            return attributes_in(left) + attributes_in(right)
        case tree.Attribute():
            return [condition]
        case tree.Call(_, arguments):
            return [found for argument in arguments for found in attributes_in(argument)]
    return []


def labels_in(condition: tree.Condition | None) -> set[str]:
    """The labels that a condition mentions before a dot."""
    return {attribute.label for attribute in attributes_in(condition)} - {tree.HERE}


def bare_names(condition: tree.Condition | None) -> set[str]:
    """The names in a condition that stand without a label: attributes, structures, and labels themselves."""
    return {attribute.name for attribute in attributes_in(condition) if not attribute.label}


def mentions(condition: tree.Condition, labels: Container[str]) -> bool:
    """Whether a condition has to do with labels."""
    return bool(labels_in(condition)) or any(name in labels for name in bare_names(condition))


def comparisons_in(condition: tree.Condition | None) -> list[tree.Compare]:
    """All comparisons that a condition is made of."""
    match condition:
        case tree.All(parts) | tree.Some(parts):
            return [found for part in parts for found in comparisons_in(part)]
        case tree.Not(part):
            return comparisons_in(part)
        case tree.Compare():
            return [condition]
    return []


def all_plain(condition: tree.Condition) -> bool:
    """Whether a condition compares attributes with texts and nothing else."""
    match condition:
        case tree.All(parts) | tree.Some(parts):
            return all(map(all_plain, parts))
        case tree.Not(part):
            return all_plain(part)
        case tree.Compare(tree.Attribute(), _, tree.Text()):
            return True
    return False


def written(term: tree.Term | tree.Condition) -> str:
    """A term about as it was written, for messages."""
    match term:
        case tree.Attribute(name, label):
            return f"{label}.{name}" if label else name
        case tree.Text(pattern):
            return f'"{pattern}"'
        case tree.Number(value):
            return str(value)
        case tree.Call(name, arguments):
            return f"{name}({', '.join(map(written, arguments))})"
    return "this"
