import { Alert, Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { useState, type FormEvent } from 'react'
import { client, data } from '@/api/client'
import { fieldOf, Problem, sentence } from '@/api/problem'
import { keepSecret } from '@/api/session'
import { Logo } from '@/ui/basics'
import { t } from '@/text'

/** Takes the token out of the address at once, so that no history keeps it. */
const fromLink = location.pathname === '/setup' ? location.hash.slice(1) : ''
if (fromLink) history.replaceState(null, '', '/setup')

/** Makes the first user. */
export function SetUpPage({ done }: { done: () => void }) {
  const [token, setToken] = useState(fromLink)
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)

  async function submit(e: FormEvent) {
    e.preventDefault()
    setBusy(true)
    setWrong({})
    try {
      const s = await data(client.POST('/api/v1/setup', { body: { token: token.trim(), user: name, password } }))
      keepSecret(s.secret ?? null)
      done()
    } catch (e) {
      const field = e instanceof Problem ? fieldOf(e.mistakes[0]!.pointer) : ''
      setWrong({ [['token', 'user', 'password'].includes(field) ? field : '']: sentence(e) })
    } finally {
      setBusy(false)
    }
  }

  return (
    <main className="gate">
      <div className="card gate-card">
        <div className="gate-brand">
          <Logo size={34} />
          {t.brand}
        </div>
        <h1 style={{ margin: '0 0 6px' }}>{t.setup.title}</h1>
        <p style={{ marginTop: 0 }}>{t.setup.text}</p>
        <form onSubmit={submit}>
          <Stack gap="md">
            {wrong[''] && (
              <Alert color="red" role="alert" variant="light">
                {wrong['']}
              </Alert>
            )}
            {fromLink && !wrong.token ? (
              <p className="small" style={{ margin: 0 }}>
                {t.setup.fromLink}
              </p>
            ) : (
              <TextInput
                label={t.setup.token}
                description={t.setup.tokenHelp}
                required
                withAsterisk={false}
                autoComplete="off"
                value={token}
                error={wrong.token}
                onChange={(e) => setToken(e.currentTarget.value)}
              />
            )}
            <TextInput label={t.setup.name} required withAsterisk={false} autoComplete="username" value={name} error={wrong.user} onChange={(e) => setName(e.currentTarget.value)} autoFocus />
            <PasswordInput
              label={t.setup.password}
              description={t.setup.passwordHelp}
              required
              withAsterisk={false}
              autoComplete="new-password"
              value={password}
              error={wrong.password}
              onChange={(e) => setPassword(e.currentTarget.value)}
            />
            <Button type="submit" size="md" loading={busy}>
              {t.setup.submit}
            </Button>
          </Stack>
        </form>
      </div>
    </main>
  )
}
