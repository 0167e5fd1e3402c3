import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, type ReactNode } from 'react'
import { failed } from '@/api/problem'
import { canEdit, eventsOf, me, recentEvents, revisions, statusOf, summaryOf, type Status, type Summary } from '@/api/queries'
import { Ago, Card, Detail, Failure, KeyValues, Loading, PageHeader, StateBadge, Timeline } from '@/ui/basics'
import { meaningOf } from '@/theme/states'
import { t } from '@/text'
import { count, percent } from '@/text/many'
import { changedObjects } from '../history/changed'
import { NodeFilter, NodeTag, useNode } from '../nodes/NodeFilter'
import { FirstSteps } from '../proxies/FirstSteps'
import { uptimes } from './uptime'

const Charts = lazy(() => import('@/charts/Charts'))

/** How many rows the parts of the overview have. */
const most = 8

/** The state of everything at a glance: what needs attention comes first. */
export default function OverviewPage() {
  const [node] = useNode()
  const all = useQuery(statusOf(node))
  const counts = useQuery(summaryOf(node))
  const { data: events } = useQuery(recentEvents)
  const { data: who } = useQuery(me)
  const wrongOf = failed(all) ? all : failed(counts) ? counts : undefined
  if (wrongOf || !all.data || !counts.data) {
    if (!node) return wrongOf ? <Failure error={wrongOf.error} again={() => void wrongOf.refetch()} /> : <Loading />
    return (
      <>
        <PageHeader title={t.overview.title} badge={<NodeTag node={node} />} actions={<NodeFilter />} />
        {wrongOf ? <Failure error={wrongOf.error} again={() => void wrongOf.refetch()} /> : <Loading />}
      </>
    )
  }
  const s = all.data
  const { total, servers, attention_total, certificates_total, certificates_attention_total } = counts.data
  const ports = s.ports
  const wrongPorts = ports.filter((p) => p.reason || ['warn', 'bad'].includes(meaningOf(p.state)))
  const wrong = attention_total + certificates_attention_total + wrongPorts.length
  const valid = counts.data.certificates.find((c) => c.state === 'valid')?.count ?? 0
  return (
    <>
      <PageHeader
        title={t.overview.title}
        badge={
          <>
            <NodeTag node={node} />
            <Whole state={s.state} down={counts.data.proxies.find((p) => p.state === 'down')?.count ?? 0} wrong={wrong} />
          </>
        }
        lead={node ? t.nodes.shows(node) : t.overview.lead}
        actions={<NodeFilter />}
      />
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
        {s.process.in_progress && (
          <Alert color="blue" role="status">
            {t.overview.upgrading}
          </Alert>
        )}
        <div className="stats">
          <Stat to="/proxies" name={t.overview.proxies} value={total} note={attention_total ? t.overview.attentionCount(attention_total) : t.overview.allFine} bad={attention_total > 0} />
          <Stat
            to="/proxies"
            search={{ sort: 'servers' }}
            name={t.overview.servers}
            value={servers.total}
            note={t.overview.healthy(servers.healthy, servers.unknown, servers.total)}
            bad={servers.healthy + servers.unknown < servers.total}
          />
          <Stat to="/ports" name={t.overview.ports} value={ports.length} note={t.overview.open(ports.filter((p) => p.state === 'listening').length)} bad={wrongPorts.length > 0} />
          <Stat to="/certificates" name={t.overview.certificates} value={certificates_total} note={t.overview.valid(valid, certificates_attention_total)} bad={certificates_attention_total > 0} />
        </div>
        <Detail
          aside={
            <>
              <LastChanges />
              <Card title={t.overview.about}>
                <KeyValues
                  rows={[
                    [t.overview.revision, Number(s.revision) || '–'],
                    [t.overview.since, <Ago key="since" time={s.since} />],
                    ...processRows(s.process),
                    ...s.sources.map((x): [string, ReactNode] => [sourceName(x.name), <StateBadge key={x.name} state={x.state} />]),
                  ]}
                />
              </Card>
            </>
          }
        >
          <Card title={total === 0 && wrong === 0 ? t.overview.first : t.overview.attention} flush>
            {wrong > 0 ? <Attention ports={wrongPorts} of={counts.data} /> : total === 0 ? <FirstSteps may={canEdit(who?.role)} /> : <div className="card-body small">{t.overview.fine}</div>}
          </Card>
          <Availability />
        </Detail>
        {total > 0 && (
          <Suspense fallback={<Loading />}>
            <Charts key={node} of={{ node: node || undefined }} marked />
          </Suspense>
        )}
        <Card title={t.overview.events}>
          <Timeline
            empty={t.overview.noEvents}
            moments={(events ?? []).slice(0, 15).map((e) => ({
              id: e.id!,
              meaning: meaningOf(e.level === 'info' ? 'info' : e.level!),
              time: e.time!,
              text: e.text,
              note: e.object && !e.text?.includes(e.object.split(/[ ,]/)[1] ?? e.object) ? e.object : undefined,
            }))}
          />
        </Card>
      </div>
    </>
  )
}

/** A source of objects in words: "discovery.docker.local" is "Discovery: local". */
const sourceName = (name: string) => (name === 'configuration' ? t.overview.configuration : name.replace(/^discovery\.[^.]+\./, t.pages.discovery + ': '))

/** The process that answers, and the one that it replaced while that has connections. */
function processRows({ version, pid, generation, previous: old }: Status['process']): [string, ReactNode][] {
  const rows: [string, ReactNode][] = [
    [t.overview.version, version],
    [t.overview.process, pid],
    [t.overview.generation, generation],
  ]
  if (old) rows.push([t.overview.previous, t.overview.previousHas(old.version!, old.pid!, old.connections!)])
  return rows
}

/** The state of the whole: what is down counts before that headgate itself serves. */
function Whole({ state, down, wrong }: { state: string; down: number; wrong: number }) {
  if (state !== 'serving') return <StateBadge state={state} />
  if (down > 0) return <StateBadge state="down">{t.overview.down(down)}</StateBadge>
  if (wrong > 0) return <StateBadge state="degraded">{t.overview.needs(wrong)}</StateBadge>
  return <StateBadge state={state} />
}

function Stat({ to, search, name, value, note, bad }: { to: string; search?: object; name: string; value: number; note: string; bad: boolean }) {
  return (
    <Link to={to as '/'} search={search as never} className="card stat" data-bad={bad || undefined}>
      <span className="stat-name">{name}</span>
      <span className="stat-value">{count(value)}</span>
      <span className="stat-note">{note}</span>
    </Link>
  )
}

/** A link to the page of a proxy, of any kind. */
const ProxyLink = ({ kind, name, className }: { kind: string; name: string; className?: string }) =>
  kind === 'proxies' ? (
    <Link to="/proxies/$name" params={{ name }} className={className}>
      <bdi>{name}</bdi>
    </Link>
  ) : (
    <Link to="/streams/$kind/$name" params={{ kind: kind === 'udp_proxies' ? 'udp' : 'tcp', name }} className={className}>
      <bdi>{name}</bdi>
    </Link>
  )

/** What needs attention: ports, proxies that are down, certificates, other proxies. */
function Attention({ ports, of }: { ports: Status['ports']; of: Summary }) {
  const proxies = of.attention.map((p) => ({ ...p, urgent: p.state === 'down' }))
  const row = (p: (typeof proxies)[number]) => (
    <li key={p.kind + ' ' + p.name}>
      <ProxyLink kind={p.kind} name={p.name} className="row-name clip" />
      {meaningOf(p.state) === 'good' ? (
        <StateBadge state="issue" meaning="warn">
          {t.overview.issue}
        </StateBadge>
      ) : (
        <StateBadge state={p.state} />
      )}
      <span className="small">{p.issues.join('; ')}</span>
    </li>
  )
  const more = of.attention_total - of.attention.length
  const moreCertificates = of.certificates_attention_total - of.certificates_attention.length
  return (
    <ul className="attention">
      {ports.map((p) => (
        <li key={'port ' + p.name}>
          <Link to="/ports" className="row-name clip">
            {p.name} <span className="small">{p.address}</span>
          </Link>
          <StateBadge state={p.state} />
          <span className="small">{[p.reason && (t.reason[p.reason] ?? p.reason), p.hint].filter(Boolean).join(' ')}</span>
        </li>
      ))}
      {proxies.filter((p) => p.urgent).map(row)}
      {of.certificates_attention.map((c) => (
        <li key={`certificate ${c.source} ${c.name}`}>
          {c.source === 'acme' ? (
            <Link to="/certificates/$name" params={{ name: c.name }} className="row-name clip">
              <bdi>{c.names?.[0] ?? c.name}</bdi>
            </Link>
          ) : (
            <Link to="/certificates" className="row-name clip">
              <bdi>{c.name}</bdi>
            </Link>
          )}
          <StateBadge state={c.state}>{t.certificates.word[c.state] ?? c.state}</StateBadge>
          <span className="small">{[c.days_left !== undefined && t.certificates.days(c.days_left), c.problem, c.hint].filter(Boolean).join('; ')}</span>
        </li>
      ))}
      {proxies.filter((p) => !p.urgent).map(row)}
      {more > 0 && (
        <li>
          <Link to="/proxies" search={{ sort: 'state' }}>
            {t.overview.moreAttention(more)}
          </Link>
        </li>
      )}
      {moreCertificates > 0 && (
        <li>
          <Link to="/certificates" search={{ sort: 'state' }}>
            {t.overview.moreAttention(moreCertificates)}
          </Link>
        </li>
      )}
    </ul>
  )
}

/** What was changed last, and by whom. */
function LastChanges() {
  const { data } = useQuery(revisions(most))
  return (
    <Card title={t.overview.changes}>
      {!data?.length ? (
        <p className="small lead">{t.overview.noChanges}</p>
      ) : (
        <ul className="rows tight">
          {data.slice(0, 5).map((r) => (
            <li key={r.number}>
              <span style={{ minWidth: 0 }}>
                <Link to="/history/$number" params={{ number: String(r.number) }}>
                  {t.history.title(r.number!)}
                </Link>
                <span className="small block clip" title={r.why || changedObjects(r)}>
                  {r.why || changedObjects(r)}
                </span>
                <span className="small block">
                  <Ago time={r.when!} /> {t.proxy.by(r.who ?? '', t.history.doors[r.via ?? ''] ?? r.via ?? '')}
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

/** The servers that were away within 30 days, each with its days. */
function Availability() {
  const { data } = useQuery(eventsOf('server.*', 1000))
  const list = data ? uptimes(data) : []
  if (list.length === 0) return null
  return (
    <Card title={t.overview.uptime}>
      <p className="small lead">{t.overview.uptimeLead}</p>
      <ul className="rows tight">
        {list.slice(0, most).map((u) => {
          const share = percent(u.share)
          return (
            <li key={u.kind + u.proxy + u.server} className="uptime">
              <span className="clip">
                <ProxyLink kind={u.kind} name={u.proxy} /> <span className="small">{u.server}</span>
              </span>
              <span className="uptime-days" role="img" aria-label={t.overview.uptimeOf(share)}>
                {u.days.map((d, i) => (
                  <span key={i} data-meaning={u.away && i === u.days.length - 1 ? 'bad' : d >= 0.999 ? 'good' : d > 0.95 ? 'warn' : 'bad'} />
                ))}
              </span>
              <strong>{share}</strong>
            </li>
          )
        })}
      </ul>
    </Card>
  )
}
