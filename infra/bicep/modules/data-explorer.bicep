// The query engine: a cluster with one database, fed from the hub impulses by its own data connection.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param capacity int
param databaseName string
param hotDays int
param retentionDays int
param workspaceId string

@description('The identity with which the cluster reads the hub.')
param identityId string

@description('Object id of that identity.')
param identityPrincipalId string

@description('Name of the app\'s identity, which may read the database.')
param readerName string
param readerClientId string
param eventHubsName string

@description('The hub has no public address: read it through a managed private endpoint.')
param privateEventHubs bool

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

// Whoever deploys needs the role Admin of the database to run a script: see docs/azure-networks-failover-restore.md.
resource tables 'Microsoft.Kusto/clusters/databases/scripts@2025-02-14' = {
  parent: database
  name: 'telemetry'
  properties: {
    // Commands that create a table; no secret is in them.
    #disable-next-line use-secure-value-for-secure-inputs
    scriptContent: loadTextContent('../telemetry.kql')
    continueOnErrors: false
    forceUpdateTag: uniqueString(loadTextContent('../telemetry.kql'))
    principalPermissionsAction: 'RemovePermissionOnScriptCompletion'
  }
}

// The data connection is refused where this policy does not allow its identity. To change the policy takes rights on the cluster.
resource policy 'Microsoft.Kusto/clusters/databases/scripts@2025-02-14' = {
  parent: database
  name: 'managed-identity'
  properties: {
    // A command that names an identity; no secret is in it.
    #disable-next-line use-secure-value-for-secure-inputs
    scriptContent: '.alter-merge database [\'${databaseName}\'] policy managed_identity "[{\'ObjectId\': \'${identityPrincipalId}\', \'AllowedUsages\': \'DataConnection\'}]"'
    scriptLevel: 'Cluster'
    continueOnErrors: false
    // Of the principal: an identity that was made anew has the same resource id.
    forceUpdateTag: uniqueString(identityPrincipalId)
    principalPermissionsAction: 'RemovePermissionOnScriptCompletion'
  }
  // Two scripts of one cluster at a time are refused.
  dependsOn: [
    tables
  ]
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
  // Two changes of one database at a time are refused.
  dependsOn: [
    policy
  ]
}

// Somebody approves it on the namespace, unless who deploys may do so: then it is approved by itself.
resource privatePath 'Microsoft.Kusto/clusters/managedPrivateEndpoints@2025-02-14' = if (privateEventHubs) {
  parent: cluster
  name: 'event-hubs'
  properties: {
    privateLinkResourceId: resourceId('Microsoft.EventHub/namespaces', eventHubsName)
    groupId: 'namespace'
    requestMessage: 'Data Explorer reads the hub impulses.'
  }
  dependsOn: [
    reader
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
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

output uri string = cluster.properties.uri
