// All resources of one workspace. This template only composes modules, which create resources and validate parameters.
//   az deployment sub create -l LOCATION -f infra/bicep/main.bicep -p infra/bicep/dev.bicepparam
targetScope = 'subscription'

import { dataStoreAccount, emailAddress, ownHub, readyInstances, textMap } from 'types.bicep'

@description('Name of the environment, which is part of every resource name: letters, digits and single inner hyphens.')
@minLength(2)
@maxLength(12)
param environmentName string

@description('Home region: the resource group and the stores are created in this region and named after it. It never changes.')
param location string

@description('Region in which the app runs and Cosmos DB accepts writes; empty for the home region, another region after a failover.')
param activeLocation string = location

@description('Further tags of every resource.')
param tags textMap = {}

@description('Always-ready instances, which never stop.')
param alwaysReady readyInstances[] = []

@description('Maximum number of instances of the app.')
@minValue(40)
@maxValue(1000)
param maximumInstances int = 100

@allowed([
  512
  2048
  4096
])
param instanceMemoryMb int = 2048

@description('Number of concurrent HTTP requests per instance at which another instance is started.')
@minValue(1)
@maxValue(1000)
param httpConcurrency int = 50

@description('Spread the app over the zones of its region. This requires two instances in every entry of alwaysReady, and a zone-redundant hostStorageSku.')
param hostZoneRedundant bool = false

@description('Redundancy of the storage account of the Functions host.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param hostStorageSku string = 'Standard_LRS'

@description('Run the simulators of the workspace document.')
param simulatorsEnabled bool = true

@description('NCRONTAB schedule on which simulators send. If it is every second, the timer runs every second instead of every five seconds, and Azure bills each run.')
param simulatorSchedule string = '*/1 * * * * *'

@description('Name of the Cosmos DB account after a restore to another account; empty for the default name.')
param cosmosName string = ''

@allowed([
  'serverless'
  'autoscale'
])
param cosmosMode string = 'serverless'

@description('Maximum RU/s that all containers share, with autoscale.')
@minValue(1000)
param cosmosMaxThroughput int = 4000

@description('Further regions for reads and for failover; a serverless account has none. Change them in a separate deployment.')
param cosmosReadRegions string[] = []

@description('Strong loses no acknowledged record with a region; BoundedStaleness can, but its writes are faster.')
@allowed([
  'Strong'
  'BoundedStaleness'
])
param cosmosConsistency string = 'Strong'

@allowed([
  'Continuous7Days'
  'Continuous30Days'
])
param cosmosBackupTier string = 'Continuous7Days'

@description('Spread Cosmos DB over the zones of each of its regions.')
param zoneRedundant bool = false

@description('Create a lock that prevents the deletion of the account of the audit chains until the lock is removed.')
param protectStores bool = false

@description('Name of an existing key vault to use without changes after a failover; empty to create or update the default one.')
param existingVaultName string = ''

@description('Name of an existing data storage account to use without changes after a failover; empty to create or update the default one.')
param existingDataStorageName string = ''

@description('Whether the immutability policy of the checkpoints is locked. A template cannot write a locked policy.')
param checkpointsLocked bool = false

@description('Address of an existing Data Explorer cluster or Fabric eventhouse; empty to create a cluster.')
param existingKustoUri string = ''

@description('Name of the database, in an existing or a new cluster.')
param kustoDatabase string = 'Telemetry'
param kustoSku string = 'Dev(No SLA)_Standard_E2a_v4'

@minValue(1)
param kustoCapacity int = 1

@description('Ingest the rows of the cluster within seconds; false for more than 4 GB an hour, whose rows appear some minutes later.')
param streamingIngestion bool = true

@description('Days of telemetry that the cluster caches on disks for fast queries.')
@minValue(1)
param telemetryHotDays int = 31

@description('Days of telemetry that queries can read; the cold archive stores all telemetry.')
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

@description('Maximum number of units to which Event Hubs scales automatically.')
@minValue(1)
@maxValue(40)
param maxThroughputUnits int = 4

@description('Data connections that have their own event hub.')
param ownHubs ownHub[] = []

@description('Create an IoT Hub that routes the messages of its devices to the hub telemetry.')
param withIotHub bool = false
param iotHubSku string = 'S1'

@minValue(1)
param iotHubUnits int = 1

@description('Publish telemetry to listeners. If false, the Web PubSub service remains, with one unit.')
param withLiveStream bool = true
param webPubSubSku string = 'Standard_S1'

@minValue(1)
@maxValue(100)
param webPubSubUnits int = 1

@description('Client id of the app registration for which Web PubSub requests tokens; empty until it is registered.')
param liveStreamAudience string = ''

@description('Audience of Entra ID tokens that /workspace/api/keys accepts; empty to accept none.')
param entraAudience string = ''

@description('Client id of the app registration with which the web console signs in users by Entra ID; empty for no such sign-in.')
param entraConsoleClientId string = ''

@allowed([
  'standard'
  'premium'
])
param keyVaultSku string = 'standard'

@description('Retain a deleted vault and its name for 90 days (purge protection). This cannot be switched off later.')
param purgeProtection bool = false

@description('Mode of creation: default, or recover to restore the deleted vault with this name.')
param vaultCreateMode string = 'default'

@description('Version of the key checkpoint-signing that signs checkpoints; empty for its oldest enabled version.')
param checkpointKeyVersion string = ''
param dataStorageSku string = 'Standard_ZRS'

@description('Days for which a checkpoint cannot be changed or removed once the policy is locked.')
@minValue(1)
@maxValue(146000)
param checkpointRetentionDays int = 3653

@description('Days for which a deleted or overwritten blob of the data storage can be restored. Azure bills it until then.')
@minValue(1)
@maxValue(365)
param deletedBlobDays int = 1

@description('Days after which archived telemetry moves to the cool tier; 0 for never.')
@minValue(0)
param archiveCoolAfterDays int = 60

@minValue(30)
@maxValue(730)
param logRetentionDays int = 90

@description('GB per day after which no more logs are ingested; -1 for no limit.')
@minValue(-1)
param dailyLogCapGb int = -1

@description('Log every request for items of Cosmos DB and every write to the data storage, with the identity that sent it. Azure bills each row.')
param logDataRequests bool = false

@description('E-mail addresses that receive alerts; empty for no alerts.')
param alertEmails emailAddress[] = []

@description('Object id of the user or group that applies the workspace document from its own machine; empty for none.')
param operatorPrincipalId string = ''

@description('Make stores accessible by private addresses only.')
param privateNetworking bool = false

@description('First two numbers of the network\'s addresses in the home region: 10.40 means 10.40.0.0/22.')
@minLength(3)
@maxLength(7)
param homeNetwork string = '10.40'

@description('First two numbers of the network\'s addresses in another region, whose network can be peered at the same time.')
@minLength(3)
@maxLength(7)
param secondNetwork string = '10.41'

@description('Host name of the gateway; empty for no gateway.')
param gatewayHostName string = ''

@description('Address of the gateway\'s certificate as a Key Vault secret, without the version.')
param gatewayCertificateSecretUri string = ''

@description('Id of the identity that has the right to read that secret.')
param gatewayIdentityId string = ''

@minValue(2)
@maxValue(125)
param gatewayMaximumInstances int = 4

@description('Cosmos DB accounts of data stores; they require the secret continuation in the vault.')
param dataStoreAccounts dataStoreAccount[] = []

@description('Origins of web pages that are allowed to call the app and to transfer files, such as https://plant.example.')
param corsOrigins string[] = []

@description('Whether members can create webhooks; requires the secret webhooks in the vault.')
param webhooksEnabled bool = false

@description('Internal networks in CIDR form that webhooks may reach; by default only public addresses.')
param webhookAllowedNetworks string[] = []

@description('Log level of the app.')
@allowed([
  'DEBUG'
  'INFO'
  'WARNING'
  'ERROR'
  'CRITICAL'
])
param logLevel string = 'INFO'

@description('Further settings of the app, by name. They replace those of the templates.')
param appSettings textMap = {}

// "West Europe" and "westeurope" are the same region, and must result in the same name.
func regionOf(name string) string => toLower(replace(name, ' ', ''))

var home = regionOf(location)
var active = regionOf(empty(activeLocation) ? location : activeLocation)
var isAway = active != home

// Names of storage and Cosmos DB have lower-case letters only; "Prod" and "prod" are the same environment.
var lowerName = toLower(environmentName)
var characters = map(range(0, length(lowerName)), each => substring(lowerName, each, 1))
var unusable = filter(characters, each => !contains('abcdefghijklmnopqrstuvwxyz0123456789-', each))
var isLegal = empty(unusable) && !startsWith(lowerName, '-') && !endsWith(lowerName, '-') && !contains(lowerName, '--')
var rule = 'environmentName must have 2 to 12 letters, digits and single inner hyphens, such as plant-1'
var environmentPart = isLegal ? lowerName : fail('${rule}; it is ${environmentName}')

// Both networks exist during a failover, and no network can be peered with two networks of the same addresses.
var regionNetwork = isAway ? secondNetwork : homeNetwork
// Numbers without leading zeros, so that different texts are different addresses.
var addressNumbers = map(range(0, 256), each => string(each))
var networkParts = concat(split(homeNetwork, '.'), split(secondNetwork, '.'))
var haveTwoParts = length(split(homeNetwork, '.')) == 2 && length(split(secondNetwork, '.')) == 2
var areNetworks = haveTwoParts && empty(filter(networkParts, each => !contains(addressNumbers, each)))
var networkRule = areNetworks ? 'homeNetwork and secondNetwork must differ' : 'homeNetwork and secondNetwork must each be two numbers from 0 to 255, such as 10.40'
var networkPrefix = areNetworks && homeNetwork != secondNetwork ? regionNetwork : fail('${networkRule}; they are ${homeNetwork} and ${secondNetwork}')

var allTags = union(tags, { 'azd-env-name': environmentName, product: 'industrial-data-workspace' })
var homeBase = 'oi-${environmentPart}'
// Names are unique in a resource group, so resources outside of the home region have the region in their names.
var base = isAway ? '${homeBase}-${active}' : homeBase
var homeUnique = uniqueString(subscription().id, environmentPart, home)
var unique = uniqueString(subscription().id, environmentPart, active)
var compact = replace(environmentPart, '-', '')
// Stores are named after the home region, running services after the active region. Names must not depend on results of modules.
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
var appName = 'func-${homeBase}-${unique}'
var identityNames = { app: 'id-${base}-app', kusto: 'id-${base}-kusto', iot: 'id-${base}-iot' }
var groupName = 'rg-${homeBase}'
// The first region accepts writes. A serverless account has only one region.
var cosmosRegions = cosmosMode == 'serverless' ? [home] : union([active], [home], map(cosmosReadRegions, each => regionOf(each)))
var cosmosDatabase = 'workspace'
var keys = { token: 'token-signing', checkpoint: 'checkpoint-signing' }
var withGateway = !empty(gatewayHostName)
var serviceUrl = withGateway ? 'https://${gatewayHostName}' : 'https://${appName}.azurewebsites.net'
// A failover does not write to the data storage, so it accepts the web console of the app in every region beforehand.
var appOrigins = map(union([active], cosmosRegions), each => 'https://func-${homeBase}-${uniqueString(subscription().id, environmentPart, each)}.azurewebsites.net')

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: groupName
  location: home
  tags: allTags
}

// Private DNS zones have fixed names, so those of a second region require a separate resource group.
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
    cosmosConsistency: cosmosConsistency
    cosmosBackupTier: cosmosBackupTier
    zoneRedundant: zoneRedundant
    protectStores: protectStores
    kustoDatabase: kustoDatabase
    kustoSku: kustoSku
    kustoCapacity: kustoCapacity
    streamingIngestion: streamingIngestion
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
    webPubSubUnits: withLiveStream ? webPubSubUnits : 1
    keyVaultSku: keyVaultSku
    purgeProtection: purgeProtection
    vaultCreateMode: vaultCreateMode
    dataStorageSku: dataStorageSku
    checkpointsLocked: checkpointsLocked
    checkpointRetentionDays: checkpointRetentionDays
    deletedBlobDays: deletedBlobDays
    archiveCoolAfterDays: archiveCoolAfterDays
    fileOrigins: withGateway ? union([serviceUrl], corsOrigins) : union([serviceUrl], appOrigins, corsOrigins)
    logRetentionDays: logRetentionDays
    dailyLogCapGb: dailyLogCapGb
    logDataRequests: logDataRequests
    operatorPrincipalId: operatorPrincipalId
  }
}

module network 'modules/network.bicep' = if (privateNetworking || withGateway) {
  scope: resourceGroup('rg-${base}')
  params: {
    name: 'vnet-${base}'
    location: active
    tags: allTags
    prefix: networkPrefix
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
    name: appName
    planName: 'plan-${base}'
    location: active
    tags: allTags
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
    checkpointKey: empty(checkpointKeyVersion) ? keys.checkpoint : '${keys.checkpoint}/${checkpointKeyVersion}'
    eventHubsHost: services.outputs.eventHubsHost
    kustoUri: services.outputs.kustoUri
    kustoDatabase: kustoDatabase
    webPubSubEndpoint: withLiveStream ? services.outputs.webPubSubEndpoint : ''
    webPubSubPrincipalId: services.outputs.webPubSubPrincipalId
    liveStreamAudience: liveStreamAudience
    entraAudience: entraAudience
    entraConsoleClientId: entraConsoleClientId
    ownHubs: ownHubs
    dataStoreAccounts: dataStoreAccounts
    gatewayHostName: gatewayHostName
    corsOrigins: corsOrigins
    webhooksEnabled: webhooksEnabled
    webhookAllowedNetworks: webhookAllowedNetworks
    simulatorSchedule: simulatorSchedule
    logLevel: logLevel
    furtherSettings: appSettings
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
    serviceUrl: serviceUrl
    emails: alertEmails
  }
}

// azd stores these for its hooks; scripts read them by the same names.
output AZURE_RESOURCE_GROUP string = group.name
output APP_NAME string = app.outputs.name
output APP_URL string = 'https://${app.outputs.host}'
output APP_CLIENT_ID string = services.outputs.clientId
output GATEWAY_ADDRESS string = withGateway ? gateway!.outputs.address : ''
output COSMOS_ENDPOINT string = services.outputs.cosmosEndpoint
output COSMOS_DATABASE string = cosmosDatabase
// Not COSMOS_NAME: parameter files read that variable, and after a restore it must not be the name of the old account.
output COSMOS_ACCOUNT_NAME string = names.cosmos
output HOST_STORAGE_NAME string = names.hostStorage
output EVENT_HUBS_NAME string = names.eventHubs
output INSIGHTS_NAME string = names.insights
// The console's addresses in all regions to which a failover is possible, separated by spaces.
output CONSOLE_URLS string = join(map(withGateway ? [serviceUrl] : appOrigins, each => '${each}/console/'), ' ')
output LOG_WORKSPACE_NAME string = names.workspace
output KUSTO_NAME string = empty(existingKustoUri) ? names.kusto : ''
output DATA_STORAGE_NAME string = names.dataStorage
output VAULT_NAME string = names.vault
output KUSTO_URI string = services.outputs.kustoUri
output KUSTO_DATABASE string = kustoDatabase
output WEB_PUBSUB_NAME string = withLiveStream ? names.webPubSub : ''
output WEB_PUBSUB_AUDIENCE string = liveStreamAudience
