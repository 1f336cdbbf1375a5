"""Tests that malformed tokens are rejected, with attacks from Project Wycheproof."""

import json

import pytest

from shared.auth import jose
from tests.unit.shared.auth.targets import AttackTarget, assert_rejected, encode_part


async def test_segments_with_a_wrong_encoding_are_rejected(target: AttackTarget) -> None:
    """A token segment is rejected if it has padding, another alphabet, unused bits or white space."""
    token = target.build_token()
    segments = token.split(".")
    for index, segment in enumerate(segments):
        last = jose._ALPHABET.index(segment[-1])
        others = [
            segment + "=",
            segment + "==",
            segment + "A",
            segment[:-1],
            segment + "\n",
            " " + segment,
            segment + " ",
        ]
        others += [
            segment[:3] + "\r\n" + segment[3:],
            segment[:3] + "\t" + segment[3:],
            segment[:3] + "\u200b" + segment[3:],
        ]
        others += [
            segment[:3] + "%41" + segment[3:],
            segment + "\x00",
            segment + "#",
            segment[:3] + "." + segment[3:],
            "",
        ]
        if len(segment) % 4:
            others.append(segment[:-1] + jose._ALPHABET[last ^ 1])
        if "-" in segment or "_" in segment:
            others.append(segment.replace("-", "+").replace("_", "/"))
        for other in others:
            await assert_rejected(target, ".".join([*segments[:index], other, *segments[index + 1 :]]))


async def test_tokens_without_exactly_three_segments_are_rejected(target: AttackTarget) -> None:
    """Only tokens with three non-empty segments are accepted, so detached, encrypted and nested tokens are rejected."""
    head, body, signature = target.build_token().split(".")
    for parts in (
        (head, "", signature), (head, body), (head, signature), (head, body, ""), (head,), ("", "", ""), ("",) * 5,
        (head, body, signature, ""), ("", head, body, signature), (head, body, signature, signature),
        (head, body, body, body, signature),
    ):  # fmt: skip
        await assert_rejected(target, ".".join(parts))
    encrypted = encode_part({"alg": "dir", "enc": "A128GCM"})
    await assert_rejected(target, f"{encrypted}..AAAAAAAAAAAAAAAA.AA.AAAAAAAAAAAAAAAAAAAAAA")
    await assert_rejected(target, target.build_token(payload=target.build_token()))
    await assert_rejected(
        target, json.dumps({"payload": body, "signatures": [{"protected": head, "signature": signature}]})
    )


async def test_tokens_with_duplicate_members_are_rejected(target: AttackTarget) -> None:
    """A signed token with duplicate properties is rejected, because parsers read them differently."""
    header, claims = json.dumps(target.build_header()), json.dumps(target.claims)
    for more in ('"alg":"none"', f'"alg":"{target.alg}"', '"kid":"mine"', '"\\u0061lg":"none"'):
        await assert_rejected(target, target.build_token(f"{header[:-1]},{more}}}"))
    for more in ('"exp":9999999999', '"sub":"admin@x"', '"sub":"admin@x","sub":"editor@x"', '"\\u0065xp":9999999999'):
        if more.startswith('"sub":"admin@x"') and more.count("sub") == 1 and "sub" not in target.claims:
            continue
        await assert_rejected(target, target.build_token(payload=f"{claims[:-1]},{more}}}"))
    await assert_rejected(target, target.build_token(payload=f'{claims[:-1]},"a":{{"b":1,"b":2}}}}'))


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "1", '"x"', "{", "{}x", "\ufeff{}", "{'alg':'none'}", "[" * 5_000, "NaN"]
)
async def test_segments_other_than_objects_are_rejected(target: AttackTarget, text: str) -> None:
    """A token whose header or payload is not a JSON object is rejected."""
    await assert_rejected(target, target.build_token(text.encode()))
    await assert_rejected(target, target.build_token(payload=text.encode() or b" "))
    await assert_rejected(target, target.build_token(payload=b"\xff\xfe"))


@pytest.mark.parametrize("part", ["header", "payload"])
def test_a_deeply_nested_token_is_malformed(part: str) -> None:
    """A header or payload that is nested too deeply for the JSON parser is reported as a malformed token."""
    parts = {"header": "{}", "payload": "{}", part: "[" * 12_000}
    with pytest.raises(ValueError, match="nested too deeply"):
        jose.parse_token_header(f"{encode_part(parts['header'])}.{encode_part(parts['payload'])}.AAAA")


async def test_oversized_token_is_rejected(target: AttackTarget) -> None:
    """A token over the maximum length is rejected."""
    await assert_rejected(target, target.build_token_with_claims(padding="a" * jose.MAX_LENGTH))
    await assert_rejected(target, "a" * 5_000_000)
    await assert_rejected(target, "." * 5_000_000)
    await assert_rejected(target, f"{encode_part({'alg': target.alg, 'kid': 'k' * 4_000_000})}.e30.AA")
