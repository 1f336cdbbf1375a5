// Everything that one workspace needs, in one resource group. It only composes; modules make, and check what they take.
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
param maximumInstances int = 100
param instanceMemoryMb int = 2048

@description('HTTP requests that one instance serves at once before another one is started.')
param httpConcurrency int = 50

@description('Functions that shall not run, such as simulators where nothing is simulated.')
param disabledFunctions array = []

@description('NCRONTAB schedule on which simulators send; each run is paid for.')
param simulatorSchedule string = '*/1 * * * * *'

@description('Name of the Cosmos DB account, after a restore into another one; empty for the usual name.')
param cosmosName string = ''
param cosmosMode string = 'serverless'

@description('RU/s that all containers share at most, with autoscale.')
param cosmosMaxThroughput int = 4000

@description('Regions beside the first, for reads and for failover.')
param cosmosReadRegions array = []
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
param hubPartitions int = 4
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

@description('Client id of the app registration as which the web console signs people in by Entra ID; empty for no such button.')
param entraConsoleClientId string = ''
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
var base = 'oi-${toLower(environmentName)}'
var unique = uniqueString(subscription().id, environmentName, location)
var cosmosDatabase = 'workspace'
var keys = { token: 'token-signing', checkpoint: 'checkpoint-signing' }
var withGateway = !empty(gatewayHostName)

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: 'rg-${base}'
  location: location
  tags: allTags
}

module services 'modules/services.bicep' = {
  scope: group
  name: 'services'
  params: {
    base: base
    unique: unique
    environmentPart: toLower(environmentName)
    location: location
    tags: allTags
    publicNetworkAccess: privateNetworking ? 'Disabled' : 'Enabled'
    existingKustoUri: existingKustoUri
    cosmosDatabase: cosmosDatabase
    keyNames: [keys.token, keys.checkpoint]
    cosmosName: cosmosName
    cosmosMode: cosmosMode
    cosmosMaxThroughput: cosmosMaxThroughput
    cosmosReadRegions: cosmosReadRegions
    cosmosBackupTier: cosmosBackupTier
    zoneRedundant: zoneRedundant
    protectStores: protectStores
    kustoDatabase: kustoDatabase
    kustoSku: kustoSku
    kustoCapacity: kustoCapacity
    telemetryHotDays: telemetryHotDays
    telemetryRetentionDays: telemetryRetentionDays
    hubPartitions: hubPartitions
    hubRetentionHours: hubRetentionHours
    throughputUnits: throughputUnits
    maxThroughputUnits: maxThroughputUnits
    ownHubs: ownHubs
    withIotHub: withIotHub
    iotHubSku: iotHubSku
    iotHubUnits: iotHubUnits
    webPubSubSku: webPubSubSku
    webPubSubUnits: webPubSubUnits
    keyVaultSku: keyVaultSku
    dataStorageSku: dataStorageSku
    checkpointRetentionDays: checkpointRetentionDays
    archiveCoolAfterDays: archiveCoolAfterDays
    logRetentionDays: logRetentionDays
    dailyLogCapGb: dailyLogCapGb
    operatorPrincipalId: operatorPrincipalId
  }
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
    hostStorageId: services.outputs.hostStorageId
    dataStorageId: services.outputs.dataStorageId
    cosmosId: services.outputs.cosmosId
    eventHubsId: services.outputs.eventHubsId
    vaultId: services.outputs.vaultId
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
    workspaceId: services.outputs.workspaceId
    identityId: services.outputs.identityId
    clientId: services.outputs.clientId
    deploymentUrl: services.outputs.deploymentUrl
    hostStorageName: services.outputs.hostStorageName
    insightsConnectionString: services.outputs.insightsConnectionString
    blobEndpoint: services.outputs.blobEndpoint
    cosmosEndpoint: services.outputs.cosmosEndpoint
    cosmosDatabase: cosmosDatabase
    vaultUri: services.outputs.vaultUri
    tokenKey: keys.token
    checkpointKey: keys.checkpoint
    eventHubsHost: services.outputs.eventHubsHost
    kustoUri: services.outputs.kustoUri
    kustoDatabase: kustoDatabase
    webPubSubEndpoint: services.outputs.webPubSubEndpoint
    webPubSubPrincipalId: services.outputs.webPubSubPrincipalId
    liveStreamAudience: liveStreamAudience
    entraAudience: entraAudience
    entraConsoleClientId: entraConsoleClientId
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
  dependsOn: [endpoints]
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
    webPubSubHost: services.outputs.webPubSubHost
    maximumInstances: gatewayMaximumInstances
    workspaceId: services.outputs.workspaceId
  }
}

module alerts 'modules/alerts.bicep' = if (!empty(alertEmails)) {
  scope: group
  name: 'alerts'
  params: {
    location: location
    tags: allTags
    workspaceId: services.outputs.workspaceId
    eventHubsId: services.outputs.eventHubsId
    cosmosId: services.outputs.cosmosId
    kustoId: services.outputs.kustoId
    emails: alertEmails
  }
}

// azd keeps these for its hooks; scripts take them by the same names.
output AZURE_RESOURCE_GROUP string = group.name
output APP_NAME string = app.outputs.name
output APP_URL string = 'https://${app.outputs.host}'
output APP_CLIENT_ID string = services.outputs.clientId
output GATEWAY_ADDRESS string = withGateway ? gateway.outputs.address : ''
output COSMOS_ENDPOINT string = services.outputs.cosmosEndpoint
output COSMOS_DATABASE string = cosmosDatabase
output DATA_STORAGE_NAME string = services.outputs.dataStorageName
output VAULT_NAME string = services.outputs.vaultName
output KUSTO_URI string = services.outputs.kustoUri
output WEB_PUBSUB_NAME string = services.outputs.webPubSubName
output WEB_PUBSUB_AUDIENCE string = liveStreamAudience
