import { Button, CopyButton, PasswordInput, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { me, type Whole } from '@/api/queries'
import type { components } from '@/api/schema'
import { Card, Detail, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { QR } from '@/ui/QR'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'
import { Sessions } from '../operators/Sessions'
import { Passkeys } from './Passkeys'

type S = components['schemas']

/** The own password, authenticator, passkeys and sessions. */
export default function AccountPage() {
  const { data: who } = useQuery(me)
  if (!who) return <Loading />
  const local = !who.name?.includes(':')
  return (
    <>
      <PageHeader
        title={<bdi>{who.name}</bdi>}
        badge={
          <StateBadge state="role" meaning="info">
            {t.operators.roles[who.role!] ?? who.role}
          </StateBadge>
        }
        lead={t.account.lead}
      />
      <Detail aside={local ? <Password /> : undefined}>
        {local ? <Authenticator on={!!who.totp} left={who.recovery_codes ?? 0} /> : <p className="small lead">{t.account.notHere}</p>}
        {local && <Passkeys />}
        <Sessions of={who.name} title={t.account.sessions} />
      </Detail>
    </>
  )
}

function Password() {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const { act, busy, wrong } = useAct('session')
  async function submit(e: FormEvent) {
    e.preventDefault()
    if (await act('go', () => call('PUT', '/session/password', { body: { current_password: current, password: next } }).then(() => true), t.account.changed)) {
      setCurrent('')
      setNext('')
    }
  }
  return (
    <Card title={t.account.passwordTitle}>
      <form onSubmit={submit} className="fields" noValidate>
        <Wrong wrong={wrong} fields={['current_password', 'password']} />
        <PasswordInput label={t.account.current} value={current} error={wrong.current_password} onChange={(e) => setCurrent(e.currentTarget.value)} autoComplete="current-password" />
        <PasswordInput label={t.account.next} description={t.operators.passwordHelp} value={next} error={wrong.password} onChange={(e) => setNext(e.currentTarget.value)} autoComplete="new-password" />
        <Button type="submit" variant="default" loading={busy === 'go'}>
          {t.account.change}
        </Button>
      </form>
    </Card>
  )
}

/** Set-up in three steps: the password, the picture with a code to prove it, recovery codes. */
function Authenticator({ on, left }: { on: boolean; left: number }) {
  const [step, setStep] = useState<'off' | 'password' | 'prove' | 'codes'>('off')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [secret, setSecret] = useState({ secret: '', uri: '' })
  const [codes, setCodes] = useState<string[]>([])
  const { act, busy, wrong } = useAct('session', 'users')
  async function start(e: FormEvent) {
    e.preventDefault()
    const answer = await act('start', () => call<Whole<S['enrolment']>>('POST', '/session/totp', { body: { current_password: password } }))
    if (!answer) return
    setSecret(answer.value)
    setPassword('')
    setStep('prove')
  }
  async function prove(e: FormEvent) {
    e.preventDefault()
    const answer = await act('prove', () => call<Whole<S['recoveryCodes']>>('PUT', '/session/totp', { body: { code: code.trim() } }))
    if (!answer) return
    setCodes(answer.value.recovery_codes)
    setSecret({ secret: '', uri: '' })
    setCode('')
    setStep('codes')
  }
  return (
    <Card
      title={t.account.totpTitle}
      actions={
        <StateBadge state="totp" meaning={on ? 'good' : 'calm'}>
          {on ? t.operators.totpOn : t.operators.totpOff}
        </StateBadge>
      }
    >
      {step === 'off' && (
        <>
          <p className="lead">{on ? `${t.account.totpOn} ${t.account.codesLeft(left)}` : t.account.totpOff}</p>
          <Button variant={on ? 'default' : 'filled'} onClick={() => setStep('password')}>
            {on ? t.account.again : t.account.start}
          </Button>
        </>
      )}
      {step === 'password' && (
        <form onSubmit={start} className="fields" noValidate>
          <p className="lead">{t.account.startText}</p>
          <Wrong wrong={wrong} fields={['current_password']} />
          <PasswordInput
            label={t.account.current}
            value={password}
            error={wrong.current_password}
            onChange={(e) => setPassword(e.currentTarget.value)}
            autoFocus
            autoComplete="current-password"
            maw={360}
          />
          <div className="ask">
            <Button type="submit" loading={busy === 'start'}>
              {t.account.start}
            </Button>
            <Button variant="subtle" onClick={() => setStep('off')}>
              {t.edit.cancel}
            </Button>
          </div>
        </form>
      )}
      {step === 'prove' && (
        <form onSubmit={prove} className="fields" noValidate>
          <p className="lead">{t.account.scan}</p>
          <QR text={secret.uri} label={t.account.picture} />
          <p className="small lead">
            {t.account.type} <code>{secret.secret}</code>
          </p>
          <Wrong wrong={wrong} fields={['code']} />
          <TextInput label={t.account.code} value={code} error={wrong.code} onChange={(e) => setCode(e.currentTarget.value)} autoFocus inputMode="numeric" autoComplete="one-time-code" maw={200} />
          <div className="ask">
            <Button type="submit" loading={busy === 'prove'}>
              {t.account.prove}
            </Button>
            <Button variant="subtle" onClick={() => setStep('off')}>
              {t.edit.cancel}
            </Button>
          </div>
        </form>
      )}
      {step === 'codes' && (
        <>
          <h3 style={{ marginTop: 0 }}>{t.account.codesTitle}</h3>
          <p className="lead">{t.account.codesText}</p>
          <pre className="code" tabIndex={0}>
            {codes.join('\n')}
          </pre>
          <div className="ask" style={{ marginTop: 12 }}>
            <CopyButton value={codes.join('\n')}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? t.operators.copied : t.operators.copy}
                </Button>
              )}
            </CopyButton>
            <Button
              onClick={() => {
                setCodes([])
                setStep('off')
              }}
            >
              {t.operators.done}
            </Button>
          </div>
        </>
      )}
    </Card>
  )
}
