import { Button, FileButton, NumberInput, Textarea, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { all, canEdit, me } from '@/api/queries'
import type { components } from '@/api/schema'
import { put } from '@/edit/basket'
import { Card, Failure, Loading } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'
import { CertificateBadge } from './CertificateBadge'

type StoredCertificate = components['schemas']['storedBody']
const stored = queryOptions({ queryKey: ['stored'], queryFn: ({ signal }) => all<StoredCertificate>('/stored_certificates', signal).then((p) => p.value), retry: false })
const words = t.certificates.stored

/** Certificates that were uploaded or made here; an entry of the configuration names them. */
export function Stored() {
  const list = useQuery(stored)
  const { data: who } = useQuery(me)
  const [making, setMaking] = useState<'upload' | 'self_signed'>()
  const [gone, setGone] = useState<StoredCertificate>()
  const { act } = useAct('stored', 'audit', 'status')
  const may = canEdit(who?.role)
  return (
    <Card
      title={words.title}
      actions={
        may && (
          <span className="entry-actions">
            <Button size="compact-sm" variant="default" onClick={() => setMaking('upload')}>
              {words.upload}
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => setMaking('self_signed')}>
              {words.selfSigned}
            </Button>
          </span>
        )
      }
    >
      <p className="small lead">{words.lead}</p>
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : list.data.length === 0 ? (
        <p className="small lead">{words.none}</p>
      ) : (
        <ul className="rows">
          {list.data.map((c) => {
            return (
              <li key={c.name} className="entry">
                <span className="entry-name">
                  <strong>
                    <bdi>{c.name}</bdi>
                  </strong>{' '}
                  <CertificateBadge state={c.state ?? ''} daysLeft={c.days_left} />
                  <span className="small block">{(c.names ?? []).join(', ')}</span>
                  <span className="small block">
                    {[issuerName(c.issuer), t.certificates.days(c.days_left ?? 0), c.used_by?.length ? words.usedBy(c.used_by.join(', ')) : words.unused].filter(Boolean).join(' · ')}
                  </span>
                  {(c.notes ?? []).map((n) => (
                    <span key={n} className="small block">
                      ▲ {n}
                    </span>
                  ))}
                </span>
                {may && (
                  <span className="entry-actions">
                    {!c.used_by?.length && (
                      <Button size="compact-sm" variant="default" onClick={() => use(c.name!)} aria-label={`${words.use} ${c.name}`}>
                        {words.use}
                      </Button>
                    )}
                    <Button size="compact-sm" variant="subtle" color="red" onClick={() => setGone(c)} aria-label={`${t.proxy.remove} ${c.name}`}>
                      {t.proxy.remove}
                    </Button>
                  </span>
                )}
              </li>
            )
          })}
        </ul>
      )}
      {making && <Make kind={making} close={() => setMaking(undefined)} />}
      {gone && (
        <ConfirmDialog
          title={words.removeTitle(gone.name!)}
          text={words.removeText}
          yes={t.proxy.remove}
          close={() => setGone(undefined)}
          go={() => act('', () => call('DELETE', `/stored_certificates/${encodeURIComponent(gone.name!)}`, { ifMatch: gone.etag }), t.operators.removed)}
        />
      )}
    </Card>
  )
}

/** Of a distinguished name what people read: its CN, else its O. */
function issuerName(dn = ''): string {
  const part = (key: string) => new RegExp(`(?:^|[,+])${key}=((?:\\\\.|[^,+])*)`).exec(dn)?.[1]?.replace(/\\(.)/g, '$1')
  return part('CN') ?? part('O') ?? dn
}

/** An entry of the configuration that names it goes into the changes. */
function use(name: string, message = words.inChanges) {
  put({ kind: 'certificates', name, op: 'set', value: { stored: name } })
  notifications.show({ message, color: 'teal' })
}

function Make({ kind, close }: { kind: 'upload' | 'self_signed'; close: () => void }) {
  const [name, setName] = useState('')
  const [certificate, setCertificate] = useState('')
  const [key, setKey] = useState('')
  const [hosts, setHosts] = useState('')
  const [days, setDays] = useState<number | string>(365)
  const { act, busy, wrong } = useAct('stored', 'audit', 'status')
  async function submit(e: FormEvent) {
    e.preventDefault()
    const body = kind === 'upload' ? { name, certificate, key } : { name, hosts: hosts.split(/[\s,]+/).filter(Boolean), days: Number(days) }
    const made = await act('go', () => call<StoredCertificate>('POST', `/certificates/${kind}`, { body }))
    if (!made) return
    use(name, words.kept)
    close()
  }
  const file = (set: (text: string) => void) => (f: File | null) => void f?.text().then(set)
  return (
    <Panel close={close} width={560} title={kind === 'upload' ? words.uploadTitle : words.selfTitle} closeOnClickOutside={false}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">{kind === 'upload' ? words.uploadText : words.selfText}</p>
        <Wrong wrong={wrong} fields={['name', 'certificate', 'key', 'hosts', 'days']} />
        <TextInput label={words.name} value={name} error={wrong.name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus autoComplete="off" spellCheck={false} />
        {kind === 'upload' ? (
          (
            [
              ['certificate', words.certificate, certificate, setCertificate],
              ['key', words.key, key, setKey],
            ] as const
          ).map(([field, label, value, set]) => (
            <div key={field}>
              <Textarea
                label={label}
                value={value}
                error={wrong[field]}
                onChange={(e) => set(e.currentTarget.value)}
                placeholder={field === 'key' ? '-----BEGIN PRIVATE KEY-----' : '-----BEGIN CERTIFICATE-----'}
                autosize
                minRows={3}
                maxRows={8}
                className="mono"
                spellCheck={false}
                autoComplete="off"
              />
              <FileButton onChange={file(set)} accept=".pem,.crt,.cer,.key">
                {(props) => (
                  <Button {...props} size="compact-sm" variant="subtle">
                    {words.file}
                  </Button>
                )}
              </FileButton>
            </div>
          ))
        ) : (
          <>
            <Textarea label={words.hosts} description={words.hostsHelp} value={hosts} error={wrong.hosts} onChange={(e) => setHosts(e.currentTarget.value)} autosize minRows={2} />
            <NumberInput label={words.days} value={days} error={wrong.days} onChange={setDays} min={1} max={3650} w={140} />
          </>
        )}
        <Button type="submit" loading={busy === 'go'}>
          {kind === 'upload' ? words.upload : words.selfSigned}
        </Button>
      </form>
    </Panel>
  )
}
