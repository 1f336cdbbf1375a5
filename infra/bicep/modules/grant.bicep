// One role assignment for one identity on one resource of any kind; access.bicep selects them.
@allowed([
  'account'
  'container'
  'eventHub'
  'insights'
  'vault'
  'webPubSub'
])
param kind string

@description('Name of the resource, or of its parent if it has one.')
param name string

@description('Name of the container or hub in the resource; empty for kinds without one.')
param part string
param roleId string

@description('Name of the identity, from which the name of the assignment is derived, because its object id is known only at run time.')
param identityName string
param principalId string

@allowed([
  'ServicePrincipal'
  'User'
])
param principalType string

var role = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleId)
var properties = {
  roleDefinitionId: role
  principalId: principalId
  principalType: principalType
}
// A resource without a grant needs a valid name, too, because Azure checks names before conditions.
var within = empty(part) ? 'none' : part
var id = guid(resourceGroup().id, kind, name, part, roleId, identityName)

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = if (kind == 'account') {
  name: name
}

resource onAccount 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'account') {
  scope: account
  name: id
  properties: properties
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' existing = if (kind == 'container') {
  name: '${name}/default/${within}'
}

resource onContainer 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'container') {
  scope: container
  name: id
  properties: properties
}

resource hub 'Microsoft.EventHub/namespaces/eventhubs@2026-01-01' existing = if (kind == 'eventHub') {
  name: '${name}/${within}'
}

resource onHub 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'eventHub') {
  scope: hub
  name: id
  properties: properties
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = if (kind == 'insights') {
  name: name
}

resource onInsights 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'insights') {
  scope: insights
  name: id
  properties: properties
}

resource vault 'Microsoft.KeyVault/vaults@2025-05-01' existing = if (kind == 'vault') {
  name: name
}

resource onVault 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'vault') {
  scope: vault
  name: id
  properties: properties
}

resource webPubSub 'Microsoft.SignalRService/webPubSub@2024-03-01' existing = if (kind == 'webPubSub') {
  name: name
}

resource onWebPubSub 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (kind == 'webPubSub') {
  scope: webPubSub
  name: id
  properties: properties
}
