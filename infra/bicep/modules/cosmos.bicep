// Cosmos DB account for audit chains, catalog, keys and jobs. It has one write region, and strong consistency or
// bounded staleness, because the app rejects any other account.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param databaseName string
param workspaceId string

@description('Whether each request for an item is logged, with the identity that sent it.')
param logRequests bool
param publicNetworkAccess string
param zoneRedundant bool

@description('Create a lock that prevents the deletion of the account until the lock is removed.')
param locked bool

@description('Regions of the account; the first one accepts writes.')
param regions string[]

@description('Capacity mode: serverless or autoscale.')
param mode string

@description('Maximum RU/s that all containers share, with autoscale.')
param maxThroughput int

@description('Strong, or BoundedStaleness, with which the loss of a region can lose the writes of five minutes.')
param consistency string

param backupTier string

@description('Name of the app\'s identity, which gets the right to read and write items. The name of the assignment is derived from it, because the object id is known only at run time.')
param appIdentityName string
param appPrincipalId string

@description('Object id of a user or group that gets the same right; empty for none.')
param operatorPrincipalId string

// scripts/cosmos_containers.py writes this file from the definitions in the adapters.
var containers = loadJsonContent('../cosmos-containers.json')
// Minimum that Cosmos DB accepts for several regions. It is set for one region, too, so that adding a region changes nothing else.
var boundedStaleness = {
  defaultConsistencyLevel: 'BoundedStaleness'
  maxStalenessPrefix: 100000
  maxIntervalInSeconds: 300
}
var contributors = empty(operatorPrincipalId) ? [appIdentityName] : [appIdentityName, operatorPrincipalId]

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-10-15' = {
  name: name
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    capabilities: mode == 'serverless' ? [{ name: 'EnableServerless' }] : []
    consistencyPolicy: consistency == 'BoundedStaleness' ? boundedStaleness : { defaultConsistencyLevel: 'Strong' }
    enableMultipleWriteLocations: false
    // It depends on the mode and not on the number of regions, because Cosmos DB rejects changes of regions and of anything else together.
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
// Assignments follow one another, after the containers, because Cosmos DB rejects two changes of one account at a time.
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
      {
        category: 'DataPlaneRequests'
        enabled: logRequests
      }
    ]
  }
}

output endpoint string = account.properties.documentEndpoint
