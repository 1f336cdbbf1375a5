// The query engine: a cluster with one database, fed from the hub impulses by its own data connection.
param name string
param location string
param tags object
param skuName string
param capacity int
param databaseName string
param hotDays int
param retentionDays int
param workspaceId string

@description('The identity with which the cluster reads the hub.')
param identityId string

@description('Client id of the app\'s identity, which may read the database.')
param readerClientId string
param eventHubsName string

resource cluster 'Microsoft.Kusto/clusters@2023-08-15' = {
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

resource database 'Microsoft.Kusto/clusters/databases@2023-08-15' = {
  parent: cluster
  name: databaseName
  location: location
  kind: 'ReadWrite'
  properties: {
    hotCachePeriod: 'P${hotDays}D'
    softDeletePeriod: 'P${retentionDays}D'
  }
}

resource tables 'Microsoft.Kusto/clusters/databases/scripts@2023-08-15' = {
  parent: database
  name: 'telemetry'
  properties: {
    scriptContent: loadTextContent('../telemetry.kql')
    continueOnErrors: false
    forceUpdateTag: uniqueString(loadTextContent('../telemetry.kql'))
  }
}

resource reader 'Microsoft.Kusto/clusters/databases/principalAssignments@2023-08-15' = {
  parent: database
  name: guid(database.id, readerClientId)
  properties: {
    principalId: readerClientId
    principalType: 'App'
    role: 'Viewer'
    tenantId: tenant().tenantId
  }
  // Two changes of one database at a time are refused.
  dependsOn: [
    tables
  ]
}

resource feed 'Microsoft.Kusto/clusters/databases/dataConnections@2023-08-15' = {
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

output id string = cluster.id
output uri string = cluster.properties.uri
