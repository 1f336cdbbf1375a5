"""Tests that tokens with invalid signatures are rejected, with attacks from Project Wycheproof."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tests.unit.shared.auth.targets import (
    HALF,
    ORDER,
    AttackTarget,
    assert_rejected,
    build_service_token_target,
    encode_part,
    sign_ecdsa,
)


async def test_signatures_that_do_not_match_the_token_are_rejected(target: AttackTarget) -> None:
    """Signatures of other tokens, and truncated, extended, empty or swapped signatures, are rejected."""
    token = target.build_token()
    head, body, signature = token.split(".")
    good = base64.urlsafe_b64decode(signature + "==")
    stronger = encode_part(target.claims | {"AccessRights": ["Workspace.Keys.Manage"], "oid": "admin"})
    await assert_rejected(target, f"{head}.{stronger}.{signature}")
    await assert_rejected(target, f"{encode_part(target.build_header(typ='other'))}.{body}.{signature}")
    for other in (
        good[:-1],
        good[1:],
        good + b"\0",
        b"\0" + good,
        good + good,
        good[::-1],
        bytes(len(good)),
        b"\xff" * len(good),
    ):
        await assert_rejected(target, f"{head}.{body}.{encode_part(other)}")
    for bit in range(0, len(good) * 8, 37):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        await assert_rejected(target, f"{head}.{body}.{encode_part(bytes(flipped))}")


@pytest.mark.parametrize("r", ["0", "1", "n-1", "n", "n+1", "p", "2^256-1", "good", "-good", "good+n"])
@pytest.mark.parametrize("s", ["0", "1", "n-1", "n", "n+1", "2^256-1", "good"])
async def test_signature_numbers_out_of_range_are_rejected(r: str, s: str) -> None:
    """The signature numbers r and s must be from 1 to the group order; some libraries have accepted zeros."""
    target = build_service_token_target()
    head, body, signature = target.build_token().split(".")
    good = base64.urlsafe_b64decode(signature + "==")
    prime = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
    numbers = {"0": 0, "1": 1, "n-1": ORDER - 1, "n": ORDER, "n+1": ORDER + 1, "p": prime, "2^256-1": 2**256 - 1}
    mine = int.from_bytes(good[:HALF])
    numbers |= {"-good": ORDER - mine, "good+n": (mine + ORDER) % 2**256}
    if (r, s) == ("good", "good"):
        await target.verify(f"{head}.{body}.{signature}")
        return
    first = good[:HALF] if r == "good" else numbers[r].to_bytes(HALF)
    second = good[HALF:] if s == "good" else numbers[s].to_bytes(HALF)
    await assert_rejected(target, f"{head}.{body}.{encode_part(first + second)}")


async def test_signatures_with_a_wrong_encoding_are_rejected() -> None:
    """Signatures in ASN.1, with numbers of a wrong width, or with invalid ASN.1 numbers are rejected."""
    target = build_service_token_target()
    head, body, signature = target.build_token().split(".")
    good = base64.urlsafe_b64decode(signature + "==")
    first, second = good[:HALF], good[HALF:]
    r, s = int.from_bytes(first), int.from_bytes(second)
    forms = [
        sign_ecdsa(f"{head}.{body}".encode()),
        encode_dss_signature(r, s),
        encode_dss_signature(0, 0),
        b"\x30\x06\x02\x01\0\x02\x01\0",
    ]
    forms += [
        second + first,
        first.rjust(48, b"\0") + second.rjust(48, b"\0"),
        first[::-1] + second[::-1],
        first,
        b"\x04" + good,
    ]
    for form in forms:
        await assert_rejected(target, f"{head}.{body}.{encode_part(form)}")
