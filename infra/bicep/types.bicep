// Types of all parameters that are objects or lists, so that the compiler rejects a misspelt property.

@export()
@description('Texts by name, such as tags and app settings.')
type textMap = {
  *: string
}

@export()
@sealed()
@description('Always-ready instances: name of the group (http, durable or function:NAME), and their number.')
type readyInstances = {
  name: string
  instanceCount: int
}

@export()
@sealed()
@description('Data connection that has its own event hub.')
type ownHub = {
  hub: string
  consumerGroup: string
}

@export()
@sealed()
@description('The Cosmos DB account of a data store.')
type dataStoreAccount = {
  lookup: string
  accountId: string
}

@export()
@sealed()
@description('Names of the resources of stores and services; each depends only on parameters, so that a preview can show it.')
type serviceNameMap = {
  workspace: string
  insights: string
  hostStorage: string
  dataStorage: string
  cosmos: string
  eventHubs: string
  vault: string
  webPubSub: string
  kusto: string
  iotHub: string
}

@export()
@sealed()
@description('Names of the managed identities by their purpose; empty for an identity that is not created.')
type identityNameMap = {
  app: string
  kusto: string
  iot: string
}

@export()
@sealed()
@description('Object ids of the managed identities by their purpose. They are known only at run time, so no name and no loop may depend on them.')
type principalIdMap = {
  app: string
  kusto: string
  iot: string
}

@export()
@minLength(3)
@description('E-mail address; an empty text, which results from an unset variable of a workflow, is rejected.')
type emailAddress = string
