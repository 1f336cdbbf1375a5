// What the app reaches by private addresses. Data Explorer and Web PubSub stay public, behind Entra ID.
param location string
param tags object
param networkId string
param subnetId string
param hostStorageId string
param dataStorageId string
param cosmosId string
param eventHubsId string
param vaultId string

var storageSuffix = environment().suffixes.storage
var endpoints = [
  { name: 'host-blob', service: hostStorageId, part: 'blob', zone: 'privatelink.blob.${storageSuffix}' }
  { name: 'host-queue', service: hostStorageId, part: 'queue', zone: 'privatelink.queue.${storageSuffix}' }
  { name: 'host-table', service: hostStorageId, part: 'table', zone: 'privatelink.table.${storageSuffix}' }
  { name: 'data-blob', service: dataStorageId, part: 'blob', zone: 'privatelink.blob.${storageSuffix}' }
  { name: 'cosmos', service: cosmosId, part: 'Sql', zone: 'privatelink.documents.azure.com' }
  { name: 'event-hubs', service: eventHubsId, part: 'namespace', zone: 'privatelink.servicebus.windows.net' }
  { name: 'vault', service: vaultId, part: 'vault', zone: 'privatelink.vaultcore.azure.net' }
]

// One after the other: two of them share a zone.
@batchSize(1)
module endpoint 'private-endpoint.bicep' = [for each in endpoints: {
  name: 'endpoint-${each.name}'
  params: {
    name: 'pep-${each.name}'
    location: location
    tags: tags
    networkId: networkId
    subnetId: subnetId
    serviceId: each.service
    part: each.part
    zoneName: each.zone
  }
}]
