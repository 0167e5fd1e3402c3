import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { canEdit, me, object, objects, status, type AnyObject, type CertificateStatus, type Proxy } from '@/api/queries'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Failure, Loading, PageHeader, StateBadge, Tag } from '@/ui/basics'
import { withOffset } from '@/ui/time'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { many } from '@/text/many'
import { FirstSteps } from './FirstSteps'
import { DiscoveryIssues } from '../discovery/Issues'
import { serversOf } from '../streams/streams'
import { authOf, defaultsName, type Auth } from './auth'

const count = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const worst: Record<string, number> = { down: 0, failing_open: 1, degraded: 2, maintenance: 3, active: 4, inactive: 5 }

/** A row: a proxy, or a TCP or UDP proxy with what it has of one. */
type Row = Proxy & { kind?: 'tcp' | 'udp'; listens?: string; targets?: string[] }

const stream = (kind: 'tcp' | 'udp', o: AnyObject): Row =>
  ({
    name: o.name, description: o.description, tags: o.tags, state: o.state, last_change: o.last_change, issues: o.issues, servers: o.health,
    kind, listens: String(o.address ?? o.port ?? ''), virtual_hosts: (o.sni as string[] | undefined) ?? [], targets: serversOf(o).map((s) => s.address ?? ''), routes: [],
  }) as unknown as Row

const targetsOf = (r: Row) => r.targets ?? [...new Set((r.routes ?? []).flatMap((x) => (x.servers ?? []).map((s) => s.url ?? '')))]
const placeOf = (r: Row) => (r.kind ? ({ to: '/streams/$kind/$name', params: { kind: r.kind, name: r.name! } } as const) : ({ to: '/proxies/$name', params: { name: r.name! } } as const))

/** All proxies, those of TCP and UDP too: how they stand, and what passes through them. */
export default function ProxiesPage() {
  const list = useQuery({ ...objects<Proxy>('proxies'), refetchInterval: (q) => ((q.state.data?.length ?? 0) > 1000 ? 60_000 : 10_000) })
  const tcp = useQuery({ ...objects('tcp_proxies'), refetchInterval: 10_000 }).data
  const udp = useQuery({ ...objects('udp_proxies'), refetchInterval: 10_000 }).data
  const policies = useQuery(objects('policies')).data
  const defaults = useQuery({ ...object<AnyObject>('defaults', ''), retry: false }).data
  const { data: all } = useQuery(status)
  const { data: who } = useQuery(me)
  const go = useNavigate()
  const certificates = all?.certificates
  const rows = useMemo<Row[]>(() => [...(list.data ?? []), ...(tcp ?? []).map((o) => stream('tcp', o)), ...(udp ?? []).map((o) => stream('udp', o))], [list.data, tcp, udp])
  const auth = useMemo(() => {
    const known = Object.fromEntries((policies ?? []).map((p) => [p.name!, p as object]))
    return (r: Row) => (r.kind ? [] : authOf(r, known, defaults as object))
  }, [policies, defaults])

  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'name',
        title: t.proxies.name,
        sort: (p) => p.name ?? '',
        cell: (p) => (
          <>
            <span className="row-tags">
              <Link {...placeOf(p)} className="row-name clip" preload={false}>
                <bdi>{p.name}</bdi>
              </Link>
              {p.kind && <Tag>{p.kind.toUpperCase()}</Tag>}
              {(p.tags ?? []).slice(0, 2).map((tag) => (
                <TagButton key={tag} tag={tag} />
              ))}
            </span>
            {p.kind ? <span className="small clip" title={p.description}>{[p.listens, ...(p.virtual_hosts ?? [])].filter(Boolean).join(', ')}</span> : <Hosts hosts={p.virtual_hosts ?? []} secure={!!certificateOf(p.virtual_hosts ?? [], certificates)} title={p.description} />}
          </>
        ),
      },
      { id: 'state', title: t.proxies.state, width: '126px', sort: (p) => worst[p.state ?? ''] ?? 6, cell: (p) => <span title={p.issues?.join('\n')}><StateBadge state={p.state ?? ''} /></span> },
      {
        id: 'servers',
        title: t.proxies.servers,
        width: '172px',
        phone: false,
        sort: (p) => (p.servers?.total ? p.servers.healthy! / p.servers.total : 2),
        cell: (p) => {
          const { healthy = 0, unknown = 0, total = 0 } = p.servers ?? {}
          return (
            <>
              <ServerOf row={p} />
              <span className="small clip" title={p.issues?.join('\n')}>{[p.kind && !p.servers ? many(p.targets!.length, t.proxies.server) : t.proxies.serverCount(healthy, unknown, total), ...(p.issues ?? []).slice(0, 1)].join('; ')}</span>
            </>
          )
        },
      },
      { id: 'certificate', title: t.proxies.certificate, width: '112px', phone: false, from: 1100, sort: (p) => certificateOf(p.virtual_hosts ?? [], certificates)?.not_after ?? '', cell: (p) => <CertificateCell proxy={p} certificates={certificates} /> },
      { id: 'auth', title: t.proxy.signIn, width: '110px', phone: false, from: 1280, sort: (p) => auth(p).map((a) => a.how).join(), cell: (p) => <AuthCell list={auth(p)} /> },
      { id: 'requests', title: t.proxies.requests, width: '92px', number: true, phone: false, from: 960, sort: (p) => p.recent?.requests ?? 0, cell: (p) => (p.kind ? '–' : <span title={t.proxies.recently}>{count.format(p.recent?.requests ?? 0)}</span>) },
      { id: 'errors', title: t.proxies.errors, width: '74px', number: true, phone: false, from: 960, sort: errors, cell: (p) => (p.kind ? '–' : <span title={`${t.proxies.errorsOf(p.recent?.errors_4xx ?? 0, p.recent?.errors_5xx ?? 0)}. ${t.proxies.recently}`}>{count.format(errors(p))}</span>) },
      {
        id: 'changed',
        title: t.proxies.changed,
        width: '112px',
        phone: false,
        from: 1280,
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
    [certificates, auth],
  )
  const searchable = useCallback(
    (p: Row) => {
      const servers = targetsOf(p).join(' ')
      const ways = auth(p)
      return {
        '': [p.name, p.description, p.listens, ...(p.virtual_hosts ?? []), servers].join(' '),
        tag: p.tags ?? [],
        state: p.state ?? '',
        host: (p.virtual_hosts ?? []).join(' '),
        name: p.name ?? '',
        server: servers,
        kind: [p.kind ?? 'http'],
        auth: ways.length ? ways.flatMap((a) => [t.proxies.auth[a.how]!, a.policy ?? '']) : ['none'],
        policy: [...(p.use ?? []), ...(p.routes ?? []).flatMap((r) => r.use ?? [])],
      }
    },
    [auth],
  )
  const id = useCallback((p: Row) => `${p.kind ?? ''} ${p.name}`, [])

  const add = canEdit(who?.role) && (
    <Button component={Link} to="/proxies/new">
      {t.proxies.add}
    </Button>
  )
  return (
    <>
      <PageHeader title={t.pages.proxies} lead={t.proxies.lead} actions={rows.length > 0 && add} />
      <DiscoveryIssues />
      {list.error ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading />
      ) : (
        <DataTable
          rows={rows}
          columns={columns}
          id={id}
          searchable={searchable}
          noun={[t.proxies.noun, t.proxies.nouns]}
          open={(p) => void go(placeOf(p))}
          empty={
            <FirstSteps may={canEdit(who?.role)} />
          }
        />
      )}
    </>
  )
}

/** How people sign in, and the policy that says so. */
function AuthCell({ list }: { list: Auth[] }) {
  if (list.length === 0) return <>–</>
  const policies = [...new Set(list.map((a) => a.policy && (a.policy === defaultsName ? t.proxies.byDefaults : a.policy)).filter(Boolean))]
  return (
    <>
      <span className="clip">{[...new Set(list.map((a) => t.proxies.auth[a.how]))].join(', ')}</span>
      {policies.length > 0 && <span className="small clip" title={policies.join(', ')}>{policies.join(', ')}</span>}
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

/** A server without what is usual. */
export const shortServer = (url: string) => url.replace(/^http:\/\//, '').replace(/\/$/, '')

/** The first server, to be opened, or what answers in its place. */
function ServerOf({ row }: { row: Row }) {
  const urls = targetsOf(row)
  const [first] = urls
  if (!first) return <span className="clip">{row.routes?.[0]?.fixed_response ? t.proxy.fixed(row.routes[0].fixed_response.status ?? 200) : '–'}</span>
  return (
    <span className="clip" title={urls.join('\n')}>
      {/^https?:/.test(first) ? <a className="row-link" href={first} target="_blank" rel="noreferrer">{shortServer(first)}</a> : first}
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

/** Finds the certificate of the first host: by its name, or a wildcard for it. */
export function certificateOf(hosts: string[], certificates: CertificateStatus[] = []): CertificateStatus | undefined {
  const host = hosts[0]?.toLowerCase()
  if (!host) return undefined
  const covers = (name: string) => name === host || (name.startsWith('*.') && host.slice(host.indexOf('.') + 1) === name.slice(2))
  return certificates.find((c) => (c.names ?? []).some((h) => covers(h.toLowerCase())))
}

function CertificateCell({ proxy, certificates }: { proxy: Proxy; certificates?: CertificateStatus[] }) {
  if ((proxy as Row).kind) return <>–</>
  const c = certificateOf(proxy.virtual_hosts ?? [], certificates)
  if (!c) return <span className="small">{t.proxies.noCertificate}</span>
  const days = c.not_after && Math.floor((Date.parse(c.not_after) - Date.now()) / 86_400_000)
  return (
    <span title={[c.name, ...(c.names ?? []), c.not_after && withOffset(c.not_after)].filter(Boolean).join('\n')}>
      <StateBadge state={c.state}>{t.certificates.word[c.state] ?? c.state}</StateBadge>
      {typeof days === 'number' && <span className="small clip">{t.certificates.days(days)}</span>}
    </span>
  )
}
