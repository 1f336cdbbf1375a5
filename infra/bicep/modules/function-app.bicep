// The function app on Flex Consumption: Python 3.13, one identity, no secrets in its settings.
import { readyInstances, textMap } from '../types.bicep'

param name string
param planName string
param location string
param tags textMap

@description('The app\'s user-assigned identity.')
param identityId string

@description('Address of the container with the deployed package.')
param deploymentUrl string

@description('App settings, by name.')
param settings textMap

@description('Always-ready instances, which never stop.')
param alwaysReady readyInstances[]
param maximumInstances int
param instanceMemoryMb int

@description('Number of concurrent HTTP requests per instance at which another instance is started.')
param httpConcurrency int

@description('Spread the instances over the zones of the region.')
param zoneRedundant bool

@description('Subnet through which the app calls other services; empty for none.')
param subnetId string

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
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
    zoneRedundant: zoneRedundant
  }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  // azd finds the app to deploy to by this tag.
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

resource appSettings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'appsettings'
  properties: settings
}

// Two resources instead of a loop, because the compiler checks the type of each by its name.
resource noScmPassword 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'scm'
  properties: {
    allow: false
  }
}

resource noFtpPassword 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: app
  name: 'ftp'
  properties: {
    allow: false
  }
}

output name string = app.name
output host string = app.properties.defaultHostName
