// As production, but small: one instance stands ready, everything is taken down again some day.
using './main.bicep'

param environmentName = 'test'
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
// Without a default: a deployment that forgot them would switch the live stream off and take the operator's data role away.
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID')
param liveStreamAudience = readEnvironmentVariable('WEB_PUBSUB_AUDIENCE')
param entraAudience = readEnvironmentVariable('ENTRA_AUDIENCE', '')
param entraConsoleClientId = readEnvironmentVariable('ENTRA_CONSOLE_CLIENT_ID', '')
param cosmosName = readEnvironmentVariable('COSMOS_NAME', '')
param alwaysReady = [
  { name: 'http', instanceCount: 1 }
]
param simulatorSchedule = '*/5 * * * * *'
param checkpointRetentionDays = 1
param logRetentionDays = 30
param dailyLogCapGb = 5
param telemetryHotDays = 7
param telemetryRetentionDays = 31
