// Everything beside the app: identity, stores, hubs, query engine, live stream, logs, and who may do what. Only composes.
@description('What every name begins with, and what makes it the only one.')
param base string
param unique string

@description('The environment\'s name in small letters.')
param environmentPart string
param location string
param tags object
param publicNetworkAccess string

@description('Address of a query engine that is there already; empty to make a cluster.')
param existingKustoUri string
param cosmosDatabase string

@description('Names of the keys that sign.')
param keyNames array
param cosmosName string

@allowed([
  'serverless'
  'autoscale'
])
param cosmosMode string

@minValue(1000)
param cosmosMaxThroughput int
param cosmosReadRegions array

@allowed([
  'Continuous7Days'
  'Continuous30Days'
])
param cosmosBackupTier string
param zoneRedundant bool
param protectStores bool
param kustoDatabase string
param kustoSku string
param kustoCapacity int
param telemetryHotDays int
param telemetryRetentionDays int

@minValue(1)
@maxValue(32)
param hubPartitions int

@minValue(1)
@maxValue(168)
param hubRetentionHours int
param throughputUnits int
param maxThroughputUnits int
param ownHubs array
param withIotHub bool
param iotHubSku string
param iotHubUnits int
param webPubSubSku string
param webPubSubUnits int

@allowed([
  'standard'
  'premium'
])
param keyVaultSku string
param dataStorageSku string
param checkpointRetentionDays int
param archiveCoolAfterDays int
param logRetentionDays int
param dailyLogCapGb int
param operatorPrincipalId string

var withKusto = empty(existingKustoUri)
var storageUnique = '${replace(environmentPart, '-', '')}${unique}'

module identity 'identity.bicep' = {
  name: 'identity'
  params: {
    name: 'id-${base}-app'
    location: location
    tags: tags
  }
}

module kustoIdentity 'identity.bicep' = if (withKusto) {
  name: 'kusto-identity'
  params: {
    name: 'id-${base}-kusto'
    location: location
    tags: tags
  }
}

module iotIdentity 'identity.bicep' = if (withIotHub) {
  name: 'iot-identity'
  params: {
    name: 'id-${base}-iot'
    location: location
    tags: tags
  }
}

module observability 'observability.bicep' = {
  name: 'observability'
  params: {
    workspaceName: 'log-${base}'
    insightsName: 'appi-${base}'
    location: location
    tags: tags
    retentionDays: logRetentionDays
    dailyCapGb: dailyLogCapGb
  }
}

module hostStorage 'host-storage.bicep' = {
  name: 'host-storage'
  params: {
    name: take('sthost${storageUnique}', 24)
    location: location
    tags: tags
    deploymentContainer: 'deployment'
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
  }
}

module dataStorage 'data-storage.bicep' = {
  name: 'data-storage'
  params: {
    name: take('stdata${storageUnique}', 24)
    location: location
    tags: tags
    skuName: dataStorageSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    checkpointRetentionDays: checkpointRetentionDays
    downloadDays: 3
    coolAfterDays: archiveCoolAfterDays
  }
}

module cosmos 'cosmos.bicep' = {
  name: 'cosmos'
  params: {
    name: empty(cosmosName) ? 'cosmos-${base}-${unique}' : cosmosName
    location: location
    tags: tags
    databaseName: cosmosDatabase
    mode: cosmosMode
    maxThroughput: cosmosMaxThroughput
    readRegions: cosmosReadRegions
    backupTier: cosmosBackupTier
    zoneRedundant: zoneRedundant
    locked: protectStores
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    dataContributors: empty(operatorPrincipalId) ? [identity.outputs.principalId] : [identity.outputs.principalId, operatorPrincipalId]
  }
}

module eventHubs 'event-hubs.bicep' = {
  name: 'event-hubs'
  params: {
    name: 'evhns-${base}-${unique}'
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

module vault 'key-vault.bicep' = {
  name: 'key-vault'
  params: {
    name: take('kv-${environmentPart}-${unique}', 24)
    location: location
    tags: tags
    skuName: keyVaultSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicNetworkAccess
    keyNames: keyNames
  }
}

module webPubSub 'web-pubsub.bicep' = {
  name: 'web-pubsub'
  params: {
    name: 'wps-${base}-${unique}'
    location: location
    tags: tags
    skuName: webPubSubSku
    units: webPubSubUnits
    workspaceId: observability.outputs.workspaceId
  }
}

module access 'access.bicep' = {
  name: 'access'
  params: {
    appPrincipalId: identity.outputs.principalId
    kustoPrincipalId: withKusto ? kustoIdentity.outputs.principalId : ''
    iotPrincipalId: withIotHub ? iotIdentity.outputs.principalId : ''
    hostStorageName: hostStorage.outputs.name
    dataStorageName: dataStorage.outputs.name
    eventHubsName: eventHubs.outputs.name
    insightsName: observability.outputs.insightsName
    vaultName: vault.outputs.name
    webPubSubName: webPubSub.outputs.name
    ownHubs: map(ownHubs, each => each.hub)
  }
}

module kusto 'data-explorer.bicep' = if (withKusto) {
  name: 'data-explorer'
  params: {
    name: take('dec${storageUnique}', 22)
    location: location
    tags: tags
    skuName: kustoSku
    capacity: kustoCapacity
    databaseName: kustoDatabase
    hotDays: telemetryHotDays
    retentionDays: telemetryRetentionDays
    workspaceId: observability.outputs.workspaceId
    identityId: kustoIdentity.outputs.id
    readerClientId: identity.outputs.clientId
    eventHubsName: eventHubs.outputs.name
  }
  // The data connection is refused while its identity may not read the hub.
  dependsOn: [
    access
  ]
}

module iotHub 'iot-hub.bicep' = if (withIotHub) {
  name: 'iot-hub'
  params: {
    name: 'iot-${base}-${unique}'
    location: location
    tags: tags
    skuName: iotHubSku
    units: iotHubUnits
    workspaceId: observability.outputs.workspaceId
    identityId: iotIdentity.outputs.id
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
output hostStorageId string = hostStorage.outputs.id
output hostStorageName string = hostStorage.outputs.name
output deploymentUrl string = hostStorage.outputs.deploymentUrl
output dataStorageId string = dataStorage.outputs.id
output dataStorageName string = dataStorage.outputs.name
output blobEndpoint string = dataStorage.outputs.blobEndpoint
output cosmosId string = cosmos.outputs.id
output cosmosEndpoint string = cosmos.outputs.endpoint
output eventHubsId string = eventHubs.outputs.id
output eventHubsHost string = eventHubs.outputs.host
output vaultId string = vault.outputs.id
output vaultName string = vault.outputs.name
output vaultUri string = vault.outputs.uri
output webPubSubName string = webPubSub.outputs.name
output webPubSubHost string = webPubSub.outputs.host
output webPubSubEndpoint string = webPubSub.outputs.endpoint
output webPubSubPrincipalId string = webPubSub.outputs.principalId
output kustoId string = withKusto ? kusto.outputs.id : ''
output kustoUri string = withKusto ? kusto.outputs.uri : existingKustoUri
