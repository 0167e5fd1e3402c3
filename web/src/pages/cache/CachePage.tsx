import { Button, SegmentedControl, Select, TextInput, UnstyledButton } from '@mantine/core'
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { canEdit, me } from '@/api/queries'
import type { components } from '@/api/schema'
import { Card, Empty, Failure, KeyValues, Loading, PageHeader, span, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { DataTable, type Column } from '@/ui/DataTable'
import { useView } from '@/ui/view'
import { Purge } from '../proxies/Purge'
import { t } from '@/text'
import { count, percent } from '@/text/many'
import { addressOf } from '../explain/explanation'
import { bytes } from './bytes'

const Charts = lazy(() => import('@/charts/Charts'))

type State = components['schemas']['cacheState']
type Route = components['schemas']['cachedRoute']
type Listing = components['schemas']['cacheListing']
type Explanation = components['schemas']['Explanation']
const words = t.cache
const caches = (period: string) =>
  queryOptions({ queryKey: ['status', 'cache', period], queryFn: ({ signal }) => call<State>('GET', '/cache', { query: { period }, signal }).then((x) => x.value), refetchInterval: 10_000 })
const stored = (sort: string) =>
  queryOptions({ queryKey: ['status', 'cache entries', sort], queryFn: ({ signal }) => call<Listing>('GET', '/cache/entries', { query: { sort, limit: 50 }, signal }).then((x) => x.value) })
const orders = ['size', 'hits', 'age'] as const

/** What the caches hold, how many requests they answer, and why a URL is not cached. */
export default function CachePage() {
  const [period, setPeriod] = useView('period', '1h')
  const [shown, setShown] = useView('route')
  const [purging, setPurging] = useState(false)
  const { data: who } = useQuery(me)
  const edit = canEdit(who?.role)
  const state = useQuery({ ...caches(period), placeholderData: keepPreviousData })
  const columns = useMemo(() => columnsOf(setShown), [setShown])
  const drawn = state.data?.routes?.find((r) => idOf(r) === shown)
  return (
    <>
      <PageHeader title={t.pages.cache} lead={words.lead} actions={edit && !!state.data?.total && <Button onClick={() => setPurging(true)}>{t.purge.item}</Button>} />
      {failed(state) ? (
        <Failure error={state.error} again={() => void state.refetch()} />
      ) : !state.data ? (
        <Loading />
      ) : !state.data.total ? (
        <Card>
          <Empty title={words.noneTitle}>{words.none}</Empty>
        </Card>
      ) : (
        <div className="stack">
          <DataTable
            rows={state.data.routes ?? []}
            columns={columns}
            first="-requests"
            id={idOf}
            searchable={(r) => ({ '': `${r.proxy} ${r.route}` })}
            noun={[words.route, words.routes]}
            tools={<SegmentedControl value={period} onChange={setPeriod} data={Object.entries(t.charts.periods).map(([value, label]) => ({ value, label }))} aria-label={t.charts.period} />}
          />
          {drawn && (
            <Suspense fallback={<Loading />}>
              <Charts of={{ proxy: drawn.proxy, route: drawn.route }} />
            </Suspense>
          )}
          <Memory caches={state.data.caches ?? []} />
          {edit && <WhyNot />}
          <Entries />
        </div>
      )}
      {purging && <Purge close={() => setPurging(false)} />}
    </>
  )
}

const idOf = (r: Route) => `${r.proxy} ${r.route}`

function columnsOf(show: (id: string) => void): Column<Route>[] {
  return [
    {
      id: 'route',
      title: words.route,
      sort: idOf,
      cell: (r) => (
        <>
          <UnstyledButton className="row-name clip" onClick={() => show(idOf(r))} aria-label={words.draw(idOf(r))}>
            <bdi>{r.proxy}</bdi>
          </UnstyledButton>
          <span className="small block clip">{r.route}</span>
        </>
      ),
    },
    { id: 'rate', title: words.rate, width: '110px', narrow: '84px', number: true, sort: (r) => r.hit_ratio ?? -1, cell: (r) => (r.hit_ratio === undefined ? words.noRequests : percent(r.hit_ratio)) },
    { id: 'requests', title: words.requests, width: '110px', narrow: '84px', number: true, sort: (r) => r.requests ?? 0, cell: (r) => count(r.requests ?? 0) },
    ...(['hit', 'stale', 'miss', 'pass'] as const).map(
      (use): Column<Route> => ({ id: use, title: words.uses[use], width: '110px', phone: false, from: 1100, number: true, sort: (r) => r.uses?.[use] ?? 0, cell: (r) => count(r.uses?.[use] ?? 0) }),
    ),
  ]
}

/** How full each cache is. */
function Memory({ caches }: { caches: NonNullable<State['caches']> }) {
  return (
    <Card title={words.memory}>
      <KeyValues
        rows={caches.map((c) => [
          <bdi key="name">{c.proxy + (c.route ?? '')}</bdi>,
          `${words.used(bytes(c.bytes), bytes(c.limit_bytes), count(c.entries))}${c.evicted ? `; ${words.evicted(count(c.evicted))}` : ''}`,
        ])}
      />
    </Card>
  )
}

/** Requests a URL from its server, and shows why its response is stored or not. */
function WhyNot() {
  const [url, setURL] = useState('')
  const [found, setFound] = useState<Explanation>()
  const { act, busy, wrong, setWrong } = useAct('status')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const address = addressOf(url)
    if (!address) return setWrong({ url: t.explain.bad })
    const done = await act('explain', () => call<Explanation>('POST', '/cache/explain', { body: { url: address } }))
    if (done) setFound(done.value)
  }
  const d = found?.stores
  return (
    <Card title={words.why}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.whyLead}</p>
        <Wrong wrong={wrong} fields={['url']} />
        <div className="ask">
          <TextInput
            label={t.explain.url}
            placeholder="https://shop.example.com/"
            value={url}
            error={wrong.url}
            onChange={(e) => setURL(e.currentTarget.value)}
            autoComplete="off"
            spellCheck={false}
            inputMode="url"
            style={{ flex: '1 1 220px' }}
          />
          <Button type="submit" loading={busy === 'explain'}>
            {t.explain.go}
          </Button>
        </div>
      </form>
      <div role="status">
        {found && !d && <p>{found.answer ? words.answered(String(found.answer.status), found.answer.by) : words.noCache}</p>}
        {d && (
          <KeyValues
            rows={[
              [
                words.response,
                <StateBadge key="state" state={d.stored ? 'stored' : 'not'} meaning={d.stored ? 'good' : 'warn'}>
                  {[d.status || '', d.stored ? words.stored : words.notStored].join(' ')}
                </StateBadge>,
              ],
              [words.reason, d.why],
              ...[
                [words.field, d.field],
                [words.rule, d.rule],
                [words.fix, d.fix],
                [words.vary, d.vary],
              ]
                .filter(([, value]) => value)
                .map(([key, value]): [string, string] => [key!, value!]),
            ]}
          />
        )}
      </div>
    </Card>
  )
}

/** The largest stored responses, those with the most hits, or the oldest. */
function Entries() {
  const [by, setBy] = useView('by', 'size')
  const list = useQuery({ ...stored(by), placeholderData: keepPreviousData })
  const all = list.data?.entries ?? []
  return (
    <Card
      title={words.entries}
      actions={<Select aria-label={words.order} value={by} onChange={(v) => setBy(v ?? 'size')} data={orders.map((o) => ({ value: o, label: words.orders[o] }))} allowDeselect={false} w={180} />}
    >
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : all.length === 0 ? (
        <p className="small lead">{words.empty}</p>
      ) : (
        <ul className="plain">
          {all.map((e, i) => (
            <li key={i}>
              <bdi style={{ overflowWrap: 'anywhere' }}>{e.url}</bdi>
              <span className="small block">
                {[bytes(e.bytes), words.hits(e.hits), words.age(span(e.age)), e.ttl < 0 ? words.stale : words.fresh(span(e.ttl)), e.vary && `Vary: ${e.vary.join(', ')}`, e.tags?.join(' ')]
                  .filter(Boolean)
                  .join(' · ')}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
