import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Card, Empty, Failure, Loading } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'
import { deviceOf } from '../operators/device'
import { sessions, type Session } from './queries'

const words = t.access
const end = (id: string) => call('DELETE', `/gate/sessions/${encodeURIComponent(id)}`)

/** Who is signed in, in which browser and at which applications. */
export function Sessions({ may }: { may: boolean }) {
  const list = useQuery(sessions)
  const { act, busy } = useAct('access', 'audit')
  const [all, setAll] = useState('')
  const columns = useMemo<Column<Session>[]>(() => {
    const shown: Column<Session>[] = [
      {
        id: 'person',
        title: words.who,
        sort: (s) => s.title ?? '',
        cell: (s) => (
          <>
            <span className="row-name clip">{s.title}</span>
            <span className="small clip">{[words.local(s.person!), deviceOf(s.user_agent), s.address && words.from(s.address)].filter(Boolean).join(', ')}</span>
          </>
        ),
      },
      {
        id: 'at',
        title: words.at,
        phone: false,
        cell: (s) => (
          <span className="clip" title={s.hosts?.join(', ')}>
            {s.hosts?.join(', ') || '–'}
          </span>
        ),
      },
      { id: 'seen', title: words.seen, width: '120px', phone: false, sort: (s) => s.seen ?? '', cell: (s) => <Ago time={s.seen!} /> },
      { id: 'expires', title: words.expires, width: '120px', phone: false, from: 1100, sort: (s) => s.expires ?? '', cell: (s) => <Ago time={s.expires!} /> },
    ]
    if (may)
      shown.push({
        id: 'actions',
        title: t.entries.actionsTitle,
        quiet: true,
        width: '200px',
        cell: (s) => (
          <span className="entry-actions">
            <Button size="compact-sm" variant="default" loading={busy === s.id} aria-label={words.endOf(s.title!)} onClick={() => void act(s.id!, () => end(s.id!), words.ended)}>
              {words.end}
            </Button>
            <Button size="compact-sm" variant="subtle" aria-label={words.endAllOf(s.title!)} onClick={() => setAll(s.person!)}>
              {words.endAll}
            </Button>
          </span>
        ),
      })
    return shown
  }, [may, act, busy])
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  return (
    <>
      {list.data.length === 0 ? (
        <Card>
          <Empty title={words.noSessions}>{words.noSessionsText}</Empty>
        </Card>
      ) : (
        <DataTable
          rows={list.data}
          columns={columns}
          first="-seen"
          id={(s) => s.id!}
          searchable={(s) => ({ '': [s.person, s.title, s.address, ...(s.hosts ?? [])].join(' '), person: s.person ?? '' })}
          noun={[words.session, words.sessions]}
        />
      )}
      {all && <EndAll person={all} close={() => setAll('')} />}
    </>
  )
}

/** Ends all sessions of a person, those of this moment and those that came meanwhile. */
export function EndAll({ person, close }: { person: string; close: () => void }) {
  const { act } = useAct('access', 'audit')
  async function go() {
    await call('DELETE', `/gate/sessions?person=${encodeURIComponent(person)}`)
    return true
  }
  return <ConfirmDialog title={words.endAllTitle(words.local(person))} text={words.endAllText} yes={words.endAll} close={close} go={() => act('', go, words.endedAll)} />
}
