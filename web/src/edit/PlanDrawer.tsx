import { Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Change } from '@/api/queries'
import { Loading } from '@/ui/basics'
import { Panel } from '@/ui/Dialog'
import { ApplyButtons, ApplyOutcome, useApply, type Options } from './Apply'
import { PlanView } from './PlanView'

/**
 * Shows the plan of a change that is no gathering of edits, such as going back to a
 * revision, and applies it: at once, or with the time to confirm it.
 */
export function PlanDrawer({
  id,
  title,
  lead,
  nothing,
  plan,
  apply,
  done,
  close,
  within = null,
  always = false,
  confirmable = true,
  children,
}: {
  id: string
  title: string
  lead: ReactNode
  nothing: string
  plan: () => Promise<{ etag: string; change: Change }>
  apply: (etag: string, options: Options) => Promise<Change>
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
  const look = useQuery({ queryKey: ['review', id], queryFn: plan, gcTime: 0, staleTime: 0, retry: false, refetchOnWindowFocus: false })
  const { go, ...how } = useApply(async (options) => {
    const change = await apply(look.data!.etag, options)
    close()
    return done(change)
  }, look.refetch)
  const changes = look.data?.change.changes ?? []
  return (
    <Panel close={close} width={640} title={title}>
      {look.isPending ? (
        <Loading />
      ) : (
        <Stack gap="lg">
          <p style={{ margin: 0 }}>{lead}</p>
          {children}
          <ApplyOutcome refused={look.error} failed={how.failed} renewed={how.renewed} />
          {look.data && changes.length === 0 && <p style={{ margin: 0 }}>{nothing}</p>}
          {look.data && <PlanView change={look.data.change} />}
          {look.data && (changes.length > 0 || always) && <ApplyButtons go={go} busy={how.busy} within={within} confirmable={confirmable} />}
        </Stack>
      )}
    </Panel>
  )
}
