import { Alert, Button, Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { failed, sentence } from '@/api/problem'
import { objects, readNow } from '@/api/queries'
import { basket, plan, put, reviewing } from '@/edit/basket'
import { Card, Empty, Failure, Loading } from '@/ui/basics'
import { t } from '@/text'
import { isHost } from '../proxies/names'
import { canHaveGate, isGroup, pageFor, protectEdits } from './protect'
import type { Access } from './queries'

const words = t.access

/** Puts a gate before an application, with all that it needs. The plan is shown before anything is applied. */
export function Protect({ state, done }: { state: Access; done: () => void }) {
  const proxies = useQuery(objects('proxies'))
  const ports = useQuery(objects('ports'))
  const [chosen, setChosen] = useState('')
  const [page, setPage] = useState<string>()
  const [group, setGroup] = useState('family')
  const [secure, setSecure] = useState('0.0.0.0:443')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)
  if (failed(proxies)) return <Failure error={proxies.error} again={() => void proxies.refetch()} />
  if (failed(ports)) return <Failure error={ports.error} again={() => void ports.refetch()} />
  if (!proxies.data || !ports.data) return <Loading />
  const possible = proxies.data.filter((p) => canHaveGate(p, state.gated))
  const proxy = possible.find((p) => p.name === chosen) ?? possible[0]
  if (!proxy)
    return (
      <Card>
        <Empty title={words.protect}>{state.gated.length ? words.protectNone : words.protectNoProxy}</Empty>
      </Card>
    )
  const needsPage = !state.page
  const needsPort = !ports.data.some((p) => p.protocol === 'https' && p.active !== false)
  const host = page ?? pageFor((proxy.virtual_hosts as string[])[0]!)

  async function submit(e: FormEvent) {
    e.preventDefault()
    const found: Record<string, string> = {}
    if (needsPage && !isHost(host)) found.page = words.needPage
    if (!isGroup(group)) found.group = words.needGroup
    setWrong(found)
    if (Object.keys(found).length) return
    setBusy(true)
    try {
      const [now, signIn] = await Promise.all([readNow('proxies', proxy!.name!), readNow('sign_in', '')])
      const edits = protectEdits(
        { proxy: proxy!.name!, page: needsPage ? host : '', group, secure: needsPort ? secure : '' },
        { proxy: now, signIn, names: proxies.data!.map((p) => p.name!), ports: ports.data! },
      )
      await plan([...basket.get(), ...edits])
      edits.forEach(put)
      reviewing.set(true)
      done()
    } catch (error) {
      setWrong({ '': sentence(error) })
    } finally {
      setBusy(false)
    }
  }

  return (
    <Card title={words.protect}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.protectLead}</p>
        {wrong[''] && (
          <Alert color="red" role="alert" title={t.edit.refused}>
            {wrong['']}
          </Alert>
        )}
        <Select
          label={words.application}
          description={words.applicationHelp}
          data={possible.map((p) => ({ value: p.name!, label: `${p.name} (${(p.virtual_hosts as string[]).join(', ')})` }))}
          value={proxy.name!}
          onChange={(v) => setChosen(v ?? '')}
          allowDeselect={false}
          searchable={possible.length > 8}
        />
        {needsPage && (
          <TextInput
            label={words.page}
            description={words.pageHelp}
            value={host}
            error={wrong.page}
            onChange={(e) => setPage(e.currentTarget.value.trim().toLowerCase())}
            autoComplete="off"
            spellCheck={false}
          />
        )}
        <TextInput label={words.group} description={words.groupHelp} value={group} error={wrong.group} onChange={(e) => setGroup(e.currentTarget.value.trim())} autoComplete="off" spellCheck={false} />
        {needsPort && <TextInput label={words.securePort} description={words.securePortHelp} value={secure} onChange={(e) => setSecure(e.currentTarget.value)} autoComplete="off" spellCheck={false} />}
        <div className="ask">
          <Button type="submit" loading={busy}>
            {words.review}
          </Button>
          {state.gated.length > 0 && (
            <Button variant="subtle" onClick={done}>
              {t.edit.cancel}
            </Button>
          )}
        </div>
      </form>
    </Card>
  )
}
