// Second step of a deployment, after the app responds, because Web PubSub probes the event handler when it is configured.
//   az deployment group create -g RESOURCE_GROUP -f infra/bicep/live-stream.bicep -p serviceName=... appUrl=... audience=...
@description('Name of the Web PubSub service.')
param serviceName string

@description('Address of the app, https://...')
param appUrl string

@description('Client id of the app registration for which the service requests tokens.')
param audience string

resource service 'Microsoft.SignalRService/webPubSub@2024-03-01' existing = {
  name: serviceName
}

resource hub 'Microsoft.SignalRService/webPubSub/hubs@2024-03-01' = {
  parent: service
  name: 'live'
  properties: {
    anonymousConnectPolicy: 'allow'
    eventHandlers: [
      {
        urlTemplate: '${appUrl}/oi-api/live-stream/events'
        userEventPattern: ''
        systemEvents: [
          'connect'
          'connected'
          'disconnected'
        ]
        auth: {
          type: 'ManagedIdentity'
          managedIdentity: {
            resource: 'api://${audience}'
          }
        }
      }
    ]
  }
}

output hub string = hub.name
