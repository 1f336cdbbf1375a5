// Everything that one workspace needs. It only composes; modules create, and validate their parameters.
//   az deployment sub create -l LOCATION -f infra/bicep/main.bicep -p infra/bicep/dev.bicepparam
targetScope = 'subscription'

import { dataStoreAccount, emailAddress, ownHub, readyInstances, textMap } from 'types.bicep'

@description('Name of the environment; part of every name: letters, digits and single inner hyphens.')
@minLength(2)
@maxLength(12)
param environmentName string

@description('Home region: the resource group and the stores are created in it and named after it. It never changes.')
param location string

@description('Region in which the app runs and Cosmos DB writes; another one than the home region after a failover, empty for the home region.')
param activeLocation string = location

@description('Further tags of every resource.')
param tags textMap = {}

@description('Instances that never stop.')
param alwaysReady readyInstances[] = []

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

@description('Spread the app over the zones of its region. Then every entry of alwaysReady needs two instances, and hostStorageSku zone redundancy.')
param hostZoneRedundant bool = false

@description('Redundancy of the storage account of the Functions host.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param hostStorageSku string = 'Standard_LRS'

@description('Run the simulators of the workspace document.')
param simulatorsEnabled bool = true

@description('NCRONTAB schedule on which simulators send. Every second makes the timer tick every second instead of every five; each tick is paid for.')
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

@description('Further regions for reads and for failover; a serverless account has none. Change them in a deployment of their own.')
param cosmosReadRegions string[] = []

@allowed([
  'Continuous7Days'
  'Continuous30Days'
])
param cosmosBackupTier string = 'Continuous7Days'

@description('Spread Cosmos DB over the zones of each of its regions.')
param zoneRedundant bool = false

@description('Refuse to delete the account of the audit chains, until somebody removes the lock.')
param protectStores bool = false

@description('Name of a key vault that is used as it is, after a failover; empty to create or update the usual one.')
param existingVaultName string = ''

@description('Name of a data storage account that is used as it is, after a failover; empty to create or update the usual one.')
param existingDataStorageName string = ''

@description('True once the immutability policy of the checkpoints is locked: a template may not write a locked policy.')
param checkpointsLocked bool = false

@description('Address of a Data Explorer cluster or Fabric eventhouse that is there already; empty to create a cluster.')
param existingKustoUri string = ''

@description('Database there, and in a cluster of our own.')
param kustoDatabase string = 'Telemetry'
param kustoSku string = 'Dev(No SLA)_Standard_E2a_v4'

@minValue(1)
param kustoCapacity int = 1

@description('Days of telemetry that queries find on disks.')
@minValue(1)
param telemetryHotDays int = 31

@description('Days of telemetry that queries find at all; the cold archive keeps everything.')
@minValue(1)
param telemetryRetentionDays int = 366

@description('Partitions of each hub; they cannot be changed later.')
@minValue(1)
@maxValue(32)
param hubPartitions int = 4

@minValue(1)
@maxValue(168)
param hubRetentionHours int = 72

@minValue(1)
@maxValue(40)
param throughputUnits int = 1

@description('Units up to which Event Hubs grows by itself.')
@minValue(1)
@maxValue(40)
param maxThroughputUnits int = 4

@description('Connections with a hub of their own.')
param ownHubs ownHub[] = []

@description('Create an IoT Hub whose devices\' messages go to the hub telemetry.')
param withIotHub bool = false
param iotHubSku string = 'S1'

@minValue(1)
param iotHubUnits int = 1
param webPubSubSku string = 'Standard_S1'

@minValue(1)
@maxValue(100)
param webPubSubUnits int = 1

@description('Client id of the app registration for which Web PubSub requests tokens; empty until it is registered.')
param liveStreamAudience string = ''

@description('Audience of Entra ID tokens that /workspace/api/keys accepts; empty to accept none.')
param entraAudience string = ''

@description('Client id of the app registration as which the web console signs people in by Entra ID; empty for no such button.')
param entraConsoleClientId string = ''

@allowed([
  'standard'
  'premium'
])
param keyVaultSku string = 'standard'

@description('Keep a deleted vault and its name for 90 days whatever happens. Azure never switches this off again.')
param purgeProtection bool = false

@description('default, or recover to restore the deleted vault of this name.')
param vaultCreateMode string = 'default'
param dataStorageSku string = 'Standard_ZRS'

@description('Days for which a checkpoint can be neither changed nor removed once the policy is locked.')
@minValue(1)
@maxValue(146000)
param checkpointRetentionDays int = 3653

@description('Days after which archived telemetry moves to the cool tier; 0 for never.')
@minValue(0)
param archiveCoolAfterDays int = 60

@minValue(30)
@maxValue(730)
param logRetentionDays int = 90

@description('GB a day after which no more logs are taken in; -1 for no limit.')
@minValue(-1)
param dailyLogCapGb int = -1

@description('E-mail addresses that receive alerts; empty for no alerts.')
param alertEmails emailAddress[] = []

@description('Object id of who applies the workspace document from a machine of their own; empty for nobody.')
param operatorPrincipalId string = ''

@description('Reach stores by private addresses alone.')
param privateNetworking bool = false

@description('Host name of the gateway; empty for no gateway.')
param gatewayHostName string = ''

@description('Address of its certificate as a Key Vault secret, without the version.')
param gatewayCertificateSecretUri string = ''

@description('Id of the identity that may read that secret.')
param gatewayIdentityId string = ''

@minValue(2)
@maxValue(125)
param gatewayMaximumInstances int = 4

@description('Accounts of data stores; the vault must hold the secret continuation.')
param dataStoreAccounts dataStoreAccount[] = []

@description('Origins whose pages may call the app, such as https://plant.example.')
param corsOrigins string[] = []

@description('Log level of the app.')
param logLevel string = 'INFO'

// "West Europe" and "westeurope" are one region, and must give one name.
func regionOf(name string) string => toLower(replace(name, ' ', ''))

var home = regionOf(location)
var active = regionOf(empty(activeLocation) ? location : activeLocation)
var isAway = active != home

// Storage and Cosmos DB accept small letters alone; "Prod" and "prod" are one environment.
var lowerName = toLower(environmentName)
var characters = map(range(0, length(lowerName)), each => substring(lowerName, each, 1))
var unusable = filter(characters, each => !contains('abcdefghijklmnopqrstuvwxyz0123456789-', each))
var isLegal = empty(unusable) && !startsWith(lowerName, '-') && !endsWith(lowerName, '-') && !contains(lowerName, '--')
var rule = 'environmentName must have 2 to 12 letters, digits and single inner hyphens, such as plant-1'
var environmentPart = isLegal ? lowerName : fail('${rule}; it is ${environmentName}')

var allTags = union(tags, { 'azd-env-name': environmentName, product: 'industrial-data-workspace' })
var homeBase = 'oi-${environmentPart}'
// One resource group holds a name once: what runs away from home has the region in its name.
var base = isAway ? '${homeBase}-${active}' : homeBase
var homeUnique = uniqueString(subscription().id, environmentPart, home)
var unique = uniqueString(subscription().id, environmentPart, active)
var compact = replace(environmentPart, '-', '')
// Stores are named after the home region, what runs after the active one. Nothing here may depend on an output.
var names = {
  workspace: 'log-${base}'
  insights: 'appi-${base}'
  hostStorage: take('sthost${compact}${unique}', 24)
  dataStorage: empty(existingDataStorageName) ? take('stdata${compact}${homeUnique}', 24) : existingDataStorageName
  cosmos: empty(cosmosName) ? 'cosmos-${homeBase}-${homeUnique}' : cosmosName
  eventHubs: 'evhns-${homeBase}-${unique}'
  vault: empty(existingVaultName) ? take('kv-${environmentPart}-${homeUnique}', 24) : existingVaultName
  webPubSub: 'wps-${homeBase}-${unique}'
  kusto: take('dec${compact}${unique}', 22)
  iotHub: 'iot-${homeBase}-${unique}'
}
var identityNames = { app: 'id-${base}-app', kusto: 'id-${base}-kusto', iot: 'id-${base}-iot' }
var groupName = 'rg-${homeBase}'
// The first region writes. A serverless account has one region only.
var cosmosRegions = cosmosMode == 'serverless' ? [home] : union([active], [home], map(cosmosReadRegions, each => regionOf(each)))
var cosmosDatabase = 'workspace'
var keys = { token: 'token-signing', checkpoint: 'checkpoint-signing' }
var withGateway = !empty(gatewayHostName)

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: groupName
  location: home
  tags: allTags
}

// Private DNS zones have fixed names: those of a second region need a group of their own.
resource networkGroup 'Microsoft.Resources/resourceGroups@2025-04-01' = if (isAway) {
  name: 'rg-${base}'
  location: active
  tags: allTags
}

module services 'modules/services.bicep' = {
  scope: group
  params: {
    names: names
    identityNames: identityNames
    location: active
    homeLocation: home
    tags: allTags
    publicNetworkAccess: privateNetworking ? 'Disabled' : 'Enabled'
    hostStorageSku: hostStorageSku
    existingKustoUri: existingKustoUri
    existingVaultName: existingVaultName
    existingDataStorageName: existingDataStorageName
    cosmosDatabase: cosmosDatabase
    keyNames: [keys.token, keys.checkpoint]
    cosmosMode: cosmosMode
    cosmosMaxThroughput: cosmosMaxThroughput
    cosmosRegions: cosmosRegions
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
    purgeProtection: purgeProtection
    vaultCreateMode: vaultCreateMode
    dataStorageSku: dataStorageSku
    checkpointsLocked: checkpointsLocked
    checkpointRetentionDays: checkpointRetentionDays
    archiveCoolAfterDays: archiveCoolAfterDays
    logRetentionDays: logRetentionDays
    dailyLogCapGb: dailyLogCapGb
    operatorPrincipalId: operatorPrincipalId
  }
}

module network 'modules/network.bicep' = if (privateNetworking || withGateway) {
  scope: resourceGroup('rg-${base}')
  params: {
    name: 'vnet-${base}'
    location: active
    tags: allTags
    withOutbound: privateNetworking
  }
  dependsOn: [
    group
    networkGroup
  ]
}

module endpoints 'modules/private-endpoints.bicep' = if (privateNetworking) {
  scope: resourceGroup('rg-${base}')
  params: {
    location: active
    tags: allTags
    networkId: network!.outputs.id
    subnetId: network!.outputs.endpointSubnetId
    servicesGroup: groupName
    names: names
  }
  dependsOn: [
    services
  ]
}

module app 'modules/app.bicep' = {
  scope: group
  params: {
    name: 'func-${homeBase}-${unique}'
    planName: 'plan-${base}'
    location: active
    tags: allTags
    workspaceId: services.outputs.workspaceId
    identityId: services.outputs.identityId
    clientId: services.outputs.clientId
    deploymentUrl: services.outputs.deploymentUrl
    hostStorageName: names.hostStorage
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
    simulatorsEnabled: simulatorsEnabled
    alwaysReady: alwaysReady
    maximumInstances: maximumInstances
    instanceMemoryMb: instanceMemoryMb
    httpConcurrency: httpConcurrency
    zoneRedundant: hostZoneRedundant
    subnetId: privateNetworking ? network!.outputs.appSubnetId : ''
  }
  dependsOn: [
    endpoints
  ]
}

module gateway 'modules/app-gateway.bicep' = if (withGateway) {
  scope: group
  params: {
    name: 'agw-${base}'
    location: active
    tags: allTags
    subnetId: network!.outputs.gatewaySubnetId
    hostName: gatewayHostName
    certificateSecretUri: gatewayCertificateSecretUri
    identityId: gatewayIdentityId
    appHost: app.outputs.host
    webPubSubHost: services.outputs.webPubSubHost
    maximumInstances: gatewayMaximumInstances
    workspaceId: services.outputs.workspaceId
  }
}

module alerts 'modules/alerts.bicep' = if (!empty(alertEmails)) {
  scope: group
  params: {
    location: active
    tags: allTags
    workspaceId: services.outputs.workspaceId
    names: names
    withKusto: empty(existingKustoUri)
    emails: alertEmails
  }
}

// azd keeps these for its hooks; scripts take them by the same names.
output AZURE_RESOURCE_GROUP string = group.name
output APP_NAME string = app.outputs.name
output APP_URL string = 'https://${app.outputs.host}'
output APP_CLIENT_ID string = services.outputs.clientId
output GATEWAY_ADDRESS string = withGateway ? gateway!.outputs.address : ''
output COSMOS_ENDPOINT string = services.outputs.cosmosEndpoint
output COSMOS_DATABASE string = cosmosDatabase
output DATA_STORAGE_NAME string = names.dataStorage
output VAULT_NAME string = names.vault
output KUSTO_URI string = services.outputs.kustoUri
output WEB_PUBSUB_NAME string = names.webPubSub
output WEB_PUBSUB_AUDIENCE string = liveStreamAudience
