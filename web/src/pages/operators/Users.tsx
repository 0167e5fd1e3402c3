import { Button, PasswordInput, Select, Switch, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useMemo, useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { all } from '@/api/queries'
import type { components } from '@/api/schema'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Failure, Loading, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'

export type User = components['schemas']['userBody']
const users = queryOptions({ queryKey: ['users'], queryFn: ({ signal }) => all<User>('/users', signal).then((p) => p.value) })
const path = (name: string) => `/users/${encodeURIComponent(name)}`
export const roleChoices = (['viewer', 'editor', 'admin'] as const).map((r) => ({ value: r, label: `${t.operators.roles[r]} – ${t.operators.roleHelp[r]}` }))

export function Users({ self }: { self: string }) {
  const list = useQuery(users)
  const [edited, setEdited] = useState<User | 'new'>()
  const columns = useMemo<Column<User>[]>(
    () => [
      {
        id: 'name',
        title: t.operators.name,
        sort: (u) => u.name ?? '',
        cell: (u) => (
          <>
            <button type="button" className="row-button row-name" onClick={() => setEdited(u)}>
              {u.name}
            </button>
            <span className="small clip">{u.description}</span>
          </>
        ),
      },
      { id: 'role', title: t.operators.role, width: '110px', sort: (u) => u.role ?? '', cell: (u) => t.operators.roles[u.role!] ?? u.role },
      {
        id: 'state',
        title: t.operators.state,
        width: '130px',
        sort: (u) => String(u.disabled),
        cell: (u) => (u.disabled ? <StateBadge state="disabled" /> : <StateBadge state="active">{t.operators.active}</StateBadge>),
      },
      {
        id: 'totp',
        title: t.operators.totp,
        width: '160px',
        phone: false,
        from: 960,
        sort: (u) => String(u.totp),
        cell: (u) => (
          <StateBadge state="totp" meaning={u.totp ? 'good' : 'calm'}>
            {u.totp ? t.operators.totpOn : t.operators.totpOff}
          </StateBadge>
        ),
      },
      { id: 'signed_in', title: t.operators.signedIn, width: '130px', phone: false, sort: (u) => u.signed_in ?? '', cell: (u) => (u.signed_in ? <Ago time={u.signed_in} /> : t.operators.never) },
    ],
    [],
  )
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  return (
    <>
      <DataTable
        rows={list.data}
        columns={columns}
        id={(u) => u.name!}
        searchable={(u) => ({ '': [u.name, u.description, u.role].join(' '), role: u.role ?? '' })}
        noun={[t.operators.user, t.operators.users]}
        open={setEdited}
        tools={<Button onClick={() => setEdited('new')}>{t.operators.addUser}</Button>}
      />
      {edited && <UserForm user={edited === 'new' ? undefined : edited} self={self} close={() => setEdited(undefined)} />}
    </>
  )
}

function UserForm({ user, self, close }: { user?: User; self: string; close: () => void }) {
  const [name, setName] = useState(user?.name ?? '')
  const [role, setRole] = useState<string>(user?.role ?? 'viewer')
  const [description, setDescription] = useState(user?.description ?? '')
  const [password, setPassword] = useState('')
  const [disabled, setDisabled] = useState(!!user?.disabled)
  const [sure, setSure] = useState(false)
  const { act, busy, wrong } = useAct('users', 'sessions', 'audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const body = { description, role, ...(user ? { disabled } : { name }), ...(password ? { password } : {}) }
    const ok = await act('save', () => (user ? call('PATCH', path(user.name!), { body, ifMatch: user.etag }) : call('POST', '/users', { body })), t.operators.saved)
    if (ok) close()
  }
  return (
    <Panel close={close} width={520} title={user ? t.operators.editUser(user.name!) : t.operators.addUser}>
      <form onSubmit={submit} className="fields" noValidate>
        <Wrong wrong={wrong} fields={['name', 'role', 'description', 'password']} />
        {!user && (
          <TextInput label={t.operators.name} description={t.operators.nameHelp} value={name} error={wrong.name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus autoComplete="off" />
        )}
        <Select label={t.operators.role} value={role} onChange={(v) => v && setRole(v)} data={roleChoices} allowDeselect={false} error={wrong.role} />
        <TextInput label={t.operators.description} value={description} error={wrong.description} onChange={(e) => setDescription(e.currentTarget.value)} />
        <PasswordInput
          label={t.operators.password}
          description={user ? t.operators.passwordStays : t.operators.passwordHelp}
          value={password}
          error={wrong.password}
          onChange={(e) => setPassword(e.currentTarget.value)}
          autoComplete="new-password"
        />
        {user && user.name !== self && <Switch label={t.operators.disabled} description={t.operators.disabledHelp} checked={disabled} onChange={(e) => setDisabled(e.currentTarget.checked)} />}
        <div className="ask">
          <Button type="submit" loading={busy === 'save'}>
            {user ? t.operators.save : t.operators.make}
          </Button>
          {user?.totp && user.name !== self && (
            <Button
              variant="default"
              loading={busy === 'totp'}
              onClick={() => void act('totp', () => call('DELETE', path(user.name!) + '/totp'), t.operators.totpResetDone).then((ok) => ok && close())}
            >
              {t.operators.totpReset}
            </Button>
          )}
          {!!user?.passkeys?.length && user.name !== self && (
            <Button
              variant="default"
              loading={busy === 'passkeys'}
              onClick={() => void act('passkeys', () => call('DELETE', path(user.name!) + '/passkeys'), t.operators.passkeysRemoved).then((ok) => ok && close())}
            >
              {t.operators.passkeysRemove(user.passkeys.length)}
            </Button>
          )}
          {user && user.name !== self && (
            <Button variant="subtle" color="red" onClick={() => setSure(true)}>
              {t.operators.remove}
            </Button>
          )}
        </div>
      </form>
      {sure && user && (
        <ConfirmDialog
          title={t.operators.removeUser(user.name!)}
          text={t.operators.removeUserText}
          yes={t.operators.remove}
          close={() => setSure(false)}
          go={() => act('remove', () => call('DELETE', path(user.name!), { ifMatch: '*' }), t.operators.removed).then((ok) => ok && close())}
        />
      )}
    </Panel>
  )
}
