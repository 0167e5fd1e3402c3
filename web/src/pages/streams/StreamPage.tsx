import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { failed, Problem } from '@/api/problem'
import { canEdit, me, object, proxyStatus, type AnyObject } from '@/api/queries'
import { useStore } from '@/api/store'
import { basket, editOf } from '@/edit/basket'
import { Pending } from '@/edit/Badges'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { EmptyCard } from '@/edit/Entries'
import { TakeOver } from '@/edit/TakeOver'
import { Card, Crumbs, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { AboutServer, ServerPanel } from '../proxies/ServerPanel'
import { serversOf } from './streams'

const Charts = lazy(() => import('@/charts/Charts'))

/** The state of a server, with the reason for one that is not healthy. */
function ServerState({ of }: { of?: { state: string; reason?: string } }) {
  if (!of) return null
  return (
    <>
      <StateBadge state={of.state} />
      {of.state !== 'healthy' && of.reason && <span className="small">{of.reason}</span>}
    </>
  )
}

/** One TCP or UDP proxy: its path, and what passes through it. */
export default function StreamPage() {
  const { kind, name } = useParams({ strict: false }) as { kind: string; name: string }
  const section = kind === 'udp' ? 'udp_proxies' : 'tcp_proxies'
  const one = useQuery(object<AnyObject>(section, name))
  const { data: who } = useQuery(me)
  const { data: live } = useQuery({ ...proxyStatus(name), retry: false })
  const [editing, setEditing] = useView('edit', '', true)
  const [about, setAbout] = useView('about', '', true)
  const waiting = editOf(useStore(basket), section, name)
  if (one.error instanceof Problem && one.error.status === 404)
    return (
      <>
        <PageHeader title={<bdi>{name}</bdi>} />
        <EmptyCard title={t.ports.notFound}>
          <Link to="/streams">{t.pages.streams}</Link>
        </EmptyCard>
      </>
    )
  if (failed(one)) return <Failure error={one.error} again={() => void one.refetch()} />
  if (!one.data) return <Loading />
  const o = one.data
  const stream = (kind === 'udp' ? live?.udp_proxies : live?.tcp_proxies)?.find((p) => p.name === name)
  const now = stream?.servers
  const found = !!o.origin?.provider
  const names = [...((o.sni as string[] | undefined) ?? []), ...((o.alpn as string[] | undefined) ?? [])]
  const steps: [string, React.ReactNode][] = [
    [
      t.ports.listens,
      <>
        <strong>{String(o.address ?? o.port ?? '')}</strong>
        {stream && <span className="small">{t.ports.ofMax(stream.connections, stream.max_connections ?? 0)}</span>}
      </>,
    ],
    ...(names.length ? [[t.ports.names, names.map((n) => <span key={n}>{n}</span>)] as [string, React.ReactNode]] : []),
    ...(o.tls ? [['TLS', <span key="t">{t.ports.terminated}</span>] as [string, React.ReactNode]] : []),
    [
      t.ports.servers,
      serversOf(o).map((s) => (
        <span key={s.address} className="server-name">
          {s.address}
          {s.backup && <span className="small"> {t.explain.backup}</span>}
          <AboutServer server={s.address ?? ''} open={setAbout} />
          <ServerState of={now?.find((x) => x.address === s.address)} />
        </span>
      )),
    ],
  ]
  return (
    <>
      <PageHeader
        crumbs={<Crumbs to="/streams" title={t.pages.streams} here={name} />}
        title={<bdi>{name}</bdi>}
        badge={
          <>
            <StateBadge state={o.state ?? ''} />
            <Pending edit={waiting} kind={section} name={name} />
          </>
        }
        lead={!!o.description && <bdi>{String(o.description)}</bdi>}
        actions={canEdit(who?.role) && (found ? <TakeOver kind={section} name={name} /> : <Button onClick={() => setEditing('1')}>{t.entries.edit}</Button>)}
      />
      <div className="stack">
        {found && (
          <p className="small lead">
            {o.origin!.container ? t.proxy.container(o.origin!.container) : o.origin!.document}. {t.proxy.discovered}
          </p>
        )}
        <Card title={t.ports.path}>
          <div className="flow fits">
            {steps.map(([title, body], i) => (
              <div key={title} style={{ display: 'contents' }}>
                {i > 0 && (
                  <span className="arrow" aria-hidden>
                    →
                  </span>
                )}
                <div className="step" data-kind={i === steps.length - 1 ? 'servers' : undefined}>
                  <span className="step-name">{title}</span>
                  {body}
                </div>
              </div>
            ))}
          </div>
          {Array.isArray(o.issues) && o.issues.length > 0 && (
            <ul className="plain-list">
              {(o.issues as string[]).map((x) => (
                <li key={x}>{x}</li>
              ))}
            </ul>
          )}
        </Card>
        <Suspense fallback={<Loading />}>
          <Charts of={{ [kind === 'udp' ? 'udp_proxy' : 'tcp_proxy']: name }} servers={serversOf(o).map((s) => s.address ?? '')} stream />
        </Suspense>
      </div>
      <ServerPanel server={about} close={() => setAbout('')} />
      {editing && !found && canEdit(who?.role) && <ObjectEditor kind={section} name={name} object={o} title={`${t.entries.edit} ${name}`} onClose={() => setEditing('')} />}
    </>
  )
}
