import { Button } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { failed } from '@/api/problem'
import { revisions, status, type Revision } from '@/api/queries'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Empty, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { changedObjects } from './changed'

/** All revisions that are kept, the newest first. */
export default function HistoryPage() {
  const [limit, setLimit] = useView('limit', '100')
  const list = useQuery({ ...revisions(Number(limit) || 100), placeholderData: keepPreviousData })
  const { data: all } = useQuery(status)
  const go = useNavigate()
  const now = all?.revision ? Number(all.revision) : list.data?.[0]?.number
  const columns = useMemo<Column<Revision>[]>(
    () => [
      {
        id: 'number',
        title: t.history.revision,
        width: '100px',
        sort: (r) => r.number ?? 0,
        cell: (r) => (
          <Link to="/history/$number" params={{ number: String(r.number) }} className="row-name">
            {r.number}
          </Link>
        ),
      },
      { id: 'when', title: t.history.when, width: '94px', phone: false, sort: (r) => r.when ?? '', cell: (r) => <Ago time={r.when!} /> },
      {
        id: 'who',
        title: t.history.who,
        phone: false,
        from: 960,
        width: '18%',
        sort: (r) => r.who ?? '',
        cell: (r) => (
          <>
            {r.who && <span className="clip">{r.who}</span>}
            <span className={r.who ? 'small clip' : 'clip'}>{t.history.doors[r.via!] ?? r.via}</span>
          </>
        ),
      },
      {
        id: 'why',
        title: t.history.why,
        cell: (r) => (
          <>
            <span className="clip" title={r.why}>
              <bdi>{r.why || changedObjects(r)}</bdi>
            </span>
            {r.why && <span className="small clip">{changedObjects(r)}</span>}
            <span className="small clip only-phone">
              <Ago time={r.when!} />
              {r.who && ` ${t.overview.by(r.who)}`}
            </span>
          </>
        ),
      },
      {
        id: 'state',
        title: t.history.state,
        width: '136px',
        phone: false,
        cell: (r) =>
          r.number === now ? (
            <StateBadge state="current" meaning="good">
              {t.history.current}
            </StateBadge>
          ) : (
            <StateBadge state={r.state ?? ''} meaning={r.state === 'rolled_back' ? 'warn' : 'calm'} />
          ),
      },
    ],
    [now],
  )
  const searchable = useCallback((r: Revision) => ({ '': [r.number, r.who, r.why, r.via].join(' '), who: r.who ?? '', via: r.via ?? '', state: r.state ?? '' }), [])
  return (
    <>
      <PageHeader title={t.pages.history} lead={t.history.lead} />
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : (
        <DataTable
          rows={list.data}
          columns={columns}
          first="-number"
          id={(r) => String(r.number)}
          searchable={searchable}
          noun={[t.history.noun, t.history.nouns]}
          open={(r) => void go({ to: '/history/$number', params: { number: String(r.number) } })}
          tools={
            list.data.length >= Number(limit) && Number(limit) < 1000 ? (
              <Button variant="default" onClick={() => setLimit('1000')}>
                {t.history.older}
              </Button>
            ) : undefined
          }
          empty={<Empty title={t.history.emptyTitle}>{t.history.empty}</Empty>}
        />
      )}
    </>
  )
}
