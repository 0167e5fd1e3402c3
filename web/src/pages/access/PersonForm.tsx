import { Button, Switch, TagsInput, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { useAct, Wrong } from '@/ui/act'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'
import { EndAll } from './Sessions'
import { groups as groupList, type Person } from './queries'
import { credentials } from './credentials'

const words = t.access
const path = (name: string, more = '') => `/people/${encodeURIComponent(name)}${more}`

/** An invitation link that was created. */
export type Invited = { name: string; link?: string; path?: string; expires: string }
type Made = Omit<Invited, 'name'>

/** Adds a person, who is invited at once, or changes one. */
export function PersonForm({ person, close, invited }: { person?: Person; close: () => void; invited: (x: Invited) => void }) {
  const known = useQuery(groupList).data
  const [name, setName] = useState(person?.name ?? '')
  const [fullName, setFullName] = useState(person?.full_name ?? '')
  const [email, setEmail] = useState(person?.email ?? '')
  const [chosen, setGroups] = useState<string[] | undefined>(person && (person.groups ?? []))
  const [disabled, setDisabled] = useState(!!person?.disabled)
  const [asked, setAsked] = useState<'remove' | 'reset' | 'end'>()
  const { act, busy, wrong } = useAct('access', 'audit')
  // A new person is in the group that gates let in, if there is only one.
  const wanted = (known ?? []).filter((g) => g.proxies?.length)
  const groups = chosen ?? (wanted.length === 1 ? [wanted[0]!.name!] : [])

  const invite = (of: string, how: 'invitation' | 'reset') => act(how, () => call<Made>('POST', path(of, `/${how}`), { body: {} })).then((made) => made && invited({ name: of, ...made.value }))
  async function submit(e: FormEvent) {
    e.preventDefault()
    const body = { full_name: fullName, email, groups, disabled }
    if (person) {
      if (await act('save', () => call('PATCH', path(person.name!), { body, ifMatch: person.etag }), words.saved)) close()
      return
    }
    if (await act('save', () => call('POST', '/people', { body: { ...body, name } }))) await invite(name, 'invitation')
  }
  return (
    <Panel close={close} width={520} title={person ? words.editPerson(person.name!) : words.addPerson}>
      <form onSubmit={submit} className="fields" noValidate>
        <Wrong wrong={wrong} fields={['name', 'full_name', 'email', 'groups', 'disabled']} />
        {!person && (
          <TextInput
            label={words.name}
            description={words.nameHelp}
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
            data-autofocus
            autoComplete="off"
            spellCheck={false}
          />
        )}
        <TextInput label={words.fullName} value={fullName} error={wrong.full_name} onChange={(e) => setFullName(e.currentTarget.value)} autoComplete="off" />
        <TextInput label={words.email} description={words.emailHelp} type="email" value={email} error={wrong.email} onChange={(e) => setEmail(e.currentTarget.value)} autoComplete="off" />
        <TagsInput label={words.groups} description={words.groupsHelp} value={groups} error={wrong.groups} data={(known ?? []).map((g) => g.name!)} onChange={setGroups} acceptValueOnBlur />
        {person && (
          <>
            <p className="small lead">
              {words.credentials}: {credentials(person) || words.noCredentials}
              {person.password && `; ${words.codesLeft(person.recovery_codes ?? 0)}`}
            </p>
            <Switch label={words.disabled} description={words.disabledHelp} checked={disabled} onChange={(e) => setDisabled(e.currentTarget.checked)} />
          </>
        )}
        <div className="ask">
          <Button type="submit" loading={busy === 'save' || (!person && busy === 'invitation')}>
            {person ? words.save : words.addAndInvite}
          </Button>
          {person && (
            <>
              <Button variant="default" loading={busy === 'invitation'} onClick={() => void invite(person.name!, 'invitation')}>
                {words.invite}
              </Button>
              <Button variant="default" onClick={() => setAsked('reset')}>
                {words.reset}
              </Button>
              {!!person.sessions && (
                <Button variant="default" onClick={() => setAsked('end')}>
                  {words.endAll}
                </Button>
              )}
              <Button variant="subtle" color="red" onClick={() => setAsked('remove')}>
                {words.remove}
              </Button>
            </>
          )}
        </div>
      </form>
      {person && asked === 'reset' && (
        <ConfirmDialog title={words.resetTitle(person.name!)} text={words.resetText} yes={words.reset} close={() => setAsked(undefined)} go={() => invite(person.name!, 'reset')} />
      )}
      {person && asked === 'end' && <EndAll person={`local/${person.name}`} close={() => setAsked(undefined)} />}
      {person && asked === 'remove' && (
        <ConfirmDialog
          title={words.removePerson(person.name!)}
          text={words.removePersonText}
          yes={words.remove}
          close={() => setAsked(undefined)}
          go={() => act('', () => call('DELETE', path(person.name!), { ifMatch: '*' }), words.removed).then((ok) => ok && close())}
        />
      )}
    </Panel>
  )
}
