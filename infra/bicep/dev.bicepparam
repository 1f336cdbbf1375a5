// The smallest that works: nothing stands ready, a cluster without a guarantee, stores paid by use.
using './main.bicep'

param environmentName = 'dev'
param location = 'westeurope'
param simulatorSchedule = '*/5 * * * * *'
param dataStorageSku = 'Standard_LRS'
param checkpointRetentionDays = 1
param archiveCoolAfterDays = 0
param logRetentionDays = 30
param dailyLogCapGb = 1
param telemetryHotDays = 7
param telemetryRetentionDays = 31
