// Private endpoint of one service in the network, with its DNS name.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param subnetId string

@description('Id of the service.')
param serviceId string

@description('Part of the service: blob, queue, table, Sql, namespace or vault.')
param part string

@description('Id of the private DNS zone of that part.')
param zoneId string

resource endpoint 'Microsoft.Network/privateEndpoints@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: name
        properties: {
          privateLinkServiceId: serviceId
          groupIds: [
            part
          ]
        }
      }
    ]
  }
}

resource names 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: part
        properties: {
          privateDnsZoneId: zoneId
        }
      }
    ]
  }
}
