import { Button, PasswordInput, Stack, TextInput, Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { client, data } from '@/api/client'
import { Problem, sentence } from '@/api/problem'
import { setupState } from '@/api/queries'
import { keepSecret, secret, signedInAgain, signInWanted } from '@/api/session'
import { useStore } from '@/api/store'
import { Logo } from '@/ui/basics'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'

/** The form of name and password; a code is asked for when the user has an authenticator. */
function SignInForm({ name: known, provider, done }: { name?: string; provider?: boolean; done: () => void }) {
  const [name, setName] = useState(known ?? '')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [wantsCode, setWantsCode] = useState(false)
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const passkeys = useQuery(setupState).data?.passkeys && 'PublicKeyCredential' in window

  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      const s = await data(client.POST('/api/v1/session', { body: { user: name, password, code: code || undefined } }))
      keepSecret(s.secret ?? null)
      done()
    } catch (e) {
      if (e instanceof Problem && e.code === 'totp_required') {
        if (wantsCode) setError(sentence(e))
        setWantsCode(true)
      } else setError(sentence(e))
    } finally {
      setBusy(false)
    }
  }

  async function withPasskey() {
    setError('')
    try {
      const { signInWithPasskey } = await import('./passkey')
      await signInWithPasskey()
      done()
    } catch (e) {
      setError(e instanceof Problem ? sentence(e) : t.signIn.passkeyFailed)
    }
  }

  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {error && (
          <Alert color="red" role="alert" variant="light">
            {error}
          </Alert>
        )}
        <TextInput label={t.signIn.name} autoComplete="username" required withAsterisk={false} value={name} onChange={(e) => setName(e.currentTarget.value)} autoFocus={!known} />
        <PasswordInput
          label={t.signIn.password}
          autoComplete="current-password"
          required
          withAsterisk={false}
          value={password}
          onChange={(e) => setPassword(e.currentTarget.value)}
          autoFocus={!!known}
        />
        {wantsCode && (
          <TextInput label={t.signIn.code} description={t.signIn.codeHelp} autoComplete="one-time-code" inputMode="numeric" value={code} onChange={(e) => setCode(e.currentTarget.value)} autoFocus />
        )}
        <Button type="submit" loading={busy} size="md">
          {t.signIn.submit}
        </Button>
        {passkeys && (
          <Button variant="default" size="md" onClick={() => void withPasskey()}>
            {t.signIn.passkey}
          </Button>
        )}
        {provider && (
          <Button variant="default" size="md" onClick={() => void toProvider().catch((e) => setError(sentence(e)))}>
            {t.signIn.provider}
          </Button>
        )}
      </Stack>
    </form>
  )
}

const oidcKey = 'headgate.oidc'

async function toProvider() {
  const s = await data(client.POST('/api/v1/session/oidc', { body: {} }))
  sessionStorage.setItem(oidcKey, JSON.stringify({ browser: s.browser }))
  location.assign(s.url!)
}

/** Ends a sign-in through a provider, with what it has sent back in the address. */
export async function finishProvider(): Promise<void> {
  const query = new URLSearchParams(location.search)
  history.replaceState(null, '', '/signed-in')
  const { browser } = JSON.parse(sessionStorage.getItem(oidcKey) ?? '{}')
  sessionStorage.removeItem(oidcKey)
  const s = await data(client.PUT('/api/v1/session/oidc', { body: { code: query.get('code') ?? '', state: query.get('state') ?? '', browser: browser ?? '' } }))
  keepSecret(s.secret ?? null)
}

export function SignInPage({ provider }: { provider: boolean }) {
  return (
    <main className="gate">
      <div className="card gate-card">
        <div className="gate-brand">
          <Logo size={34} />
          {t.brand}
        </div>
        <h1 style={{ margin: '0 0 18px' }}>{t.signIn.title}</h1>
        <SignInForm provider={provider} done={() => {}} />
        <p className="small" style={{ marginBottom: 0 }}>
          {t.signIn.forgot}
        </p>
      </div>
    </main>
  )
}

/** Asks to sign in again over the page as it is. */
export function SignInAgain({ name }: { name?: string }) {
  const wanted = useStore(signInWanted)
  const leave = () => {
    signedInAgain(false)
    keepSecret(null)
  }
  return (
    <Dialog opened={wanted} close={leave} title={t.signIn.again} zIndex={1000} closeOnClickOutside={false} closeOnEscape={false} withCloseButton={false}>
      <Stack>
        <p style={{ margin: 0 }}>{t.signIn.againText}</p>
        {wanted && <SignInForm name={name} done={() => signedInAgain(true)} />}
        <Button variant="subtle" onClick={leave}>
          {t.signIn.leave}
        </Button>
      </Stack>
    </Dialog>
  )
}

export async function signOut() {
  try {
    await client.DELETE('/api/v1/session')
  } finally {
    if (secret.get()) keepSecret(null)
  }
}
