// Audit chains, the catalog, keys, jobs. One write region and bounded staleness: the app refuses any other account.
param name string
param location string
param tags object
param databaseName string
param workspaceId string
param publicNetworkAccess string
param zoneRedundant bool

@description('Refuse to delete the account, until somebody removes the lock.')
param locked bool

@description('Regions beside the first, for reads and for failover.')
param readRegions array

@allowed([
  'serverless'
  'autoscale'
])
param mode string

@description('RU/s that all containers share at most, with autoscale.')
param maxThroughput int

@allowed([
  'Continuous7Days'
  'Continuous30Days'
])
param backupTier string

@description('Who may read and write items: object ids of identities.')
param dataContributors array

// Written by scripts/cosmos_containers.py from the adapters' own definitions.
var containers = loadJsonContent('../cosmos-containers.json')
var regions = concat([location], readRegions)
var several = length(regions) > 1

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-05-15' = {
  name: name
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    capabilities: mode == 'serverless' ? [{ name: 'EnableServerless' }] : []
    consistencyPolicy: {
      defaultConsistencyLevel: 'BoundedStaleness'
      // The least that Cosmos DB takes for one region, and for several.
      maxStalenessPrefix: several ? 100000 : 10
      maxIntervalInSeconds: several ? 300 : 5
    }
    enableMultipleWriteLocations: false
    enableAutomaticFailover: several
    locations: [for (region, index) in regions: {
      locationName: region
      failoverPriority: index
      isZoneRedundant: zoneRedundant
    }]
    disableLocalAuth: true
    disableKeyBasedMetadataWriteAccess: true
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: publicNetworkAccess
    backupPolicy: {
      type: 'Continuous'
      continuousModeProperties: {
        tier: backupTier
      }
    }
  }
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-05-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
    options: mode == 'serverless' ? {} : { autoscaleSettings: { maxThroughput: maxThroughput } }
  }
}

@batchSize(1)
resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-05-15' = [for each in containers: {
  parent: database
  name: each.id
  properties: {
    resource: each
  }
}]

// The built-in role "Cosmos DB Built-in Data Contributor" of the account itself, for this database alone.
resource access 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2024-05-15' = [for principal in dataContributors: {
  parent: account
  name: guid(account.id, databaseName, principal)
  properties: {
    principalId: principal
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002'
    scope: '${account.id}/dbs/${database.name}'
  }
}]

resource keep 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  scope: account
  name: 'audit-chains'
  properties: {
    level: 'CanNotDelete'
    notes: 'Holds the audit chains.'
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: account
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated'
    logs: [
      {
        category: 'ControlPlaneRequests'
        enabled: true
      }
      {
        category: 'PartitionKeyStatistics'
        enabled: true
      }
    ]
    metrics: [
      {
        category: 'Requests'
        enabled: true
      }
    ]
  }
}

output id string = account.id
output name string = account.name
output endpoint string = account.properties.documentEndpoint
