// Workspace and component that receive logs, traces and metrics.
import { textMap } from '../types.bicep'

param workspaceName string
param insightsName string
param location string
param tags textMap
param retentionDays int

@description('GB per day after which no more data are ingested; -1 for no limit.')
param dailyCapGb int

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-07-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: retentionDays
    workspaceCapping: {
      dailyQuotaGb: dailyCapGb
    }
    features: {
      disableLocalAuth: true
    }
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: insightsName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
  }
}

output workspaceId string = workspace.id
output connectionString string = insights.properties.ConnectionString
