import { Button, Menu } from '@mantine/core'
import { IconChevronDown, IconPencil } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { call } from '@/api/client'
import { Problem } from '@/api/problem'
import { canEdit, me, object, objects, proxyStatus, recentEvents, status, type AnyObject, type Proxy, type ProxyStatus } from '@/api/queries'
import type { components } from '@/api/schema'
import { useStore } from '@/api/store'
import { basket, editOf } from '@/edit/basket'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { Rename } from '@/edit/Rename'
import { TakeOver, useRemove } from '@/edit/TakeOver'
import { label } from '@/edit/words'
import { Ago, Card, Detail, Empty, Failure, KeyValues, Loading, PageHeader, StateBadge, Tag, Timeline } from '@/ui/basics'
import { meaningOf } from '@/theme/states'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { filtersOf, missing, type Policies } from './flow'
import { certificateOf, shortServer } from './ProxiesPage'
import { Purge } from './Purge'
import { AboutServer, ServerPanel } from './ServerPanel'

type Choice = components['schemas']['chosenBody']
const Charts = lazy(() => import('@/charts/Charts'))

/** One proxy: the path that its requests take, and what is known of it. */
export default function ProxyPage() {
  const { name } = useParams({ strict: false }) as { name: string }
  const one = useQuery(object<Proxy>('proxies', name))
  const live = useQuery(proxyStatus(name))
  const { data: all } = useQuery(status)
  const { data: who } = useQuery(me)
  const { data: events } = useQuery(recentEvents)
  const waiting = editOf(useStore(basket), 'proxies', name)
  const [editing, setEditing] = useView('edit')
  const [about, setAbout] = useView('about')
  const [renaming, setRenaming] = useState(false)
  const [purging, setPurging] = useState(false)
  const go = useNavigate()

  if (one.error instanceof Problem && one.error.status === 404 && !waiting)
    return (
      <Card>
        <Empty title={t.proxy.notFound} action={<Button onClick={() => void go({ to: '/proxies' })}>{t.pages.proxies}</Button>} />
      </Card>
    )
  if (one.error) return <Failure error={one.error} again={() => void one.refetch()} />
  if (!one.data) return <Loading />
  const p = one.data
  const now = live.data?.proxies?.[0]
  const certificate = certificateOf(p.virtual_hosts ?? [], all?.certificates)
  const issues = p.issues ?? []
  const found = !!p.origin?.container
  // The API says why an object cannot be changed where it stands.
  const locked = !!p.read_only
  const changed = p.last_change
  const servers = [...new Set((p.routes ?? []).flatMap((r) => (r.servers ?? []).map((s) => s.url!)))]
  return (
    <>
      <PageHeader
        title={<bdi>{name}</bdi>}
        badge={
          <>
            <StateBadge state={p.state ?? ''} />
            {waiting && <StateBadge state="pending">{t.edit.unsaved}</StateBadge>}
          </>
        }
        lead={p.description}
        actions={
          canEdit(who?.role) ? (
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
        {found ? <p className="small" style={{ margin: 0 }}>{t.proxy.discovered}</p> : locked && <p className="small" style={{ margin: 0 }}>{t.entries.locked(p.read_only!)}</p>}
        <Card title={t.proxy.path}>
          <p className="small" style={{ marginTop: 0 }}>
            {t.proxy.pathLead}
          </p>
          <div className="stack">
            {(p.routes ?? []).map((r, i) => (
              <Flow key={i} index={i} secure={!!certificate} proxy={p} route={r} live={now?.routes?.find((x) => x.path === (r.path ?? '/'))} edit={canEdit(who?.role) && !locked ? setEditing : undefined} about={setAbout} />
            ))}
          </div>
        </Card>
      <Suspense fallback={<Loading />}>
        <Charts of={{ proxy: name }} servers={servers} />
      </Suspense>
      <Detail
        aside={
            <Card title={t.proxy.about}>
              <KeyValues
                rows={[
                  [t.proxies.servers, t.proxies.serverCount(p.servers?.healthy ?? 0, p.servers?.unknown ?? 0, p.servers?.total ?? 0)],
                  [t.proxy.tls, <Chosen key="c" proxy={name} />],
                  [t.proxy.origin, <Where key="o" proxy={p} />],
                  ...(changed?.when ? [[t.proxy.lastChange, <span key="l"><Ago time={changed.when} /> {t.proxy.by(changed.who ?? '', changed.via ?? '')}</span>] as [string, React.ReactNode]] : []),
                  ...(p.tags?.length ? [[t.proxy.tags, p.tags.map((x) => <span key={x}><Tag>{x}</Tag> </span>)] as [string, React.ReactNode]] : []),
                ]}
              />
            </Card>
        }
      >
        {issues.length > 0 && (
          <Card title={t.proxy.issues}>
            <ul style={{ margin: 0, paddingLeft: 18 }}>
              {issues.map((x) => (
                <li key={x}>{x}</li>
              ))}
            </ul>
          </Card>
        )}
            <Card title={t.proxy.events}>
              <Timeline
                empty={t.overview.noEvents}
                moments={(events ?? []).filter((e) => e.object?.split(/[ ,]/).includes(name)).slice(0, 10).map((e) => ({ id: e.id!, meaning: meaningOf(e.level!), time: e.time!, text: e.text }))}
              />
            </Card>
      </Detail>
      </div>
      <ServerPanel server={about} close={() => setAbout('')} />
      {purging && <Purge proxy={name} close={() => setPurging(false)} />}
      {renaming && <Rename kind="proxies" object={p as AnyObject} onClose={() => setRenaming(false)} />}
      {editing && !locked && canEdit(who?.role) && <ObjectEditor key={editing} part={editing === '1' ? undefined : editing} kind="proxies" name={name} object={p as AnyObject} title={`${t.proxy.edit} ${name}`} onClose={() => setEditing('')} />}
    </>
  )
}

/** Port, host, path, filters in order, servers. */
function Flow({ proxy, route, index, live, secure, edit, about }: { about: (server: string) => void; secure: boolean; proxy: Proxy; route: NonNullable<Proxy['routes']>[number]; index: number; live?: NonNullable<ProxyStatus['routes']>[number]; edit?: (path: string) => void }) {
  const ports = useQuery(objects('ports')).data ?? []
  const named = (proxy as { ports?: string[] }).ports
  const mine = ports.filter((p) => !named || named.includes(p.name!))
  const uses = !!proxy.use?.length || !!route.use?.length
  const policies = useQuery({ ...objects('policies'), enabled: uses }).data
  const filters = filtersOf(proxy, route, index, Object.fromEntries((policies ?? []).map((p) => [p.name!, p])) as Policies)
  const at = `routes[${index}]`
  const step = (path: string, what: string) => edit && <StepButton what={what} edit={() => edit(path)} />
  const fixed = route.fixed_response
  return (
    <div className="flow" role="group" aria-label={`${t.proxy.path} ${route.path ?? '/'}`}>
      <Step name={t.proxy.port} edit={step('ports', t.proxy.port)}>
        {mine.length === 0 ? <span>{t.proxy.unnamed}</span> : mine.map((p) => <span key={p.name}><strong>{p.name}</strong><span className="small block">{String(p.address ?? '')}</span></span>)}
      </Step>
      <Arrow />
      <Step name={t.proxy.host} edit={step('virtual_hosts', t.proxy.host)}>
        {(proxy.virtual_hosts ?? []).slice(0, 4).map((h) => (
          <HostLink key={h} host={h} secure={secure} />
        ))}
        {(proxy.virtual_hosts ?? []).length > 4 && <span className="small">{t.proxies.more(proxy.virtual_hosts!.length - 4)}</span>}
        {!proxy.virtual_hosts?.length && t.proxies.anyHost}
      </Step>
      <Arrow />
      <Step name={t.proxy.route} edit={step(at + '.path', t.proxy.route)}>
        <code>{route.path ?? '/'}</code>
      </Step>
      <Arrow />
      <Step name={t.proxy.filters}>
        {filters.length === 0 && <span className="small">{t.proxy.noFilters}</span>}
        {filters.map((f) =>
          edit && f.at ? (
            <button key={f.name} className="chip" onClick={() => edit(f.at)} title={t.proxy.from(f.level)}>
              {label(f.name)}
            </button>
          ) : (
            <span key={f.name} title={f.policy && t.proxy.fromPolicy(f.policy)}>
              {label(f.name)}
            </span>
          ),
        )}
        {edit && (
          <Menu position="bottom-start" withinPortal>
            <Menu.Target>
              <button className="chip">+ {t.proxy.addFilter}</button>
            </Menu.Target>
            <Menu.Dropdown mah={360} style={{ overflowY: 'auto' }}>
              {missing(filters, !fixed).map((name) => (
                <Menu.Item key={name} onClick={() => edit(`${at}.${name}`)}>
                  {label(name)}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
        )}
      </Step>
      <Arrow />
      <Step name={fixed ? t.proxy.answers : t.proxy.servers} kind="servers" edit={step(at + (fixed ? '.fixed_response' : '.servers'), fixed ? t.proxy.answers : t.proxy.servers)}>
        {fixed && <span>{t.proxy.fixed(fixed.status ?? 200)}</span>}
        {(route.servers ?? []).map((s, i) => {
          const now = live?.servers?.find((x) => x.url === s.url)
          return (
            <div key={i} className="server">
              <span style={{ minWidth: 0 }}>
                <span className="server-name">
                  <a href={/^https?:/.test(s.url ?? '') ? s.url : undefined} target="_blank" rel="noreferrer" className="clip" title={s.url}>
                    {shortServer(s.url ?? '')}
                  </a>
                  <AboutServer server={s.url ?? ''} open={about} />
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

/** A host, to be opened where it is one and not a pattern. */
const HostLink = ({ host, secure }: { host: string; secure: boolean }) =>
  /[*~^$]/.test(host) ? (
    <span className="clip" title={host}>{host}</span>
  ) : (
    <a className="clip" title={host} href={`${secure ? 'https' : 'http'}://${host}/`} target="_blank" rel="noreferrer">{host}</a>
  )

const Step = ({ name, kind, edit, children }: { name: string; kind?: string; edit?: React.ReactNode; children: React.ReactNode }) => (
  <div className="step" data-kind={kind}>
    <span className="step-name">
      {name}
      {edit}
    </span>
    {children}
  </div>
)

const StepButton = ({ what, edit }: { what: string; edit: () => void }) => (
  <button className="chip step-edit" aria-label={t.proxy.step(what.toLowerCase())} title={t.proxy.step(what.toLowerCase())} onClick={edit}>
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
  const { data } = useQuery({ queryKey: ['status', 'chosen', proxy], queryFn: ({ signal }) => call<{ items: Choice[] }>('GET', '/certificates/chosen', { query: { proxy }, signal }).then((p) => p.value.items), retry: false })
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
            {c.from === 'acme' ? <Link to="/certificates/$name" params={{ name }}>{name}</Link> : name || t.proxy.portCertificate}{' '}
            <StateBadge state={c.from === 'self-signed' ? 'self_signed' : (c.state ?? '')}>{c.from === 'self-signed' ? t.certificates.word.self_signed : (t.certificates.word[c.state ?? ''] ?? c.state)}</StateBadge>
            <span className="small block">{[c.days_left !== undefined && t.certificates.days(c.days_left), c.names?.find((n) => n.startsWith('*.')), groups.size > 1 && t.proxy.forHosts(hosts.slice(0, 3).join(', '))].filter(Boolean).join(' · ')}</span>
          </div>
        )
      })}
    </>
  )
}

function Where({ proxy }: { proxy: Proxy }) {
  const o = proxy.origin
  if (!o) return <>–</>
  if (o.container) return <>{t.proxy.container(o.container)}</>
  return <span title={o.document}>{t.proxy.originWord(o.document?.split('/').pop() ?? '', o.line)}</span>
}

/** What else can be done with it. An object that cannot be changed where it stands still has a cache. */
function More({ proxy, locked, rename, purge }: { proxy: Proxy; locked: boolean; rename: () => void; purge: () => void }) {
  const go = useNavigate()
  const remove = useRemove('proxies')
  const [open, setOpen] = useState(false)
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
            <Menu.Item color="red" onClick={() => remove(proxy as AnyObject)}>
              {t.proxy.remove}
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
