// User-assigned identity. It exists before its users are created, so that its roles are effective when the app starts.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

output id string = identity.id
output clientId string = identity.properties.clientId
output principalId string = identity.properties.principalId
