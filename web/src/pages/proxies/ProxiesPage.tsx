import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { canEdit, me, objects, status, type CertificateStatus, type Proxy } from '@/api/queries'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Empty, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'

const count = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const worst: Record<string, number> = { down: 0, degraded: 1, maintenance: 2, active: 3, inactive: 4 }

/** All proxies: how they stand, and what passes through them. */
export default function ProxiesPage() {
  const list = useQuery({ ...objects<Proxy>('proxies'), refetchInterval: (q) => ((q.state.data?.length ?? 0) > 1000 ? 60_000 : 10_000) })
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
            <span className="row-tags">
              <Link to="/proxies/$name" params={{ name: p.name! }} className="row-name clip" preload={false}>
                <bdi>{p.name}</bdi>
              </Link>
              {(p.tags ?? []).slice(0, 2).map((tag) => (
                <TagButton key={tag} tag={tag} />
              ))}
            </span>
            <Hosts hosts={p.virtual_hosts ?? []} secure={!!certificateOf(p.virtual_hosts ?? [], certificates)} title={p.description} />
          </>
        ),
      },
      { id: 'state', title: t.proxies.state, width: '132px', sort: (p) => worst[p.state ?? ''] ?? 5, cell: (p) => <span title={p.issues?.join('\n')}><StateBadge state={p.state ?? ''} /></span> },
      {
        id: 'servers',
        title: t.proxies.servers,
        width: '196px',
        phone: false,
        sort: (p) => (p.servers!.total ? p.servers!.healthy! / p.servers!.total! : 2),
        cell: (p) => {
          const { healthy = 0, unknown = 0, total = 0 } = p.servers ?? {}
          return (
            <>
              <ServerOf proxy={p} />
              <span className="small clip" title={p.issues?.join('\n')}>{[t.proxies.serverCount(healthy, unknown, total), ...(p.issues ?? []).slice(0, 1)].join('; ')}</span>
            </>
          )
        },
      },
      { id: 'certificate', title: t.proxies.certificate, width: '116px', phone: false, cell: (p) => <CertificateCell proxy={p} certificates={certificates} /> },
      { id: 'auth', title: t.proxy.signIn, width: '92px', phone: false, sort: (p) => authOf(p).join(), cell: (p) => <span className="clip">{authOf(p).map((a) => t.proxies.auth[a]).join(', ') || '–'}</span> },
      { id: 'requests', title: t.proxies.requests, width: '100px', number: true, phone: false, sort: (p) => p.recent?.requests ?? 0, cell: (p) => <span title={t.proxies.recently}>{count.format(p.recent?.requests ?? 0)}</span> },
      { id: 'errors', title: t.proxies.errors, width: '80px', number: true, phone: false, sort: errors, cell: (p) => <span title={`${t.proxies.errorsOf(p.recent?.errors_4xx ?? 0, p.recent?.errors_5xx ?? 0)}. ${t.proxies.recently}`}>{count.format(errors(p))}</span> },
      {
        id: 'changed',
        title: t.proxies.changed,
        width: '96px',
        phone: false,
        sort: (p) => p.last_change?.when ?? '',
        cell: (p) =>
          p.last_change?.when ? (
            <>
              <span className="clip">
                <Ago time={p.last_change.when} />
              </span>
              <span className="small clip">{p.last_change.who || p.last_change.via}</span>
            </>
          ) : (
            '–'
          ),
      },
    ],
    [certificates],
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

/** The first host, to be opened; the others are in the title. */
function Hosts({ hosts, secure, title }: { hosts: string[]; secure: boolean; title?: string }) {
  const [first] = hosts
  const plain = first && !/[*~^$]/.test(first)
  return (
    <span className="small clip" title={[title, ...hosts].filter(Boolean).join('\n')}>
      {plain ? <a className="row-link" href={`${secure ? 'https' : 'http'}://${first}/`} target="_blank" rel="noreferrer"><bdi>{first}</bdi></a> : <bdi>{first ?? t.proxies.anyHost}</bdi>}
      {hosts.length > 1 && ` ${t.proxies.more(hosts.length - 1)}`}
    </span>
  )
}

/** The first server, to be opened, or what answers in its place. */
function ServerOf({ proxy }: { proxy: Proxy }) {
  const urls = [...new Set((proxy.routes ?? []).flatMap((r) => (r.servers ?? []).map((s) => s.url ?? '')))]
  const [first] = urls
  if (!first) return <span className="clip">{proxy.routes?.[0]?.fixed_response ? t.proxy.fixed(proxy.routes[0].fixed_response.status ?? 200) : '–'}</span>
  return (
    <span className="clip" title={urls.join('\n')}>
      {/^https?:/.test(first) ? <a className="row-link" href={first} target="_blank" rel="noreferrer">{first}</a> : first}
      {urls.length > 1 && <span className="small"> +{urls.length - 1}</span>}
    </span>
  )
}

/** A tag; a click shows all that have it. */
function TagButton({ tag }: { tag: string }) {
  const [, filter] = useView('q')
  return (
    <button className="tag" onClick={() => filter(`tag:${/\s/.test(tag) ? `"${tag}"` : tag}`)} title={t.proxies.withTag(tag)}>
      {tag}
    </button>
  )
}

const errors = (p: Proxy) => (p.recent?.errors_4xx ?? 0) + (p.recent?.errors_5xx ?? 0)

/** How people sign in at a proxy, on any of its routes. */
export const authOf = (p: Proxy) => (['basic_auth', 'forward_auth'] as const).filter((name) => [p, ...(p.routes ?? [])].some((o) => o[name] && o[name].enabled !== false))

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
