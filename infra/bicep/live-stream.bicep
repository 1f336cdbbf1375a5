// The second step, once the app answers: the service probes the event handler when it is told of it.
//   az deployment group create -g RESOURCE_GROUP -f infra/bicep/live-stream.bicep -p serviceName=... appUrl=... audience=...
@description('Name of the Web PubSub service.')
param serviceName string

@description('Address of the app, https://...')
param appUrl string

@description('Client id of the app registration for which the service asks tokens.')
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
