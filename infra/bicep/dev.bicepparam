// The smallest that works: nothing stands ready, a cluster without a guarantee, stores paid by use.
using './main.bicep'

param environmentName = 'dev'
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
// Without a default: a deployment that forgot them would switch the live stream off and take the operator's data role away.
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID')
param liveStreamAudience = readEnvironmentVariable('WEB_PUBSUB_AUDIENCE')
param entraAudience = readEnvironmentVariable('ENTRA_AUDIENCE', '')
param entraConsoleClientId = readEnvironmentVariable('ENTRA_CONSOLE_CLIENT_ID', '')
param cosmosName = readEnvironmentVariable('COSMOS_NAME', '')
param simulatorSchedule = '*/5 * * * * *'
param dataStorageSku = 'Standard_LRS'
param checkpointRetentionDays = 1
param archiveCoolAfterDays = 0
param logRetentionDays = 30
param dailyLogCapGb = 1
param telemetryHotDays = 7
param telemetryRetentionDays = 31
