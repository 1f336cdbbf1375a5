// Audit chains, the catalog, keys, jobs. One write region and bounded staleness: the app refuses any other account.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param databaseName string
param workspaceId string
param publicNetworkAccess string
param zoneRedundant bool

@description('Refuse to delete the account, until somebody removes the lock.')
param locked bool

@description('Its regions; the first one writes.')
param regions string[]

@description('serverless or autoscale.')
param mode string

@description('RU/s that all containers share at most, with autoscale.')
param maxThroughput int

param backupTier string

@description('The app may read and write items. The name of its identity makes the assignment\'s name: its object id is known at run time only.')
param appIdentityName string
param appPrincipalId string

@description('Object id of a person or group that may, too; empty for nobody.')
param operatorPrincipalId string

// Written by scripts/cosmos_containers.py from the adapters' own definitions.
var containers = loadJsonContent('../cosmos-containers.json')
var contributors = empty(operatorPrincipalId) ? [appIdentityName] : [appIdentityName, operatorPrincipalId]

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-10-15' = {
  name: name
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    capabilities: mode == 'serverless' ? [{ name: 'EnableServerless' }] : []
    consistencyPolicy: {
      defaultConsistencyLevel: 'BoundedStaleness'
      // The least that Cosmos DB accepts for several regions. One region takes it, too, and adding a region then changes nothing else.
      maxStalenessPrefix: 100000
      maxIntervalInSeconds: 300
    }
    enableMultipleWriteLocations: false
    // By the mode and not by the number of regions: Cosmos DB refuses to change regions together with anything else.
    enableAutomaticFailover: mode != 'serverless'
    locations: [
      for (region, index) in regions: {
        locationName: region
        failoverPriority: index
        isZoneRedundant: zoneRedundant
      }
    ]
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

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2025-10-15' = {
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
resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-10-15' = [
  for each in containers: {
    parent: database
    name: each.id
    properties: {
      resource: each
    }
  }
]

// The built-in role "Cosmos DB Built-in Data Contributor" of the account itself, for this database alone.
// One after the other, after the containers: Cosmos DB refuses two changes of one account at a time.
@batchSize(1)
resource access 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-10-15' = [
  for who in contributors: {
    parent: account
    name: guid(account.id, databaseName, who)
    properties: {
      principalId: who == appIdentityName ? appPrincipalId : who
      roleDefinitionId: '${account.id}/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002'
      scope: '${account.id}/dbs/${database.name}'
    }
    dependsOn: [
      container
    ]
  }
]

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

output endpoint string = account.properties.documentEndpoint
