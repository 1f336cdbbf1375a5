"""A test double of Azure Key Vault at the wire: keys, their versions, and ES256 signatures, over TLS on loopback.

It answers what azure-keyvault-keys sends as the REST reference describes it, with the challenge that asks for a token.
It is no emulator and was never compared with the service.
"""

from tests.key_vault.server import KeyVaultDouble, Tokens

__all__ = ["KeyVaultDouble", "Tokens"]
