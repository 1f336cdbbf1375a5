// Storage account of the Functions host: the deployed package, leases and offsets of triggers, orchestrations.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap

@description('Redundancy of the account; Standard_ZRS if the app is spread over zones.')
param skuName string
param deploymentContainer string
param publicNetworkAccess string

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: skuName
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: publicNetworkAccess
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2025-01-01' = {
  parent: account
  name: 'default'
}

resource package 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: deploymentContainer
  properties: {
    publicAccess: 'None'
  }
}

output deploymentUrl string = '${account.properties.primaryEndpoints.blob}${deploymentContainer}'
