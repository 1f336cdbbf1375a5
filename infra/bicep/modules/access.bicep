// Role assignments: the built-in role with the fewest rights that suffices, on the one container or hub that requires it.
// The modules of Cosmos DB and Data Explorer assign the roles of these services.
import { identityNameMap, principalIdMap, serviceNameMap } from '../types.bicep'

param names serviceNameMap

@description('Names of the identities, separate from their object ids. An object id is known only at run time, and would hide every role from a preview.')
param identityNames identityNameMap
param principalIds principalIdMap

@description('Whether this deployment creates a Data Explorer cluster, which reads the hub.')
param withKusto bool

@description('Whether an IoT Hub sends to the hub telemetry.')
param withIotHub bool

@description('Names of the event hubs that belong to one connection each.')
param ownHubs string[]

var roles = loadJsonContent('../roles.json')

// The Functions host: package, leases, offsets, orchestrations.
var host = [
  { who: 'app', kind: 'account', name: names.hostStorage, part: '', role: 'Storage Blob Data Owner' }
  { who: 'app', kind: 'account', name: names.hostStorage, part: '', role: 'Storage Queue Data Contributor' }
  { who: 'app', kind: 'account', name: names.hostStorage, part: '', role: 'Storage Table Data Contributor' }
  { who: 'app', kind: 'insights', name: names.insights, part: '', role: 'Monitoring Metrics Publisher' }
]
// The app: archive, files of downloads and links to them, checkpoints, hubs, signing keys, live stream, secrets. The role
// for secrets precedes their first use, because a setting that the app cannot resolve when it starts stays unresolved.
var app = [
  { who: 'app', kind: 'account', name: names.dataStorage, part: '', role: 'Storage Blob Delegator' }
  { who: 'app', kind: 'container', name: names.dataStorage, part: 'cold', role: 'Storage Blob Data Contributor' }
  { who: 'app', kind: 'container', name: names.dataStorage, part: 'downloads', role: 'Storage Blob Data Contributor' }
  { who: 'app', kind: 'container', name: names.dataStorage, part: 'checkpoints', role: 'Storage Blob Data Contributor' }
  { who: 'app', kind: 'container', name: names.dataStorage, part: 'checkpoint-state', role: 'Storage Blob Data Contributor' }
  { who: 'app', kind: 'eventHub', name: names.eventHubs, part: 'telemetry', role: 'Azure Event Hubs Data Receiver' }
  { who: 'app', kind: 'eventHub', name: names.eventHubs, part: 'telemetry', role: 'Azure Event Hubs Data Sender' }
  { who: 'app', kind: 'eventHub', name: names.eventHubs, part: 'impulses', role: 'Azure Event Hubs Data Receiver' }
  { who: 'app', kind: 'eventHub', name: names.eventHubs, part: 'impulses', role: 'Azure Event Hubs Data Sender' }
  { who: 'app', kind: 'vault', name: names.vault, part: '', role: 'Key Vault Crypto User' }
  { who: 'app', kind: 'vault', name: names.vault, part: '', role: 'Key Vault Secrets User' }
  { who: 'app', kind: 'webPubSub', name: names.webPubSub, part: '', role: 'Web PubSub Service Owner' }
]
var own = map(ownHubs, each => { who: 'app', kind: 'eventHub', name: names.eventHubs, part: each, role: 'Azure Event Hubs Data Receiver' })
var feeds = [
  { isNeeded: withKusto, who: 'kusto', kind: 'eventHub', name: names.eventHubs, part: 'impulses', role: 'Azure Event Hubs Data Receiver' }
  { isNeeded: withIotHub, who: 'iot', kind: 'eventHub', name: names.eventHubs, part: 'telemetry', role: 'Azure Event Hubs Data Sender' }
]
var grants = concat(host, app, own, filter(feeds, each => each.isNeeded))

module grant 'grant.bicep' = [
  for each in grants: {
    params: {
      kind: each.kind
      name: each.name
      part: each.part
      roleId: roles[each.role]
      identityName: identityNames[each.who]
      principalId: principalIds[each.who]
      principalType: 'ServicePrincipal'
    }
  }
]
