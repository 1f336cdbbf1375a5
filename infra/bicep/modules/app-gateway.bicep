// One address for all requests. A WebSocket request for the live stream is sent to Web PubSub, without the header
// Authorization, which Web PubSub would read as its own token. All other requests are sent to the app.
// It writes no access log, because query strings contain the tokens of browsers.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param subnetId string

@description('Host name of the gateway for callers.')
param hostName string

@description('Address of the certificate as a Key Vault secret, without its version.')
param certificateSecretUri string

@description('Identity that has the right to read that secret.')
param identityId string
param appHost string
param webPubSubHost string
param maximumInstances int

resource address 'Microsoft.Network/publicIPAddresses@2025-05-01' = {
  name: '${name}-ip'
  location: location
  tags: tags
  sku: {
    name: 'Standard'
  }
  properties: {
    publicIPAllocationMethod: 'Static'
  }
}

resource gateway 'Microsoft.Network/applicationGateways@2025-05-01' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    sku: {
      name: 'Standard_v2'
      tier: 'Standard_v2'
    }
    autoscaleConfiguration: {
      minCapacity: 0
      maxCapacity: maximumInstances
    }
    sslPolicy: {
      policyType: 'Predefined'
      policyName: 'AppGwSslPolicy20220101S'
    }
    gatewayIPConfigurations: [
      {
        name: 'subnet'
        properties: {
          subnet: {
            id: subnetId
          }
        }
      }
    ]
    frontendIPConfigurations: [
      {
        name: 'public'
        properties: {
          publicIPAddress: {
            id: address.id
          }
        }
      }
    ]
    frontendPorts: [
      {
        name: 'https'
        properties: {
          port: 443
        }
      }
    ]
    sslCertificates: [
      {
        name: 'certificate'
        properties: {
          keyVaultSecretId: certificateSecretUri
        }
      }
    ]
    backendAddressPools: [
      {
        name: 'app'
        properties: {
          backendAddresses: [
            {
              fqdn: appHost
            }
          ]
        }
      }
      {
        name: 'web-pubsub'
        properties: {
          backendAddresses: [
            {
              fqdn: webPubSubHost
            }
          ]
        }
      }
    ]
    probes: [
      {
        name: 'app'
        properties: {
          protocol: 'Https'
          path: '/healthz'
          interval: 30
          timeout: 30
          unhealthyThreshold: 3
          pickHostNameFromBackendHttpSettings: true
        }
      }
      {
        name: 'web-pubsub'
        properties: {
          protocol: 'Https'
          // /api/health is documented for HEAD only, and the gateway probes with GET. Without a hub, a GET of this path returns
          // a 4xx status, which shows that the service runs.
          path: '/client'
          interval: 30
          timeout: 30
          unhealthyThreshold: 3
          pickHostNameFromBackendHttpSettings: true
          match: {
            statusCodes: [
              '200-499'
            ]
          }
        }
      }
    ]
    backendHttpSettingsCollection: [
      {
        name: 'app'
        properties: {
          port: 443
          protocol: 'Https'
          cookieBasedAffinity: 'Disabled'
          pickHostNameFromBackendAddress: true
          // Maximum duration of a request to the app: 230 s.
          requestTimeout: 240
          probe: {
            id: resourceId('Microsoft.Network/applicationGateways/probes', name, 'app')
          }
        }
      }
      {
        name: 'web-pubsub'
        properties: {
          port: 443
          protocol: 'Https'
          cookieBasedAffinity: 'Disabled'
          pickHostNameFromBackendAddress: true
          requestTimeout: 240
          probe: {
            id: resourceId('Microsoft.Network/applicationGateways/probes', name, 'web-pubsub')
          }
        }
      }
    ]
    httpListeners: [
      {
        name: 'https'
        properties: {
          hostName: hostName
          protocol: 'Https'
          requireServerNameIndication: true
          frontendIPConfiguration: {
            id: resourceId('Microsoft.Network/applicationGateways/frontendIPConfigurations', name, 'public')
          }
          frontendPort: {
            id: resourceId('Microsoft.Network/applicationGateways/frontendPorts', name, 'https')
          }
          sslCertificate: {
            id: resourceId('Microsoft.Network/applicationGateways/sslCertificates', name, 'certificate')
          }
        }
      }
    ]
    rewriteRuleSets: [
      {
        name: 'live-stream'
        properties: {
          rewriteRules: [
            {
              name: 'upgrade'
              ruleSequence: 100
              conditions: [
                {
                  variable: 'http_req_Upgrade'
                  pattern: '^websocket$'
                  ignoreCase: true
                  negate: false
                }
              ]
              actionSet: {
                requestHeaderConfigurations: [
                  {
                    headerName: 'X-Workspace-Authorization'
                    headerValue: '{http_req_Authorization}'
                  }
                  {
                    // An empty value removes the header.
                    headerName: 'Authorization'
                    headerValue: ''
                  }
                ]
                urlConfiguration: {
                  modifiedPath: '/client/hubs/live'
                  // The rewritten path selects the backend pool.
                  reroute: true
                }
              }
            }
          ]
        }
      }
    ]
    urlPathMaps: [
      {
        name: 'paths'
        properties: {
          defaultBackendAddressPool: {
            id: resourceId('Microsoft.Network/applicationGateways/backendAddressPools', name, 'app')
          }
          defaultBackendHttpSettings: {
            id: resourceId('Microsoft.Network/applicationGateways/backendHttpSettingsCollection', name, 'app')
          }
          pathRules: [
            {
              name: 'live-stream'
              properties: {
                paths: [
                  '/oi-api/live-stream'
                ]
                backendAddressPool: {
                  id: resourceId('Microsoft.Network/applicationGateways/backendAddressPools', name, 'app')
                }
                backendHttpSettings: {
                  id: resourceId('Microsoft.Network/applicationGateways/backendHttpSettingsCollection', name, 'app')
                }
                rewriteRuleSet: {
                  id: resourceId('Microsoft.Network/applicationGateways/rewriteRuleSets', name, 'live-stream')
                }
              }
            }
            {
              name: 'web-pubsub'
              properties: {
                paths: [
                  '/client/hubs/live'
                ]
                backendAddressPool: {
                  id: resourceId('Microsoft.Network/applicationGateways/backendAddressPools', name, 'web-pubsub')
                }
                backendHttpSettings: {
                  id: resourceId('Microsoft.Network/applicationGateways/backendHttpSettingsCollection', name, 'web-pubsub')
                }
              }
            }
          ]
        }
      }
    ]
    requestRoutingRules: [
      {
        name: 'all'
        properties: {
          ruleType: 'PathBasedRouting'
          priority: 100
          httpListener: {
            id: resourceId('Microsoft.Network/applicationGateways/httpListeners', name, 'https')
          }
          urlPathMap: {
            id: resourceId('Microsoft.Network/applicationGateways/urlPathMaps', name, 'paths')
          }
        }
      }
    ]
  }
}

output address string = address.properties.ipAddress
