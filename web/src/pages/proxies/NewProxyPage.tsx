import { Alert, Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useId, useState, type FormEvent } from 'react'
import { begin, canEdit, me, objects } from '@/api/queries'
import { basket, plan, put, reviewing, type Edit } from '@/edit/basket'
import { written, type Value } from '@/edit/object'
import { errorsOf, ObjectEditor } from '@/edit/ObjectEditor'
import { Failure, Loading, PageHeader } from '@/ui/basics'
import { t } from '@/text'
import { hostsOf, isHost, nameFor, serverURL } from './names'

/** A new proxy in two fields. The rest is the editor that every proxy has. */
export default function NewProxyPage() {
  const { like } = useSearch({ strict: false }) as { like?: string }
  const proxies = useQuery(objects('proxies'))
  const ports = useQuery(objects('ports'))
  const model = useQuery({ ...begin('proxies', like ?? '', useId()), enabled: !!like })
  const { data: who } = useQuery(me)
  const [hosts, setHosts] = useState('')
  const [server, setServer] = useState<string | null>(null)
  const [name, setName] = useState('')
  const [port, setPort] = useState('0.0.0.0:80')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [more, setMore] = useState(false)
  const [busy, setBusy] = useState(false)
  const go = useNavigate()

  const from = model.data && written('proxies', model.data)
  const list = hostsOf(hosts)
  const taken = (proxies.data ?? []).map((p) => p.name!)
  const called = name || nameFor(list[0] ?? '', taken)
  const typed = server ?? firstServer(from) ?? ''
  const noPort = ports.data?.length === 0

  const value: Value = { ...from, virtual_hosts: list, routes: typed && typed === firstServer(from) ? from!.routes : [{ servers: [{ url: serverURL(typed) }] }] }
  const edits = (): Edit[] => [
    ...(noPort ? [{ kind: 'ports', name: 'web', op: 'set' as const, value: { address: port, protocol: 'http' } }] : []),
    { kind: 'proxies', name: called, op: 'set', value },
  ]

  async function submit(e: FormEvent) {
    e.preventDefault()
    const found: Record<string, string> = {}
    if (list.length === 0) found.hosts = t.newProxy.needHost
    else if (!list.every(isHost)) found.hosts = t.newProxy.badHost
    if (!typed) found.server = t.newProxy.needServer
    setWrong(found)
    if (Object.keys(found).length) return
    setBusy(true)
    try {
      await plan([...basket.get(), ...edits()])
      edits().forEach(put)
      reviewing.set(true)
      void go({ to: '/proxies' })
    } catch (e) {
      const errors = errorsOf(e, 'proxies', called)
      const at: Record<string, string> = {}
      for (const [path, text] of Object.entries(errors)) at[path.startsWith('virtual_hosts') ? 'hosts' : path.startsWith('routes') ? 'server' : path.startsWith('ports') ? 'port' : ''] = text
      setWrong(at)
    } finally {
      setBusy(false)
    }
  }

  if (who && !canEdit(who.role)) return <PageHeader title={t.newProxy.title} lead={t.edit.readOnly} />
  if (model.error) return <Failure error={model.error} again={() => void model.refetch()} />
  if (like && !model.data) return <Loading />
  return (
    <>
      <PageHeader title={t.newProxy.title} lead={t.newProxy.lead} />
      <form onSubmit={submit} noValidate className="card" style={{ maxWidth: 620 }}>
        <div className="card-body fields">
          {wrong[''] && (
            <Alert color="red" role="alert" title={t.edit.refused}>
              {wrong['']}
            </Alert>
          )}
          <TextInput size="md" label={t.newProxy.host} description={t.newProxy.hostHelp} placeholder="app.example.com" value={hosts} error={wrong.hosts} onChange={(e) => setHosts(e.currentTarget.value)} autoFocus autoComplete="off" spellCheck={false} />
          <TextInput size="md" label={t.newProxy.server} description={t.newProxy.serverHelp} placeholder="http://10.0.0.7:3000" value={typed} error={wrong.server} onChange={(e) => setServer(e.currentTarget.value)} autoComplete="off" spellCheck={false} />
          <TextInput label={t.newProxy.name} description={t.newProxy.nameHelp} placeholder={called} value={name} onChange={(e) => setName(e.currentTarget.value)} autoComplete="off" spellCheck={false} />
          {noPort && (
            <Alert color="teal" title={t.newProxy.addPort}>
              <TextInput label={t.newProxy.portLabel} value={port} error={wrong.port} onChange={(e) => setPort(e.currentTarget.value)} />
            </Alert>
          )}
          <div style={{ display: 'flex', gap: 10, flexWrap: 'wrap' }}>
            <Button type="submit" size="md" loading={busy}>
              {t.newProxy.review}
            </Button>
            <Button variant="default" size="md" onClick={() => setMore(true)}>
              {t.newProxy.more}
            </Button>
          </div>
        </div>
      </form>
      {more && <ObjectEditor kind="proxies" name={called} initial={value} title={t.newProxy.title} onClose={() => setMore(false)} />}
    </>
  )
}

function firstServer(value?: Value): string | undefined {
  const routes = value?.routes as { servers?: { url: string }[] }[] | undefined
  return routes?.[0]?.servers?.[0]?.url
}

