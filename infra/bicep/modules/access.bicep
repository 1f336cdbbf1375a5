// Who may do what: the least of the built-in roles that works, on the one container or hub where it is needed.
// Cosmos DB and Data Explorer have roles of their own, in their modules.
param appPrincipalId string

@description('Identity with which Data Explorer reads the hub; empty without a cluster of our own.')
param kustoPrincipalId string

@description('Identity with which the IoT Hub sends; empty without one.')
param iotPrincipalId string
param hostStorageName string
param dataStorageName string
param eventHubsName string
param insightsName string
param vaultName string
param webPubSubName string

@description('Names of the hubs that are connections\' own.')
param ownHubs array

var roles = loadJsonContent('../roles.json')

// The Functions host: package, leases, offsets, orchestrations.
var host = [
  { who: appPrincipalId, kind: 'account', name: hostStorageName, part: '', role: 'Storage Blob Data Owner' }
  { who: appPrincipalId, kind: 'account', name: hostStorageName, part: '', role: 'Storage Queue Data Contributor' }
  { who: appPrincipalId, kind: 'account', name: hostStorageName, part: '', role: 'Storage Table Data Contributor' }
  { who: appPrincipalId, kind: 'insights', name: insightsName, part: '', role: 'Monitoring Metrics Publisher' }
]
// The app: archive, files of downloads and links to them, checkpoints, hubs, signing keys, live stream.
var app = [
  { who: appPrincipalId, kind: 'account', name: dataStorageName, part: '', role: 'Storage Blob Delegator' }
  { who: appPrincipalId, kind: 'container', name: dataStorageName, part: 'cold', role: 'Storage Blob Data Contributor' }
  { who: appPrincipalId, kind: 'container', name: dataStorageName, part: 'downloads', role: 'Storage Blob Data Contributor' }
  { who: appPrincipalId, kind: 'container', name: dataStorageName, part: 'checkpoints', role: 'Storage Blob Data Contributor' }
  { who: appPrincipalId, kind: 'container', name: dataStorageName, part: 'checkpoint-state', role: 'Storage Blob Data Contributor' }
  { who: appPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'telemetry', role: 'Azure Event Hubs Data Receiver' }
  { who: appPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'telemetry', role: 'Azure Event Hubs Data Sender' }
  { who: appPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'impulses', role: 'Azure Event Hubs Data Receiver' }
  { who: appPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'impulses', role: 'Azure Event Hubs Data Sender' }
  { who: appPrincipalId, kind: 'vault', name: vaultName, part: '', role: 'Key Vault Crypto User' }
  { who: appPrincipalId, kind: 'vault', name: vaultName, part: '', role: 'Key Vault Secrets User' }
  { who: appPrincipalId, kind: 'webPubSub', name: webPubSubName, part: '', role: 'Web PubSub Service Owner' }
]
var own = [for hub in ownHubs: { who: appPrincipalId, kind: 'eventHub', name: eventHubsName, part: hub, role: 'Azure Event Hubs Data Receiver' }]
var feeds = [
  { who: kustoPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'impulses', role: 'Azure Event Hubs Data Receiver' }
  { who: iotPrincipalId, kind: 'eventHub', name: eventHubsName, part: 'telemetry', role: 'Azure Event Hubs Data Sender' }
]
var grants = filter(concat(host, app, own, feeds), each => !empty(each.who))

module grant 'grant.bicep' = [for (each, index) in grants: {
  name: 'grant-${index}'
  params: {
    kind: each.kind
    name: each.name
    part: each.part
    roleId: roles[each.role]
    principalId: each.who
    principalType: 'ServicePrincipal'
  }
}]
