// What devices and callers send (telemetry), and what the app makes of it (impulses).
import { ownHub, textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param workspaceId string
param publicNetworkAccess string
param partitions int
param retentionHours int
param throughputUnits int

@description('Units up to which the namespace grows by itself.')
param maxThroughputUnits int

@description('Connections with a hub of their own.')
param ownHubs ownHub[]

var hubs = [
  'telemetry'
  'impulses'
]
// One reader each, so that none can hold up another.
var readers = [
  'live'
  'archive'
  'adx'
]
// Every hub has the group $Default by itself.
var ownReaders = filter(ownHubs, each => each.consumerGroup != '$Default')

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

// IoT Hub sends as a trusted service where the public address is closed. Data Explorer has a managed private endpoint besides.
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
  for each in ownHubs: {
    parent: namespace
    name: each.hub
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
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

output host string = '${namespace.name}.servicebus.windows.net'
