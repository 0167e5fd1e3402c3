import { Button, Checkbox, Select, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { Dialog } from '@/ui/Dialog'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'

export type Ban = components['schemas']['Shown']
const words = t.bans

/** Bans an address by hand. */
export function AddBan({ close }: { close: () => void }) {
  const [address, setAddress] = useState('')
  const [duration, setDuration] = useState('24h')
  const [why, setWhy] = useState('')
  const [reject, setReject] = useState(false)
  const { act, busy, wrong } = useAct('banned', 'audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const done = await act('ban', () => call<Ban>('POST', '/banned', { body: { address, for: duration, why, answer: reject ? 'reject' : 'deny' } }), words.done(address.trim()))
    if (done) close()
  }
  return (
    <Dialog close={close} title={words.add}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.addLead}</p>
        <Wrong wrong={wrong} fields={['address', 'for', 'why']} />
        <TextInput
          label={words.address}
          description={words.addressHelp}
          value={address}
          error={wrong.address}
          onChange={(e) => setAddress(e.currentTarget.value)}
          data-autofocus
          autoComplete="off"
          spellCheck={false}
        />
        <Select
          label={words.duration}
          value={duration}
          error={wrong.for}
          data={Object.entries(words.durations).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
          onChange={(v) => setDuration(v ?? '24h')}
        />
        <TextInput label={words.why} description={words.whyHelp} value={why} error={wrong.why} onChange={(e) => setWhy(e.currentTarget.value)} autoComplete="off" />
        <Checkbox label={words.reject} description={words.rejectHelp} checked={reject} onChange={(e) => setReject(e.currentTarget.checked)} />
        <div className="ask">
          <Button type="submit" loading={busy === 'ban'}>
            {words.ban}
          </Button>
          <Button variant="subtle" onClick={close}>
            {t.edit.cancel}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
