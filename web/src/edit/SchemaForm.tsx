import { ActionIcon, Button, NumberInput, Select, Switch, Textarea, TextInput } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useState, type ReactNode } from 'react'
import { t } from '@/text'
import { About, join, placeholder, under, wrongText, type Common, type Inside } from './fields'
import { Credentials, Provider } from './DNSForm'
import { Named } from './Named'
import { placed, references } from './layout'
import type { Value } from './object'
import { PasswordHash } from './PasswordHash'
import { ServiceForm } from './ServiceForm'
import { services } from './services'
import { Reference, SecretInput } from './Reference'
import { check, fieldOf, type JSONSchema } from './schema'
import { label, small } from './words'

/**
 * A form of an object, made from its schema and laid out by hand (layout.ts): help, default,
 * bounds and unit of every field; the usual fields first, the rest folded in groups.
 */
export function SchemaForm({
  schema,
  root,
  value,
  onChange,
  errors = {},
  at = '',
  disabled,
}: Partial<Common> & {
  schema: JSONSchema
  root: JSONSchema
  value: Value
  onChange: (v: Value) => void
  /** The path of the object in the form, for errors. */
  at?: string
}) {
  const names = Object.keys(schema.properties ?? {})
  const { first, groups } = placed(schema.def ?? '', names, (n) => value[n] !== undefined, schema.required)
  const one = (name: string) => {
    const Own = schema.def === 'DNS' && (name === 'provider' ? Provider : name === 'credentials' ? Credentials : undefined)
    if (schema.def === 'Notice' && name in services) return name === 'email' ? <ServiceForm key="service" Form={SchemaForm} {...{ schema, root, value, onChange, errors, at, disabled }} /> : null
    return Own ? <Own key={name} {...{ value, onChange, errors, at, disabled }} /> : field(name)
  }
  const field = (name: string) => (
    <SchemaField
      key={name}
      name={name}
      of={schema.def}
      schema={schema.properties![name]!}
      required={schema.required?.includes(name)}
      root={root}
      value={value[name]}
      errors={errors}
      disabled={disabled}
      at={join(at, name)}
      onChange={(v) => onChange(withField(value, name, v))}
    />
  )
  return (
    <div className="fields">
      {first.map(one)}
      {groups.map(([group, list]) => {
        const set = list.filter((n) => value[n] !== undefined)
        const wrong = Object.keys(errors).some((p) => list.some((n) => under(p, join(at, n))))
        return (
          <details key={group} className="fold" open={wrong || undefined}>
            <summary>
              {group === '' ? t.edit.rest : t.edit.groups[group]}
              <span className="small"> {set.length > 0 ? set.map(label).join(', ') : list.slice(0, 3).map(label).join(', ') + (list.length > 3 ? ', …' : '')}</span>
              {set.length > 0 && <span className="tag">{t.edit.isSet(set.length)}</span>}
            </summary>
            <div className="fields">{list.map(one)}</div>
          </details>
        )
      })}
    </div>
  )
}

/** A field that is undefined is not written. */
function withField(value: Value, name: string, v: unknown): Value {
  const { [name]: _, ...others } = value
  if (v === undefined) return others
  return name in value ? { ...value, [name]: v } : { ...others, [name]: v }
}

/** One field, by its schema. */
export function SchemaField({
  name,
  of = '',
  schema,
  root,
  value,
  onChange,
  errors,
  at,
  required,
  disabled,
  title = label(name),
}: Common & {
  name: string
  /** The definition of the object around it. */
  of?: string
  schema: JSONSchema
  value: unknown
  onChange: (v: unknown) => void
  at: string
  required?: boolean
  title?: string
}) {
  const f = fieldOf(schema, root)
  const [left, setLeft] = useState(false)
  // A list of words is one control: the problem of a word is its.
  const inside = f.control === 'lines' || f.control === 'map' ? Object.keys(errors).find((p) => p !== at && under(p, at)) : undefined
  const error = errors[at] || (inside && errors[inside]) || (left ? wrongText(check(value, f, required)) : '') || undefined
  const common = { label: title, description: <About f={f} />, error, disabled, required, withAsterisk: required, onBlur: () => setLeft(true) }
  const kind = references[of]?.[name]
  if (kind && (f.control === 'lines' || f.control === 'text'))
    return <Reference {...common} kind={kind} list={f.control === 'lines'} value={value} placeholder={placeholder(f.schema)} onChange={onChange} />
  if (name === 'password_hash') return <PasswordHash {...{ value, onChange, error, disabled }} label={t.edit.password} />
  switch (f.control) {
    case 'switch':
      return (
        <Switch
          label={title}
          description={
            <>
              <About f={f} /> {f.schema.default !== undefined && placeholder(f.schema)}
            </>
          }
          error={error}
          disabled={disabled}
          checked={(value ?? f.schema.default ?? false) === true}
          onChange={(e) => onChange(e.currentTarget.checked === (f.schema.default ?? false) ? undefined : e.currentTarget.checked)}
        />
      )
    case 'choice':
      return <Select {...common} data={f.choices} value={value === undefined ? null : String(value)} placeholder={placeholder(f.schema)} clearable onChange={(v) => onChange(v ?? undefined)} />
    case 'number':
      return typeof value === 'string' ? (
        <TextInput {...common} value={value} onChange={(e) => onChange(e.currentTarget.value || undefined)} />
      ) : (
        <NumberInput
          {...common}
          value={(value as number) ?? ''}
          placeholder={placeholder(f.schema)}
          allowDecimal={f.schema.type === 'number'}
          onChange={(v) => onChange(v === '' ? undefined : typeof v === 'string' ? Number(v) : v)}
        />
      )
    case 'lines':
      return <Lines {...common} value={value} placeholder={placeholder(f.schema)} inner={f.inner} onChange={onChange} />
    case 'object':
      return <Nested f={f} title={title} value={value as Value | undefined} {...{ root, errors, at, disabled, onChange }} />
    case 'objects':
      return <List f={f} title={title} value={value as Value[] | undefined} {...{ root, errors, at, disabled, onChange }} />
    case 'entries':
      return <Named Form={SchemaForm} f={f} title={title} value={value as Record<string, Value> | undefined} {...{ root, errors, at, disabled, onChange }} />
    case 'map':
      return <Entries {...common} value={value as Value | undefined} onChange={onChange} />
    default: {
      const text = value === undefined || value === null ? '' : String(value)
      const change = (v: string) => onChange(v === '' ? undefined : v)
      if (f.schema.writeOnly) return <SecretInput {...common} value={text} placeholder={placeholder(f.schema)} onChange={(e) => change(e.currentTarget.value)} />
      if ((f.schema.maxLength ?? 0) > 4096)
        return <Textarea {...common} autosize minRows={2} maxRows={12} value={text} placeholder={placeholder(f.schema)} onChange={(e) => change(e.currentTarget.value)} />
      return <TextInput {...common} value={text} placeholder={placeholder(f.schema)} onChange={(e) => change(e.currentTarget.value)} />
    }
  }
}

type LinesProps = {
  value: unknown
  onChange: (v: unknown) => void
  inner?: JSONSchema
  label: string
  description: ReactNode
  error?: string
  disabled?: boolean
  placeholder: string
  onBlur: () => void
}

/** A list of words: one per line. What is typed stays as it is until the field is left. */
function Lines({ value, onChange, inner, onBlur, ...rest }: LinesProps) {
  const list = Array.isArray(value) ? value.map(String) : []
  const [typed, setTyped] = useState<string | null>(null)
  const numbers = [inner?.type].flat().includes('integer')
  return (
    <Textarea
      {...rest}
      autosize
      minRows={1}
      maxRows={10}
      value={typed ?? list.join('\n')}
      onChange={(e) => {
        setTyped(e.currentTarget.value)
        const lines = e.currentTarget.value
          .split(/[\n,]/)
          .map((s) => s.trim())
          .filter(Boolean)
        onChange(lines.length ? lines.map((s) => (numbers && /^\d+$/.test(s) ? Number(s) : s)) : undefined)
      }}
      onBlur={() => {
        setTyped(null)
        onBlur()
      }}
    />
  )
}

/** A map of words: `name: value` on each line. */
function Entries({
  value,
  onChange,
  onBlur,
  ...rest
}: {
  value?: Value
  onChange: (v: unknown) => void
  label: string
  description: ReactNode
  error?: string
  disabled?: boolean
  onBlur: () => void
}) {
  const [typed, setTyped] = useState<string | null>(null)
  const text = Object.entries(value ?? {})
    .map(([k, v]) => `${k}: ${typeof v === 'object' ? JSON.stringify(v) : v}`)
    .join('\n')
  return (
    <Textarea
      {...rest}
      autosize
      minRows={1}
      value={typed ?? text}
      onChange={(e) => {
        setTyped(e.currentTarget.value)
        const entries = e.currentTarget.value
          .split('\n')
          .map((l) => /^([^:]+):\s*(.*)$/.exec(l))
          .filter((m) => m !== null)
          .map((m) => [m[1]!.trim(), parsed(m[2]!)])
        onChange(entries.length ? Object.fromEntries(entries) : undefined)
      }}
      onBlur={() => {
        setTyped(null)
        onBlur()
      }}
    />
  )
}

function parsed(text: string): unknown {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** An object that may be absent: it is set with a button, and taken back with another. */
function Nested({ f, title, value, root, errors, at, disabled, onChange }: Inside & { value?: Value }) {
  if (value === undefined)
    return (
      <div>
        <strong>{title}</strong>
        <div className="small">
          <About f={f} />
        </div>
        <Button mt={6} size="compact-sm" variant="default" disabled={disabled} onClick={() => onChange({})}>
          {t.edit.set(small(title))}
        </Button>
      </div>
    )
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
      <legend style={{ display: 'flex', alignItems: 'center', gap: 10, padding: 0, marginBottom: 6 }}>
        <strong>{title}</strong>
        <Button size="compact-xs" variant="subtle" disabled={disabled} onClick={() => onChange(undefined)}>
          {t.edit.unset}
        </Button>
      </legend>
      {errors[at] && <p style={{ color: 'var(--bad)', margin: '0 0 6px' }}>{errors[at]}</p>}
      <div className="nested">
        <SchemaForm schema={f.inner!} root={root} value={value} onChange={onChange} errors={errors} at={at} disabled={disabled} />
      </div>
    </fieldset>
  )
}

/** "Error pages" is "Error page". */
const singular = (title: string) => title.replace(/ies$/, 'y').replace(/s$/, '')

function List({ f, title, value = [], root, errors, at, disabled, onChange }: Inside & { value?: Value[] }) {
  const change = (list: Value[]) => onChange(list.length ? list : undefined)
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0 }}>
      <legend style={{ padding: 0 }}>
        <strong>{title}</strong>
        <div className="small">
          <About f={f} />
        </div>
      </legend>
      {errors[at] && <p style={{ color: 'var(--bad)', margin: '6px 0' }}>{errors[at]}</p>}
      {value.map((item, i) => (
        <div key={i} className="nested" style={{ margin: '10px 0' }}>
          <div className="nested-head">
            <span className="clip">
              <bdi>
                {singular(title)} {i + 1}
              </bdi>
            </span>
            <ActionIcon variant="subtle" color="red" disabled={disabled} aria-label={t.edit.removeItem(`${small(title)} ${i + 1}`)} onClick={() => change(value.filter((_, j) => j !== i))}>
              <IconTrash size={16} />
            </ActionIcon>
          </div>
          <SchemaForm schema={f.inner!} root={root} value={item} errors={errors} at={`${at}[${i}]`} disabled={disabled} onChange={(v) => change(value.map((x, j) => (j === i ? v : x)))} />
        </div>
      ))}
      <Button mt={6} size="compact-sm" variant="default" disabled={disabled || (f.schema.maxItems !== undefined && value.length >= f.schema.maxItems)} onClick={() => change([...value, {}])}>
        {t.edit.add(small(singular(title)))}
      </Button>
    </fieldset>
  )
}
