import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { client } from '@/api/client'
import { sentence } from '@/api/problem'
import { status } from '@/api/queries'
import { marks } from '@/theme/states'
import { useNow } from '@/ui/basics'
import { t } from '@/text'

/** A change that waits to be confirmed, on every page, with what is left of the time. */
export function PendingBanner() {
  const { data } = useQuery(status)
  if (!data?.pending) return null
  return <Waiting revision={data.pending.revision} until={data.pending.until} />
}

function Waiting({ revision, until }: { revision: string; until: string }) {
  const queries = useQueryClient()
  const left = Math.max(0, Math.ceil((new Date(until).getTime() - useNow(500)) / 1000))
  const [busy, setBusy] = useState(false)
  async function end(path: '/api/v1/confirm' | '/api/v1/revert', message: string) {
    setBusy(true)
    try {
      await client.POST(path, { body: { revision } })
      notifications.show({ message, color: 'teal' })
    } catch (e) {
      notifications.show({ message: sentence(e), color: 'red' })
    } finally {
      setBusy(false)
      void queries.invalidateQueries()
    }
  }
  return (
    <div className="banner" data-meaning="warn" role="status">
      <span aria-hidden>{marks.warn}</span>
      <span>
        {t.edit.waits(String(Number(revision)))} <span className="countdown">{`${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`}</span>.
      </span>
      <Button size="compact-sm" loading={busy} onClick={() => void end('/api/v1/confirm', t.edit.confirmed)}>
        {t.edit.confirm}
      </Button>
      <Button size="compact-sm" variant="default" loading={busy} onClick={() => void end('/api/v1/revert', t.edit.reverted)}>
        {t.edit.revert}
      </Button>
    </div>
  )
}
