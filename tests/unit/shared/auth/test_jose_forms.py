"""Forms that a token may not have, in the manner of Project Wycheproof; not one is let in."""

import json

import pytest

from shared.auth import jose
from tests.unit.shared.auth.targets import Attacked, part, refused


async def test_spellings_of_base64url(target: Attacked) -> None:
    """A token has one spelling: no padding, no other alphabet, no stray bits, no white space, nothing in between."""
    token = target.token()
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
            await refused(target, ".".join([*segments[:index], other, *segments[index + 1 :]]))


async def test_other_numbers_of_parts(target: Attacked) -> None:
    """Detached, encrypted (five parts), empty and nested forms are none of ours."""
    head, body, signature = target.token().split(".")
    for parts in (
        (head, "", signature), (head, body), (head, signature), (head, body, ""), (head,), ("", "", ""), ("",) * 5,
        (head, body, signature, ""), ("", head, body, signature), (head, body, signature, signature),
        (head, body, body, body, signature),
    ):  # fmt: skip
        await refused(target, ".".join(parts))
    encrypted = part({"alg": "dir", "enc": "A128GCM"})
    await refused(target, f"{encrypted}..AAAAAAAAAAAAAAAA.AA.AAAAAAAAAAAAAAAAAAAAAA")
    await refused(target, target.token(payload=target.token()))
    await refused(target, json.dumps({"payload": body, "signatures": [{"protected": head, "signature": signature}]}))


async def test_members_that_stand_twice(target: Attacked) -> None:
    """Readers take different ones of two members, so a token with two is refused, even well signed."""
    header, claims = json.dumps(target.header()), json.dumps(target.claims)
    for more in ('"alg":"none"', f'"alg":"{target.alg}"', '"kid":"mine"', '"\\u0061lg":"none"'):
        await refused(target, target.token(f"{header[:-1]},{more}}}"))
    for more in ('"exp":9999999999', '"sub":"admin@x"', '"sub":"admin@x","sub":"editor@x"', '"\\u0065xp":9999999999'):
        if more.startswith('"sub":"admin@x"') and more.count("sub") == 1 and "sub" not in target.claims:
            continue
        await refused(target, target.token(payload=f"{claims[:-1]},{more}}}"))
    await refused(target, target.token(payload=f'{claims[:-1]},"a":{{"b":1,"b":2}}}}'))


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "1", '"x"', "{", "{}x", "\ufeff{}", "{'alg':'none'}", "[" * 5_000, "NaN"]
)
async def test_segments_that_are_no_objects(target: Attacked, text: str) -> None:
    """Header and payload are JSON objects and nothing else."""
    await refused(target, target.token(text.encode()))
    await refused(target, target.token(payload=text.encode() or b" "))
    await refused(target, target.token(payload=b"\xff\xfe"))


async def test_size(target: Attacked) -> None:
    """What is longer than any token is refused unread."""
    await refused(target, target.changed(padding="a" * jose.MAX_LENGTH))
    await refused(target, "a" * 5_000_000)
    await refused(target, "." * 5_000_000)
    await refused(target, f"{part({'alg': target.alg, 'kid': 'k' * 4_000_000})}.e30.AA")
