// IoT Hub for devices; it routes all their messages to the event hub telemetry.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param skuName string
param units int
param workspaceId string

@description('Identity with which the IoT Hub sends to the event hub.')
param identityId string

@description('Host name of the Event Hubs namespace.')
param eventHubsHost string

resource iotHub 'Microsoft.Devices/IotHubs@2023-06-30' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: skuName
    capacity: units
  }
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    disableLocalAuth: true
    minTlsVersion: '1.2'
    routing: {
      endpoints: {
        eventHubs: [
          {
            name: 'telemetry'
            authenticationType: 'identityBased'
            endpointUri: 'sb://${eventHubsHost}'
            entityPath: 'telemetry'
            identity: {
              userAssignedIdentity: identityId
            }
          }
        ]
      }
      routes: [
        {
          name: 'telemetry'
          source: 'DeviceMessages'
          condition: 'true'
          endpointNames: [
            'telemetry'
          ]
          isEnabled: true
        }
      ]
      fallbackRoute: {
        name: '$fallback'
        source: 'DeviceMessages'
        condition: 'true'
        endpointNames: [
          'events'
        ]
        isEnabled: false
      }
    }
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: iotHub
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'Connections'
        enabled: true
      }
      {
        category: 'Routes'
        enabled: true
      }
    ]
  }
}
