// Key vault with the keys that sign tokens and checkpoints; private keys never leave the vault.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param workspaceId string
param publicNetworkAccess string
param purgeProtection bool
param createMode string

@description('Names of the keys, all ECDSA P-256.')
param keyNames string[]

resource vault 'Microsoft.KeyVault/vaults@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    tenantId: tenant().tenantId
    sku: {
      family: 'A'
      name: skuName
    }
    enableRbacAuthorization: true
    // Azure rejects false. With null the property is omitted, and a vault on which it is set retains it.
    enablePurgeProtection: purgeProtection ? true : null
    createMode: createMode
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    publicNetworkAccess: publicNetworkAccess
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    }
  }
}

resource signing 'Microsoft.KeyVault/vaults/keys@2025-05-01' = [
  for each in keyNames: {
    parent: vault
    name: each
    tags: tags
    properties: {
      kty: skuName == 'premium' ? 'EC-HSM' : 'EC'
      curveName: 'P-256'
      keyOps: [
        'sign'
        'verify'
      ]
    }
  }
]

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: vault
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'AuditEvent'
        enabled: true
      }
    ]
  }
}

output uri string = vault.properties.vaultUri
