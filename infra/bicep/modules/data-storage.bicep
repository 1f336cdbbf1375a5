// The workspace's own blobs: the cold archive, files of downloads, signed checkpoints.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param workspaceId string
param publicNetworkAccess string

@description('The policy is locked: nothing may write it any more.')
param checkpointsLocked bool

@description('Days for which a checkpoint can be neither changed nor removed once the policy is locked.')
param checkpointRetentionDays int

@description('Days after which a file of a download is removed even where the app did not.')
param downloadDays int

@description('Days after which archived telemetry moves to the cool tier; 0 for never.')
param coolAfterDays int

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
  properties: {
    containerDeleteRetentionPolicy: {
      enabled: true
      days: 30
    }
    // Soft delete also stores each overwritten state of a checkpoint, once a minute and chain: one day, the least.
    deleteRetentionPolicy: {
      enabled: true
      days: 1
    }
  }
}

resource cold 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: 'cold'
  properties: {
    publicAccess: 'None'
  }
}

resource downloads 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: 'downloads'
  properties: {
    publicAccess: 'None'
  }
}

resource checkpoints 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: 'checkpoints'
  properties: {
    publicAccess: 'None'
  }
}

// Working state beside the checkpoints: replaced at each, and made anew where it is lost.
resource checkpointState 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: 'checkpoint-state'
  properties: {
    publicAccess: 'None'
  }
}

// Created unlocked, so that a trial can be taken down again; scripts/azure/lock-checkpoints locks it, and nobody can undo that.
// A template may not write a locked policy: from then on checkpointsLocked leaves it out.
resource worm 'Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies@2025-01-01' = if (!checkpointsLocked) {
  parent: checkpoints
  name: 'default'
  properties: {
    immutabilityPeriodSinceCreationInDays: checkpointRetentionDays
    allowProtectedAppendWrites: false
  }
}

var removal = {
  enabled: true
  name: 'remove-downloads'
  type: 'Lifecycle'
  definition: {
    actions: {
      baseBlob: {
        delete: {
          daysAfterModificationGreaterThan: downloadDays
        }
      }
    }
    filters: {
      blobTypes: [
        'blockBlob'
      ]
      prefixMatch: [
        'downloads/'
      ]
    }
  }
}
var cooling = {
  enabled: true
  name: 'cool-archive'
  type: 'Lifecycle'
  definition: {
    actions: {
      baseBlob: {
        tierToCool: {
          daysAfterModificationGreaterThan: coolAfterDays
        }
      }
    }
    filters: {
      blobTypes: [
        'blockBlob'
      ]
      prefixMatch: [
        'cold/'
      ]
    }
  }
}

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: coolAfterDays > 0 ? [removal, cooling] : [removal]
    }
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: blobs
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'StorageDelete'
        enabled: true
      }
    ]
    metrics: [
      {
        category: 'Transaction'
        enabled: true
      }
    ]
  }
}

output blobEndpoint string = account.properties.primaryEndpoints.blob
