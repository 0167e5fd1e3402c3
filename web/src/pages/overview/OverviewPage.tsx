import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { canEdit, me, recentEvents, status, summary } from '@/api/queries'
import { Card, Failure, KeyValues, Loading, PageHeader, StateBadge, Timeline, Ago, Detail } from '@/ui/basics'
import { meaningOf } from '@/theme/states'
import { t } from '@/text'
import { FirstSteps } from '../proxies/FirstSteps'

const Charts = lazy(() => import('@/charts/Charts'))

/** How everything stands: what needs a look comes first. */
export default function OverviewPage() {
  const all = useQuery(status)
  const counts = useQuery(summary)
  const { data: events } = useQuery(recentEvents)
  const { data: who } = useQuery(me)
  if (all.error) return <Failure error={all.error} again={() => void all.refetch()} />
  if (counts.error) return <Failure error={counts.error} again={() => void counts.refetch()} />
  if (!all.data || !counts.data) return <Loading />
  const s = all.data
  const { total, servers, attention, attention_total } = counts.data
  const ports = s.ports ?? []
  const certificates = s.certificates ?? []
  const wrongPorts = ports.filter((p) => p.reason || ['warn', 'bad'].includes(meaningOf(p.state)))
  return (
    <>
      <PageHeader title={t.overview.title} badge={<StateBadge state={s.state} />} lead={t.overview.lead} />
      <div className="stack">
        {s.refused && (
          <Alert color="red" role="alert" title={t.overview.refused}>
            <ul style={{ margin: 0, paddingLeft: 18 }}>
              {s.refused.problems.slice(0, 10).map((p) => (
                <li key={p}>
                  <code>{p}</code>
                </li>
              ))}
            </ul>
          </Alert>
        )}
        <div className="stats">
          <Link to="/proxies" className="card stat">
            <span className="stat-name">{t.overview.proxies}</span>
            <span className="stat-value">{total.toLocaleString('en')}</span>
            <span className="stat-note">{attention_total ? t.overview.attentionCount(attention_total) : t.overview.allFine}</span>
          </Link>
          <Link to="/proxies" search={{ sort: 'servers' }} className="card stat">
            <span className="stat-name">{t.overview.servers}</span>
            <span className="stat-value">{servers.total.toLocaleString('en')}</span>
            <span className="stat-note">{t.overview.healthy(servers.healthy, servers.unknown)}</span>
          </Link>
          <Link to="/ports" className="card stat">
            <span className="stat-name">{t.overview.ports}</span>
            <span className="stat-value">{ports.length}</span>
            <span className="stat-note">{t.overview.open(ports.filter((p) => p.state === 'listening').length)}</span>
          </Link>
          <Link to="/certificates" className="card stat">
            <span className="stat-name">{t.overview.certificates}</span>
            <span className="stat-value">{certificates.length}</span>
            <span className="stat-note">{t.overview.valid(certificates.filter((c) => meaningOf(c.state) === 'good').length)}</span>
          </Link>
        </div>
        <Detail
          aside={
            <Card title={t.overview.about}>
              <KeyValues
                rows={[
                  [t.overview.revision, Number(s.revision) || '–'],
                  [t.overview.since, <Ago key="since" time={s.since} />],
                  ...(s.sources ?? []).map((x): [string, React.ReactNode] => [x.name, <StateBadge key={x.name} state={x.state} />]),
                ]}
              />
            </Card>
          }
        >
          <Card title={total === 0 && wrongPorts.length === 0 ? t.overview.first : t.overview.attention} flush>
            {attention.length + wrongPorts.length === 0 ? (
              total === 0 ? (
                <FirstSteps may={canEdit(who?.role)} />
              ) : (
                <div className="card-body small">{t.overview.fine}</div>
              )
            ) : (
              <ul className="attention">
                {wrongPorts.map((p) => (
                  <li key={'port ' + p.name}>
                    <Link to="/ports" className="row-name clip">
                      {p.name} <span className="small">{p.address}</span>
                    </Link>
                    <StateBadge state={p.state} />
                    <span className="small">{[p.reason, p.hint].filter(Boolean).join('; ')}</span>
                  </li>
                ))}
                {attention.map((p) => (
                  <li key={p.kind + ' ' + p.name}>
                    {p.kind === 'proxies' ? (
                      <Link to="/proxies/$name" params={{ name: p.name }} className="row-name clip">
                        <bdi>{p.name}</bdi>
                      </Link>
                    ) : (
                      <Link to="/streams/$kind/$name" params={{ kind: p.kind === 'udp_proxies' ? 'udp' : 'tcp', name: p.name }} className="row-name clip">
                        <bdi>{p.name}</bdi>
                      </Link>
                    )}
                    {meaningOf(p.state) === 'good' ? <StateBadge state="issue" meaning="warn">{t.overview.issue}</StateBadge> : <StateBadge state={p.state} />}
                    <span className="small">{p.issues.join('; ')}</span>
                  </li>
                ))}
                {attention_total > attention.length && (
                  <li>
                    <Link to="/proxies" search={{ sort: 'state' }}>{t.overview.moreAttention(attention_total - attention.length)}</Link>
                  </li>
                )}
              </ul>
            )}
          </Card>
        </Detail>
        {total > 0 && (
          <Suspense fallback={<Loading />}>
            <Charts of={{}} few />
          </Suspense>
        )}
        <Card title={t.overview.events}>
          <Timeline empty={t.overview.noEvents} moments={(events ?? []).slice(0, 15).map((e) => ({ id: e.id!, meaning: meaningOf(e.level === 'info' ? 'info' : e.level!), time: e.time!, text: e.text, note: e.object && !e.text?.includes(e.object.split(/[ ,]/)[1] ?? e.object) ? e.object : undefined }))} />
        </Card>
      </div>
    </>
  )
}
