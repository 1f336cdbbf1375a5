// One address for everything. A request for the live stream that upgrades goes to Web PubSub, whose own token the
// header Authorization would be; all others go to the app.
import { textMap } from '../types.bicep'

param name string
param location string
param tags textMap
param subnetId string
param workspaceId string

@description('Host name under which callers reach the gateway.')
param hostName string

@description('Address of the certificate as a Key Vault secret, without its version.')
param certificateSecretUri string

@description('The identity that may read that secret.')
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
          // /api/health is documented for HEAD alone, and the gateway asks by GET. Without a hub this path answers a GET with an
          // error of the caller, which shows that the service is there.
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
          // As long as the app may take: 230 s.
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
                  // The new path chooses the pool.
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

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: gateway
  name: 'to-log-analytics'
  properties: {
    workspaceId: workspaceId
    // No access log: it would hold the query strings, and with them the tokens of browsers.
    metrics: [
      {
        category: 'AllMetrics'
        enabled: true
      }
    ]
  }
}

output address string = address.properties.ipAddress
