import { Alert, Button, PasswordInput, SegmentedControl, Select, Switch, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useId, useState, type FormEvent, type ReactNode } from 'react'
import { client, data } from '@/api/client'
import { failed, sentence } from '@/api/problem'
import { all, objectForForm, canEdit, me, objects } from '@/api/queries'
import type { components } from '@/api/schema'
import { basket, plan, put, reviewing } from '@/edit/basket'
import { written, type Value } from '@/edit/object'
import { errorsOf, ObjectEditor } from '@/edit/ObjectEditor'
import { hashOf, tooLong, longest } from '@/edit/hash'
import { shown } from '@/edit/words'
import { Crumbs, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { took } from '../log/livelog'
import { hostsOf, isHost, nameFor, serverURL } from './names'
import { blank, editsOf, firstServer, missingPorts, proxyOf, recipeOf, type Access, type Entered, type HTTPS, type Known } from './newproxy'
import { recipes } from './recipes'

type Probed = components['schemas']['probed']
const words = t.newProxy

/** What was entered outlives a reload and Back, but for the password. */
const key = 'headgate.newproxy'
function kept(): Partial<Entered> {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '{}') as Partial<Entered>
  } catch {
    return {}
  }
}
function keep(e: Entered | undefined) {
  try {
    if (e) sessionStorage.setItem(key, JSON.stringify({ ...e, hash: '' }))
    else sessionStorage.removeItem(key)
  } catch {
    // the browser keeps nothing
  }
}

/** A new proxy in one page: host and server, HTTPS, who may access it, and what an application needs. */
export default function NewProxyPage() {
  const { like } = useSearch({ strict: false }) as { like?: string }
  const model = useQuery({ ...objectForForm('proxies', like ?? '', useId()), enabled: !!like })
  const ports = useQuery(objects('ports'))
  const { data: who } = useQuery(me)
  if (who && !canEdit(who.role)) return <PageHeader title={words.title} lead={t.edit.readOnly} />
  if (failed(model)) return <Failure error={model.error} again={() => void model.refetch()} />
  if (failed(ports)) return <Failure error={ports.error} again={() => void ports.refetch()} />
  if ((like && !model.data) || !ports.data) return <Loading />
  return <Form like={model.data && written('proxies', model.data)} ports={ports.data} />
}

function Form({ like, ports }: { like?: Value; ports: Known['ports'] }) {
  const proxies = useQuery(objects('proxies'))
  const accounts = useQuery(objects('acme')).data ?? []
  const certificates = useQuery(objects('certificates')).data ?? []
  const stored = useQuery({ queryKey: ['stored'], queryFn: ({ signal }) => all<{ name?: string }>('/stored_certificates', signal).then((p) => p.value), retry: false }).data ?? []
  const [restored, setRestored] = useState(() => (like ? {} : kept()))
  const known: Known = { ports, accounts: accounts.map((a) => a.name!), certificates, stored: stored.map((c) => c.name!) }
  const [e, setE] = useState<Entered>({ ...blank, server: firstServer(like) ?? '', ...restored })
  const [password, setPassword] = useState('')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [more, setMore] = useState(false)
  const [busy, setBusy] = useState(false)
  const go = useNavigate()
  const set = (change: Partial<Entered>) => {
    const next = { ...e, ...change }
    setE(next)
    if (!like) keep(next)
  }

  const hosts = hostsOf(e.hosts)
  const name =
    e.name.trim() ||
    nameFor(
      hosts[0] ?? '',
      (proxies.data ?? []).map((p) => p.name!),
    )
  const missing = missingPorts(e, known)
  const taken = useOpenable(missing.plain ? blank.plain : '')
  // 8080 is suggested where 80 cannot be opened, and 8443 beside it.
  useEffect(() => {
    if (taken) setE((old) => ({ ...old, plain: old.plain === blank.plain ? '0.0.0.0:8080' : old.plain, secure: old.secure === blank.secure ? '0.0.0.0:8443' : old.secure }))
  }, [taken])

  async function submit(event: FormEvent) {
    event.preventDefault()
    const found: Record<string, string> = {}
    if (hosts.length === 0) found.hosts = words.needHost
    else if (!hosts.every(isHost)) found.hosts = words.badHost
    if (!e.server.trim()) found.server = words.needServer
    if (e.access === 'password' && (!e.user.trim() || !password)) found.user = words.needPassword
    if (e.access === 'sign_in' && !e.authURL.trim()) found.authURL = words.needAuth
    setWrong(found)
    if (Object.keys(found).length) return
    setBusy(true)
    try {
      const entered = e.access === 'password' ? { ...e, hash: await hashOf(password) } : e
      const edits = editsOf(entered, name, known, like)
      await plan([...basket.get(), ...edits])
      edits.forEach(put)
      keep(undefined)
      reviewing.set(true)
      void go({ to: '/proxies' })
    } catch (error) {
      const at: Record<string, string> = {}
      for (const [path, text] of Object.entries(errorsOf(error, 'proxies', name)))
        at[
          path.startsWith('virtual_hosts')
            ? 'hosts'
            : path.startsWith('routes')
              ? 'server'
              : path.startsWith('ports')
                ? 'port'
                : path.startsWith('ip_filter')
                  ? 'networks'
                  : path.startsWith('forward_auth')
                    ? 'authURL'
                    : ''
        ] = text
      setWrong(at)
    } finally {
      setBusy(false)
    }
  }

  const recipe = recipeOf(e.recipe)
  const certificateNames = [...new Set([...certificates.map((c) => c.name!), ...known.stored])]
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} crumbs={<Crumbs to="/proxies" title={t.pages.proxies} here={words.title} />} />
      <form onSubmit={submit} noValidate className="card new-proxy">
        {Object.keys(restored).some((k) => restored[k as keyof Entered] !== blank[k as keyof Entered]) && (
          <div className="card-body ask">
            <span className="small">{words.draft}</span>
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => {
                setRestored({})
                setE(blank)
                keep(undefined)
              }}
            >
              {words.clear}
            </Button>
          </div>
        )}
        <div className="card-body fields">
          {wrong[''] && (
            <Alert color="red" role="alert" title={t.edit.refused}>
              {wrong['']}
            </Alert>
          )}
          <TextInput
            size="md"
            label={words.host}
            description={words.hostHelp}
            placeholder="app.example.com"
            value={e.hosts}
            error={wrong.hosts}
            onChange={(x) => set({ hosts: x.currentTarget.value })}
            onBlur={() => /[/:]/.test(e.hosts) && set({ hosts: hosts.join(', ') })}
            autoFocus
            autoComplete="off"
            spellCheck={false}
          />
          <Server value={e.server} host={hosts[0]} error={wrong.server} set={(server) => set({ server })} />
          <Select
            label={words.application}
            description={words.applicationHelp}
            placeholder={words.noApplication}
            data={recipes.map((r) => ({ value: r.id, label: r.name }))}
            value={e.recipe || null}
            onChange={(v) => set({ recipe: v ?? '' })}
            searchable
            clearable
          />
          {recipe && (
            <div className="small recipe">
              {words.sets}
              <pre className="code">{shown({ ...recipe.proxy, ...(recipe.more ? { routes: recipe.more(hosts[0] ?? 'example.com') } : {}) })}</pre>
            </div>
          )}

          <Choice
            label={words.https}
            help={words.httpsHelp[e.https]}
            value={e.https}
            data={(['acme', 'own', 'none'] as HTTPS[]).map((value) => ({ value, label: words.httpsWays[value]! }))}
            set={(https) => set({ https })}
          >
            {e.https === 'acme' && known.accounts.length === 0 && (
              <TextInput label={words.email} description={words.emailHelp} value={e.email} onChange={(x) => set({ email: x.currentTarget.value })} type="email" autoComplete="email" />
            )}
            {e.https === 'acme' && known.accounts.length > 1 && (
              <Select label={words.account} data={known.accounts} value={e.account || known.accounts[0]} onChange={(v) => set({ account: v ?? '' })} allowDeselect={false} />
            )}
            {e.https === 'own' && (
              <Select
                label={words.certificate}
                data={certificateNames}
                value={e.certificate || null}
                onChange={(v) => set({ certificate: v ?? '' })}
                placeholder={certificateNames.length ? '' : t.certificates.emptyTitle}
              />
            )}
            {e.https !== 'none' && <Switch label={words.redirect} checked={e.redirect} onChange={(x) => set({ redirect: x.currentTarget.checked })} />}
          </Choice>

          <Choice
            label={words.access}
            value={e.access}
            data={(['everyone', 'network', 'password', 'sign_in'] as Access[]).map((value) => ({ value, label: words.accessWays[value]! }))}
            set={(access) => set({ access })}
          >
            {e.access === 'network' && (
              <Textarea
                label={words.networks}
                description={words.networksHelp}
                value={e.networks}
                error={wrong.networks}
                onChange={(x) => set({ networks: x.currentTarget.value })}
                autosize
                minRows={2}
                maxRows={8}
              />
            )}
            {e.access === 'password' && (
              <>
                <TextInput label={words.user} value={e.user} error={wrong.user} onChange={(x) => set({ user: x.currentTarget.value })} autoComplete="off" spellCheck={false} />
                <PasswordInput
                  label={words.password}
                  description={t.edit.passwordHelp}
                  value={password}
                  error={tooLong(password) ? t.edit.passwordLong(longest) : undefined}
                  onChange={(x) => setPassword(x.currentTarget.value)}
                  autoComplete="new-password"
                  visibilityToggleButtonProps={{ 'aria-label': t.edit.show }}
                />
              </>
            )}
            {e.access === 'sign_in' && (
              <TextInput
                label={words.authURL}
                description={words.authURLHelp}
                placeholder="http://127.0.0.1:9091/api/authz/forward-auth"
                value={e.authURL}
                error={wrong.authURL}
                onChange={(x) => set({ authURL: x.currentTarget.value })}
                autoComplete="off"
                spellCheck={false}
              />
            )}
          </Choice>

          {(missing.plain || missing.secure) && (
            <Alert color="teal" title={words.addPort}>
              <div className="ask">
                {missing.plain && <TextInput label={words.portLabel} value={e.plain} error={wrong.port} onChange={(x) => set({ plain: x.currentTarget.value })} />}
                {missing.secure && <TextInput label={words.portSecure} value={e.secure} onChange={(x) => set({ secure: x.currentTarget.value })} />}
              </div>
              {taken && <span className="small">{taken}</span>}
            </Alert>
          )}
          <TextInput label={words.name} description={words.nameHelp} placeholder={name} value={e.name} onChange={(x) => set({ name: x.currentTarget.value })} autoComplete="off" spellCheck={false} />
          <div style={{ display: 'flex', gap: 10, flexWrap: 'wrap' }}>
            <Button type="submit" size="md" loading={busy}>
              {words.review}
            </Button>
            <Button variant="default" size="md" onClick={() => setMore(true)}>
              {words.more}
            </Button>
          </div>
        </div>
      </form>
      {more && <ObjectEditor kind="proxies" name={name} initial={proxyOf(e, known, like)} title={words.title} onClose={() => setMore(false)} />}
    </>
  )
}

/** One of a few ways, with what it needs. */
function Choice<T extends string>({
  label,
  help,
  value,
  data,
  set,
  children,
}: {
  label: string
  help?: string
  value: T
  data: { value: T; label: string }[]
  set: (v: T) => void
  children: ReactNode
}) {
  const id = useId()
  return (
    <fieldset className="choice-field">
      <legend id={id}>{label}</legend>
      <SegmentedControl value={value} onChange={(v) => set(v as T)} data={data} aria-labelledby={id} className="wrap" />
      {help && <p className="small">{help}</p>}
      <div className="fields">{children}</div>
    </fieldset>
  )
}

/** The server, with a button that asks it before anything is applied. */
function Server({ value, host, error, set }: { value: string; host?: string; error?: string; set: (v: string) => void }) {
  const [found, setFound] = useState<Probed>()
  const [busy, setBusy] = useState(false)
  const url = serverURL(value)
  async function test() {
    setBusy(true)
    try {
      setFound(await data(client.POST('/api/v1/servers/test', { body: { url, host: host?.startsWith('*') ? undefined : host } })))
    } catch (e) {
      setFound({ reached: false, status: 0, duration_ms: 0, error: sentence(e) })
    } finally {
      setBusy(false)
    }
  }
  return (
    <div>
      <div className="ask with-button">
        <TextInput
          size="md"
          style={{ flex: 1 }}
          label={words.server}
          description={words.serverHelp}
          placeholder="http://10.0.0.7:3000"
          value={value}
          error={error}
          onChange={(x) => {
            set(x.currentTarget.value)
            setFound(undefined)
          }}
          autoComplete="off"
          spellCheck={false}
        />
        <Button size="md" variant="default" loading={busy} disabled={!/^https?:\/\/[^/]/.test(url)} onClick={() => void test()}>
          {words.test}
        </Button>
      </div>
      <div role="status" aria-live="polite">
        {found && (
          <p className="small probe">
            <StateBadge state={found.reached ? 'healthy' : 'down'} meaning={!found.reached ? 'bad' : found.status >= 500 ? 'warn' : 'good'}>
              {found.reached ? found.status : t.log.error}
            </StateBadge>{' '}
            {found.reached ? words.reached(found.status, took(found.duration_ms)) : words.notReached(found.error ?? '')} {found.title && words.reachedTitle(found.title)} {found.hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** Why an address cannot be opened; '' while it can, or is not asked about. The plan tries it and lets go of it. */
function useOpenable(address: string): string {
  const found = useQuery({
    queryKey: ['openable', address],
    queryFn: () =>
      plan([{ kind: 'ports', name: 'headgate-test', op: 'set', value: { address, protocol: 'http' } }]).then(
        () => '',
        (e: unknown) => (/permission/i.test(sentence(e)) ? words.port8080 : words.portTaken),
      ),
    enabled: !!address,
    retry: false,
    staleTime: Infinity,
  })
  return address ? (found.data ?? '') : ''
}
