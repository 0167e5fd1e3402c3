import { Button, Checkbox, Select, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { useAct, Wrong } from '@/ui/act'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'

type Purged = components['schemas']['purgeBody']
const words = t.purge
const ways = ['all', 'url', 'prefix', 'tag'] as const

/** Takes responses out of the caches of a proxy, or of all, or makes them stale. It can say first how many they are. */
export function Purge({ proxy, close }: { proxy?: string; close: () => void }) {
  const [way, setWay] = useState<(typeof ways)[number]>('all')
  const [value, setValue] = useState('')
  const [soft, setSoft] = useState(false)
  const [count, setCount] = useState<number>()
  const { act, busy, wrong, setWrong } = useAct('status')
  const send = (dryRun: boolean) => call<Purged>('POST', '/cache/purge', { body: { proxy, soft, [way]: way === 'all' ? true : value }, query: dryRun ? { dry_run: true } : {} })
  async function request(what: 'purge' | 'count') {
    if (way === 'all' || value.trim()) return (await act(what, () => send(what === 'count')))?.value
    setWrong({ [way]: words.missing })
  }
  /** What was counted holds no longer. */
  const anew = () => setCount(undefined)
  async function submit(e: FormEvent) {
    e.preventDefault()
    const done = await request('purge')
    if (!done) return
    notifications.show({ message: words.done(done.purged ?? 0, soft), color: 'teal' })
    close()
  }
  return (
    <Dialog close={close} title={words.title(proxy)}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.lead}</p>
        <Wrong wrong={wrong} fields={['url', 'prefix', 'tag']} />
        <Select
          label={words.what}
          value={way}
          data={ways.map((w) => ({ value: w, label: words.ways[w] }))}
          allowDeselect={false}
          onChange={(w) => {
            setWay((w ?? 'all') as typeof way)
            anew()
          }}
        />
        {way !== 'all' && (
          <TextInput
            label={words.ways[way]}
            description={words.help[way]}
            value={value}
            error={wrong[way]}
            onChange={(e) => {
              setValue(e.currentTarget.value)
              anew()
            }}
            data-autofocus
            autoComplete="off"
          />
        )}
        <Checkbox
          label={words.soft}
          description={words.softHelp}
          checked={soft}
          onChange={(e) => {
            setSoft(e.currentTarget.checked)
            anew()
          }}
        />
        <p className="small lead" role="status">
          {count === undefined ? '' : words.count(count)}
        </p>
        <div className="ask">
          <Button type="submit" loading={busy === 'purge'}>
            {words.go}
          </Button>
          <Button variant="default" loading={busy === 'count'} onClick={() => void request('count').then((a) => a && setCount(a.purged ?? 0))}>
            {words.countFirst}
          </Button>
          <Button variant="subtle" onClick={close}>
            {t.edit.cancel}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
