"""Test server for Azure Key Vault: keys, versions and ES256 signatures, over TLS on the loopback address.

It implements the requests of azure-keyvault-keys after the REST reference, with the challenge for a token. It has never
been compared with the service.
"""

from tests.key_vault.server import KeyVaultDouble, Tokens

__all__ = ["KeyVaultDouble", "Tokens"]
