// Virtual network for private endpoints, the calls of the app to other services, and the gateway.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap

@description('First two numbers of the addresses of the network, such as 10.40 for 10.40.0.0/22.')
param prefix string

@description('Whether the app calls other services through the network.')
param withOutbound bool

resource appRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${name}-app'
  location: location
  tags: tags
}

resource endpointRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${name}-endpoints'
  location: location
  tags: tags
}

resource gatewayRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${name}-gateway'
  location: location
  tags: tags
  properties: {
    securityRules: [
      {
        name: 'callers'
        properties: {
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: 'Internet'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '443'
        }
      }
      {
        // Azure manages the gateway over these ports.
        name: 'gateway-manager'
        properties: {
          priority: 110
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: 'GatewayManager'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '65200-65535'
        }
      }
    ]
  }
}

// Data Explorer, Web PubSub and Entra ID have public addresses, and a new network has no outbound access by default.
resource outboundAddress 'Microsoft.Network/publicIPAddresses@2025-05-01' = if (withOutbound) {
  name: '${name}-outbound'
  location: location
  tags: tags
  sku: {
    name: 'Standard'
  }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}

resource outbound 'Microsoft.Network/natGateways@2025-05-01' = if (withOutbound) {
  name: '${name}-outbound'
  location: location
  tags: tags
  sku: {
    name: 'Standard'
  }
  properties: {
    publicIpAddresses: [
      {
        id: outboundAddress.id
      }
    ]
  }
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        '${prefix}.0.0/22'
      ]
    }
    subnets: [
      {
        name: 'app'
        properties: {
          addressPrefix: '${prefix}.0.0/24'
          defaultOutboundAccess: false
          natGateway: withOutbound ? { id: outbound.id } : null
          networkSecurityGroup: {
            id: appRules.id
          }
          delegations: [
            {
              name: 'functions'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: '${prefix}.1.0/24'
          defaultOutboundAccess: false
          networkSecurityGroup: {
            id: endpointRules.id
          }
        }
      }
      {
        name: 'gateway'
        properties: {
          addressPrefix: '${prefix}.2.0/24'
          networkSecurityGroup: {
            id: gatewayRules.id
          }
        }
      }
    ]
  }
}

output id string = network.id
output appSubnetId string = resourceId('Microsoft.Network/virtualNetworks/subnets', network.name, 'app')
output endpointSubnetId string = resourceId('Microsoft.Network/virtualNetworks/subnets', network.name, 'endpoints')
output gatewaySubnetId string = resourceId('Microsoft.Network/virtualNetworks/subnets', network.name, 'gateway')
