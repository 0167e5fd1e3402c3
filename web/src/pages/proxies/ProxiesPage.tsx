import { Button, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { failed } from '@/api/problem'
import { canEdit, me, object, objects, status, type AnyObject, type CertificateStatus, type Proxy } from '@/api/queries'
import { useStore } from '@/api/store'
import { Pending } from '@/edit/Badges'
import { basket, editOf, type Edit } from '@/edit/basket'
import { useRemove } from '@/edit/TakeOver'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Failure, Loading, PageHeader, StateBadge, Tag } from '@/ui/basics'
import { RowMenu } from '@/ui/RowMenu'
import { siteURL } from '@/ui/site'
import { withOffset } from '@/ui/time'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { count, many } from '@/text/many'
import { FirstSteps } from './FirstSteps'
import { DiscoveryIssues } from '../discovery/Issues'
import { serversOf } from '../streams/streams'
import { authOf, defaultsName, type Auth } from './auth'
import { announce, Bulk, SavedFilters } from './Bulk'
import { certificateOf, isIssued } from './certificate'
import { changeAll, upcoming, withActive, type Kind, type Target } from './changes'

const compact = (n: number) => count(n, { notation: 'compact', maximumFractionDigits: 1 })
const worst: Record<string, number> = { down: 0, failing_open: 1, degraded: 2, maintenance: 3, active: 4, inactive: 5 }

/** A row: a proxy, or a TCP or UDP proxy with what it has of one. */
type Row = Proxy & { kind?: 'tcp' | 'udp'; listens?: string; targets?: string[]; object: AnyObject; edit?: Edit; fresh?: boolean }

const kindOf = (r: Row): Kind => (r.kind ? `${r.kind}_proxies` : 'proxies')
const targetOf = (r: Row): Target => ({ kind: kindOf(r), object: r.object })

const stream = (kind: 'tcp' | 'udp', o: AnyObject): Row =>
  ({
    name: o.name,
    description: o.description,
    tags: o.tags,
    state: o.state,
    last_change: o.last_change,
    issues: o.issues,
    servers: o.health,
    kind,
    listens: String(o.address ?? o.port ?? ''),
    virtual_hosts: (o.sni as string[] | undefined) ?? [],
    targets: serversOf(o).map((s) => s.address ?? ''),
    routes: [],
    object: o,
  }) as unknown as Row

const targetsOf = (r: Row) => r.targets ?? [...new Set((r.routes ?? []).flatMap((x) => (x.servers ?? []).map((s) => s.url ?? '')))]
const placeOf = (r: Row) => (r.kind ? ({ to: '/streams/$kind/$name', params: { kind: r.kind, name: r.name! } } as const) : ({ to: '/proxies/$name', params: { name: r.name! } } as const))

/** All proxies, those of TCP and UDP too, with their states and their traffic. */
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
  const ports = useQuery(objects('ports')).data
  const edits = useStore(basket)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [text, setText] = useView('q')
  const [grouping, setGrouping] = useView('group')
  const rows = useMemo<Row[]>(() => {
    const all: Row[] = [...(list.data ?? []).map((p) => ({ ...p, object: p as AnyObject })), ...(tcp ?? []).map((o) => stream('tcp', o)), ...(udp ?? []).map((o) => stream('udp', o))]
    // What is new and waits is a row, too.
    const fresh = edits
      .filter((e) => e.kind === 'proxies' && e.op === 'set' && !e.base)
      .map((e): Row => ({ ...(e.value as Proxy), name: e.name, state: 'pending', fresh: true, object: { name: e.name } as AnyObject }))
    return [...fresh, ...all].map((row) => ({ ...row, edit: editOf(edits, kindOf(row), row.name!) }))
  }, [list.data, tcp, udp, edits])
  const auth = useMemo(() => {
    const known = Object.fromEntries((policies ?? []).map((p) => [p.name!, p as object]))
    return (r: Row) => (r.kind ? [] : authOf(r, known, defaults as object))
  }, [policies, defaults])

  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        id: 'state',
        title: t.proxies.state,
        width: '144px',
        narrow: '104px',
        sort: (p) => worst[p.state ?? ''] ?? 6,
        cell: (p) => (
          <span title={p.issues?.join('\n')}>
            {p.fresh ? null : <StateBadge state={p.state ?? ''} />}
            {p.edit && <Pending edit={p.edit} kind={kindOf(p)} name={p.name!} />}
          </span>
        ),
      },
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
            {p.kind ? (
              <span className="small clip" title={p.description}>
                {[p.listens, ...(p.virtual_hosts ?? [])].filter(Boolean).join(', ')}
              </span>
            ) : (
              <Hosts proxy={p} ports={ports} certificates={certificates} />
            )}
          </>
        ),
      },
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
              <span className="small clip" title={p.issues?.join('\n')}>
                {[p.kind && !p.servers ? many(p.targets!.length, t.proxies.server) : t.proxies.serverCount(healthy, unknown, total), ...(p.issues ?? []).slice(0, 1)].join('; ')}
              </span>
            </>
          )
        },
      },
      {
        id: 'certificate',
        title: t.proxies.certificate,
        width: '112px',
        phone: false,
        from: 1100,
        sort: (p) => certificateOf(p.virtual_hosts ?? [], certificates)?.not_after ?? '',
        cell: (p) => <CertificateCell proxy={p} certificates={certificates} />,
      },
      {
        id: 'auth',
        title: t.proxy.signIn,
        width: '110px',
        phone: false,
        from: 1440,
        sort: (p) =>
          auth(p)
            .map((a) => a.how)
            .join(),
        cell: (p) => <AuthCell list={auth(p)} />,
      },
      {
        id: 'requests',
        title: t.proxies.requests,
        width: '92px',
        number: true,
        phone: false,
        from: 960,
        sort: (p) => p.recent?.requests ?? 0,
        cell: (p) => (p.kind ? '–' : <span title={t.proxies.recently}>{compact(p.recent?.requests ?? 0)}</span>),
      },
      {
        id: 'errors',
        title: t.proxies.errors,
        width: '74px',
        number: true,
        phone: false,
        from: 960,
        sort: errors,
        cell: (p) => (p.kind ? '–' : <span title={`${t.proxies.errorsOf(p.recent?.errors_4xx ?? 0, p.recent?.errors_5xx ?? 0)}. ${t.proxies.recently}`}>{compact(errors(p))}</span>),
      },
      {
        id: 'changed',
        title: t.proxies.changed,
        width: '112px',
        phone: false,
        from: 1440,
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
    [certificates, auth, ports],
  )
  const shownColumns = useMemo(
    () =>
      canEdit(who?.role)
        ? [...columns, { id: 'actions', title: t.entries.actionsTitle, quiet: true, width: '64px', narrow: '58px', cell: (p: Row) => (p.fresh ? null : <Actions row={p} />) }]
        : columns,
    [columns, who?.role],
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
  const groups = useCallback((p: Row) => p.tags ?? [], [])
  const selection = useMemo(() => ({ chosen, set: setChosen, label: (p: Row) => t.proxies.select(p.name!), all: t.proxies.selectAll }), [chosen])

  const add = canEdit(who?.role) && (
    <Button component={Link} to="/proxies/new">
      {t.proxies.add}
    </Button>
  )
  return (
    <>
      <PageHeader title={t.pages.proxies} lead={t.proxies.lead} actions={rows.length > 0 && add} />
      <DiscoveryIssues />
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading />
      ) : (
        <DataTable
          rows={rows}
          columns={shownColumns}
          first="name"
          id={id}
          selection={selection}
          groupOf={grouping === 'tag' ? groups : undefined}
          bar={() => <Bulk targets={rows.filter((p) => chosen.has(id(p)) && !p.fresh).map(targetOf)} clear={() => setChosen(new Set())} may={canEdit(who?.role)} />}
          tools={
            <>
              <SavedFilters text={text} set={setText} />
              <Button size="sm" variant="default" aria-pressed={grouping === 'tag'} onClick={() => setGrouping(grouping === 'tag' ? '' : 'tag')}>
                {grouping === 'tag' ? t.proxies.ungroup : t.proxies.groupBy}
              </Button>
            </>
          }
          searchable={searchable}
          noun={[t.proxies.noun, t.proxies.nouns]}
          open={(p) => void go(placeOf(p))}
          empty={<FirstSteps may={canEdit(who?.role)} />}
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
      {policies.length > 0 && (
        <span className="small clip" title={policies.join(', ')}>
          {policies.join(', ')}
        </span>
      )}
    </>
  )
}

/** The first host, to be opened; the others are in the title. */
function Hosts({ proxy, ports, certificates }: { proxy: Row; ports?: AnyObject[]; certificates?: CertificateStatus[] }) {
  const hosts = proxy.virtual_hosts ?? []
  const [first] = hosts
  const url = first && ports && siteURL(first, proxy, ports, isIssued(certificateOf(hosts, certificates)))
  return (
    <span className="small clip" title={[proxy.description, ...hosts].filter(Boolean).join('\n')}>
      {url ? (
        <a className="row-link" href={url} target="_blank" rel="noreferrer">
          <bdi>{first}</bdi>
        </a>
      ) : (
        <bdi>{first ?? t.proxies.anyHost}</bdi>
      )}
      {hosts.length > 1 && ` ${t.proxies.more(hosts.length - 1)}`}
    </span>
  )
}

/** What can be done with one row. */
function Actions({ row }: { row: Row }) {
  const go = useNavigate()
  const kind = kindOf(row)
  const remove = useRemove(kind)
  const active = upcoming(targetOf(row))?.active !== false
  const locked = !!row.object.read_only
  return (
    <RowMenu name={row.name!}>
      {!locked && <Menu.Item onClick={() => void go({ ...placeOf(row), search: { edit: '1' } as never })}>{t.proxy.edit}</Menu.Item>}
      {!row.kind && <Menu.Item onClick={() => void go({ to: '/proxies/new', search: { like: row.name } })}>{t.proxy.duplicate}</Menu.Item>}
      <Menu.Item component={Link} to="/log" search={{ proxy: row.name } as never}>
        {t.proxy.recent}
      </Menu.Item>
      {!locked && (
        <>
          <Menu.Item onClick={() => announce(changeAll([targetOf(row)], withActive(!active)))}>{active ? t.proxies.disable : t.proxies.enable}</Menu.Item>
          <Menu.Divider />
          <Menu.Item color="red" onClick={() => void remove(row.object)}>
            {t.proxy.remove}
          </Menu.Item>
        </>
      )}
    </RowMenu>
  )
}

/** A server without what is usual. */
export const shortServer = (url: string) => url.replace(/^http:\/\//, '').replace(/\/$/, '')

/** What answers in the place of servers, undefined where those do. */
export const ownAnswer = (route: { fixed_response?: { status?: number }; files?: { root?: string }; sign_in?: object }) =>
  route.fixed_response ? t.proxy.fixed(route.fixed_response.status ?? 200) : route.files ? t.proxy.files(route.files.root ?? '') : route.sign_in ? t.access.signInPage : undefined

/** The first server, to be opened, or what answers in its place. */
function ServerOf({ row }: { row: Row }) {
  const urls = targetsOf(row)
  const [first] = urls
  if (!first) return <span className="clip">{row.routes?.[0] ? (ownAnswer(row.routes[0]) ?? '–') : '–'}</span>
  return (
    <span className="clip" title={urls.join('\n')}>
      {/^https?:/.test(first) ? (
        <a className="row-link" href={first} target="_blank" rel="noreferrer">
          {shortServer(first)}
        </a>
      ) : (
        first
      )}
      {urls.length > 1 && <span className="small"> +{urls.length - 1}</span>}
    </span>
  )
}

/** A tag; a click shows all that have it. */
function TagButton({ tag }: { tag: string }) {
  const [, filter] = useView('q')
  return (
    <button type="button" className="tag" onClick={() => filter(`tag:${/\s/.test(tag) ? `"${tag}"` : tag}`)} title={t.proxies.withTag(tag)}>
      {tag}
    </button>
  )
}

const errors = (p: Proxy) => (p.recent?.errors_4xx ?? 0) + (p.recent?.errors_5xx ?? 0)

function CertificateCell({ proxy, certificates }: { proxy: Proxy; certificates?: CertificateStatus[] }) {
  if ((proxy as Row).kind) return <>–</>
  const c = certificateOf(proxy.virtual_hosts ?? [], certificates)
  if (!c) return <span className="small">{t.proxies.noCertificate}</span>
  const days = c.days_left
  return (
    <span title={[c.name, ...(c.names ?? []), c.not_after && withOffset(c.not_after)].filter(Boolean).join('\n')}>
      <StateBadge state={c.state}>{t.certificates.word[c.state] ?? c.state}</StateBadge>
      {typeof days === 'number' && <span className="small clip">{t.certificates.days(days)}</span>}
    </span>
  )
}
