// As production, but small: one instance stands ready, everything is taken down again some day.
using './main.bicep'

param environmentName = 'test'
param location = 'westeurope'
param alwaysReady = [
  { name: 'http', instanceCount: 1 }
]
param simulatorSchedule = '*/5 * * * * *'
param checkpointRetentionDays = 1
param logRetentionDays = 30
param dailyLogCapGb = 5
param telemetryHotDays = 7
param telemetryRetentionDays = 31
