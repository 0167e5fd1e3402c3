import { Anchor } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client, data } from '@/api/client'
import { Ago, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import type { components } from '@/api/schema'

export type Provider = components['schemas']['providerBody']
type Issue = NonNullable<Provider['issues']>[number]

export const discovery = queryOptions({
  queryKey: ['discovery'],
  queryFn: () => data(client.GET('/api/v1/discovery')).then((d) => d.providers ?? []),
  refetchInterval: 10_000,
  retry: false,
})

/** How many issues are shown before the list of proxies. */
const first = 20

/**
 * What the providers of discovery report, at the list of proxies: also what is of a
 * container that has become no proxy, and a provider that does not answer.
 */
export function DiscoveryIssues() {
  const providers = useQuery(discovery).data ?? []
  const broken = providers.filter((p) => p.reason)
  const issues = providers.flatMap((p) => (p.issues ?? []).map((issue) => ({ issue, provider: p.name })))
  const n = broken.length + issues.length
  if (n === 0) return null
  return (
    <details className="card discovery-issues">
      <summary>
        <StateBadge state="warning">{t.discovery.issues}</StateBadge> {t.discovery.reported(n)}
      </summary>
      <div className="card-body">
        <ul className="rows">
          {broken.slice(0, first).map((p) => (
            <li key={p.name}>
              <StateBadge state={p.state ?? ''} />
              <span style={{ minWidth: 0 }}>
                <strong>
                  <bdi>{p.name}</bdi>
                </strong>{' '}
                {p.reason}
                {p.hint && <span className="small block">{p.hint}</span>}
                <span className="small block">
                  {t.discovery.since} <Ago time={p.since!} />
                </span>
              </span>
            </li>
          ))}
          {issues.slice(0, Math.max(0, first - broken.length)).map(({ issue, provider }, i) => (
            <OneIssue key={i} issue={issue} provider={provider} />
          ))}
        </ul>
        <p className="small lead">
          {n > first && t.discovery.moreIssues(n - first)}{' '}
          <Anchor component={Link} to="/discovery">
            {t.discovery.all}
          </Anchor>
        </p>
      </div>
    </details>
  )
}

/** One issue: its container, what is wrong, what mends it, its label, and since when. */
export const OneIssue = ({ issue: x, provider }: { issue: Issue; provider?: string }) => (
  <li>
    <StateBadge state="warning">{t.overview.issue}</StateBadge>
    <span style={{ minWidth: 0 }}>
      {(x.container || x.name) && (
        <strong>
          <bdi>{x.container || x.name}</bdi>{' '}
        </strong>
      )}
      {x.message}
      {x.hint && <span className="block">{x.hint}</span>}
      <span className="small block">
        {provider && (
          <>
            {t.discovery.provider} <bdi>{provider}</bdi> ·{' '}
          </>
        )}
        {x.label && (
          <>
            {x.container ? t.discovery.label : t.discovery.field} <code>{x.label}</code> ·{' '}
          </>
        )}
        <code>{x.code}</code> · {t.discovery.since} <Ago time={x.since!} />
      </span>
    </span>
  </li>
)
