// Private endpoints of the services that the app calls. Data Explorer and Web PubSub remain public, protected by Entra ID.
import { serviceNameMap, textMap } from '../types.bicep'

param location string
param tags textMap
param networkId string
param subnetId string

@description('Resource group of the services; their endpoints in a second region are in another resource group.')
param servicesGroup string
param names serviceNameMap

var hostStorageId = resourceId(servicesGroup, 'Microsoft.Storage/storageAccounts', names.hostStorage)
var dataStorageId = resourceId(servicesGroup, 'Microsoft.Storage/storageAccounts', names.dataStorage)
var cosmosId = resourceId(servicesGroup, 'Microsoft.DocumentDB/databaseAccounts', names.cosmos)
var eventHubsId = resourceId(servicesGroup, 'Microsoft.EventHub/namespaces', names.eventHubs)
var vaultId = resourceId(servicesGroup, 'Microsoft.KeyVault/vaults', names.vault)
var endpoints = [
  { name: 'host-blob', service: hostStorageId, part: 'blob' }
  { name: 'host-queue', service: hostStorageId, part: 'queue' }
  { name: 'host-table', service: hostStorageId, part: 'table' }
  { name: 'data-blob', service: dataStorageId, part: 'blob' }
  { name: 'cosmos', service: cosmosId, part: 'Sql' }
  { name: 'event-hubs', service: eventHubsId, part: 'namespace' }
  { name: 'vault', service: vaultId, part: 'vault' }
]
var storageSuffix = environment().suffixes.storage
var zoneNames = {
  blob: 'privatelink.blob.${storageSuffix}'
  queue: 'privatelink.queue.${storageSuffix}'
  table: 'privatelink.table.${storageSuffix}'
  Sql: 'privatelink.documents.azure.com'
  namespace: 'privatelink.servicebus.windows.net'
  vault: 'privatelink.vaultcore.azure.net'
}
// The loop is over the parts of services, because a preview does not show a loop over names that contain environment().
var parts = union(map(endpoints, each => each.part), [])

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for part in parts: {
    name: zoneNames[part]
    location: 'global'
    tags: tags
  }
]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (part, index) in parts: {
    parent: zone[index]
    name: 'network'
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      // Otherwise the zone would hide private endpoints elsewhere, such as that of the vault with the gateway's certificate.
      resolutionPolicy: 'NxDomainRedirect'
      virtualNetwork: {
        id: networkId
      }
    }
  }
]

// An endpoint cannot change its region or its service; for another region or service, another endpoint is created.
@batchSize(1)
module endpoint 'private-endpoint.bicep' = [
  for each in endpoints: {
    params: {
      name: 'pep-${each.name}-${location}-${uniqueString(each.service)}'
      location: location
      tags: tags
      subnetId: subnetId
      serviceId: each.service
      part: each.part
      zoneId: zone[indexOf(parts, each.part)].id
    }
  }
]
