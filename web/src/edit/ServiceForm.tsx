import { Select } from '@mantine/core'
import type { ComponentType } from 'react'
import { t } from '@/text'
import { join, type Common } from './fields'
import type { Value } from './object'
import { fieldOf, type JSONSchema } from './schema'
import { services, serviceOf } from './services'

type FormProps = Common & { schema: JSONSchema; value: Value; onChange: (v: Value) => void; at?: string }

/** The service of a notice: chosen once, then its own settings. */
export function ServiceForm({ Form, schema, root, value, onChange, errors, at = '', disabled }: FormProps & { Form: ComponentType<FormProps> }) {
  const chosen = serviceOf(value)
  const set = (service: string, v: Value) => {
    const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !(name in services)))
    onChange({ [service]: v, ...rest })
  }
  const inner = chosen && fieldOf(schema.properties![chosen]!, root).inner
  return (
    <div className="fields">
      <Select
        label={t.notices.service}
        placeholder={t.edit.chooseOr}
        data={Object.entries(services).map(([name, title]) => ({ value: name, label: t.notices.services[name] ?? title }))}
        value={chosen ?? null}
        disabled={disabled}
        searchable
        // The settings of another service are of no use to this one.
        onChange={(v) => v && v !== chosen && set(v, {})}
      />
      {chosen && t.notices.notes[chosen] && <p className="small">{t.notices.notes[chosen]}</p>}
      {inner && <Form key={chosen} schema={inner} root={root} value={(value[chosen] as Value) ?? {}} errors={errors} at={join(at, chosen)} disabled={disabled} onChange={(v) => set(chosen, v)} />}
    </div>
  )
}
