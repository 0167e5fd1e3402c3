import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { canEdit, me, objects, status, type CertificateStatus, type Proxy } from '@/api/queries'
import { traffic } from '@/api/traffic'
import { DataTable, type Column } from '@/ui/DataTable'
import { Empty, Failure, Loading, PageHeader, StateBadge, Tag } from '@/ui/basics'
import { t } from '@/text'

const count = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const worst: Record<string, number> = { down: 0, degraded: 1, maintenance: 2, active: 3, inactive: 4 }

/** All proxies: how they stand, and what passes through them. */
export default function ProxiesPage() {
  const list = useQuery(objects<Proxy>('proxies'))
  const { data: numbers } = useQuery(traffic)
  const { data: all } = useQuery(status)
  const { data: who } = useQuery(me)
  const go = useNavigate()
  const certificates = all?.certificates

  const columns = useMemo<Column<Proxy>[]>(
    () => [
      {
        id: 'name',
        title: t.proxies.name,
        sort: (p) => p.name ?? '',
        cell: (p) => (
          <>
            <Link to="/proxies/$name" params={{ name: p.name! }} className="row-name clip" preload={false}>
              <bdi>{p.name}</bdi>
            </Link>
            <span className="small clip">
              <bdi>{p.description || (p.virtual_hosts ?? []).join(', ') || t.proxies.anyHost}</bdi>
            </span>
          </>
        ),
      },
      { id: 'hosts', title: t.proxies.hosts, phone: false, sort: (p) => p.virtual_hosts?.[0] ?? '', cell: (p) => <Hosts hosts={p.virtual_hosts ?? []} /> },
      { id: 'state', title: t.proxies.state, width: '122px', sort: (p) => worst[p.state ?? ''] ?? 5, cell: (p) => <span title={p.issues?.join('\n')}><StateBadge state={p.state ?? ''} /></span> },
      {
        id: 'servers',
        title: t.proxies.servers,
        width: '126px',
        phone: false,
        sort: (p) => (p.servers!.total ? p.servers!.healthy! / p.servers!.total! : 2),
        cell: (p) => {
          const { healthy = 0, unknown = 0, total = 0 } = p.servers ?? {}
          return (
            <>
              <span className="clip">{t.proxies.serverCount(healthy, unknown, total)}</span>
              {p.issues?.length ? <span className="small clip" title={p.issues.join('\n')}>{p.issues[0]}</span> : null}
            </>
          )
        },
      },
      { id: 'certificate', title: t.proxies.certificate, width: '108px', phone: false, cell: (p) => <CertificateCell proxy={p} certificates={certificates} /> },
      { id: 'requests', title: t.proxies.requests, width: '100px', number: true, phone: false, sort: (p) => numbers?.counts.get(p.name!)?.requests ?? 0, cell: (p) => <Requests n={numbers?.counts.get(p.name!)?.requests} rate={numbers?.perMinute.get(p.name!)} /> },
      {
        id: 'errors',
        title: t.proxies.errors,
        width: '76px',
        number: true,
        phone: false,
        sort: (p) => numbers?.counts.get(p.name!)?.errors ?? 0,
        cell: (p) => count.format(numbers?.counts.get(p.name!)?.errors ?? 0),
      },
      { id: 'tags', title: t.proxies.tags, width: '116px', phone: false, cell: (p) => <span className="clip">{(p.tags ?? []).map((tag) => <span key={tag}><Tag>{tag}</Tag> </span>)}</span> },
    ],
    [numbers, certificates],
  )
  const searchable = useCallback(
    (p: Proxy) => ({
      '': [p.name, p.description, ...(p.virtual_hosts ?? []), ...(p.routes ?? []).flatMap((r) => (r.servers ?? []).map((s) => s.url))].join(' '),
      tag: p.tags ?? [],
      state: p.state ?? '',
      host: (p.virtual_hosts ?? []).join(' '),
      name: p.name ?? '',
    }),
    [],
  )
  const id = useCallback((p: Proxy) => p.name!, [])

  const add = canEdit(who?.role) && (
    <Button component={Link} to="/proxies/new">
      {t.proxies.add}
    </Button>
  )
  return (
    <>
      <PageHeader title={t.pages.proxies} lead={t.proxies.lead} actions={add} />
      {list.error ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading />
      ) : (
        <DataTable
          rows={list.data}
          columns={columns}
          id={id}
          searchable={searchable}
          noun={[t.proxies.noun, t.proxies.nouns]}
          open={(p) => void go({ to: '/proxies/$name', params: { name: p.name! } })}
          empty={
            <Empty title={t.proxies.emptyTitle} action={add}>
              {t.proxies.empty}
            </Empty>
          }
        />
      )}
    </>
  )
}

function Hosts({ hosts }: { hosts: string[] }) {
  if (hosts.length === 0) return <span className="small">{t.proxies.anyHost}</span>
  return (
    <span title={hosts.join('\n')}>
      <span className="clip">{hosts[0]}</span>
      {hosts.length > 1 && <span className="small">{t.proxies.more(hosts.length - 1)}</span>}
    </span>
  )
}

function Requests({ n = 0, rate }: { n?: number; rate?: number }) {
  return (
    <>
      <span className="clip">{count.format(n)}</span>
      {rate ? <span className="small clip">{t.proxies.perMinute(count.format(rate))}</span> : null}
    </>
  )
}

/** Finds the certificate of the first host: by its name, or a wildcard for it. */
export function certificateOf(hosts: string[], certificates: CertificateStatus[] = []): CertificateStatus | undefined {
  const host = hosts[0]?.toLowerCase()
  if (!host) return undefined
  const covers = (name: string) => name === host || (name.startsWith('*.') && host.slice(host.indexOf('.') + 1) === name.slice(2))
  return certificates.find((c) => (c.names ?? []).some((h) => covers(h.toLowerCase())))
}

function CertificateCell({ proxy, certificates }: { proxy: Proxy; certificates?: CertificateStatus[] }) {
  const c = certificateOf(proxy.virtual_hosts ?? [], certificates)
  if (!c) return <span className="small">{t.proxies.noCertificate}</span>
  return (
    <span title={[c.name, c.not_after && new Date(c.not_after).toLocaleString()].filter(Boolean).join(' · ')}>
      <StateBadge state={c.state} />
    </span>
  )
}
