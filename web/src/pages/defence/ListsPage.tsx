import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import type { components } from '@/api/schema'
import { Entries } from '@/edit/Entries'
import { Ago, Card, PageHeader, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { AddressCheck } from './AddressCheck'

type State = components['schemas']['listsState']
type Databases = components['schemas']['geoBody']
const words = t.lists

const useListState = (name: string) =>
  useQuery({
    queryKey: ['lists', name],
    queryFn: () => call<State>('GET', `/lists/${encodeURIComponent(name)}/state`).then((x) => x.value),
    refetchInterval: 10_000,
    retry: false,
  })

/** The lists of addresses, how each is, and which has an address. */
export default function ListsPage() {
  return (
    <>
      <PageHeader title={t.pages.lists} lead={words.lead} />
      <div className="stack">
        <AddressCheck />
        <Entries kind="lists" title={words.title} emptyTitle={words.noneTitle} empty={words.none} mark={(o) => <Badge name={o.name!} />} line={(o) => <Facts name={o.name!} />} />
        <Geo />
      </div>
    </>
  )
}

function Badge({ name }: { name: string }) {
  const { data: s } = useListState(name)
  if (!s) return null
  const wrong = s.state === 'error' || (s.issues?.length ?? 0) > 0
  return (
    <StateBadge state={s.state ?? ''} meaning={s.state === 'error' ? 'bad' : wrong ? 'warn' : s.state === 'loading' ? 'info' : 'good'}>
      {words.states[s.state ?? ''] ?? s.state}
    </StateBadge>
  )
}

/** Where the entries come from, how many there are, when they came, and what is wrong. */
function Facts({ name }: { name: string }) {
  const { data: s } = useListState(name)
  if (!s) return null
  return (
    <>
      {[words.sources[s.source ?? ''], s.location].filter(Boolean).join(': ')} · {words.entries(s.entries ?? 0)}
      {s.source !== 'entries' && (
        <>
          {' · '}
          {s.loaded ? (
            <>
              {words.loaded} <Ago time={s.loaded} />
            </>
          ) : (
            words.never
          )}
        </>
      )}
      {s.next && (
        <>
          {' · '}
          {words.next} <Ago time={s.next} />
        </>
      )}
      {s.names?.map((n) => (
        <span key={n.name} className="block">
          {n.error ? words.unresolved(n.name!, n.error) : words.names(n.name!, n.addresses ?? [])}
        </span>
      ))}
      {s.issues?.map((i) => (
        <span key={i.code} className="block" style={{ color: 'var(--warn)' }}>
          {[i.message, i.hint].filter(Boolean).join('; ')}
        </span>
      ))}
    </>
  )
}

/** The databases of countries and networks, with what their licences ask to be shown. */
function Geo() {
  const geo = useQuery({ queryKey: ['geo'], queryFn: () => call<Databases>('GET', '/geo').then((x) => x.value), refetchInterval: 30_000, retry: false })
  const all = failed(geo) ? [] : (geo.data?.databases ?? [])
  if (all.length === 0) return null
  return (
    <Card title={words.geo}>
      <p className="small lead">{words.geoLead}</p>
      <ul className="rows">
        {all.map((d) => (
          <li key={d.name} className="entry">
            <span className="entry-name">
              <strong>{words.databases[d.name ?? ''] ?? d.name}</strong>{' '}
              <StateBadge state={d.state ?? ''} meaning={d.state === 'ready' ? 'good' : d.state === 'error' ? 'bad' : 'info'}>
                {words.states[d.state ?? ''] ?? d.state}
              </StateBadge>
              <span className="small block">
                {[d.type, d.location].filter(Boolean).join(' · ')}
                {d.built && (
                  <>
                    {' · '}
                    {words.built} <Ago time={d.built} />
                  </>
                )}
              </span>
              {d.attribution && <span className="small block">{d.attribution}</span>}
              {d.issues?.map((i) => (
                <span key={i} className="small block" style={{ color: 'var(--warn)' }}>
                  {i}
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
