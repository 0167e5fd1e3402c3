import { Autocomplete, PasswordInput, TagsInput, type PasswordInputProps } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { objects } from '@/api/queries'
import { useStore } from '@/api/store'
import { t } from '@/text'
import { basket } from './basket'

type Props = {
  kind: string
  list: boolean
  value: unknown
  onChange: (v: unknown) => void
  label: string
  description: ReactNode
  error?: string
  disabled?: boolean
  required?: boolean
  withAsterisk?: boolean
  placeholder: string
  onBlur: () => void
}

/** A field that names other objects: chosen from a list of those that there are, and of those that wait in the changes. */
export function Reference({ kind, list, value, onChange, placeholder, ...rest }: Props) {
  const there = useQuery({ ...objects(kind), enabled: kind !== 'events' }).data ?? []
  const fresh = useStore(basket).filter((e) => e.kind === kind && e.op === 'set')
  const names = kind === 'events' ? eventPatterns : [...new Set([...there.map((o) => o.name!), ...fresh.map((e) => e.name)])]
  if (!list) return <Autocomplete {...rest} data={names} value={value === undefined ? '' : String(value)} placeholder={placeholder} onChange={(v) => onChange(v.trim() || undefined)} />
  const chosen = Array.isArray(value) ? value.map(String) : []
  const words = t.events
  return (
    <TagsInput
      {...rest}
      data={names}
      value={chosen}
      placeholder={chosen.length ? '' : placeholder === t.edit.optional ? t.edit.chooseOr : placeholder}
      onChange={(v) => onChange(v.length ? v : undefined)}
      clearable
      acceptValueOnBlur
      maxDropdownHeight={280}
      renderOption={
        kind === 'events'
          ? ({ option }) => (
              <span>
                <code>{option.value}</code>{' '}
                <span className="small">{option.value.endsWith('.*') ? words.every(words.objects[option.value.slice(0, -2)] ?? option.value) : words.types[option.value]}</span>
              </span>
            )
          : undefined
      }
    />
  )
}

/** What a webhook can ask for: all of an object, or one type. */
const eventPatterns = Object.keys(t.events.objects).flatMap((object) => [`${object}.*`, ...Object.keys(t.events.types).filter((type) => type.startsWith(object + '.'))])

/** A secret: what is typed is not shown unless somebody asks for it. */
export const SecretInput = (props: PasswordInputProps) => <PasswordInput {...props} autoComplete="new-password" visibilityToggleButtonProps={{ 'aria-label': t.edit.show }} />
