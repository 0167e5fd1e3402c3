import { Button, Select, Switch, TextInput } from '@mantine/core'
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
import { access, choices, inDays, links, type ShareLink } from './queries'

const words = t.access

/** The share links: one page of an application for guests. */
export function Links() {
  const list = useQuery(links)
  const [making, setMaking] = useState(false)
  const [made, setMade] = useState<ShareLink>()
  const [gone, setGone] = useState<ShareLink>()
  const { act } = useAct('access', 'audit')
  const columns = useMemo<Column<ShareLink>[]>(
    () => [
      {
        id: 'url',
        title: words.url,
        sort: (x) => x.url ?? '',
        cell: (x) => (
          <>
            <span className="row-name clip" title={x.url}>
              {x.url}
            </span>
            <span className="small clip">{[x.description, x.writes && words.writes].filter(Boolean).join(', ')}</span>
          </>
        ),
      },
      {
        id: 'visits',
        title: words.uses,
        width: '180px',
        phone: false,
        cell: (x) => (
          <span className="clip">
            {words.visits(x.visits ?? 0)} {x.used ? <StateBadge state="used">{words.usedUp}</StateBadge> : x.uses ? `, ${words.usesLeft(x.uses)}` : ''}
          </span>
        ),
      },
      { id: 'expires', title: words.expires, width: '120px', sort: (x) => x.expires ?? '', cell: (x) => <Ago time={x.expires!} /> },
      {
        id: 'revoke',
        title: t.entries.actionsTitle,
        quiet: true,
        width: '124px',
        cell: (x) => (
          <Button size="compact-sm" variant="subtle" color="red" onClick={() => setGone(x)} aria-label={words.revokeOf(x.url!)}>
            {words.revoke}
          </Button>
        ),
      },
    ],
    [],
  )
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const add = <Button onClick={() => setMaking(true)}>{words.addLink}</Button>
  return (
    <>
      {list.data.length === 0 ? (
        <Card>
          <Empty title={words.noLinks} action={add}>
            {words.noLinksText}
          </Empty>
        </Card>
      ) : (
        <DataTable rows={list.data} columns={columns} id={(x) => x.id!} searchable={(x) => ({ '': [x.url, x.description].join(' ') })} noun={[words.link, words.links]} tools={add} />
      )}
      {making && (
        <LinkForm
          close={() => setMaking(false)}
          made={(x) => {
            setMaking(false)
            setMade(x)
          }}
        />
      )}
      {made && (
        <Once title={words.linkMade} value={made.link ?? ''} close={() => setMade(undefined)}>
          <p className="lead">
            {words.once} {words.expires}: <Ago time={made.expires!} />.
          </p>
        </Once>
      )}
      {gone && (
        <ConfirmDialog
          title={words.endLink}
          text={
            <>
              <bdi>{gone.url}</bdi> {words.endLinkText}
            </>
          }
          yes={words.revoke}
          close={() => setGone(undefined)}
          go={() => act('', () => call('DELETE', `/gate/links/${encodeURIComponent(gone.id!)}`), words.revoked)}
        />
      )}
    </>
  )
}

function LinkForm({ close, made }: { close: () => void; made: (x: ShareLink) => void }) {
  const state = useQuery(access).data
  // The port is that of the sign-in page: both are reached in the same way.
  const port = state?.page ? new URL(state.page).port : ''
  const host = state?.gates[0]?.hosts.find((h) => !h.startsWith('*'))
  const [url, setURL] = useState<string>()
  const [days, setDays] = useState('7')
  const [uses, setUses] = useState('')
  const [writes, setWrites] = useState(false)
  const [description, setDescription] = useState('')
  const { act, busy, wrong } = useAct('access', 'audit')
  const address = url ?? (host ? `https://${host}${port && `:${port}`}/` : '')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const body = { url: address, expires: inDays(days), uses: uses ? Number(uses) : undefined, writes, description }
    const answer = await act('make', () => call<ShareLink>('POST', '/gate/links', { body }))
    if (answer) made(answer.value)
  }
  return (
    <Panel close={close} width={520} title={words.addLink}>
      <form onSubmit={submit} className="fields" noValidate>
        <Wrong wrong={wrong} fields={['url', 'expires', 'uses', 'writes', 'description']} />
        <TextInput
          label={words.url}
          description={words.urlHelp}
          type="url"
          value={address}
          error={wrong.url}
          onChange={(e) => setURL(e.currentTarget.value)}
          data-autofocus
          autoComplete="off"
          spellCheck={false}
        />
        <Select label={words.expires} value={days} onChange={(v) => setDays(v ?? '7')} data={choices(words.linkLifetimes)} allowDeselect={false} error={wrong.expires} />
        <Select label={words.uses} value={uses} onChange={(v) => setUses(v ?? '')} data={choices(words.usesTimes)} allowDeselect={false} error={wrong.uses} />
        <Switch label={words.writes} description={words.writesHelp} checked={writes} onChange={(e) => setWrites(e.currentTarget.checked)} />
        <TextInput label={words.description} value={description} error={wrong.description} onChange={(e) => setDescription(e.currentTarget.value)} />
        <Button type="submit" loading={busy === 'make'}>
          {words.make}
        </Button>
      </form>
    </Panel>
  )
}
