import { Button, MultiSelect, Select, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Card, Empty, Failure, Loading, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { Once } from '@/ui/Once'
import { t } from '@/text'
import { access, choices, inDays, tokens, type Token } from './queries'

const words = t.access

/** The tokens of applications that cannot show the sign-in page. */
export function Tokens() {
  const list = useQuery(tokens)
  const [making, setMaking] = useState(false)
  const [made, setMade] = useState<Token>()
  const [gone, setGone] = useState<Token>()
  const { act } = useAct('access', 'audit')
  const columns = useMemo<Column<Token>[]>(
    () => [
      {
        id: 'name',
        title: words.name,
        sort: (x) => x.name ?? '',
        cell: (x) => (
          <>
            <span className="row-name clip">{x.name}</span>
            <span className="small clip">{[x.person && words.local(x.person), x.description].filter(Boolean).join(': ')}</span>
          </>
        ),
      },
      {
        id: 'limited',
        title: words.limitedTo,
        phone: false,
        cell: (x) => (
          <span className="clip" title={[...(x.proxies ?? []), ...(x.paths ?? [])].join(', ')}>
            {[...(x.proxies ?? []), ...(x.paths ?? [])].join(', ') || words.everywhere}
          </span>
        ),
      },
      {
        id: 'expires',
        title: words.expires,
        width: '120px',
        phone: false,
        from: 960,
        sort: (x) => x.expires ?? '9',
        cell: (x) => (!x.expires ? words.never : Date.parse(x.expires) < Date.now() ? <StateBadge state="expired">{words.expired}</StateBadge> : <Ago time={x.expires} />),
      },
      {
        id: 'used',
        title: words.used,
        width: '140px',
        phone: false,
        sort: (x) => x.used ?? '',
        cell: (x) =>
          x.used ? (
            <>
              <Ago time={x.used} />
              <span className="small clip">{x.used_from && words.from(x.used_from)}</span>
            </>
          ) : (
            words.never
          ),
      },
      {
        id: 'revoke',
        title: t.entries.actionsTitle,
        quiet: true,
        width: '124px',
        cell: (x) => (
          <Button size="compact-sm" variant="subtle" color="red" onClick={() => setGone(x)} aria-label={words.revokeOf(x.name!)}>
            {words.revoke}
          </Button>
        ),
      },
    ],
    [],
  )
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const add = <Button onClick={() => setMaking(true)}>{words.addToken}</Button>
  return (
    <>
      {list.data.length === 0 ? (
        <Card>
          <Empty title={words.noTokens} action={add}>
            {words.noTokensText}
          </Empty>
        </Card>
      ) : (
        <DataTable
          rows={list.data}
          columns={columns}
          id={(x) => x.name!}
          searchable={(x) => ({ '': [x.name, x.description, x.person, ...(x.proxies ?? [])].join(' ') })}
          noun={[words.token, words.tokens]}
          tools={add}
        />
      )}
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
        <Once title={words.tokenMade} value={made.token ?? ''} close={() => setMade(undefined)}>
          <p className="lead">
            {words.once} {!made.person && words.tokenAllow(made.name!)}
          </p>
        </Once>
      )}
      {gone && (
        <ConfirmDialog
          title={words.revokeToken(gone.name!)}
          text={words.revokeTokenText}
          yes={words.revoke}
          close={() => setGone(undefined)}
          go={() => act('', () => call('DELETE', `/gate/tokens/${encodeURIComponent(gone.name!)}`), words.revoked)}
        />
      )}
    </>
  )
}

function TokenForm({ close, made }: { close: () => void; made: (x: Token) => void }) {
  const gated = useQuery(access).data?.gated ?? []
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [person, setPerson] = useState('')
  const [days, setDays] = useState('365')
  const [proxies, setProxies] = useState<string[]>([])
  const [paths, setPaths] = useState('')
  const { act, busy, wrong } = useAct('access', 'audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const body = { name, description, person: person.trim(), proxies, paths: paths.split(/\s+/).filter(Boolean), expires: inDays(days) }
    const answer = await act('make', () => call<Token>('POST', '/gate/tokens', { body }))
    if (answer) made(answer.value)
  }
  return (
    <Panel close={close} width={520} title={words.addToken}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{words.tokenHelp}</p>
        <Wrong wrong={wrong} fields={['name', 'description', 'person', 'proxies', 'paths', 'expires']} />
        <TextInput label={words.name} value={name} error={wrong.name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus autoComplete="off" spellCheck={false} />
        <TextInput label={words.description} value={description} error={wrong.description} onChange={(e) => setDescription(e.currentTarget.value)} />
        <TextInput
          label={words.tokenPerson}
          description={words.tokenPersonHelp}
          value={person}
          error={wrong.person}
          onChange={(e) => setPerson(e.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
        />
        <Select label={words.expires} value={days} onChange={(v) => setDays(v ?? '')} data={choices(words.lifetimes)} allowDeselect={false} error={wrong.expires} />
        <MultiSelect label={words.limitedTo} description={words.limitedToHelp} value={proxies} onChange={setProxies} data={gated} searchable error={wrong.proxies} />
        <Textarea label={words.paths} description={words.pathsHelp} value={paths} error={wrong.paths} onChange={(e) => setPaths(e.currentTarget.value)} autosize minRows={1} spellCheck={false} />
        <Button type="submit" loading={busy === 'make'}>
          {words.make}
        </Button>
      </form>
    </Panel>
  )
}
