import { Button, Menu } from '@mantine/core'
import { IconChevronDown, IconPencil } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState, type ReactNode } from 'react'
import { call } from '@/api/client'
import { failed, Problem } from '@/api/problem'
import { canEdit, me, object, objects, proxyStatus, recentEvents, status, type AnyObject, type CertificateStatus, type Proxy, type ProxyStatus } from '@/api/queries'
import type { components } from '@/api/schema'
import { useStore } from '@/api/store'
import { Pending } from '@/edit/Badges'
import { basket, editOf } from '@/edit/basket'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { Rename } from '@/edit/Rename'
import { TakeOver, useRemove } from '@/edit/TakeOver'
import { label } from '@/edit/words'
import { Ago, Card, Crumbs, Detail, Empty, Failure, KeyValues, Loading, PageHeader, StateBadge, Tag, Timeline } from '@/ui/basics'
import { portsOf, siteURL } from '@/ui/site'
import { meaningOf } from '@/theme/states'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { announce } from './Bulk'
import { certificateOf, isIssued } from './certificate'
import { changeAll, upcoming, withActive } from './changes'
import { FilterMenu } from './FilterMenu'
import { accessOf, filtersOf, missing, type Policies } from './flow'
import { ownAnswer, shortServer } from './ProxiesPage'
import { Purge } from './Purge'
import { RecentRequests } from '../log/RecentRequests'
import { AboutServer, ServerPanel } from './ServerPanel'

type Choice = components['schemas']['chosenBody']
type Route = NonNullable<Proxy['routes']>[number]
const Charts = lazy(() => import('@/charts/Charts'))
const Splits = lazy(() => import('./Splits'))
const Mirrored = lazy(() => import('./Mirrored'))

/** What proxies inherit: the policies by name, and the defaults of all. */
function useInherited(): { policies: Policies; defaults?: object } {
  const policies = useQuery(objects('policies')).data
  const defaults = useQuery({ ...object<AnyObject>('defaults', ''), retry: false }).data
  return { policies: Object.fromEntries((policies ?? []).map((p) => [p.name!, p])) as Policies, defaults }
}

/** One proxy: where it is served, its routes, and what is known of it. */
export default function ProxyPage() {
  const { name } = useParams({ strict: false }) as { name: string }
  const one = useQuery(object<Proxy>('proxies', name))
  const live = useQuery(proxyStatus(name))
  const { data: all } = useQuery(status)
  const { data: who } = useQuery(me)
  const { data: events } = useQuery(recentEvents)
  const waiting = editOf(useStore(basket), 'proxies', name)
  const [editing, setEditing] = useView('edit', '', true)
  const [about, setAbout] = useView('about', '', true)
  const [renaming, setRenaming] = useState(false)
  const [purging, setPurging] = useState(false)
  const inherited = useInherited()
  const go = useNavigate()

  if (one.error instanceof Problem && one.error.status === 404 && !waiting)
    return (
      <>
        <PageHeader title={<bdi>{name}</bdi>} crumbs={<Crumbs to="/proxies" title={t.pages.proxies} here={name} />} />
        <Card>
          <Empty title={t.proxy.notFound} action={<Button onClick={() => void go({ to: '/proxies' })}>{t.pages.proxies}</Button>} />
        </Card>
      </>
    )
  if (failed(one)) return <Failure error={one.error} again={() => void one.refetch()} />
  if (!one.data) return <Loading />
  const p = one.data
  const now = live.data?.proxies.find((x) => x.name === name)
  const issues = p.issues ?? []
  const found = !!p.origin?.provider
  // The API says why an object cannot be changed where it is.
  const locked = !!p.read_only
  const may = canEdit(who?.role)
  const edit = may && !locked ? setEditing : undefined
  const changed = p.last_change
  const servers = [...new Set((p.routes ?? []).flatMap((r) => (r.servers ?? []).map((s) => s.url!)))]
  const mine = (events ?? []).filter((e) => e.object?.split(/[ ,]/).includes(name)).slice(0, 10)
  return (
    <>
      <PageHeader
        crumbs={<Crumbs to="/proxies" title={t.pages.proxies} here={name} />}
        title={<bdi>{name}</bdi>}
        badge={
          <>
            <StateBadge state={p.state ?? ''} />
            <Pending edit={waiting} kind="proxies" name={name} />
          </>
        }
        lead={p.description}
        actions={
          may ? (
            <>
              {found ? <TakeOver kind="proxies" name={name} /> : !locked && <Button onClick={() => setEditing('1')}>{t.proxy.edit}</Button>}
              <More proxy={p} locked={locked} rename={() => setRenaming(true)} purge={() => setPurging(true)} />
            </>
          ) : (
            <span className="small">{t.edit.readOnly}</span>
          )
        }
      />
      <div className="stack">
        {found ? (
          <p className="small" style={{ margin: 0 }}>
            {t.proxy.discovered}
          </p>
        ) : (
          locked && (
            <p className="small" style={{ margin: 0 }}>
              {t.entries.locked(p.read_only!)}
            </p>
          )
        )}
        {issues.length > 0 && (
          <Card title={t.proxy.issues}>
            <ul className="plain-list">
              {issues.map((x) => (
                <li key={x}>{x}</li>
              ))}
            </ul>
          </Card>
        )}
        <Detail
          aside={
            <>
              <Card title={t.proxy.about}>
                <KeyValues
                  rows={[
                    [t.proxies.servers, t.proxies.serverCount(p.servers?.healthy ?? 0, p.servers?.unknown ?? 0, p.servers?.total ?? 0)],
                    [t.proxy.tls, <Chosen key="c" proxy={name} />],
                    [t.proxy.origin, <Where key="o" proxy={p} />],
                    ...(changed?.when
                      ? [
                          [
                            t.proxy.lastChange,
                            <span key="l">
                              <Ago time={changed.when} /> {t.proxy.by(changed.who ?? '', changed.via ?? '')}
                            </span>,
                          ] as [string, ReactNode],
                        ]
                      : []),
                    ...(p.tags?.length
                      ? [
                          [
                            t.proxy.tags,
                            p.tags.map((x) => (
                              <span key={x}>
                                <Tag>{x}</Tag>{' '}
                              </span>
                            )),
                          ] as [string, ReactNode],
                        ]
                      : []),
                  ]}
                />
              </Card>
              <RecentRequests filters={{ proxy: name }} />
            </>
          }
        >
          <Card flush>
            <Served proxy={p} certificates={all?.certificates} inherited={inherited} edit={edit} />
          </Card>
          <Card title={t.proxy.path} flush>
            {(p.routes ?? []).map((r, i) => (
              <RouteLine
                key={i}
                index={i}
                only={p.routes!.length === 1}
                proxy={p}
                route={r}
                inherited={inherited}
                live={now?.routes?.find((x) => x.path === (r.path ?? '/'))}
                edit={edit}
                about={setAbout}
              />
            ))}
          </Card>
          {live.data?.splits && (
            <Suspense fallback={<Loading />}>
              <Splits splits={live.data.splits} />
            </Suspense>
          )}
          {p.routes?.some((r) => r.mirror?.compare) && (
            <Suspense fallback={<Loading />}>
              <Mirrored proxy={name} />
            </Suspense>
          )}
          {p.recent?.requests || mine.length > 0 ? (
            <Suspense fallback={<Loading />}>
              <Charts of={{ proxy: name }} servers={servers} />
            </Suspense>
          ) : null}
          <Card title={t.proxy.events}>
            <Timeline empty={t.overview.noEvents} moments={mine.map((e) => ({ id: e.id!, meaning: meaningOf(e.level!), time: e.time!, text: e.text }))} />
          </Card>
        </Detail>
      </div>
      <ServerPanel server={about} close={() => setAbout('')} />
      {purging && <Purge proxy={name} close={() => setPurging(false)} />}
      {renaming && <Rename kind="proxies" object={p as AnyObject} onClose={() => setRenaming(false)} />}
      {editing && !locked && may && (
        <ObjectEditor key={editing} part={editing === '1' ? undefined : editing} kind="proxies" name={name} object={p as AnyObject} title={`${t.proxy.edit} ${name}`} onClose={() => setEditing('')} />
      )}
    </>
  )
}

/** Where it is served, and who may use it: the ports and hosts that all routes have. */
function Served({ proxy, certificates, inherited, edit }: { proxy: Proxy; certificates?: CertificateStatus[]; inherited: ReturnType<typeof useInherited>; edit?: (path: string) => void }) {
  const ports = useQuery(objects('ports')).data
  const covered = isIssued(certificateOf(proxy.virtual_hosts ?? [], certificates))
  const mine = ports ? portsOf(proxy, ports as never) : []
  const step = (path: string, what: string) => edit && <StepButton what={what} edit={() => edit(path)} />
  return (
    <dl className="served">
      <div>
        <dt>
          {t.proxy.hosts} {step('virtual_hosts', t.proxy.hosts)}
        </dt>
        <dd>
          {!proxy.virtual_hosts?.length && t.proxies.anyHost}
          {(proxy.virtual_hosts ?? []).map((h) => {
            const url = ports && siteURL(h, proxy, ports, covered)
            return (
              <span key={h} className="served-item">
                {url ? (
                  <a href={url} target="_blank" rel="noreferrer">
                    <bdi>{h}</bdi>
                  </a>
                ) : (
                  <bdi>{h}</bdi>
                )}
              </span>
            )
          })}
        </dd>
      </div>
      <div>
        <dt>
          {t.proxy.ports} {step('ports', t.proxy.ports)}
        </dt>
        <dd>
          {ports && mine.length === 0 && t.proxy.unnamed}
          {mine.map((p) => {
            const state = String(p.state ?? '')
            const open = p.active !== false && (!state || state === 'listening')
            return (
              <span key={p.name} className="served-item" data-off={!open || undefined}>
                <Link to="/ports">{p.name}</Link>{' '}
                <span className="small">
                  {String(p.address ?? '')} {String(p.protocol ?? '')}
                </span>{' '}
                {!open && <StateBadge state={state || 'inactive'}>{state && state !== 'inactive' ? t.proxy.notListening : undefined}</StateBadge>}
              </span>
            )
          })}
        </dd>
      </div>
      <div>
        <dt>{t.proxy.signIn}</dt>
        <dd>{accessSentence(proxy, inherited)}</dd>
      </div>
    </dl>
  )
}

/** Who may use a proxy, in one sentence. */
function accessSentence(proxy: Proxy, { policies, defaults }: ReturnType<typeof useInherited>): string {
  const words = t.proxy.access
  const a = accessOf(proxy, policies, defaults)
  if (!a) return words.mixed
  const list = (l: string[]) => (l.length > 3 ? `${l.slice(0, 3).join(', ')} ${t.proxies.more(l.length - 3)}` : l.join(', '))
  if (a.closed) return words.closed
  const parts = [
    a.allow.length > 0 && words.only(list(a.allow)),
    a.allow.length === 0 && a.deny.length > 0 && words.except(list(a.deny)),
    a.password && words.password,
    a.signIn && words.signIn,
  ].filter(Boolean)
  return parts.length ? parts.join(' ') : words.everyone
}

type OfRoute = {
  about: (server: string) => void
  proxy: Proxy
  route: Route
  index: number
  live?: NonNullable<ProxyStatus['routes']>[number]
  inherited: ReturnType<typeof useInherited>
  edit?: (path: string) => void
}

/** One route as a line; it opens to the path of its requests. */
function RouteLine({ only, ...of }: OfRoute & { only: boolean }) {
  const { route, live } = of
  const servers = route.servers ?? []
  const filters = filtersOf(of.proxy, route, of.index, of.inherited.policies, of.inherited.defaults)
  return (
    <details className="route" open={only || undefined}>
      <summary>
        <code>{route.path ?? '/'}</code>
        <span className="small clip">
          {ownAnswer(route) ?? servers.map((s) => shortServer(s.url ?? '')).join(', ')}
          {filters.length > 0 && ` · ${filters.map((f) => label(f.name)).join(', ')}`}
        </span>
        {live && live.state !== 'active' && <StateBadge state={live.state} />}
      </summary>
      <Flow {...of} />
    </details>
  )
}

/** Path, filters in order, servers. */
function Flow({ proxy, route, index, live, edit, about, inherited }: OfRoute) {
  const filters = filtersOf(proxy, route, index, inherited.policies, inherited.defaults)
  const at = `routes[${index}]`
  const step = (path: string, what: string) => edit && <StepButton what={what} edit={() => edit(path)} />
  const own = ownAnswer(route)
  const ownField = route.files ? '.files' : route.sign_in ? '.sign_in' : '.fixed_response'
  return (
    <div className="flow" role="group" aria-label={`${t.proxy.path} ${route.path ?? '/'}`}>
      <Step name={t.proxy.route} edit={step(at + '.path', t.proxy.route)}>
        <code>{route.path ?? '/'}</code>
      </Step>
      <Arrow />
      <Step name={t.proxy.filters}>
        {filters.length === 0 && <span className="small">{t.proxy.noFilters}</span>}
        {filters.map((f) => (
          <span key={f.name} className="filter">
            {edit && f.at ? (
              <button type="button" className="chip" onClick={() => edit(f.at)} title={t.proxy.from(f.level)}>
                {label(f.name)}
              </button>
            ) : (
              <span>{label(f.name)}</span>
            )}
            {f.policy && (
              <Link className="small" to="/settings" search={{ edit: `policies:${f.policy}` } as never}>
                {t.proxy.fromPolicy(f.policy)}
              </Link>
            )}
            {f.level === 'defaults' && (
              <Link className="small" to="/settings" search={{ edit: 'defaults:' } as never}>
                {t.proxy.fromDefaults}
              </Link>
            )}
          </span>
        ))}
        {edit && <FilterMenu names={missing(filters, !own)} add={(name) => edit(`${at}.${name}`)} />}
      </Step>
      <Arrow />
      <Step name={own ? t.proxy.answers : t.proxy.servers} kind="servers" edit={step(at + (own ? ownField : '.servers'), own ? t.proxy.answers : t.proxy.servers)}>
        {own && <span>{own}</span>}
        {(route.servers ?? []).map((s, i) => {
          const now = live?.servers.find((x) => x.url === s.url)
          return (
            <div key={i} className="server">
              <span style={{ minWidth: 0 }}>
                <span className="server-name">
                  <a href={/^https?:/.test(s.url ?? '') ? s.url : undefined} target="_blank" rel="noreferrer" className="clip" title={s.url}>
                    {shortServer(s.url ?? '')}
                  </a>
                  <AboutServer server={s.url ?? ''} open={about} />
                  {s.group && <Tag>{s.group}</Tag>}
                </span>
                <span className="small">
                  {s.weight !== undefined && t.proxy.weight(s.weight)} {now?.active ? t.proxy.running(now.active) : ''} {now?.state === 'healthy' ? '' : now?.reason}
                </span>
              </span>
              {now && <StateBadge state={now.state} />}
            </div>
          )
        })}
      </Step>
    </div>
  )
}

const Step = ({ name, kind, edit, children }: { name: string; kind?: string; edit?: ReactNode; children: ReactNode }) => (
  <div className="step" data-kind={kind}>
    <span className="step-name">
      {name}
      {edit}
    </span>
    {children}
  </div>
)

const StepButton = ({ what, edit }: { what: string; edit: () => void }) => (
  <button type="button" className="chip step-edit" aria-label={t.proxy.step(what.toLowerCase())} title={t.proxy.step(what.toLowerCase())} onClick={edit}>
    <IconPencil size={13} aria-hidden />
  </button>
)

const Arrow = () => (
  <span className="arrow" aria-hidden>
    →
  </span>
)

/** Which certificate the clients of each host get, as the server chooses it, and why. */
function Chosen({ proxy }: { proxy: string }) {
  const { data } = useQuery({
    queryKey: ['status', 'chosen', proxy],
    queryFn: ({ signal }) => call<{ items: Choice[] }>('GET', '/certificates/chosen', { query: { proxy }, signal }).then((p) => p.value.items),
    retry: false,
  })
  // The ports with TLS mostly give the same: a line of each certificate tells its hosts.
  const groups = new Map<string, Choice[]>()
  for (const c of data ?? []) groups.set(c.name ?? '', [...(groups.get(c.name ?? '') ?? []), c])
  if (groups.size === 0) return <>{t.proxies.noCertificate}</>
  return (
    <>
      {[...groups].map(([name, list]) => {
        const c = list[0]!
        const hosts = [...new Set(list.map((x) => x.host ?? ''))]
        return (
          <div key={name} title={c.why}>
            {c.from === 'acme' ? (
              <Link to="/certificates/$name" params={{ name }}>
                {name}
              </Link>
            ) : (
              name || t.proxy.portCertificate
            )}{' '}
            <StateBadge state={c.from === 'self-signed' ? 'self_signed' : (c.state ?? '')}>
              {c.from === 'self-signed' ? t.certificates.word.self_signed : (t.certificates.word[c.state ?? ''] ?? c.state)}
            </StateBadge>
            <span className="small block">
              {[c.days_left !== undefined && t.certificates.days(c.days_left), c.names?.find((n) => n.startsWith('*.')), groups.size > 1 && t.proxy.forHosts(hosts.slice(0, 3).join(', '))]
                .filter(Boolean)
                .join(' · ')}
            </span>
          </div>
        )
      })}
    </>
  )
}

function Where({ proxy }: { proxy: Proxy }) {
  const o = proxy.origin
  if (!o) return <>–</>
  if (o.provider) return <>{[o.container ? t.proxy.container(o.container) : o.document, o.node && t.entries.onlyOn(o.node)].filter(Boolean).join(', ')}</>
  return <span title={o.document}>{t.proxy.originWord(o.document?.split('/').pop() ?? '', o.line)}</span>
}

/** What else can be done with it. An object that cannot be changed where it stands still has a cache. */
function More({ proxy, locked, rename, purge }: { proxy: Proxy; locked: boolean; rename: () => void; purge: () => void }) {
  const go = useNavigate()
  const remove = useRemove('proxies')
  const [open, setOpen] = useState(false)
  useStore(basket)
  const target = { kind: 'proxies' as const, object: proxy as AnyObject }
  const active = upcoming(target)?.active !== false
  return (
    <Menu opened={open} onChange={setOpen} position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<IconChevronDown size={14} aria-hidden />}>
          {t.proxy.more}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => void go({ to: '/proxies/new', search: { like: proxy.name } })}>{t.proxy.duplicate}</Menu.Item>
        <Menu.Item onClick={purge}>{t.purge.item}</Menu.Item>
        {!locked && (
          <>
            <Menu.Item onClick={rename}>{t.proxy.rename}</Menu.Item>
            <Menu.Item onClick={() => announce(changeAll([target], withActive(!active)))}>{active ? t.proxies.disable : t.proxies.enable}</Menu.Item>
            <Menu.Item color="red" onClick={() => remove(proxy as AnyObject)}>
              {t.proxy.remove}
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
