// Query engine: a Data Explorer cluster with one database, which ingests the hub impulses through a data connection.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param capacity int
param databaseName string

@description('Whether rows are ingested within seconds. Otherwise the table\'s batching time delays them.')
param streamingIngestion bool
param hotDays int
param retentionDays int
param workspaceId string

@description('Identity with which the cluster reads the hub.')
param identityId string

@description('Object id of that identity.')
param identityPrincipalId string

@description('Name of the app\'s identity, which gets the right to read the database.')
param readerName string
param readerClientId string
param eventHubsName string

@description('Storage account with the files of imports, which the cluster reads.')
param dataStorageName string

@description('Whether the hub and the storage account have no public addresses, so that they are read through managed private endpoints.')
param privateSources bool

resource cluster 'Microsoft.Kusto/clusters@2025-02-14' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: skuName
    tier: startsWith(skuName, 'Dev') ? 'Basic' : 'Standard'
    capacity: capacity
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    enableAutoStop: false
    enableDiskEncryption: true
    enableStreamingIngest: true
  }
}

resource database 'Microsoft.Kusto/clusters/databases@2025-02-14' = {
  parent: cluster
  name: databaseName
  location: location
  kind: 'ReadWrite'
  properties: {
    hotCachePeriod: 'P${hotDays}D'
    softDeletePeriod: 'P${retentionDays}D'
  }
}

var telemetryCommands = loadTextContent('../telemetry.kql')
var queuedCommands = replace(telemetryCommands, 'policy streamingingestion enable', 'policy streamingingestion disable')
var tableCommands = streamingIngestion ? telemetryCommands : queuedCommands
// Azure rejects the data connection if this policy does not allow its identity.
var policyCommand = '.alter-merge database [\'${databaseName}\'] policy managed_identity "[{\'ObjectId\': \'${identityPrincipalId}\', \'AllowedUsages\': \'DataConnection\'}]"'

// The deploying identity needs the role AllDatabasesAdmin to run this script; see docs/how-to/networks-failover-restore.md.
resource tables 'Microsoft.Kusto/clusters/databases/scripts@2025-02-14' = {
  parent: database
  name: 'telemetry'
  properties: {
    // Commands that create a table and name an identity; they contain no secrets.
    #disable-next-line use-secure-value-for-secure-inputs
    scriptContent: '${tableCommands}\n\n${policyCommand}'
    continueOnErrors: false
    // Derived from the principal, too, because an identity that was created again has the same resource id.
    forceUpdateTag: uniqueString(tableCommands, identityPrincipalId)
    // Otherwise the identity might lose rights that it needs for its next script.
    principalPermissionsAction: 'RetainPermissionOnScriptCompletion'
  }
}

resource reader 'Microsoft.Kusto/clusters/databases/principalAssignments@2025-02-14' = {
  parent: database
  name: guid(database.id, readerName)
  properties: {
    principalId: readerClientId
    principalType: 'App'
    role: 'Viewer'
    tenantId: tenant().tenantId
  }
  // A database rejects two changes at a time.
  dependsOn: [
    tables
  ]
}

// Imports of history are ingested from blobs by commands of the app.
resource ingestor 'Microsoft.Kusto/clusters/databases/principalAssignments@2025-02-14' = {
  parent: database
  name: guid(database.id, readerName, 'Ingestor')
  properties: {
    principalId: readerClientId
    principalType: 'App'
    role: 'Ingestor'
    tenantId: tenant().tenantId
  }
  dependsOn: [
    reader
  ]
}

// An operator must approve it on the service, unless the deploying identity may approve it: then this is automatic.
resource privatePath 'Microsoft.Kusto/clusters/managedPrivateEndpoints@2025-02-14' = if (privateSources) {
  parent: cluster
  name: 'event-hubs'
  properties: {
    privateLinkResourceId: resourceId('Microsoft.EventHub/namespaces', eventHubsName)
    groupId: 'namespace'
    requestMessage: 'Data Explorer reads the hub impulses.'
  }
  dependsOn: [
    ingestor
  ]
}

resource blobPath 'Microsoft.Kusto/clusters/managedPrivateEndpoints@2025-02-14' = if (privateSources) {
  parent: cluster
  name: 'data-blobs'
  properties: {
    privateLinkResourceId: resourceId('Microsoft.Storage/storageAccounts', dataStorageName)
    groupId: 'blob'
    requestMessage: 'Data Explorer reads the files of imports.'
  }
  // A cluster rejects two changes at a time.
  dependsOn: [
    privatePath
  ]
}

resource feed 'Microsoft.Kusto/clusters/databases/dataConnections@2025-02-14' = {
  parent: database
  name: 'impulses'
  location: location
  kind: 'EventHub'
  properties: {
    eventHubResourceId: resourceId('Microsoft.EventHub/namespaces/eventhubs', eventHubsName, 'impulses')
    consumerGroup: 'adx'
    tableName: 'TelemetryRaw'
    mappingRuleName: 'impulses'
    dataFormat: 'MULTIJSON'
    compression: 'None'
    databaseRouting: 'Single'
    managedIdentityResourceId: identityId
  }
  dependsOn: [
    blobPath
    privatePath
    reader
  ]
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: cluster
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'FailedIngestion'
        enabled: true
      }
    ]
  }
}

output uri string = cluster.properties.uri
