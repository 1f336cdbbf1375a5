// Event hubs for telemetry from devices and callers, and for the impulses to which the app normalises it.
import { ownHub, textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param workspaceId string
param publicNetworkAccess string
param partitions int
param retentionHours int
param throughputUnits int

@description('Maximum number of units to which the namespace scales automatically.')
param maxThroughputUnits int

@description('Data connections that have their own event hub.')
param ownHubs ownHub[]

var hubs = [
  'telemetry'
  'impulses'
]
// Each consumer has its own group, so that none can delay another.
var readers = [
  'live'
  'archive'
  'adx'
]
// Azure creates the group $Default for every hub.
var ownReaders = filter(ownHubs, each => each.consumerGroup != '$Default')
// Several consumer groups can read one hub. A union has no duplicates.
var ownHubNames = union(map(ownHubs, each => each.hub), [])

resource namespace 'Microsoft.EventHub/namespaces@2026-01-01' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: 'Standard'
    tier: 'Standard'
    capacity: throughputUnits
  }
  properties: {
    disableLocalAuth: true
    isAutoInflateEnabled: true
    maximumThroughputUnits: maxThroughputUnits
    minimumTlsVersion: '1.2'
    publicNetworkAccess: publicNetworkAccess
  }
}

// If the public address is closed, IoT Hub sends as a trusted service, and Data Explorer has a managed private endpoint.
resource rules 'Microsoft.EventHub/namespaces/networkRuleSets@2026-01-01' = {
  parent: namespace
  name: 'default'
  properties: {
    publicNetworkAccess: publicNetworkAccess
    defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    trustedServiceAccessEnabled: true
  }
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2026-01-01' = [
  for each in hubs: {
    parent: namespace
    name: each
    properties: {
      partitionCount: partitions
      retentionDescription: {
        cleanupPolicy: 'Delete'
        retentionTimeInHours: retentionHours
      }
    }
  }
]

resource reader 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2026-01-01' = [
  for each in readers: {
    name: '${name}/impulses/${each}'
    dependsOn: [
      hub
    ]
  }
]

resource own 'Microsoft.EventHub/namespaces/eventhubs@2026-01-01' = [
  for each in ownHubNames: {
    parent: namespace
    name: each
    properties: {
      partitionCount: partitions
      retentionDescription: {
        cleanupPolicy: 'Delete'
        retentionTimeInHours: retentionHours
      }
    }
  }
]

resource ownReader 'Microsoft.EventHub/namespaces/eventhubs/consumergroups@2026-01-01' = [
  for each in ownReaders: {
    name: '${name}/${each.hub}/${each.consumerGroup}'
    dependsOn: [
      own
    ]
  }
]

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: namespace
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        category: 'OperationalLogs'
        enabled: true
      }
    ]
  }
}

output host string = '${namespace.name}.servicebus.windows.net'
