import { Button, MultiSelect, Select, Textarea, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useMemo, useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { all } from '@/api/queries'
import type { components } from '@/api/schema'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Empty, Failure, Loading, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { Once } from '@/ui/Once'
import { t } from '@/text'
import { roleChoices } from './Users'

type Token = components['schemas']['tokenBody']
const tokens = queryOptions({ queryKey: ['tokens'], queryFn: ({ signal }) => all<Token>('/tokens', signal).then((p) => p.value) })

/** The areas that scopes may name. */
const areas = ['access', 'backup', 'cache', 'certificates', 'config', 'events', 'logs', 'notices', 'operators', 'status', 'webhooks'].flatMap((a) => [a, a + ':read'])

export function Tokens() {
  const list = useQuery(tokens)
  const [making, setMaking] = useState(false)
  const [made, setMade] = useState<Token>()
  const [gone, setGone] = useState<Token>()
  const { act } = useAct('tokens', 'audit')
  const columns = useMemo<Column<Token>[]>(
    () => [
      {
        id: 'name',
        title: t.operators.name,
        sort: (x) => x.name ?? '',
        cell: (x) => (
          <>
            <span className="row-name clip">{x.name}</span>
            <span className="small clip">{x.description}</span>
          </>
        ),
      },
      { id: 'role', title: t.operators.role, width: '100px', sort: (x) => x.role ?? '', cell: (x) => t.operators.roles[x.role!] ?? x.role },
      {
        id: 'scopes',
        title: t.operators.scopes,
        phone: false,
        cell: (x) => (
          <span className="clip" title={x.scopes?.join(', ')}>
            {x.scopes?.join(', ') || t.operators.all}
          </span>
        ),
      },
      {
        id: 'expires',
        title: t.operators.expires,
        width: '120px',
        phone: false,
        from: 960,
        sort: (x) => x.expires ?? '9',
        cell: (x) => (!x.expires ? t.operators.neverEnds : Date.parse(x.expires) < Date.now() ? <StateBadge state="expired">{t.certificates.word.expired}</StateBadge> : <Ago time={x.expires} />),
      },
      {
        id: 'used',
        title: t.operators.used,
        width: '140px',
        phone: false,
        from: 1100,
        sort: (x) => x.used ?? '',
        cell: (x) =>
          x.used ? (
            <>
              <Ago time={x.used} />
              <span className="small clip">{x.used_from && t.operators.from(x.used_from)}</span>
            </>
          ) : (
            t.operators.never
          ),
      },
      {
        id: 'revoke',
        title: '',
        width: '124px',
        cell: (x) => (
          <Button size="compact-sm" variant="subtle" color="red" onClick={() => setGone(x)} aria-label={`${t.operators.revoke} ${x.name}`}>
            {t.operators.revoke}
          </Button>
        ),
      },
    ],
    [],
  )
  const add = <Button onClick={() => setMaking(true)}>{t.operators.addToken}</Button>
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  return (
    <>
      <DataTable
        rows={list.data}
        columns={columns}
        id={(x) => x.name!}
        searchable={(x) => ({ '': [x.name, x.description, ...(x.scopes ?? [])].join(' '), role: x.role ?? '' })}
        noun={[t.operators.token, t.operators.tokens]}
        tools={add}
        empty={
          <Empty title={t.operators.emptyTokens} action={add}>
            {t.operators.emptyTokensText}
          </Empty>
        }
      />
      {making && (
        <TokenForm
          close={() => setMaking(false)}
          made={(x) => {
            setMaking(false)
            setMade(x)
          }}
        />
      )}
      {made && (
        <Once title={t.operators.tokenMade} value={made.token ?? ''} close={() => setMade(undefined)}>
          <p className="lead">{t.operators.tokenOnce}</p>
        </Once>
      )}
      {gone && (
        <ConfirmDialog
          title={t.operators.revokeToken(gone.name!)}
          text={t.operators.revokeTokenText}
          yes={t.operators.revoke}
          close={() => setGone(undefined)}
          go={() => act('', () => call('DELETE', `/tokens/${encodeURIComponent(gone.name!)}`, { ifMatch: '*' }), t.operators.removed)}
        />
      )}
    </>
  )
}

function TokenForm({ close, made }: { close: () => void; made: (x: Token) => void }) {
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [role, setRole] = useState('viewer')
  const [scopes, setScopes] = useState<string[]>([])
  const [days, setDays] = useState('90')
  const [addresses, setAddresses] = useState('')
  const { act, busy, wrong } = useAct('tokens', 'audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const expires = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : undefined
    const body = { name, description, role, scopes, expires, addresses: addresses.split(/[\s,]+/).filter(Boolean) }
    const answer = await act('make', () => call<Token>('POST', '/tokens', { body }))
    if (answer) made(answer.value)
  }
  return (
    <Panel close={close} width={520} title={t.operators.addToken}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{t.operators.tokenHelp}</p>
        <Wrong wrong={wrong} fields={['name', 'description', 'role', 'scopes', 'expires', 'addresses']} />
        <TextInput label={t.operators.name} value={name} error={wrong.name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus autoComplete="off" />
        <TextInput label={t.operators.description} value={description} error={wrong.description} onChange={(e) => setDescription(e.currentTarget.value)} />
        <Select label={t.operators.role} value={role} onChange={(v) => v && setRole(v)} data={roleChoices} allowDeselect={false} error={wrong.role} />
        <Select
          label={t.operators.expires}
          value={days}
          onChange={(v) => setDays(v ?? '')}
          data={Object.entries(t.operators.lifetimes).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
          error={wrong.expires}
        />
        <MultiSelect label={t.operators.scopes} description={t.operators.scopesHelp} value={scopes} onChange={setScopes} data={areas} searchable error={wrong.scopes} />
        <Textarea
          label={t.operators.addresses}
          description={t.operators.addressesHelp}
          value={addresses}
          error={wrong.addresses}
          onChange={(e) => setAddresses(e.currentTarget.value)}
          autosize
          minRows={2}
        />
        <Button type="submit" loading={busy === 'make'}>
          {t.operators.make}
        </Button>
      </form>
    </Panel>
  )
}
