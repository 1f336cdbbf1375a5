// Everything that one workspace needs, in one resource group. This file only composes; what a part is made of stands
// in its module.
//   az deployment sub create -l LOCATION -f infra/bicep/main.bicep -p infra/bicep/dev.bicepparam
targetScope = 'subscription'

@description('Name of the environment; part of every name.')
@minLength(2)
@maxLength(12)
param environmentName string

@description('Region of everything. It must offer Flex Consumption with Python 3.13.')
param location string

@description('Further tags of every resource.')
param tags object = {}

@description('Instances that never stop: objects with name (http, durable, function:NAME) and instanceCount.')
param alwaysReady array = []

@description('Instances that the app grows to at most.')
@minValue(40)
@maxValue(1000)
param maximumInstances int = 100

@allowed([
  512
  2048
  4096
])
param instanceMemoryMb int = 2048

@description('HTTP requests that one instance serves at once before another one is started.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 50

@description('Functions that shall not run, such as simulators where nothing is simulated.')
param disabledFunctions array = []

@description('NCRONTAB schedule on which simulators send; each run is paid for.')
param simulatorSchedule string = '*/1 * * * * *'

@description('Name of the Cosmos DB account, after a restore into another one; empty for the usual name.')
param cosmosName string = ''

@allowed([
  'serverless'
  'autoscale'
])
param cosmosMode string = 'serverless'

@description('RU/s that all containers share at most, with autoscale.')
@minValue(1000)
param cosmosMaxThroughput int = 4000

@description('Regions beside the first, for reads and for failover.')
param cosmosReadRegions array = []

@allowed([
  'Continuous7Days'
  'Continuous30Days'
])
param cosmosBackupTier string = 'Continuous7Days'

@description('Spread Cosmos DB over the zones of its region, where the region has zones.')
param zoneRedundant bool = false

@description('Refuse to delete the account of the audit chains, until somebody removes the lock.')
param protectStores bool = false

@description('Address of a Data Explorer cluster or Fabric eventhouse that is there already; empty to make a cluster.')
param existingKustoUri string = ''

@description('Database there, and in a cluster of our own.')
param kustoDatabase string = 'Telemetry'
param kustoSku string = 'Dev(No SLA)_Standard_E2a_v4'
param kustoCapacity int = 1

@description('Days of telemetry that queries find on disks.')
param telemetryHotDays int = 31

@description('Days of telemetry that queries find at all; the cold archive keeps everything.')
param telemetryRetentionDays int = 366

@description('Partitions of each hub; they cannot be changed later.')
@minValue(1)
@maxValue(32)
param hubPartitions int = 4

@minValue(1)
@maxValue(168)
param hubRetentionHours int = 72
param throughputUnits int = 1

@description('Units up to which Event Hubs grows by itself.')
param maxThroughputUnits int = 4

@description('Connections with a hub of their own: objects with hub and consumerGroup.')
param ownHubs array = []

@description('Make an IoT Hub whose devices\' messages go to the hub telemetry.')
param withIotHub bool = false
param iotHubSku string = 'S1'
param iotHubUnits int = 1
param webPubSubSku string = 'Standard_S1'
param webPubSubUnits int = 1

@description('Client id of the app registration for which Web PubSub asks tokens; empty until it is registered.')
param liveStreamAudience string = ''

@description('Audience of Entra ID tokens that /workspace/api/keys takes; empty to take none.')
param entraAudience string = ''

@allowed([
  'standard'
  'premium'
])
param keyVaultSku string = 'standard'
param dataStorageSku string = 'Standard_ZRS'

@description('Days for which a checkpoint can be neither changed nor removed once the policy is locked.')
param checkpointRetentionDays int = 3653

@description('Days after which archived telemetry moves to the cool tier; 0 for never.')
param archiveCoolAfterDays int = 60
param logRetentionDays int = 90

@description('GB a day after which no more logs are taken in; -1 for no limit.')
param dailyLogCapGb int = -1

@description('Who is told of alerts, by e-mail; empty for no alerts.')
param alertEmails array = []

@description('Object id of who applies the workspace document from a machine of their own; empty for nobody.')
param operatorPrincipalId string = ''

@description('Reach stores by private addresses alone.')
param privateNetworking bool = false

@description('Host name of the gateway; empty for no gateway.')
param gatewayHostName string = ''

@description('Id of its certificate as a Key Vault secret, without the version.')
param gatewayCertificateSecretId string = ''

@description('Id of the identity that may read that secret.')
param gatewayIdentityId string = ''
param gatewayMaximumInstances int = 4

@description('Accounts of data stores: objects with lookup and accountId; the vault must hold the secret continuation.')
param dataStoreAccounts array = []

@description('Origins whose pages may call the app, such as https://plant.example.')
param corsOrigins array = []

@description('Log level of the app.')
param logLevel string = 'INFO'

var allTags = union(tags, { 'azd-env-name': environmentName, product: 'industrial-data-workspace' })
// Storage and Cosmos DB take small letters alone.
var environmentPart = toLower(environmentName)
var base = 'oi-${environmentPart}'
var unique = uniqueString(subscription().id, environmentName, location)
var hostStorageName = take('sthost${replace(environmentPart, '-', '')}${unique}', 24)
var dataStorageName = take('stdata${replace(environmentPart, '-', '')}${unique}', 24)
var deploymentContainer = 'deployment'
var cosmosDatabase = 'workspace'
var tokenKey = 'token-signing'
var checkpointKey = 'checkpoint-signing'
var publicAccess = privateNetworking ? 'Disabled' : 'Enabled'
var withGateway = !empty(gatewayHostName)
var withKusto = empty(existingKustoUri)

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: 'rg-${base}'
  location: location
  tags: allTags
}

module identity 'modules/identity.bicep' = {
  scope: group
  name: 'identity'
  params: {
    name: 'id-${base}-app'
    location: location
    tags: allTags
  }
}

module kustoIdentity 'modules/identity.bicep' = if (withKusto) {
  scope: group
  name: 'kusto-identity'
  params: {
    name: 'id-${base}-kusto'
    location: location
    tags: allTags
  }
}

module iotIdentity 'modules/identity.bicep' = if (withIotHub) {
  scope: group
  name: 'iot-identity'
  params: {
    name: 'id-${base}-iot'
    location: location
    tags: allTags
  }
}

module observability 'modules/observability.bicep' = {
  scope: group
  name: 'observability'
  params: {
    workspaceName: 'log-${base}'
    insightsName: 'appi-${base}'
    location: location
    tags: allTags
    retentionDays: logRetentionDays
    dailyCapGb: dailyLogCapGb
  }
}

module hostStorage 'modules/host-storage.bicep' = {
  scope: group
  name: 'host-storage'
  params: {
    name: hostStorageName
    location: location
    tags: allTags
    deploymentContainer: deploymentContainer
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicAccess
  }
}

module dataStorage 'modules/data-storage.bicep' = {
  scope: group
  name: 'data-storage'
  params: {
    name: dataStorageName
    location: location
    tags: allTags
    skuName: dataStorageSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicAccess
    checkpointRetentionDays: checkpointRetentionDays
    downloadDays: 3
    coolAfterDays: archiveCoolAfterDays
  }
}

module cosmos 'modules/cosmos.bicep' = {
  scope: group
  name: 'cosmos'
  params: {
    name: empty(cosmosName) ? 'cosmos-${base}-${unique}' : cosmosName
    location: location
    tags: allTags
    databaseName: cosmosDatabase
    mode: cosmosMode
    maxThroughput: cosmosMaxThroughput
    readRegions: cosmosReadRegions
    backupTier: cosmosBackupTier
    zoneRedundant: zoneRedundant
    locked: protectStores
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicAccess
    dataContributors: empty(operatorPrincipalId) ? [identity.outputs.principalId] : [identity.outputs.principalId, operatorPrincipalId]
  }
}

module eventHubs 'modules/event-hubs.bicep' = {
  scope: group
  name: 'event-hubs'
  params: {
    name: 'evhns-${base}-${unique}'
    location: location
    tags: allTags
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicAccess
    partitions: hubPartitions
    retentionHours: hubRetentionHours
    throughputUnits: throughputUnits
    maxThroughputUnits: maxThroughputUnits
    ownHubs: ownHubs
  }
}

module vault 'modules/key-vault.bicep' = {
  scope: group
  name: 'key-vault'
  params: {
    name: take('kv-${environmentPart}-${unique}', 24)
    location: location
    tags: allTags
    skuName: keyVaultSku
    workspaceId: observability.outputs.workspaceId
    publicNetworkAccess: publicAccess
    keyNames: [
      tokenKey
      checkpointKey
    ]
  }
}

module webPubSub 'modules/web-pubsub.bicep' = {
  scope: group
  name: 'web-pubsub'
  params: {
    name: 'wps-${base}-${unique}'
    location: location
    tags: allTags
    skuName: webPubSubSku
    units: webPubSubUnits
    workspaceId: observability.outputs.workspaceId
  }
}

module access 'modules/access.bicep' = {
  scope: group
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

module kusto 'modules/data-explorer.bicep' = if (withKusto) {
  scope: group
  name: 'data-explorer'
  params: {
    name: take('dec${replace(environmentPart, '-', '')}${unique}', 22)
    location: location
    tags: allTags
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

module iotHub 'modules/iot-hub.bicep' = if (withIotHub) {
  scope: group
  name: 'iot-hub'
  params: {
    name: 'iot-${base}-${unique}'
    location: location
    tags: allTags
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

module network 'modules/network.bicep' = if (privateNetworking || withGateway) {
  scope: group
  name: 'network'
  params: {
    name: 'vnet-${base}'
    location: location
    tags: allTags
  }
}

module endpoints 'modules/private-endpoints.bicep' = if (privateNetworking) {
  scope: group
  name: 'private-endpoints'
  params: {
    location: location
    tags: allTags
    networkId: network.outputs.id
    subnetId: network.outputs.endpointSubnetId
    hostStorageId: hostStorage.outputs.id
    dataStorageId: dataStorage.outputs.id
    cosmosId: cosmos.outputs.id
    eventHubsId: eventHubs.outputs.id
    vaultId: vault.outputs.id
  }
}

module app 'modules/app.bicep' = {
  scope: group
  name: 'app'
  params: {
    name: 'func-${base}-${unique}'
    planName: 'plan-${base}'
    location: location
    tags: allTags
    workspaceId: observability.outputs.workspaceId
    identityId: identity.outputs.id
    clientId: identity.outputs.clientId
    deploymentUrl: hostStorage.outputs.deploymentUrl
    hostStorageName: hostStorage.outputs.name
    insightsConnectionString: observability.outputs.connectionString
    blobEndpoint: dataStorage.outputs.blobEndpoint
    cosmosEndpoint: cosmos.outputs.endpoint
    cosmosDatabase: cosmosDatabase
    vaultUri: vault.outputs.uri
    tokenKey: tokenKey
    checkpointKey: checkpointKey
    eventHubsHost: eventHubs.outputs.host
    kustoUri: withKusto ? kusto.outputs.uri : existingKustoUri
    kustoDatabase: kustoDatabase
    webPubSubEndpoint: webPubSub.outputs.endpoint
    webPubSubPrincipalId: webPubSub.outputs.principalId
    liveStreamAudience: liveStreamAudience
    entraAudience: entraAudience
    ownHubs: ownHubs
    dataStoreAccounts: dataStoreAccounts
    gatewayHostName: gatewayHostName
    corsOrigins: corsOrigins
    simulatorSchedule: simulatorSchedule
    logLevel: logLevel
    disabledFunctions: disabledFunctions
    alwaysReady: alwaysReady
    maximumInstances: maximumInstances
    instanceMemoryMb: instanceMemoryMb
    httpConcurrency: httpConcurrency
    subnetId: privateNetworking ? network.outputs.appSubnetId : ''
  }
  // An app that starts without its roles fails until it is restarted.
  dependsOn: [
    access
    endpoints
  ]
}

module gateway 'modules/app-gateway.bicep' = if (withGateway) {
  scope: group
  name: 'app-gateway'
  params: {
    name: 'agw-${base}'
    location: location
    tags: allTags
    subnetId: network.outputs.gatewaySubnetId
    hostName: gatewayHostName
    certificateSecretId: gatewayCertificateSecretId
    identityId: gatewayIdentityId
    appHost: app.outputs.host
    webPubSubHost: webPubSub.outputs.host
    maximumInstances: gatewayMaximumInstances
    workspaceId: observability.outputs.workspaceId
  }
}

module alerts 'modules/alerts.bicep' = if (!empty(alertEmails)) {
  scope: group
  name: 'alerts'
  params: {
    location: location
    tags: allTags
    workspaceId: observability.outputs.workspaceId
    eventHubsId: eventHubs.outputs.id
    cosmosId: cosmos.outputs.id
    kustoId: withKusto ? kusto.outputs.id : ''
    emails: alertEmails
  }
}

// azd keeps these for its hooks; scripts take them by the same names.
output AZURE_RESOURCE_GROUP string = group.name
output APP_NAME string = app.outputs.name
output APP_URL string = 'https://${app.outputs.host}'
output APP_CLIENT_ID string = identity.outputs.clientId
output GATEWAY_ADDRESS string = withGateway ? gateway.outputs.address : ''
output COSMOS_ENDPOINT string = cosmos.outputs.endpoint
output COSMOS_DATABASE string = cosmosDatabase
output DATA_STORAGE_NAME string = dataStorage.outputs.name
output VAULT_NAME string = vault.outputs.name
output KUSTO_URI string = withKusto ? kusto.outputs.uri : existingKustoUri
output WEB_PUBSUB_NAME string = webPubSub.outputs.name
output WEB_PUBSUB_AUDIENCE string = liveStreamAudience
