"""Static check that regular expressions take linear time.

Three forms take quadratic or exponential time on some texts: a repetition inside a repetition; two adjacent repetitions
that accept the same characters; and a search that starts again within the text of an earlier attempt.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bench.expressions import Expression

_compiler: Any = importlib.import_module("re._compiler")
_constants: Any = importlib.import_module("re._constants")
_parser: Any = importlib.import_module("re._parser")

_UNBOUNDED: Final = 1_000
"""A repetition with a larger maximum counts as unbounded."""
_SAMPLE: Final = "".join(map(chr, (*range(256), 0x660, 0x2028, 0x4E00)))
_BACKTRACKING: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_REPEATS: Final = (*_BACKTRACKING, _constants.POSSESSIVE_REPEAT)
_STARTS: Final = (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING)
_LOOKS: Final = (_constants.ASSERT, _constants.ASSERT_NOT)

type RegexItem = tuple[Any, Any]
type RegexItems = Sequence[RegexItem]


def describe_nonlinear_time_faults(expression: Expression) -> list[str]:
    """Return one sentence for each form found in a regular expression that can take more than linear time.

    The list is empty if the expression contains no such form.
    """
    tree = expression.to_parse_tree()
    rules = _RuleChecker(tree.state.flags, is_bytes=isinstance(expression.pattern, bytes))
    found = list(rules.describe_ambiguous_repetitions(_flatten_groups(tree)))
    if not expression.is_anchored:
        found += rules.describe_search_restarts(_flatten_groups(tree))
    return list(dict.fromkeys(found))


class _FollowingItem(NamedTuple):
    """Kind of the next important item after a repetition: a second repetition, a barrier, or none (both are False).

    Attributes:
        has_repetition: True if the item is a second repetition of the same characters.
        has_barrier: True if the item is a barrier, which cannot match these characters.
    """

    has_repetition: bool
    has_barrier: bool


class _RuleChecker:
    """Checks the items of a parsed regular expression for forms that do not take linear time."""

    def __init__(self, flags: int, *, is_bytes: bool) -> None:
        self._flags = flags
        self._is_bytes = is_bytes

    def describe_ambiguous_repetitions(self, items: RegexItems) -> Iterator[str]:
        """Yield a sentence for each repetition that accepts the same characters as one inside it or next to it."""
        for index, item in enumerate(items):
            if _is_unbounded_repetition(item) and item[0] in _BACKTRACKING:
                if self._is_ambiguous_repetition(item):
                    yield "a repetition inside a repetition accepts the same characters"
                accepted = self.find_accepted_characters([item])
                if self._find_adjacent_repetition_or_barrier(accepted, items[index + 1 :]).has_repetition:
                    yield "two adjacent repetitions accept the same characters"
            for part in _list_subpatterns(item):
                yield from self.describe_ambiguous_repetitions(part)

    def describe_search_restarts(self, items: RegexItems) -> Iterator[str]:
        """Yield a sentence for each repetition that makes a search quadratic.

        After a failed attempt, the search starts again at each position of the text that the repetition has matched.
        For example, a search for ``a+b`` in ``aaaa`` reads the rest of the text at each ``a``.
        """
        for way in _iterate_alternatives(items):
            for index, item in enumerate(way):
                is_last = all(_can_match_empty_text(later) for later in way[index + 1 :])
                if not _is_unbounded_repetition(item) or (is_last and item[0] is not _constants.MIN_REPEAT):
                    continue
                run = self.find_accepted_characters([item])
                if not any(self._has_no_match_inside_run(before, run) for before in way[:index]):
                    yield "a search may restart at each character of a repetition"

    def find_accepted_characters(self, items: RegexItems) -> frozenset[str]:
        """Return those characters of a fixed sample that at least one of these items of an expression can match."""
        return frozenset().union(*(self._find_accepted_item_characters(item) for item in items))

    def build_matching_text(self, items: RegexItems) -> str:
        """Build a short text that matches a sequence of items; lookaheads and lookbehinds are ignored."""
        text = ""
        for item in items:
            operation, value = item
            parts = _list_subpatterns(item)
            if operation in _REPEATS:
                text += self.build_matching_text(parts[0]) * max(value[0], 1)
            elif operation is _constants.BRANCH:
                text += self.build_matching_text(parts[-1])
            elif not parts:
                text += min(
                    self._find_accepted_item_characters(item),
                    key=lambda each: (not each.isprintable(), each),
                    default="",
                )
        return text

    def _find_accepted_item_characters(self, item: RegexItem) -> frozenset[str]:
        parts = _list_subpatterns(item)
        if parts:
            if item[0] in _LOOKS:
                return frozenset()
            return frozenset().union(*map(self.find_accepted_characters, parts))
        if item[0] in (_constants.AT, _constants.GROUPREF):
            return frozenset()
        return self._find_matching_sample_characters(item)

    def _find_matching_sample_characters(self, item: RegexItem) -> frozenset[str]:
        """Compile one item of an expression; return the characters of a fixed sample that the item matches."""
        state = _parser.State()
        state.flags = self._flags
        state.str = b"" if self._is_bytes else ""
        one = _compiler.compile(_parser.SubPattern(state, [item]), self._flags)
        sample = [
            each.encode("latin-1") if self._is_bytes else each
            for each in _SAMPLE
            if ord(each) < 256 or not self._is_bytes
        ]
        return frozenset(
            each if isinstance(each, str) else each.decode("latin-1") for each in sample if one.fullmatch(each)
        )

    def _has_no_match_inside_run(self, item: RegexItem, run_characters: frozenset[str]) -> bool:
        """Return whether an item of an expression never matches inside a text of only ``run_characters``."""
        operation, value = item
        if operation is _constants.AT:
            is_word = all(each.isalnum() or each == "_" for each in run_characters)
            return value in _STARTS or (value is _constants.AT_BOUNDARY and is_word)
        if operation is _constants.BRANCH:
            return all(
                any(self._has_no_match_inside_run(each, run_characters) for each in way)
                for way in _list_subpatterns(item)
            )
        if _can_match_empty_text(item):
            return False
        parts = _list_subpatterns(item)
        if parts:
            return any(self._has_no_match_inside_run(each, run_characters) for each in parts[0])
        return not self._find_accepted_item_characters(item) & run_characters

    def _is_ambiguous_repetition(self, item: RegexItem) -> bool:
        """Return whether a repetition can match the same text in several ways, as in ``(a|a)*`` or ``(a*)*``."""
        (body,) = _list_subpatterns(item)
        for each in body:
            if each[0] is _constants.BRANCH:
                firsts = [self._find_first_characters(way) for way in _list_subpatterns(each)]
                if any(one & other for index, one in enumerate(firsts) for other in firsts[index + 1 :]):
                    return True
        inner = [each for each in _iterate_descendants(body) if _is_unbounded_repetition(each)]
        return any(
            not any(self._has_no_match_inside_run(each, self.find_accepted_characters([one])) for each in body)
            for one in inner
        )

    def _find_first_characters(self, items: RegexItems) -> frozenset[str]:
        """Return the characters of the sample with which a text that matches the items can begin."""
        found: frozenset[str] = frozenset()
        for item in items:
            parts = _list_subpatterns(item)
            found |= (
                frozenset().union(*map(self._find_first_characters, parts))
                if parts
                else self._find_accepted_item_characters(item)
            )
            if not _can_match_empty_text(item):
                break
        return found

    def _find_adjacent_repetition_or_barrier(self, run_characters: frozenset[str], items: RegexItems) -> _FollowingItem:
        """Find the first of these items that repeats ``run_characters`` or is a barrier, which cannot match them."""
        for item in items:
            if _is_unbounded_repetition(item) and self._find_first_characters([item]) & run_characters:
                return _FollowingItem(has_repetition=True, has_barrier=False)
            ways = [self._find_adjacent_repetition_or_barrier(run_characters, part) for part in _list_subpatterns(item)]
            if any(way.has_repetition for way in ways):
                return _FollowingItem(has_repetition=True, has_barrier=False)
            if self._has_no_match_inside_run(item, run_characters):
                return _FollowingItem(has_repetition=False, has_barrier=True)
        return _FollowingItem(has_repetition=False, has_barrier=False)


def _flatten_groups(items: Any) -> RegexItems:
    """Replace each plain group in a parsed regular expression by the items that it contains."""
    found: list[RegexItem] = []
    for item in items:
        if item[0] is _constants.SUBPATTERN:
            found += _flatten_groups(item[1][3])
        else:
            found.append(item)
    return found


def _iterate_alternatives(items: RegexItems) -> Iterator[RegexItems]:
    """Yield the sequence of items for each combination of alternatives (``a|b``) in an expression."""
    for index, item in enumerate(items):
        if item[0] is _constants.BRANCH:
            for part in _list_subpatterns(item):
                yield from _iterate_alternatives([*items[:index], *part, *items[index + 1 :]])
            return
    yield items


def _list_subpatterns(item: RegexItem) -> list[RegexItems]:
    """Return the sequences of items that an item of a regular expression contains.

    A branch such as ``a|b`` contains one sequence for each alternative; a repetition, lookaround or atomic group
    contains one sequence; any other item contains none.
    """
    operation, value = item
    if operation in _REPEATS:
        return [_flatten_groups(value[2])]
    if operation is _constants.BRANCH:
        return [_flatten_groups(each) for each in value[1]]
    if operation in _LOOKS:
        return [_flatten_groups(value[1])]
    if operation is _constants.ATOMIC_GROUP:
        return [_flatten_groups(value)]
    return []


def _iterate_descendants(items: RegexItems) -> Iterator[RegexItem]:
    for item in items:
        yield item
        for part in _list_subpatterns(item):
            yield from _iterate_descendants(part)


def _is_unbounded_repetition(item: RegexItem) -> bool:
    return item[0] in _REPEATS and item[1][1] > _UNBOUNDED


def _can_match_empty_text(item: RegexItem) -> bool:
    operation, value = item
    if operation in _REPEATS:
        return value[0] == 0 or all(map(_can_match_empty_text, _flatten_groups(value[2])))
    if operation is _constants.BRANCH:
        return any(all(map(_can_match_empty_text, way)) for way in _list_subpatterns(item))
    if operation is _constants.ATOMIC_GROUP:
        return all(map(_can_match_empty_text, _flatten_groups(value)))
    return operation in (*_LOOKS, _constants.AT, _constants.GROUPREF)


class SlowTextParts(NamedTuple):
    """Parts of a text on which a regular expression is slow: its beginning, and the part that is repeated after it."""

    beginning: str
    repeated: str


def build_slow_text_parts(expression: Expression) -> list[SlowTextParts]:
    """Return pairs of text parts, from which a caller builds the texts on which an expression is slowest.

    Such a text is the beginning, followed by many copies of the repeated part. The repeated part matches the whole
    expression, or one repetition in it, with or without the items before the repetition. The beginning is empty, or
    matches the items before the repetition.
    """
    tree = expression.to_parse_tree()
    rules = _RuleChecker(tree.state.flags, is_bytes=isinstance(expression.pattern, bytes))
    found: dict[tuple[str, str], None] = {}
    for way in _iterate_alternatives(_flatten_groups(tree)):
        found["", rules.build_matching_text(way)] = None
        for index, item in enumerate(way):
            if any(map(_is_unbounded_repetition, _iterate_descendants([item]))):
                before, body = rules.build_matching_text(way[:index]), rules.build_matching_text([item])
                found.update(dict.fromkeys([(before, body), (before, before + body), ("", body)]))
    return [SlowTextParts(begin, unit) for begin, unit in found if unit]
