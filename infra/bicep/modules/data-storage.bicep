// Storage account with the blobs of the workspace: cold archive, files of downloads, signed checkpoints.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param workspaceId string

@description('Whether each write of a blob is logged, with the identity that sent it.')
param logWrites bool
param publicNetworkAccess string

@description('Whether the immutability policy is locked; a locked policy cannot be written.')
param checkpointsLocked bool

@description('Days for which a checkpoint cannot be changed or removed once the policy is locked.')
param checkpointRetentionDays int

@description('Days for which a deleted or overwritten blob can be restored.')
param deletedBlobDays int

@description('Days after which the file of a download is removed if the app has not removed it.')
param downloadDays int

@description('Days after which archived telemetry moves to the cool tier; 0 for never.')
param coolAfterDays int

@description('Origins of web pages that are allowed to upload and download files by signed links.')
param fileOrigins string[]

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
    // It applies to the whole account: also to removed downloads, and to each overwritten state of a checkpoint, under
    // 2 KB per minute and chain. Soft delete slows down lists of overwritten blobs, but the app does not list states.
    deleteRetentionPolicy: {
      enabled: true
      days: deletedBlobDays
    }
    // The console uploads the files of imports by signed links, which lead to this account.
    cors: {
      corsRules: [
        {
          allowedOrigins: fileOrigins
          allowedMethods: ['GET', 'HEAD', 'PUT']
          allowedHeaders: ['content-type', 'range', 'x-ms-*']
          exposedHeaders: ['content-range', 'etag', 'x-ms-*']
          maxAgeInSeconds: 3600
        }
      ]
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

// Working state of the checkpoints: replaced with each checkpoint, and computed again if it is lost.
resource checkpointState 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = {
  parent: blobs
  name: 'checkpoint-state'
  properties: {
    publicAccess: 'None'
  }
}

// The policy is created unlocked, so that a trial can be removed. scripts/azure/lock-checkpoints locks it irrevocably.
// A template cannot write a locked policy, so it is omitted if checkpointsLocked is true.
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
      {
        category: 'StorageWrite'
        enabled: logWrites
      }
    ]
  }
}

output blobEndpoint string = account.properties.primaryEndpoints.blob
