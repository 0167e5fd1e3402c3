import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { canEdit, me } from '@/api/queries'
import type { components } from '@/api/schema'
import { useAct } from '@/ui/act'
import { ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'

type Closed = components['schemas']['resetBody']

/** Closes what is open on a port, or on a TCP or UDP proxy, after it has told how many that are. */
export function Reset({ kind, name }: { kind: 'ports' | 'tcp_proxies' | 'udp_proxies'; name: string }) {
  const { data: who } = useQuery(me)
  const { act, busy } = useAct('status', 'objects')
  const [open, setOpen] = useState<number>()
  if (!canEdit(who?.role)) return null
  const reset = (dryRun: boolean) => call<Closed>('POST', `/${kind}/${encodeURIComponent(name)}/reset`, { body: {}, query: dryRun ? { dry_run: true } : {} })
  return (
    <>
      <Button
        size="compact-sm"
        variant="subtle"
        loading={!!busy}
        aria-label={`${t.ports.reset} ${name}`}
        onClick={() => void act('', () => reset(true)).then((a) => a && setOpen(a.value.closed ?? 0))}
      >
        {t.ports.reset}
      </Button>
      {open !== undefined && (
        <ConfirmDialog title={t.ports.resetTitle(name)} text={t.ports.resetText(open)} yes={t.ports.reset} go={() => act('', () => reset(false), t.ports.resetDone)} close={() => setOpen(undefined)} />
      )}
    </>
  )
}
