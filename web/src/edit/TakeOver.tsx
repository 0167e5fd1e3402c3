import { Button, type ButtonProps } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { notifications } from '@mantine/notifications'
import { useState } from 'react'
import { sentence } from '@/api/problem'
import { asShown, type AnyObject } from '@/api/queries'
import { t } from '@/text'
import { put, takeOver } from './basket'

/** Puts a discovered object into the changes, as it is now. */
export function TakeOver({ kind, name, label, ...style }: ButtonProps & { kind: string; name: string; label?: string }) {
  const [busy, setBusy] = useState(false)
  const go = () => {
    setBusy(true)
    void notifyFailure(takeOver(kind, name)).finally(() => setBusy(false))
  }
  return (
    <Button {...style} loading={busy} onClick={go} aria-label={label}>
      {t.proxy.takeOver}
    </Button>
  )
}

/** Gives what puts the removal of an object into the changes. */
export function useRemove(kind: string) {
  const queries = useQueryClient()
  return (o: AnyObject) =>
    void notifyFailure(
      asShown(queries, kind, o).then((base) => {
        put({ kind, name: o.name!, op: 'remove', base })
        notifications.show({ message: t.proxy.removed })
      }),
    )
}

const notifyFailure = (what: Promise<unknown>) => what.catch((e: unknown) => void notifications.show({ message: sentence(e), color: 'red' }))
