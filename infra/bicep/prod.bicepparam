// Environment of a plant: instances are always ready, throughput is provisioned, stores have private addresses only.
using './main.bicep'

// Further regions, separated by commas, or none.
var readRegions = readEnvironmentVariable('COSMOS_READ_REGIONS', '')

param environmentName = 'prod'
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
param activeLocation = readEnvironmentVariable('AZURE_ACTIVE_LOCATION', '')
// These have no defaults: a deployment without them would remove the live stream and the operator's data role.
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID')
param liveStreamAudience = readEnvironmentVariable('WEB_PUBSUB_AUDIENCE')
param entraAudience = readEnvironmentVariable('ENTRA_AUDIENCE', '')
param entraConsoleClientId = readEnvironmentVariable('ENTRA_CONSOLE_CLIENT_ID', '')
param cosmosName = readEnvironmentVariable('COSMOS_NAME', '')
param existingVaultName = readEnvironmentVariable('EXISTING_VAULT_NAME', '')
param existingDataStorageName = readEnvironmentVariable('EXISTING_DATA_STORAGE_NAME', '')
param vaultCreateMode = empty(readEnvironmentVariable('VAULT_CREATE_MODE', '')) ? 'default' : readEnvironmentVariable('VAULT_CREATE_MODE', '')
param checkpointKeyVersion = readEnvironmentVariable('CHECKPOINT_KEY_VERSION', '')
param checkpointsLocked = toLower(readEnvironmentVariable('CHECKPOINTS_LOCKED', '')) == 'true'
// Required, because operators would otherwise not be notified of a broken chain.
param alertEmails = split(replace(readEnvironmentVariable('ALERT_EMAILS'), ' ', ''), ',')
param alwaysReady = [
  { name: 'http', instanceCount: 2 }
  { name: 'durable', instanceCount: 2 }
  { name: 'function:ingest', instanceCount: 2 }
  { name: 'function:archive', instanceCount: 2 }
  { name: 'function:live', instanceCount: 2 }
]
// Two of each, because with zones Azure runs and bills at least two instances of every function or group, listed or not.
param hostZoneRedundant = true
param hostStorageSku = 'Standard_ZRS'
param simulatorsEnabled = false
param cosmosMode = 'autoscale'
param cosmosMaxThroughput = 10000
param cosmosReadRegions = readRegions == 'none' ? [] : split(empty(readRegions) ? 'northeurope' : readRegions, ',')
param cosmosConsistency = toLower(readEnvironmentVariable('COSMOS_CONSISTENCY', '')) == 'boundedstaleness' ? 'BoundedStaleness' : 'Strong'
param cosmosBackupTier = 'Continuous30Days'
param zoneRedundant = true
param protectStores = true
param kustoSku = 'Standard_E2ads_v5'
param kustoCapacity = 2
param hubPartitions = 16
param hubRetentionHours = 168
// Never fewer than Event Hubs has now, which scripts/azure/deploy-templates reads: a deployment would throttle devices.
param throughputUnits = max(2, int(readEnvironmentVariable('THROUGHPUT_UNITS', '0')))
param maxThroughputUnits = 20
param webPubSubUnits = 2
param keyVaultSku = 'premium'
param purgeProtection = true
param dataStorageSku = 'Standard_GZRS'
// The archive is the only complete copy of the telemetry.
param deletedBlobDays = 30
param logRetentionDays = 365
param privateNetworking = true
