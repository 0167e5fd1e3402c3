import { PasswordInput } from '@mantine/core'
import { useState } from 'react'
import { t } from '@/text'
import { cost, isHash, longest, tooLong } from './hash'

/** Loaded when somebody comes to the field: few forms have one. */
const load = () => import('bcryptjs')
let made: Awaited<ReturnType<typeof load>> | undefined
const ready = () => load().then((m) => (made = m))

/**
 * A field that keeps the hash of a password: what is typed is hashed here when the field is
 * left, and nothing else goes on. A hash that was made elsewhere is taken as it is.
 */
export function PasswordHash({ value, onChange, label, error, disabled }: { value: unknown; onChange: (v: unknown) => void; label: string; error?: string; disabled?: boolean }) {
  const [typed, setTyped] = useState('')
  const kept = typeof value === 'string' && value !== ''
  function take(m = made) {
    const text = typed.trim()
    if (!text || tooLong(text)) return
    if (isHash(text)) onChange(text)
    else if (m) onChange(m.hashSync(typed, cost))
    else return void ready().then(take)
    setTyped('')
  }
  return (
    <PasswordInput
      label={label}
      description={kept ? t.edit.passwordKept : t.edit.passwordHelp}
      placeholder={kept ? '••••••••' : ''}
      error={tooLong(typed) ? t.edit.passwordLong(longest) : error}
      disabled={disabled}
      value={typed}
      onFocus={() => void ready()}
      onChange={(e) => setTyped(e.currentTarget.value)}
      onBlur={() => take()}
      autoComplete="new-password"
      visibilityToggleButtonProps={{ 'aria-label': t.edit.show }}
    />
  )
}
