// All resources except the app, the network and the gateway: identities, stores, hubs, query engine, live stream, logs, roles.
// This module only composes others.
import { identityNameMap, ownHub, serviceNameMap, textMap } from '../types.bicep'

param names serviceNameMap
param identityNames identityNameMap

@description('Region of the services that process requests and data.')
param location string

@description('Region of the stores.')
param homeLocation string
param tags textMap
param publicNetworkAccess string
param hostStorageSku string

@description('Address of an existing query engine; empty to create a cluster.')
param existingKustoUri string

@description('Name of an existing vault to use without changes; empty to create or update one.')
param existingVaultName string

@description('Name of an existing data storage account to use without changes; empty to create or update one.')
param existingDataStorageName string
param cosmosDatabase string

@description('Names of the signing keys.')
param keyNames string[]
param cosmosMode string
param cosmosMaxThroughput int

@description('Regions of Cosmos DB; the first one accepts writes.')
param cosmosRegions string[]
param cosmosConsistency string
param cosmosBackupTier string
param zoneRedundant bool
param protectStores bool
param kustoDatabase string
param kustoSku string
param kustoCapacity int
param streamingIngestion bool
param telemetryHotDays int
param telemetryRetentionDays int
param hubPartitions int
param hubRetentionHours int
param throughputUnits int
param maxThroughputUnits int
param ownHubs ownHub[]
param withIotHub bool
param iotHubSku string
param iotHubUnits int
param webPubSubSku string
param webPubSubUnits int
param keyVaultSku string
param purgeProtection bool
param vaultCreateMode string
param dataStorageSku string
param checkpointsLocked bool
param checkpointRetentionDays int
param deletedBlobDays int
param archiveCoolAfterDays int

@description('Origins of web pages that are allowed to upload and download files by signed links.')
param fileOrigins string[]
param logRetentionDays int
param dailyLogCapGb int

@description('Whether requests for items of Cosmos DB and writes to the data storage are logged.')
param logDataRequests bool
param operatorPrincipalId string

var withKusto = empty(existingKustoUri)

module identity 'identity.bicep' = {
  params: {
    name: identityNames.app
    location: location
    tags: tags
  }
}

module kustoIdentity 'identity.bicep' = if (withKusto) {
  params: {
    name: identityNames.kusto
    location: location
    tags: tags
  }
}

module iotIdentity 'identity.bicep' = if (withIotHub) {
  params: {
    name: identityNames.iot
    location: location
    tags: tags
  }
}

module observability 'observability.bicep' = {
  params: {
    workspaceName: names.workspace
    insightsName: names.insights
    location: location
    tags: tags
    retentionDays: logRetentionDays
    dailyCapGb: dailyLogCapGb
  }
}

module hostStorage 'host-storage.bicep' = {
  params: {
    name: names.hostStorage
    location: location
    tags: tags
    skuName: hostStorageSku
    deploymentContainer: 'deployment'
    publicNetworkAccess: publicNetworkAccess
  }
}

module dataStorage 'data-storage.bicep' = if (empty(existingDataStorageName)) {
  params: {
    name: names.dataStorage
    location: homeLocation
    tags: tags
    skuName: dataStorageSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    checkpointsLocked: checkpointsLocked
    checkpointRetentionDays: checkpointRetentionDays
    deletedBlobDays: deletedBlobDays
    downloadDays: 3
    coolAfterDays: archiveCoolAfterDays
    fileOrigins: fileOrigins
    logWrites: logDataRequests
  }
}

resource dataStorageThere 'Microsoft.Storage/storageAccounts@2025-06-01' existing = if (!empty(existingDataStorageName)) {
  name: existingDataStorageName
}

module cosmos 'cosmos.bicep' = {
  params: {
    name: names.cosmos
    location: homeLocation
    tags: tags
    databaseName: cosmosDatabase
    mode: cosmosMode
    maxThroughput: cosmosMaxThroughput
    regions: cosmosRegions
    consistency: cosmosConsistency
    backupTier: cosmosBackupTier
    zoneRedundant: zoneRedundant
    locked: protectStores
    logRequests: logDataRequests
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    appIdentityName: identityNames.app
    appPrincipalId: identity.outputs.principalId
    operatorPrincipalId: operatorPrincipalId
  }
}

module eventHubs 'event-hubs.bicep' = {
  params: {
    name: names.eventHubs
    location: location
    tags: tags
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    partitions: hubPartitions
    retentionHours: hubRetentionHours
    throughputUnits: throughputUnits
    maxThroughputUnits: maxThroughputUnits
    ownHubs: ownHubs
  }
}

module vault 'key-vault.bicep' = if (empty(existingVaultName)) {
  params: {
    name: names.vault
    location: homeLocation
    tags: tags
    skuName: keyVaultSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    purgeProtection: purgeProtection
    createMode: vaultCreateMode
    keyNames: keyNames
  }
}

resource vaultThere 'Microsoft.KeyVault/vaults@2025-05-01' existing = if (!empty(existingVaultName)) {
  name: existingVaultName
}

module webPubSub 'web-pubsub.bicep' = {
  params: {
    name: names.webPubSub
    location: location
    tags: tags
    skuName: webPubSubSku
    units: webPubSubUnits
    workspaceId: observability.outputs.workspaceId
  }
}

module access 'access.bicep' = {
  params: {
    names: names
    identityNames: identityNames
    principalIds: {
      app: identity.outputs.principalId
      kusto: withKusto ? kustoIdentity!.outputs.principalId : ''
      iot: withIotHub ? iotIdentity!.outputs.principalId : ''
    }
    withKusto: withKusto
    withIotHub: withIotHub
    ownHubs: union(map(ownHubs, each => each.hub), [])
  }
  // With names alone, the role assignments would start before the resources exist.
  dependsOn: [
    dataStorage
    eventHubs
    hostStorage
    observability
    vault
    webPubSub
  ]
}

module kusto 'data-explorer.bicep' = if (withKusto) {
  params: {
    name: names.kusto
    location: location
    tags: tags
    skuName: kustoSku
    capacity: kustoCapacity
    streamingIngestion: streamingIngestion
    databaseName: kustoDatabase
    hotDays: telemetryHotDays
    retentionDays: telemetryRetentionDays
    workspaceId: observability.outputs.workspaceId
    identityId: kustoIdentity!.outputs.id
    identityPrincipalId: kustoIdentity!.outputs.principalId
    readerName: identityNames.app
    readerClientId: identity.outputs.clientId
    eventHubsName: names.eventHubs
    dataStorageName: names.dataStorage
    privateSources: publicNetworkAccess == 'Disabled'
  }
  // Azure rejects the data connection until its identity has the right to read the hub.
  dependsOn: [
    access
  ]
}

module iotHub 'iot-hub.bicep' = if (withIotHub) {
  params: {
    name: names.iotHub
    location: location
    tags: tags
    skuName: iotHubSku
    units: iotHubUnits
    workspaceId: observability.outputs.workspaceId
    identityId: iotIdentity!.outputs.id
    eventHubsHost: eventHubs.outputs.host
  }
  dependsOn: [
    access
  ]
}

output workspaceId string = observability.outputs.workspaceId
output insightsConnectionString string = observability.outputs.connectionString
output identityId string = identity.outputs.id
output clientId string = identity.outputs.clientId
output deploymentUrl string = hostStorage.outputs.deploymentUrl
output blobEndpoint string = empty(existingDataStorageName) ? dataStorage!.outputs.blobEndpoint : dataStorageThere!.properties.primaryEndpoints.blob
output cosmosEndpoint string = cosmos.outputs.endpoint
output eventHubsHost string = eventHubs.outputs.host
output vaultUri string = empty(existingVaultName) ? vault!.outputs.uri : vaultThere!.properties.vaultUri
output webPubSubHost string = webPubSub.outputs.host
output webPubSubEndpoint string = webPubSub.outputs.endpoint
output webPubSubPrincipalId string = webPubSub.outputs.principalId
output kustoUri string = withKusto ? kusto!.outputs.uri : existingKustoUri
