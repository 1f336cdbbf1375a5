// The function app with its settings, which follow from the names of the other resources and from the chosen size.
import { dataStoreAccount, ownHub, readyInstances, textMap } from '../types.bicep'

param name string
param planName string
param location string
param tags textMap

@description('The app\'s user-assigned identity.')
param identityId string
param clientId string

@description('Address of the container with the deployed package.')
param deploymentUrl string
param hostStorageName string
param insightsConnectionString string
param blobEndpoint string
param cosmosEndpoint string
param cosmosDatabase string
param vaultUri string
param tokenKey string
param checkpointKey string
param eventHubsHost string
param kustoUri string
param kustoDatabase string
param webPubSubEndpoint string

@description('Object id of the identity with which Web PubSub calls the app.')
param webPubSubPrincipalId string
param liveStreamAudience string
param entraAudience string
param entraConsoleClientId string

@description('Data connections that have their own event hub.')
param ownHubs ownHub[]

param dataStoreAccounts dataStoreAccount[]
param gatewayHostName string
param corsOrigins string[]
param webhooksEnabled bool
param webhookAllowedNetworks string[]
param simulatorsEnabled bool
param simulatorSchedule string
param logLevel string

@description('Settings that are added, or replace those below.')
param furtherSettings textMap
param alwaysReady readyInstances[]

param maximumInstances int
param instanceMemoryMb int
param httpConcurrency int

param zoneRedundant bool

@description('Subnet through which the app calls other services; empty for none.')
param subnetId string

var liveHub = 'live'

// Settings for the Functions platform.
var platformSettings = {
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${clientId};Authorization=AAD'
  // Otherwise the exporter of traces and metrics would send statistics of its use to Microsoft.
  APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL: 'true'
  // Otherwise the host would serve its own page at the root, where the app redirects to the web console.
  AzureWebJobsDisableHomepage: 'true'
  AzureWebJobsStorage__accountName: hostStorageName
  AzureWebJobsStorage__clientId: clientId
  AzureWebJobsStorage__credential: 'managedidentity'
  EventHubs__clientId: clientId
  EventHubs__credential: 'managedidentity'
  // Otherwise the host would sample five traces a second and drop the log lines of all others. The worker has its own sampler.
  OTEL_TRACES_SAMPLER: 'microsoft.fixed_percentage'
  OTEL_TRACES_SAMPLER_ARG: '1.0'
}
// Settings of the app, which shared/settings.py describes.
var appSettings = {
  ALLOWED_HOSTS: gatewayHostName
  APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnectionString
  ALERT_SCHEDULE: '*/1 * * * * *'
  AUDIT_OVERVIEW_SCHEDULE: '20 */10 * * * *'
  AZURE_CLIENT_ID: clientId
  // Azure bills each run of the timer, so it runs every second only if simulators send.
  BACKGROUND_SCHEDULE: simulatorsEnabled && simulatorSchedule == '*/1 * * * * *' ? '*/1 * * * * *' : '*/5 * * * * *'
  BLOB_ENDPOINT: blobEndpoint
  CHECKPOINT_KEY: checkpointKey
  CHECKPOINT_SCHEDULE: '*/15 * * * * *'
  COMPACTION_SCHEDULE: '0 */10 * * * *'
  CORS_ORIGINS: join(corsOrigins, ',')
  CONTINUATION_SECRET: empty(dataStoreAccounts) ? '' : '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/continuation)'
  COSMOS_DATABASE: cosmosDatabase
  COSMOS_ENDPOINT: cosmosEndpoint
  DATA_STORE_ACCOUNTS: join(map(dataStoreAccounts, each => '${each.lookup}=${each.accountId}'), ',')
  DOWNLOAD_EXPIRY_SCHEDULE: '0 */5 * * * *'
  ENTRA_AUDIENCE: entraAudience
  ENTRA_CONSOLE_CLIENT_ID: entraConsoleClientId
  ENTRA_TENANT_ID: tenant().tenantId
  EVENT_HUB_SOURCES: join(map(ownHubs, each => '${each.hub}/${each.consumerGroup}'), ',')
  EventHubs__fullyQualifiedNamespace: eventHubsHost
  KEY_VAULT_URI: vaultUri
  KUSTO_DATABASE: kustoDatabase
  KUSTO_URI: kustoUri
  LIVE_SCHEDULE: '*/5 * * * * *'
  LOG_LEVEL: logLevel
  // Data Explorer runs more queries at once than the engine of the local host.
  MAX_QUERIES_PER_PRINCIPAL: '16'
  PUBLIC_URL: empty(gatewayHostName) ? '' : 'https://${gatewayHostName}'
  SIMULATORS_ENABLED: simulatorsEnabled ? 'true' : 'false'
  SIMULATOR_SCHEDULE: simulatorSchedule
  STORES: 'azure'
  TOKEN_ISSUER: 'https://${name}.azurewebsites.net'
  TOKEN_KEY: tokenKey
  VERIFY_SCHEDULE: '0 30 2 * * *'
  WEBHOOK_ALLOWED_NETWORKS: join(webhookAllowedNetworks, ',')
  WEBHOOK_EXPIRY_SCHEDULE: '0 15 * * * *'
  WEBHOOK_SCHEDULE: '*/2 * * * * *'
  WEBHOOK_SECRET_KEY: webhooksEnabled ? '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/webhooks)' : ''
  WEB_PUBSUB_AUDIENCE: liveStreamAudience
  WEB_PUBSUB_ENDPOINT: webPubSubEndpoint
  WEB_PUBSUB_HUB: liveHub
  WEB_PUBSUB_IDENTITY: webPubSubPrincipalId
}

module app 'function-app.bicep' = {
  params: {
    name: name
    planName: planName
    location: location
    tags: tags
    identityId: identityId
    deploymentUrl: deploymentUrl
    settings: union(platformSettings, appSettings, furtherSettings)
    alwaysReady: alwaysReady
    maximumInstances: maximumInstances
    instanceMemoryMb: instanceMemoryMb
    httpConcurrency: httpConcurrency
    zoneRedundant: zoneRedundant
    subnetId: subnetId
  }
}

output name string = app.outputs.name
output host string = app.outputs.host
