// Alerts for operators. docs/how-to/operate.md describes what to do for each of them.
import { emailAddress, serviceNameMap, textMap } from '../types.bicep'

param location string
param tags textMap
param workspaceId string
param names serviceNameMap

@description('Whether this deployment creates the Data Explorer cluster.')
param withKusto bool

@description('Address of the service as its callers see it.')
param serviceUrl string

@description('E-mail addresses that receive the alerts.')
param emails emailAddress[]

resource people 'Microsoft.Insights/actionGroups@2023-01-01' = {
  // An alert cannot change its region; for another region, another alert is created.
  name: 'operators-${location}'
  location: 'global'
  tags: tags
  properties: {
    enabled: true
    groupShortName: 'operators'
    emailReceivers: [
      for (email, index) in emails: {
        name: 'operator-${index}'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

var searches = [
  {
    name: 'chain-broken'
    text: 'An audit chain does not verify.'
    severity: 0
    // Metrics are never sampled. The log line counts as well, because a process sends no metric in its first seconds.
    query: 'union (AppMetrics | where Name == "workspace.chain.broken" and Sum > 0), (AppTraces | where Message has "an audit chain is broken")'
    threshold: 0
    window: 'PT5M'
  }
  {
    name: 'checkpoint-fails'
    text: 'A checkpoint of an audit chain cannot be made.'
    severity: 0
    query: 'AppMetrics | where Name == "workspace.checkpoint.failures" and Sum > 0'
    threshold: 0
    window: 'PT5M'
  }
  {
    name: 'ingest-lag'
    text: 'A trigger of telemetry fails: its batches come again until it works, and what follows waits.'
    severity: 1
    query: 'union (AppRequests | where Success == false), AppExceptions | where OperationName in ("archive", "live") or OperationName startswith "ingest"'
    threshold: 5
    window: 'PT15M'
  }
  {
    name: 'background-fails'
    text: 'Background jobs that are due every few seconds or minutes fail or cannot be claimed.'
    severity: 1
    query: 'AppMetrics | where Name == "workspace.background.failures" and Sum > 0'
    threshold: 2
    window: 'PT15M'
  }
  {
    name: 'job-fails'
    text: 'A background job, which can be one that is rarely due, has failed and not completed in two hours.'
    severity: 1
    // The window contains two runs of a job that is due every hour, so that a single failure of it is no alert.
    // The term background is part of the names of two metrics: runs and failures.
    query: 'AppMetrics | where Name has "background" and Sum > 0 | summarize Runs = countif(Name == "workspace.background.runs") by Job = tostring(Properties["job"]) | where Runs == 0'
    threshold: 0
    window: 'PT2H'
  }
  {
    name: 'verification-fails'
    text: 'The verification of an audit chain ended with an error, so nothing is known about the chain until the next night.'
    severity: 1
    // After an outage the job itself fails and is repeated.
    query: 'AppMetrics | where Name == "workspace.chain.verify.failures" and Sum > 0 and tostring(Properties["cause"]) != "outage"'
    threshold: 0
    window: 'PT5M'
  }
  {
    name: 'ingest-behind'
    text: 'Telemetry waits for over five minutes before it is converted or archived.'
    severity: 2
    query: 'AppMetrics | where Name == "workspace.ingest.lag" and Max > 300'
    threshold: 2
    window: 'PT15M'
  }
  {
    name: 'answers-5xx'
    text: 'Callers get 5xx.'
    severity: 2
    query: 'AppMetrics | where Name == "workspace.http.errors" and toint(Properties["http.response.status_code"]) >= 500 | summarize Replies = sum(Sum) | where Replies > 10'
    threshold: 0
    window: 'PT5M'
  }
  {
    name: 'answers-429'
    text: 'Callers are over their budget, or a store is over its own.'
    severity: 3
    query: 'AppMetrics | where Name == "workspace.http.errors" and toint(Properties["http.response.status_code"]) == 429 | summarize Replies = sum(Sum) | where Replies > 100'
    threshold: 0
    window: 'PT15M'
  }
  {
    name: 'background-stopped'
    text: 'No background job has completed for half an hour: the app does not run, its timer does not, or its metrics do not arrive.'
    severity: 1
    // A query that counts no rows returns one row with 0.
    query: 'AppMetrics | where Name == "workspace.background.runs" | summarize Runs = count() | where Runs == 0'
    threshold: 0
    window: 'PT30M'
  }
]

resource search 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for each in searches: {
    name: '${each.name}-${location}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: each.name
      description: each.text
      enabled: true
      severity: each.severity
      scopes: [
        workspaceId
      ]
      evaluationFrequency: each.window
      windowSize: each.window
      criteria: {
        allOf: [
          {
            query: each.query
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: each.threshold
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      // The tables do not exist before the app has logged.
      skipQueryValidation: true
      // A verification counts such a chain once a night; the alert would resolve itself while the chain is unchanged.
      autoMitigate: !contains(['chain-broken', 'verification-fails'], each.name)
      actions: {
        actionGroups: [
          people.id
        ]
      }
    }
  }
]

var metrics = [
  {
    name: 'event-hubs-throttled'
    text: 'Event Hubs refuses for want of throughput units.'
    severity: 2
    isNeeded: true
    resource: resourceId('Microsoft.EventHub/namespaces', names.eventHubs)
    namespace: 'Microsoft.EventHub/namespaces'
    metric: 'ThrottledRequests'
    aggregation: 'Total'
    threshold: 10
  }
  {
    name: 'cosmos-near-limit'
    text: 'Cosmos DB is near the most that it may use.'
    severity: 2
    isNeeded: true
    resource: resourceId('Microsoft.DocumentDB/databaseAccounts', names.cosmos)
    namespace: 'Microsoft.DocumentDB/databaseAccounts'
    metric: 'NormalizedRUConsumption'
    aggregation: 'Maximum'
    threshold: 95
  }
  {
    name: 'table-lag'
    text: 'Impulses reach the query table late.'
    severity: 2
    isNeeded: withKusto
    resource: resourceId('Microsoft.Kusto/clusters', names.kusto)
    namespace: 'Microsoft.Kusto/clusters'
    metric: 'IngestionLatencyInSeconds'
    aggregation: 'Maximum'
    threshold: 600
  }
]

resource metric 'Microsoft.Insights/metricAlerts@2026-01-01' = [
  for each in filter(metrics, each => each.isNeeded): {
    name: '${each.name}-${location}'
    location: 'global'
    tags: tags
    properties: {
      description: each.text
      enabled: true
      severity: each.severity
      scopes: [
        each.resource
      ]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT15M'
      criteria: {
        'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
        allOf: [
          {
            name: each.metric
            criterionType: 'StaticThresholdCriterion'
            metricNamespace: each.namespace
            metricName: each.metric
            timeAggregation: each.aggregation
            operator: 'GreaterThan'
            threshold: each.threshold
          }
        ]
      }
      autoMitigate: true
      actions: [
        {
          actionGroupId: people.id
        }
      ]
    }
  }
]

// All alerts above need rows or metrics that a running service causes, so Azure also calls the service from outside.
resource readiness 'Microsoft.Insights/webtests@2022-06-15' = {
  name: 'readiness-${location}'
  location: location
  // The tag assigns the test to Application Insights.
  tags: union(tags, { 'hidden-link:${resourceId('Microsoft.Insights/components', names.insights)}': 'Resource' })
  kind: 'standard'
  properties: {
    SyntheticMonitorId: 'readiness-${location}'
    Name: 'readiness-${location}'
    Enabled: true
    Frequency: 300
    Timeout: 30
    Kind: 'standard'
    RetryEnabled: true
    Locations: [
      {
        Id: 'emea-nl-ams-azr'
      }
      {
        Id: 'emea-gb-db3-azr'
      }
      {
        Id: 'us-va-ash-azr'
      }
    ]
    Request: {
      RequestUrl: '${serviceUrl}/readyz'
      HttpVerb: 'GET'
      ParseDependentRequests: false
    }
    ValidationRules: {
      ExpectedHttpStatusCode: 200
      SSLCheck: true
      SSLCertRemainingLifetimeCheck: 7
    }
  }
}

resource notReady 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: 'not-ready-${location}'
  location: 'global'
  tags: tags
  properties: {
    description: 'The service does not answer, or one of its stores does not.'
    enabled: true
    severity: 0
    scopes: [
      readiness.id
      resourceId('Microsoft.Insights/components', names.insights)
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.WebtestLocationAvailabilityCriteria'
      webTestId: readiness.id
      componentId: resourceId('Microsoft.Insights/components', names.insights)
      failedLocationCount: 2
    }
    autoMitigate: true
    actions: [
      {
        actionGroupId: people.id
      }
    ]
  }
}
