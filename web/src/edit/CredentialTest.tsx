import { Button, TextInput } from '@mantine/core'
import { useState } from 'react'
import { call } from '@/api/client'
import { sentence } from '@/api/problem'
import type { components } from '@/api/schema'
import { t } from '@/text'
import { join, type Errors } from './fields'
import type { Value } from './object'
import { useSubject } from './subject'

type Tested = components['schemas']['dnsTested']
const words = t.dns

/** Tests the credentials of a provider as they are typed, and shows what it answered. */
export function CredentialTest({ value, at, errors, disabled }: { value: Value; at: string; errors: Errors; disabled?: boolean }) {
  const subject = useSubject()
  const domains = Array.isArray(subject.value.domains) ? subject.value.domains.map(String) : []
  const [typed, setTyped] = useState<string>()
  const [busy, setBusy] = useState(false)
  const [found, setFound] = useState<{ good: boolean; lines: string[] }>()
  const host = (typed ?? domains[0] ?? '').trim()

  async function test() {
    setBusy(true)
    setFound(undefined)
    const body = {
      host,
      provider: value.provider,
      credentials: value.credentials,
      zone: value.zone,
      resolvers: subject.value.resolvers,
      entry: subject.kind === 'acme' ? subject.saved : undefined,
    }
    try {
      setFound(describe((await call<Tested>('POST', '/dns_providers/test', { body })).value))
    } catch (e) {
      setFound({ good: false, lines: [sentence(e)] })
    } finally {
      setBusy(false)
    }
  }

  return (
    <div>
      <div className="ask">
        <TextInput label={words.testHost} placeholder="*.example.com" value={typed ?? domains[0] ?? ''} disabled={disabled} spellCheck={false} onChange={(e) => setTyped(e.currentTarget.value)} />
        <Button variant="default" loading={busy} disabled={disabled || !host || !!errors[join(at, 'provider')]} onClick={() => void test()}>
          {words.test}
        </Button>
      </div>
      <div role="status" aria-live="polite">
        {found?.lines.map((line) => (
          <p key={line} className="small wrap" style={{ margin: '6px 0 0', color: found.good ? 'var(--good)' : 'var(--bad)' }}>
            {line}
          </p>
        ))}
      </div>
    </div>
  )
}

/** The result of a test in sentences. */
function describe(r: Tested): { good: boolean; lines: string[] } {
  if (r.trouble) return { good: false, lines: [r.trouble.message ?? '', r.trouble.hint ?? ''].filter(Boolean) }
  if (r.warning) return { good: false, lines: [words.untested(r.warning)] }
  if (!r.checked) return { good: true, lines: [words.nothingToRead(r.record ?? '')] }
  return { good: true, lines: [words.accepted(r.zone || r.record || '', Math.round(r.duration_ms))] }
}
