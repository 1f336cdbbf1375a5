// A plant's own: instances stand ready, throughput is provisioned, stores reachable by private addresses alone.
using './main.bicep'

// Regions beside the home region, divided by commas, or none.
var readRegions = readEnvironmentVariable('COSMOS_READ_REGIONS', '')

param environmentName = 'prod'
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
param activeLocation = readEnvironmentVariable('AZURE_ACTIVE_LOCATION', '')
// Without a default: a deployment that forgot them would switch the live stream off and take the operator's data role away.
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID')
param liveStreamAudience = readEnvironmentVariable('WEB_PUBSUB_AUDIENCE')
param entraAudience = readEnvironmentVariable('ENTRA_AUDIENCE', '')
param entraConsoleClientId = readEnvironmentVariable('ENTRA_CONSOLE_CLIENT_ID', '')
param cosmosName = readEnvironmentVariable('COSMOS_NAME', '')
param existingVaultName = readEnvironmentVariable('EXISTING_VAULT_NAME', '')
param existingDataStorageName = readEnvironmentVariable('EXISTING_DATA_STORAGE_NAME', '')
param vaultCreateMode = empty(readEnvironmentVariable('VAULT_CREATE_MODE', '')) ? 'default' : readEnvironmentVariable('VAULT_CREATE_MODE', '')
param checkpointsLocked = toLower(readEnvironmentVariable('CHECKPOINTS_LOCKED', '')) == 'true'
// Required: without alerts nobody learns of a broken chain.
param alertEmails = split(replace(readEnvironmentVariable('ALERT_EMAILS'), ' ', ''), ',')
param alwaysReady = [
  { name: 'http', instanceCount: 2 }
  { name: 'durable', instanceCount: 2 }
  { name: 'function:ingest', instanceCount: 2 }
  { name: 'function:archive', instanceCount: 2 }
  { name: 'function:live', instanceCount: 2 }
]
// Two of each: with zones Azure keeps, and bills, at least two of every function or group, also of those not listed.
param hostZoneRedundant = true
param hostStorageSku = 'Standard_ZRS'
param simulatorsEnabled = false
param cosmosMode = 'autoscale'
param cosmosMaxThroughput = 10000
param cosmosReadRegions = readRegions == 'none' ? [] : split(empty(readRegions) ? 'northeurope' : readRegions, ',')
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
param purgeProtection = true
param dataStorageSku = 'Standard_GZRS'
param logRetentionDays = 365
param privateNetworking = true
