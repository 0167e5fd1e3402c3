import { ActionIcon, Button, TextInput } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useState, type ComponentType } from 'react'
import { t } from '@/text'
import type { Value } from './object'
import type { JSONSchema } from './schema'
import { small } from './words'
import { About, join, type Inside } from './fields'

type FormOf = ComponentType<Pick<Inside, 'root' | 'errors' | 'at' | 'disabled'> & { schema: JSONSchema; value: Value; onChange: (v: Value) => void }>

/** Objects by name inside of another, such as the engines of Docker: each has a Form of its own. */
export function Named({ Form, f, title, value = {}, root, errors, at, disabled, onChange }: Inside & { Form: FormOf; value?: Record<string, Value> }) {
  const [name, setName] = useState('')
  const [wrong, setWrong] = useState('')
  const change = (v: Record<string, Value>) => onChange(Object.keys(v).length ? v : undefined)
  function add() {
    const n = name.trim()
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(n)) return setWrong(t.entries.badName)
    if (n in value) return setWrong(t.entries.takenName)
    setName('')
    setWrong('')
    change({ ...value, [n]: {} })
  }
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
      <legend style={{ padding: 0 }}>
        <strong>{title}</strong>
        <div className="small">
          <About f={f} />
        </div>
      </legend>
      {errors[at] && <p style={{ color: 'var(--bad)', margin: '6px 0' }}>{errors[at]}</p>}
      {Object.entries(value).map(([n, v]) => (
        <div key={n} className="nested" style={{ margin: '10px 0' }}>
          <div className="nested-head">
            <span className="clip">
              <bdi>{n}</bdi>
            </span>
            <ActionIcon
              variant="subtle"
              color="red"
              disabled={disabled}
              aria-label={t.edit.removeItem(n)}
              onClick={() => {
                const { [n]: _, ...rest } = value
                change(rest)
              }}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </div>
          <Form schema={f.inner!} root={root} value={v ?? {}} errors={errors} at={join(at, n)} disabled={disabled} onChange={(x) => change({ ...value, [n]: x })} />
        </div>
      ))}
      <div className="ask" style={{ marginTop: 8, alignItems: 'flex-start' }}>
        <TextInput
          size="xs"
          aria-label={t.edit.named}
          placeholder={t.edit.named}
          value={name}
          error={wrong}
          disabled={disabled}
          onChange={(e) => setName(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === 'Enter') {
              e.preventDefault()
              add()
            }
          }}
          autoComplete="off"
          spellCheck={false}
        />
        <Button size="compact-sm" variant="default" disabled={disabled} onClick={add}>
          {t.edit.add(small(title))}
        </Button>
      </div>
    </fieldset>
  )
}
