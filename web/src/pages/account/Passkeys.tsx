import { Button, PasswordInput, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, client, data } from '@/api/client'
import { failed, Problem } from '@/api/problem'
import { Ago, Card, Failure, Loading } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'

const passkeys = queryOptions({ queryKey: ['passkeys'], queryFn: () => data(client.GET('/api/v1/session/passkeys')) })

/** The passkeys of the user: each has a name, and the host name that it belongs to. */
export function Passkeys() {
  const list = useQuery(passkeys)
  const [adding, setAdding] = useState(false)
  const [removed, setRemoved] = useState<{ id?: string; name?: string }>()
  const { act } = useAct('passkeys', 'sessions', 'users')
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const { offered, host, reason } = list.data
  const all = list.data.passkeys ?? []
  const why = offered ? ('PublicKeyCredential' in window ? '' : t.account.passkeyWhy.browser) : (t.account.passkeyWhy[reason ?? ''] ?? reason)
  return (
    <Card title={t.account.passkeys}>
      <p className="lead">{why || t.account.passkeysText}</p>
      {all.length > 0 && (
        <ul className="rows">
          {all.map((k) => (
            <li key={k.id} className="entry">
              <span className="entry-name">
                <strong>{k.name}</strong>
                <span className="small block">
                  {k.host !== host && `${t.account.passkeyAt(k.host!)}; `}
                  {k.used ? t.operators.used : t.account.passkeyAdded} <Ago time={(k.used ?? k.created)!} />
                </span>
              </span>
              <Button size="compact-sm" variant="default" onClick={() => setRemoved(k)} aria-label={`${t.account.passkeyRemove} ${k.name}`}>
                {t.account.passkeyRemove}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {!why && !adding && (
        <Button variant={all.length ? 'default' : 'filled'} onClick={() => setAdding(true)}>
          {t.account.passkeyAdd}
        </Button>
      )}
      {!why && adding && <NewPasskey close={() => setAdding(false)} />}
      {removed && (
        <ConfirmDialog
          title={t.account.passkeyRemoveAsk(removed.name ?? '')}
          text={t.account.passkeyRemoveText}
          yes={t.account.passkeyRemove}
          close={() => setRemoved(undefined)}
          go={() => act('remove', () => call('DELETE', `/session/passkeys/${encodeURIComponent(removed.id!)}`), t.account.passkeyRemoved).then((ok) => ok && setRemoved(undefined))}
        />
      )}
    </Card>
  )
}

function NewPasskey({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const { act, busy, wrong } = useAct('passkeys', 'users')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const made = await act(
      'add',
      async () => {
        const { addPasskey } = await import('@/session/passkey')
        return addPasskey(name, password).catch((e) => {
          throw e instanceof Problem ? e : new Error(t.account.passkeyFailed)
        })
      },
      t.account.passkeyDone,
    )
    if (made) close()
  }
  return (
    <form onSubmit={submit} className="fields" noValidate>
      <Wrong wrong={wrong} fields={['name', 'current_password']} />
      <TextInput
        label={t.account.passkeyName}
        description={t.account.passkeyNameHelp}
        value={name}
        error={wrong.name}
        onChange={(e) => setName(e.currentTarget.value)}
        autoFocus
        maxLength={64}
        maw={360}
        autoComplete="off"
      />
      <PasswordInput
        label={t.account.current}
        description={t.account.passkeyPassword}
        value={password}
        error={wrong.current_password}
        onChange={(e) => setPassword(e.currentTarget.value)}
        autoComplete="current-password"
        maw={360}
      />
      <div className="ask">
        <Button type="submit" loading={busy === 'add'} disabled={!name.trim()}>
          {t.account.passkeyCreate}
        </Button>
        <Button variant="subtle" onClick={close}>
          {t.edit.cancel}
        </Button>
      </div>
    </form>
  )
}
