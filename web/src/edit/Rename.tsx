import { Button, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { sentence } from '@/api/problem'
import { readNow, type AnyObject } from '@/api/queries'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'
import { basket, plan, put, reviewing, type Edit } from './basket'
import { written } from './object'

/** Gives an object another name, wherever it is named. Like every change it is reviewed before. */
export function Rename({ kind, object, onClose }: { kind: string; object: AnyObject; onClose: () => void }) {
  const [to, setTo] = useState(object.name ?? '')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      const base = await readNow(kind, object.name!)
      const edit: Edit = { kind, name: object.name!, op: 'rename', to, base, value: written(kind, base) }
      await plan([...basket.get().filter((x) => x.kind !== kind || x.name !== edit.name), edit])
      put(edit)
      onClose()
      reviewing.set(true)
    } catch (e) {
      setError(sentence(e))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog close={onClose} title={`${t.proxy.rename} ${object.name}`}>
      <form onSubmit={submit} className="fields" noValidate>
        <TextInput label={t.proxy.newName} value={to} error={error} onChange={(e) => setTo(e.currentTarget.value)} data-autofocus autoComplete="off" spellCheck={false} />
        <Button type="submit" loading={busy} disabled={!to || to === object.name}>
          {t.edit.review}
        </Button>
      </form>
    </Dialog>
  )
}
