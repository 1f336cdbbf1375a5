// The app itself, on Flex Consumption: Python 3.13, one identity, no secret among its settings.
param name string
param planName string
param location string
param tags object

@description('The app\'s user-assigned identity.')
param identityId string

@description('Address of the container that holds the deployed package.')
param deploymentUrl string

@description('App settings, by name.')
param settings object

@description('Instances that never stop: objects with name (http, durable, function:NAME) and instanceCount.')
param alwaysReady array
param maximumInstances int
param instanceMemoryMb int

@description('HTTP requests that one instance serves at once before another one is started.')
param httpConcurrency int

@description('Subnet that the app\'s own calls go through; empty for none.')
param subnetId string
param workspaceId string

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  name: name
  location: location
  // By this tag azd finds what to deploy to.
  tags: union(tags, { 'azd-service-name': 'api' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    siteConfig: {
      minTlsVersion: '1.2'
      http20Enabled: true
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: deploymentUrl
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: {
        name: 'python'
        version: '3.13'
      }
      scaleAndConcurrency: {
        alwaysReady: alwaysReady
        maximumInstanceCount: maximumInstances
        instanceMemoryMB: instanceMemoryMb
        triggers: {
          http: {
            perInstanceConcurrency: httpConcurrency
          }
        }
      }
    }
  }
}

resource appSettings 'Microsoft.Web/sites/config@2024-04-01' = {
  parent: app
  name: 'appsettings'
  properties: settings
}

resource noPasswords 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-04-01' = [for each in ['scm', 'ftp']: {
  parent: app
  name: each
  properties: {
    allow: false
  }
}]

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: app
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    // The app's logs go to Application Insights by themselves.
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

output name string = app.name
output host string = app.properties.defaultHostName
