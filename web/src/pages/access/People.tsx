import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { failed } from '@/api/problem'
import { DataTable, type Column } from '@/ui/DataTable'
import { Ago, Card, Empty, Failure, Loading, StateBadge } from '@/ui/basics'
import { Once } from '@/ui/Once'
import { t } from '@/text'
import { credentials } from './credentials'
import { PersonForm, type Invited } from './PersonForm'
import { people, type Person } from './queries'

const words = t.access

/** The people who are kept by headgate. */
export function People({ may }: { may: boolean }) {
  const list = useQuery(people)
  const [edited, setEdited] = useState<Person | 'new'>()
  const columns = useMemo<Column<Person>[]>(
    () => [
      {
        id: 'name',
        title: words.name,
        sort: (p) => p.name ?? '',
        cell: (p) => (
          <>
            {may ? (
              <button type="button" className="row-button row-name" onClick={() => setEdited(p)}>
                {p.name}
              </button>
            ) : (
              <span className="row-name clip">{p.name}</span>
            )}
            <span className="small clip">{[p.full_name, p.email].filter(Boolean).join(', ')}</span>
          </>
        ),
      },
      { id: 'groups', title: words.groups, phone: false, sort: (p) => p.groups?.join() ?? '', cell: (p) => <span className="clip">{p.groups?.join(', ') || '–'}</span> },
      {
        id: 'credentials',
        title: words.credentials,
        width: '190px',
        sort: credentials,
        cell: (p) =>
          p.disabled ? (
            <StateBadge state="disabled" />
          ) : credentials(p) ? (
            <span className="clip">{credentials(p)}</span>
          ) : p.invited ? (
            <span className="small">
              {words.invited} <Ago time={p.invited} />
            </span>
          ) : (
            <StateBadge state="none" meaning="warn">
              {words.noCredentials}
            </StateBadge>
          ),
      },
      { id: 'sessions', title: t.access.tabs.sessions!, width: '100px', number: true, phone: false, from: 960, sort: (p) => p.sessions ?? 0, cell: (p) => p.sessions },
      { id: 'signed_in', title: words.signedIn, width: '130px', phone: false, sort: (p) => p.signed_in ?? '', cell: (p) => (p.signed_in ? <Ago time={p.signed_in} /> : words.never) },
    ],
    [may],
  )
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const add = may && <Button onClick={() => setEdited('new')}>{words.addPerson}</Button>
  const empty = (
    <Empty title={words.noPeople} action={add}>
      {words.noPeopleText}
    </Empty>
  )
  return (
    <>
      {list.data.length === 0 ? (
        <Card>{empty}</Card>
      ) : (
        <DataTable
          rows={list.data}
          columns={columns}
          id={(p) => p.name!}
          searchable={(p) => ({ '': [p.name, p.full_name, p.email, ...(p.groups ?? [])].join(' '), group: p.groups?.join(' ') ?? '' })}
          noun={[words.person, words.persons]}
          open={may ? setEdited : undefined}
          tools={add}
        />
      )}
      <PersonDialogs edited={edited} set={setEdited} />
    </>
  )
}

/** The form of a person, and the link that it leads to. */
export function PersonDialogs({ edited, set }: { edited?: Person | 'new'; set: (p?: Person | 'new') => void }) {
  const [link, setLink] = useState<Invited>()
  return (
    <>
      {edited && (
        <PersonForm
          person={edited === 'new' ? undefined : edited}
          close={() => set(undefined)}
          invited={(x) => {
            set(undefined)
            setLink(x)
          }}
        />
      )}
      {link &&
        (link.link ? (
          <Once title={words.inviteTitle(link.name)} value={link.link} close={() => setLink(undefined)}>
            <p className="lead">
              {words.inviteText} {words.expires}: <Ago time={link.expires} />.
            </p>
          </Once>
        ) : (
          <Once title={words.inviteTitle(link.name)} value={link.path ?? ''} close={() => setLink(undefined)}>
            <p className="lead">{words.inviteNoPage}</p>
          </Once>
        ))}
    </>
  )
}
