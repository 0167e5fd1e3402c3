import { failed } from '@/api/problem'
import { Button, TextInput } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useDeferredValue } from 'react'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { changedFields, type Value } from '@/edit/object'
import { label, shown } from '@/edit/words'
import { Ago, Card, Failure, Loading } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'

type Entry = components['schemas']['auditBody']
type Page = { items: Entry[]; next?: string }

/** Who did what, with what was before and after. */
export function Audit() {
  const [who, setWho] = useView('who')
  const [action, setAction] = useView('action')
  const [object, setObject] = useView('object')
  const query = useDeferredValue(JSON.stringify({ who, action, object }))
  const list = useInfiniteQuery({
    queryKey: ['audit', query],
    queryFn: ({ pageParam, signal }) => call<Page>('GET', '/audit', { query: { ...(JSON.parse(query) as Record<string, string>), limit: 100, cursor: pageParam }, signal }).then((p) => p.value),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (p) => p.next || undefined,
    maxPages: 20,
  })
  const rows = list.data?.pages.flatMap((p) => p.items) ?? []
  return (
    <Card title={t.operators.tabs.audit}>
      <div className="ask lead">
        <TextInput aria-label={t.operators.auditWho} placeholder={t.operators.auditWho} value={who} onChange={(e) => setWho(e.currentTarget.value)} w={150} />
        <TextInput aria-label={t.operators.auditAction} placeholder={t.operators.auditAction} value={action} onChange={(e) => setAction(e.currentTarget.value)} w={260} />
        <TextInput aria-label={t.operators.auditObject} placeholder={t.operators.auditObject} value={object} onChange={(e) => setObject(e.currentTarget.value)} w={150} />
      </div>
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : rows.length === 0 ? (
        <p className="small lead">{t.operators.noAudit}</p>
      ) : (
        <ul className="rows">
          {rows.map((e) => (
            <Line key={e.sequence} entry={e} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.operators.more}
        </Button>
      )}
    </Card>
  )
}

function Line({ entry: e }: { entry: Entry }) {
  const before = values(e.before)
  const after = values(e.after)
  const fields = changedFields(before, after)
  return (
    <li>
      <span style={{ flex: '0 0 92px' }} className="small">
        <Ago time={e.time!} />
      </span>
      <span style={{ flex: 1, minWidth: 0 }}>
        <strong>{e.action}</strong> <bdi>{e.object}</bdi>
        <span className="small block">
          {e.who}, {t.history.doors[e.via!] ?? e.via} {e.address && t.operators.from(e.address)}
          {e.why && (
            <>
              {' '}
              – <bdi>{e.why}</bdi>
            </>
          )}
        </span>
        {fields.length > 0 && (
          <details>
            <summary>
              {fields.slice(0, 4).map(label).join(', ')}
              {fields.length > 4 && ' …'}
            </summary>
            {fields.map((f) => (
              <div key={f} style={{ margin: '8px 0' }}>
                <span className="small">{label(f)}</span>
                {before?.[f] !== undefined && <span className="before">− {shown(before[f])}</span>}
                {after?.[f] !== undefined && <span className="after">+ {shown(after[f])}</span>}
              </div>
            ))}
          </details>
        )}
      </span>
    </li>
  )
}

const values = (v: unknown): Value | undefined => (v && typeof v === 'object' && !Array.isArray(v) ? (v as Value) : v === undefined || v === null ? undefined : { value: v })
