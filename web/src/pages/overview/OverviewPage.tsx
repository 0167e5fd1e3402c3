import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { objects, recentEvents, status, type Proxy } from '@/api/queries'
import { Card, Failure, KeyValues, Loading, PageHeader, StateBadge, Timeline, Ago, Detail, Empty } from '@/ui/basics'
import { meaningOf } from '@/theme/states'
import { t } from '@/text'

/** How everything stands: what needs a look comes first. */
export default function OverviewPage() {
  const all = useQuery(status)
  const list = useQuery(objects<Proxy>('proxies'))
  const { data: events } = useQuery(recentEvents)
  if (all.error) return <Failure error={all.error} again={() => void all.refetch()} />
  if (!all.data || !list.data) return <Loading />
  const s = all.data
  const proxies = list.data
  const servers = proxies.reduce((n, p) => ({ healthy: n.healthy + (p.servers?.healthy ?? 0), unknown: n.unknown + (p.servers?.unknown ?? 0), total: n.total + (p.servers?.total ?? 0) }), { healthy: 0, unknown: 0, total: 0 })
  const ports = s.ports ?? []
  const certificates = s.certificates ?? []
  const wrong = proxies.filter((p) => ['warn', 'bad'].includes(meaningOf(p.state ?? '')))
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
            <span className="stat-value">{proxies.length.toLocaleString('en')}</span>
            <span className="stat-note">{wrong.length ? t.overview.attentionCount(wrong.length) : t.overview.allFine}</span>
          </Link>
          <div className="card stat">
            <span className="stat-name">{t.overview.servers}</span>
            <span className="stat-value">{servers.total.toLocaleString('en')}</span>
            <span className="stat-note">{t.overview.healthy(servers.healthy, servers.unknown)}</span>
          </div>
          <div className="card stat">
            <span className="stat-name">{t.overview.ports}</span>
            <span className="stat-value">{ports.length}</span>
            <span className="stat-note">{t.overview.open(ports.filter((p) => p.state === 'listening').length)}</span>
          </div>
          <div className="card stat">
            <span className="stat-name">{t.overview.certificates}</span>
            <span className="stat-value">{certificates.length}</span>
            <span className="stat-note">{t.overview.valid(certificates.filter((c) => meaningOf(c.state) === 'good').length)}</span>
          </div>
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
          <Card title={t.overview.attention} flush>
            {wrong.length + wrongPorts.length === 0 ? (
              proxies.length === 0 ? (
                <Empty title={t.proxies.emptyTitle} action={<Link to="/proxies/new">{t.proxies.add}</Link>}>
                  {t.proxies.empty}
                </Empty>
              ) : (
                <div className="card-body small">{t.overview.fine}</div>
              )
            ) : (
              <div className="table">
                <table>
                  <tbody>
                    {wrongPorts.map((p) => (
                      <tr key={'port ' + p.name} className="row">
                        <td>
                          <strong>{p.name}</strong> <span className="small">{p.address}</span>
                        </td>
                        <td style={{ width: 130 }}>
                          <StateBadge state={p.state} />
                        </td>
                        <td className="small not-phone">{[p.reason, p.hint].filter(Boolean).join("; ")}</td>
                      </tr>
                    ))}
                    {wrong.slice(0, 20).map((p) => (
                      <tr key={p.name} className="row">
                        <td>
                          <Link to="/proxies/$name" params={{ name: p.name! }} className="row-name clip">
                            {p.name}
                          </Link>
                        </td>
                        <td style={{ width: 130 }}>
                          <StateBadge state={p.state!} />
                        </td>
                        <td className="small not-phone">{p.issues?.join('; ')}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Card>
          <Card title={t.overview.events}>
            <Timeline empty={t.overview.noEvents} moments={(events ?? []).slice(0, 15).map((e) => ({ id: e.id!, meaning: meaningOf(e.level === 'info' ? 'info' : e.level!), time: e.time!, text: e.text, note: e.object }))} />
          </Card>
        </Detail>
      </div>
    </>
  )
}
