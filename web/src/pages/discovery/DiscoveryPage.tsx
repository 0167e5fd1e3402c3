import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { failed } from '@/api/problem'
import { canEdit, me, object, objects, type AnyObject } from '@/api/queries'
import { useEditing } from '@/edit/editing'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { TakeOver } from '@/edit/TakeOver'
import { label } from '@/edit/words'
import { Ago, Card, Empty, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { discovery, OneIssue, type Provider } from './Issues'

/** The providers of discovered objects: how they stand, what they give, what cannot be used. */
export default function DiscoveryPage() {
  const list = useQuery(discovery)
  const { data: who } = useQuery(me)
  const settings = useQuery({ ...object<AnyObject>('discovery', ''), retry: false })
  const [editing, setEditing] = useEditing('discovery')
  const edit = canEdit(who?.role) && settings.data && (
    <Button variant={list.data?.length ? 'default' : 'filled'} onClick={() => setEditing('')}>
      {t.discovery.edit}
    </Button>
  )
  return (
    <>
      <PageHeader title={t.pages.discovery} lead={t.discovery.lead} actions={list.data?.length ? edit : undefined} />
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.length === 0 ? (
        <Card>
          <Empty title={t.discovery.emptyTitle} action={edit}>
            {t.discovery.empty}
          </Empty>
        </Card>
      ) : (
        <div className="stack">
          {list.data.map((p) => (
            <ProviderCard key={p.name} it={p} />
          ))}
          <Card title={t.discovery.takeOver}>
            <p className="lead">{t.discovery.takeOverText}</p>
          </Card>
        </div>
      )}
      {editing !== undefined && canEdit(who?.role) && settings.data && (
        <ObjectEditor kind="discovery" name="" object={settings.data} title={t.discovery.settings} onClose={() => setEditing(undefined)} />
      )}
    </>
  )
}

function ProviderCard({ it: p }: { it: Provider }) {
  const issues = p.issues ?? []
  return (
    <Card title={<bdi>{p.name}</bdi>} actions={<StateBadge state={p.state ?? ''} meaning={p.state === 'connecting' ? 'info' : p.state === 'stale' ? 'warn' : undefined} />}>
      <p className="small lead">
        {[label(p.type ?? ''), p.endpoint].filter(Boolean).join(' · ')} · {t.discovery.since} <Ago time={p.since!} />
      </p>
      {p.reason && (
        <p className="lead" role="alert">
          <strong>{p.reason}</strong>
          {p.hint && <span className="block">{p.hint}</span>}
        </p>
      )}
      <h3>{t.discovery.issues}</h3>
      {issues.length === 0 && <p className="small lead">{p.reason ? t.discovery.notAsked : t.discovery.noIssues}</p>}
      <ul className="rows">
        {issues.map((x, i) => (
          <OneIssue key={i} issue={x} />
        ))}
      </ul>
      <h3>{t.discovery.objects}</h3>
      <Given provider={p} />
    </Card>
  )
}

/** The objects in force that a provider gave; each says whose container it is. */
function Given({ provider }: { provider: Provider }) {
  const { data: who } = useQuery(me)
  const proxies = useQuery(objects('proxies'))
  const tcp = useQuery(objects('tcp_proxies'))
  const udp = useQuery(objects('udp_proxies'))
  const from = (kind: string, list: AnyObject[] = []) =>
    list.filter((o) => o.origin?.provider === provider.name || o.origin?.provider === `${provider.type}.${provider.name}`).map((o) => ({ kind, o }))
  const all = [...from('proxies', proxies.data), ...from('tcp', tcp.data), ...from('udp', udp.data)]
  if (!provider.objects) return <p className="small lead">{provider.type !== 'http' ? t.discovery.noObjects : t.discovery.none}</p>
  return (
    <>
      <p className="small lead">{t.discovery.count(provider.objects)}</p>
      <ul className="rows">
        {all.map(({ kind, o }) => (
          <li key={`${kind} ${o.name}`} className="entry">
            <span className="entry-name">
              <Link to={(kind === 'proxies' ? `/proxies/${encodeURIComponent(o.name!)}` : `/streams/${kind}/${encodeURIComponent(o.name!)}`) as '/'}>
                <bdi>{o.name}</bdi>
              </Link>{' '}
              {o.state && <StateBadge state={o.state} />}
              {o.origin?.container && <span className="small block">{t.proxy.container(o.origin.container)}</span>}
            </span>
            {canEdit(who?.role) && <TakeOver size="compact-sm" variant="default" kind={kind === 'proxies' ? kind : `${kind}_proxies`} name={o.name!} label={`${t.discovery.takeOver} ${o.name}`} />}
          </li>
        ))}
      </ul>
    </>
  )
}
