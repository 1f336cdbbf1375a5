// A plant's own: instances stand ready, throughput is provisioned, stores reachable by private addresses alone.
using './main.bicep'

param environmentName = 'prod'
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
// Without a default: a deployment that forgot them would switch the live stream off and take the operator's data role away.
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID')
param liveStreamAudience = readEnvironmentVariable('WEB_PUBSUB_AUDIENCE')
param entraAudience = readEnvironmentVariable('ENTRA_AUDIENCE', '')
param entraConsoleClientId = readEnvironmentVariable('ENTRA_CONSOLE_CLIENT_ID', '')
param cosmosName = readEnvironmentVariable('COSMOS_NAME', '')
param alwaysReady = [
  { name: 'http', instanceCount: 2 }
  { name: 'function:ingest', instanceCount: 1 }
  { name: 'function:archive', instanceCount: 1 }
  { name: 'function:live', instanceCount: 1 }
]
param disabledFunctions = [
  'simulators'
]
param cosmosMode = 'autoscale'
param cosmosMaxThroughput = 10000
param cosmosReadRegions = [
  'northeurope'
]
param cosmosBackupTier = 'Continuous30Days'
param zoneRedundant = true
param protectStores = true
param kustoSku = 'Standard_E2ads_v5'
param kustoCapacity = 2
param hubPartitions = 16
param hubRetentionHours = 168
param throughputUnits = 2
param maxThroughputUnits = 20
param webPubSubUnits = 2
param keyVaultSku = 'premium'
param dataStorageSku = 'Standard_GZRS'
param logRetentionDays = 365
param privateNetworking = true
