"""Emulator of Azure Key Vault: keys, versions and ES256 signatures, over TLS on the loopback address.

It implements the requests of azure-keyvault-keys by the REST reference, with the challenge for a token. It has not been
compared with the real service.
"""

from tests.key_vault.server import KeyVaultDouble, Tokens

__all__ = ["KeyVaultDouble", "Tokens"]
