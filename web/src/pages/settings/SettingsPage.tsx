import { Button, FileInput, PasswordInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { send } from '@/api/client'
import { canEdit, isAdmin, me, object, version, type AnyObject, type Change } from '@/api/queries'
import { useStore } from '@/api/store'
import { basket, configTag, editOf } from '@/edit/basket'
import { useEditing } from '@/edit/editing'
import { Entries } from '@/edit/Entries'
import { written } from '@/edit/object'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { PlanDrawer } from '@/edit/PlanDrawer'
import { label } from '@/edit/words'
import { Card, Detail, KeyValues, PageHeader, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'

const kinds = Object.keys(t.settings.kinds)

/** What holds for all of headgate, the policies, and the backup. */
export default function SettingsPage() {
  const { data: who } = useQuery(me)
  const { data: v } = useQuery(version)
  return (
    <>
      <PageHeader title={t.pages.settings} lead={t.settings.lead} />
      <Detail
        aside={
          <>
            <Backup may={isAdmin(who?.role)} />
            {isAdmin(who?.role) && <Restore />}
            <Card title={t.settings.about}>
              <KeyValues rows={[[t.settings.version, v?.version], [t.settings.go, v?.go], ...(v?.instance ? [[t.settings.instance, v.instance] as [string, string]] : [])]} />
            </Card>
          </>
        }
      >
        <Card title={t.pages.settings}>
          <ul className="rows">
            {kinds.map((kind) => (
              <Setting key={kind} kind={kind} may={canEdit(who?.role)} />
            ))}
          </ul>
        </Card>
        <Entries
          kind="policies"
          title={t.settings.policies}
          lead={t.settings.policiesLead}
          empty={t.settings.noPolicies}
          line={(o) =>
            Object.keys(written('policies', o))
              .filter((k) => !['description', 'tags'].includes(k))
              .map(label)
              .join(', ')
          }
        />
      </Detail>
    </>
  )
}

function Setting({ kind, may }: { kind: string; may: boolean }) {
  const one = useQuery({ ...object<AnyObject>(kind, ''), retry: false })
  const waiting = editOf(useStore(basket), kind, '')
  const [open, setOpen] = useEditing(kind)
  const [title, about] = t.settings.kinds[kind]!
  const set = one.data
    ? Object.entries(written(kind, one.data))
        .filter(([, v]) => v !== undefined && v !== null && !(typeof v === 'object' && Object.keys(v).length === 0))
        .map(([k]) => k)
    : []
  return (
    <li className="entry">
      <span className="entry-name">
        <strong>{title}</strong> {waiting && <StateBadge state="pending">{t.edit.unsaved}</StateBadge>}
        <span className="small block">{about}</span>
        <span className="small block">{set.length ? `${t.settings.set}: ${set.map(label).join(', ')}` : t.settings.unset}</span>
      </span>
      {may && (
        <Button size="compact-sm" variant="default" disabled={!one.data} onClick={() => setOpen('')} aria-label={`${t.settings.edit} ${title}`}>
          {t.settings.edit}
        </Button>
      )}
      {open !== undefined && may && one.data && <ObjectEditor kind={kind} name="" object={one.data} title={title} onClose={() => setOpen(undefined)} />}
    </li>
  )
}

/** The archive comes as the answer of a request with the session, so it is handed on here. */
function Backup({ may }: { may: boolean }) {
  const [passphrase, setPassphrase] = useState('')
  const { act, busy, wrong } = useAct('audit')
  async function submit(e: FormEvent) {
    e.preventDefault()
    await act(
      'go',
      async () => {
        const response = await send(
          new Request(new URL('/api/v1/backup', location.origin), { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(passphrase ? { passphrase } : {}) }),
        )
        const url = URL.createObjectURL(await response.blob())
        const a = document.createElement('a')
        a.href = url
        a.download = /filename="?([^";]+)/.exec(response.headers.get('Content-Disposition') ?? '')?.[1] ?? `headgate-${new Date().toISOString().slice(0, 10)}.backup`
        a.click()
        setTimeout(() => URL.revokeObjectURL(url), 60_000)
        setPassphrase('')
      },
      t.settings.downloaded,
    )
  }
  return (
    <Card title={t.settings.backupTitle}>
      <p className="small lead">{t.settings.backupText}</p>
      {!may ? (
        <p className="small lead">{t.settings.backupAdmins}</p>
      ) : (
        <form onSubmit={submit} className="fields" noValidate>
          <Wrong wrong={wrong} fields={['passphrase']} />
          <PasswordInput
            label={t.settings.passphrase}
            description={t.settings.passphraseHelp}
            value={passphrase}
            error={wrong.passphrase}
            onChange={(e) => setPassphrase(e.currentTarget.value)}
            autoComplete="new-password"
          />
          <Button type="submit" variant="default" loading={busy === 'go'}>
            {t.settings.download}
          </Button>
        </form>
      )}
    </Card>
  )
}

/** Restores an archive: its plan is shown like that of every change, and nothing happens before it is applied. */
function Restore() {
  const [file, setFile] = useState<File | null>(null)
  const [passphrase, setPassphrase] = useState('')
  const [shown, setShown] = useState(false)
  const archive = (options: { etag: string; dryRun?: boolean; why?: string; within?: string }) => {
    const url = new URL('/api/v1/restore', location.origin)
    if (options.dryRun) url.searchParams.set('dry_run', 'true')
    if (options.why) url.searchParams.set('why', options.why)
    const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream', 'If-Match': options.etag }
    if (passphrase) headers['Headgate-Passphrase'] = btoa(String.fromCharCode(...new TextEncoder().encode(passphrase)))
    return send(new Request(url, { method: 'POST', headers, body: file })).then((r) => r.json() as Promise<Change>)
  }
  return (
    <Card title={t.settings.restoreTitle}>
      <p className="small lead">{t.settings.restoreText}</p>
      <form
        className="fields"
        noValidate
        onSubmit={(e) => {
          e.preventDefault()
          setShown(true)
        }}
      >
        <FileInput label={t.settings.archive} placeholder={t.settings.chooseArchive} value={file} onChange={setFile} clearable={false} />
        <PasswordInput label={t.settings.passphrase} value={passphrase} onChange={(e) => setPassphrase(e.currentTarget.value)} autoComplete="off" />
        <Button type="submit" variant="default" disabled={!file}>
          {t.settings.restorePlan}
        </Button>
      </form>
      {shown && file && (
        <PlanDrawer
          id={`restore ${file.name} ${file.lastModified}`}
          title={t.settings.restoreTitle}
          lead={t.settings.restoreLead}
          nothing={t.settings.restoreNothing}
          always
          confirmable={false}
          close={() => setShown(false)}
          plan={async () => {
            const etag = await configTag()
            return { etag, change: await archive({ etag, dryRun: true }) }
          }}
          apply={(etag, options) => archive({ etag, why: options.why })}
          done={() => t.settings.restored}
        />
      )}
    </Card>
  )
}
