import { Alert, Button, Select, Stack, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { Problem, sentence } from '@/api/problem'
import type { Change } from '@/api/queries'
import { Loading } from '@/ui/basics'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { PlanView } from './PlanView'

/**
 * Shows the plan of a change that is no gathering of edits, such as going back to a
 * revision, and applies it: at once, or with the time to confirm it.
 */
export function PlanDrawer({ id, title, lead, nothing, plan, apply, done, close, within: first = null, always = false, confirmable = true, children }: {
  id: string
  title: string
  lead: ReactNode
  nothing: string
  plan: () => Promise<{ etag: string; change: Change }>
  apply: (etag: string, options: { why?: string; within?: string }) => Promise<Change>
  done: (c: Change) => string
  close: () => void
  /** A change that should be confirmed names the time for it; then that is the first button. */
  within?: string | null
  /** Whether it can be applied though the plan has no changes: what it does besides is not in it. */
  always?: boolean
  /** Whether it can wait to be confirmed. */
  confirmable?: boolean
  children?: ReactNode
}) {
  const queries = useQueryClient()
  const look = useQuery({ queryKey: ['review', id], queryFn: plan, gcTime: 0, staleTime: 0, retry: false, refetchOnWindowFocus: false })
  const [why, setWhy] = useState('')
  const [within, setWithin] = useState(first ?? '2m')
  const [busy, setBusy] = useState(false)
  const [failed, setFailed] = useState<unknown>()
  const [renewed, setRenewed] = useState(false)

  async function go(confirm: boolean) {
    setBusy(true)
    setFailed(undefined)
    try {
      const change = await apply(look.data!.etag, { why: why || undefined, within: confirm ? within : undefined })
      notifications.show({ message: done(change), color: 'teal' })
      close()
      void queries.invalidateQueries()
    } catch (e) {
      // Somebody was faster: the plan is made again and shown.
      if (e instanceof Problem && e.status === 412) {
        await look.refetch()
        setRenewed(true)
      } else setFailed(e)
    } finally {
      setBusy(false)
    }
  }

  const changes = look.data?.change.changes ?? []
  const now = (
    <Button key="now" size={first ? 'sm' : 'md'} variant={first ? 'default' : 'filled'} loading={busy} onClick={() => void go(false)}>
      {t.edit.apply}
    </Button>
  )
  const confirmed = (
    <div key="confirm" className="ask">
      <Select label={t.edit.within} value={within} onChange={(v) => v && setWithin(v)} data={['30s', '1m', '2m', '5m', '15m', '1h']} w={120} allowDeselect={false} />
      <Button variant={first ? 'filled' : 'default'} loading={busy} onClick={() => void go(true)} style={{ flex: 1 }}>
        {t.edit.applyConfirm}
      </Button>
    </div>
  )
  return (
    <Panel close={close} width={640} title={title}>
      {look.isPending ? (
        <Loading />
      ) : (
        <Stack gap="lg">
          <p style={{ margin: 0 }}>{lead}</p>
          {children}
          {(look.error || failed !== undefined) && (
            <Alert color="red" role="alert" title={look.error ? t.edit.refused : t.edit.failed}>
              {sentence(look.error ?? failed)}
            </Alert>
          )}
          {renewed && !failed && (
            <Alert color="yellow" role="alert">
              {t.edit.renewed}
            </Alert>
          )}
          {look.data && changes.length === 0 && <p style={{ margin: 0 }}>{nothing}</p>}
          {look.data && <PlanView change={look.data.change} />}
          {look.data && (changes.length > 0 || always) && (
            <>
              <TextInput label={t.edit.why} value={why} maxLength={500} onChange={(e) => setWhy(e.currentTarget.value)} />
              {!confirmable ? now : first ? [confirmed, now] : [now, confirmed]}
              {confirmable && (
                <p className="small" style={{ margin: 0 }}>
                  {t.edit.withinHelp}
                </p>
              )}
            </>
          )}
        </Stack>
      )}
    </Panel>
  )
}
