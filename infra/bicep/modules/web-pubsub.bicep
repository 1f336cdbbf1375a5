// Web PubSub service of the live stream. live-stream.bicep creates its hub after the app responds.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param units int
param workspaceId string

resource service 'Microsoft.SignalRService/webPubSub@2024-03-01' = {
  name: name
  location: location
  tags: tags
  kind: 'WebPubSub'
  sku: {
    name: skuName
    capacity: units
  }
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    disableAadAuth: false
    disableLocalAuth: true
    // Listeners and the gateway connect to the public address.
    publicNetworkAccess: 'Enabled'
    tls: {
      clientCertEnabled: false
    }
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: service
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'ConnectivityLogs'
        enabled: true
      }
    ]
  }
}

output host string = service.properties.hostName
output endpoint string = 'https://${service.properties.hostName}'
output principalId string = service.identity.principalId
