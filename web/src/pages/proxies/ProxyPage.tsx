import { Button, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconChevronDown } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { Problem } from '@/api/problem'
import { canEdit, me, object, objects, proxyStatus, recentEvents, status, type AnyObject, type Proxy, type ProxyStatus } from '@/api/queries'
import { useStore } from '@/api/store'
import { basket, editOf, put } from '@/edit/basket'
import { written } from '@/edit/object'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { label } from '@/edit/words'
import { Card, Detail, Empty, Failure, KeyValues, Loading, PageHeader, StateBadge, Tag, Timeline } from '@/ui/basics'
import { meaningOf } from '@/theme/states'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { filtersOf } from './flow'
import { certificateOf } from './ProxiesPage'

export const usualFields = ['virtual_hosts', 'routes', 'redirect_https', 'description', 'tags', 'active']

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
              <Button onClick={() => setEditing('1')}>{t.proxy.edit}</Button>
              <More proxy={p} />
            </>
          ) : (
            <span className="small">{t.edit.readOnly}</span>
          )
        }
      />
      <div className="stack">
        <Card title={t.proxy.path}>
          <p className="small" style={{ marginTop: 0 }}>
            {t.proxy.pathLead}
          </p>
          <div className="stack">
            {(p.routes ?? []).map((r, i) => (
              <Flow key={i} proxy={p} route={r} live={now?.routes?.find((x) => x.path === (r.path ?? '/'))} edit={canEdit(who?.role) ? () => setEditing('1') : undefined} />
            ))}
          </div>
        </Card>
      <Detail
        aside={
            <Card title={t.proxy.about}>
              <KeyValues
                rows={[
                  [t.proxies.servers, t.proxies.serverCount(p.servers?.healthy ?? 0, p.servers?.unknown ?? 0, p.servers?.total ?? 0)],
                  [t.proxy.tls, certificate ? <StateBadge key="c" state={certificate.state}>{certificate.name}</StateBadge> : t.proxies.noCertificate],
                  [t.proxy.origin, <Where key="o" proxy={p} />],
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
      {editing && canEdit(who?.role) && <ObjectEditor kind="proxies" name={name} object={p as AnyObject} usual={usualFields} title={`${t.proxy.edit} ${name}`} onClose={() => setEditing('')} />}
    </>
  )
}

/** Port, host, path, filters in order, servers. */
function Flow({ proxy, route, live, edit }: { proxy: Proxy; route: NonNullable<Proxy['routes']>[number]; live?: NonNullable<ProxyStatus['routes']>[number]; edit?: () => void }) {
  const ports = useQuery(objects('ports')).data ?? []
  const named = (proxy as { ports?: string[] }).ports
  const mine = ports.filter((p) => !named || named.includes(p.name!))
  const filters = filtersOf(proxy, route)
  const fixed = route.fixed_response
  return (
    <div className="flow" role="group" aria-label={`${t.proxy.path} ${route.path ?? '/'}`}>
      <Step name={t.proxy.port}>
        {mine.length === 0 ? <span>{t.proxy.unnamed}</span> : mine.map((p) => <span key={p.name}><strong>{p.name}</strong> <span className="small">{String(p.address ?? '')}</span></span>)}
      </Step>
      <Arrow />
      <Step name={t.proxy.host}>
        {(proxy.virtual_hosts ?? []).slice(0, 4).map((h) => (
          <span key={h} className="clip" title={h}>
            {h}
          </span>
        ))}
        {(proxy.virtual_hosts ?? []).length > 4 && <span className="small">{t.proxies.more(proxy.virtual_hosts!.length - 4)}</span>}
        {!proxy.virtual_hosts?.length && t.proxies.anyHost}
      </Step>
      <Arrow />
      <Step name={t.proxy.route}>
        <code>{route.path ?? '/'}</code>
      </Step>
      <Arrow />
      <Step name={t.proxy.filters}>
        {filters.length === 0 && <span className="small">{t.proxy.noFilters}</span>}
        {filters.map((f) =>
          edit ? (
            <button key={f.name} className="chip" onClick={edit} title={t.proxy.from(f.level)}>
              {label(f.name)}
            </button>
          ) : (
            <span key={f.name}>{label(f.name)}</span>
          ),
        )}
      </Step>
      <Arrow />
      <Step name={fixed ? t.proxy.answers : t.proxy.servers} kind="servers">
        {fixed && <span>{t.proxy.fixed(fixed.status ?? 200)}</span>}
        {(route.servers ?? []).map((s, i) => {
          const now = live?.servers?.find((x) => x.url === s.url)
          return (
            <div key={i} className="server">
              <span style={{ minWidth: 0 }}>
                <a href={/^https?:/.test(s.url ?? '') ? s.url : undefined} target="_blank" rel="noreferrer" className="clip">
                  {s.url}
                </a>
                <span className="small">
                  {s.weight !== undefined && t.proxy.weight(s.weight)} {now?.active ? t.proxy.running(now.active) : ''} {now?.reason}
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

const Step = ({ name, kind, children }: { name: string; kind?: string; children: React.ReactNode }) => (
  <div className="step" data-kind={kind}>
    <span className="step-name">{name}</span>
    {children}
  </div>
)

const Arrow = () => (
  <span className="arrow" aria-hidden>
    →
  </span>
)

function Where({ proxy }: { proxy: Proxy }) {
  const o = proxy.origin
  if (!o) return <>–</>
  if (o.container) return <>{t.proxy.container(o.container)}</>
  return <span title={o.document}>{t.proxy.originWord(o.document?.split('/').pop() ?? '', o.line)}</span>
}

function More({ proxy }: { proxy: Proxy }) {
  const go = useNavigate()
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
        <Menu.Item
          color="red"
          onClick={() => {
            put({ kind: 'proxies', name: proxy.name!, op: 'remove', base: proxy as AnyObject, value: written('proxies', proxy as AnyObject) })
            notifications.show({ message: t.proxy.removed })
          }}
        >
          {t.proxy.remove}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
