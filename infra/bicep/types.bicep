// The types of every parameter that is an object or a list, so that a misspelt member is an error of the compiler.

@export()
@description('Texts by name, such as tags and app settings.')
type textMap = {
  *: string
}

@export()
@sealed()
@description('Instances that always run: http, durable or function:NAME, and how many.')
type readyInstances = {
  name: string
  instanceCount: int
}

@export()
@sealed()
@description('A connection that has an event hub of its own.')
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
@description('Names of what the stores and services are made of; each depends on parameters only, so that a preview knows it.')
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
@description('Object ids of the managed identities by their purpose; known at run time only, so nothing may be named or counted by them.')
type principalIdMap = {
  app: string
  kusto: string
  iot: string
}

@export()
@minLength(3)
@description('An e-mail address; an empty text, as an unset variable of a workflow gives it, is rejected.')
type emailAddress = string
