// Smallest environment: no always-ready instances, a cluster without a service level, stores billed by use.
using './main.bicep'

param environmentName = 'dev'
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
param alertEmails = empty(readEnvironmentVariable('ALERT_EMAILS', '')) ? [] : split(replace(readEnvironmentVariable('ALERT_EMAILS', ''), ' ', ''), ',')
param simulatorSchedule = '*/5 * * * * *'
// Never fewer than Event Hubs has now, which scripts/azure/deploy-templates reads: a deployment would throttle devices.
param throughputUnits = max(1, int(readEnvironmentVariable('THROUGHPUT_UNITS', '0')))
param dataStorageSku = 'Standard_LRS'
param checkpointRetentionDays = 1
param archiveCoolAfterDays = 0
param logRetentionDays = 30
param dailyLogCapGb = 1
param telemetryHotDays = 7
param telemetryRetentionDays = 31
