import { Button, Select, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { Dialog } from '@/ui/Dialog'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'
import { choices, type Opening } from './queries'

const words = t.access

/** Opens the gate of a host for everyone for a while. */
export function OpenGate({ hosts, close }: { hosts: string[]; close: () => void }) {
  const [host, setHost] = useState(hosts.find((h) => !h.startsWith('*')) ?? '')
  const [time, setTime] = useState('10m')
  const [why, setWhy] = useState('')
  const { act, busy, wrong } = useAct('access', 'audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    if (await act('open', () => call<Opening>('POST', '/gate/openings', { body: { host, for: time, why } }), words.openDone(host))) close()
  }
  return (
    <Dialog close={close} title={words.openGate}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.openText}</p>
        <Wrong wrong={wrong} fields={['host', 'for', 'why']} />
        <TextInput label={words.openHost} value={host} error={wrong.host} onChange={(e) => setHost(e.currentTarget.value)} autoComplete="off" spellCheck={false} />
        <Select label={words.openFor} value={time} error={wrong.for} data={choices(words.openTimes)} allowDeselect={false} onChange={(v) => setTime(v ?? '10m')} />
        <TextInput label={words.why} description={words.whyHelp} value={why} error={wrong.why} onChange={(e) => setWhy(e.currentTarget.value)} data-autofocus autoComplete="off" />
        <div className="ask">
          <Button type="submit" color="red.9" loading={busy === 'open'}>
            {words.open}
          </Button>
          <Button variant="subtle" onClick={close}>
            {t.edit.cancel}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
