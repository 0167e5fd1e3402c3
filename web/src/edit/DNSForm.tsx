import { Select, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { t } from '@/text'
import { CredentialTest } from './CredentialTest'
import { dnsProviders, isOpen } from './dns'
import { join, type Errors } from './fields'
import type { Value } from './object'
import { SecretInput } from './Reference'
import { label } from './words'

type Providers = components['schemas']['dnsProvidersBody']
const words = t.dns

const useProviders = () => useQuery({ queryKey: ['dns_providers'], queryFn: () => call<Providers>('GET', '/dns_providers').then((p) => p.value.providers ?? []), staleTime: Infinity })

type Props = { value: Value; onChange: (v: Value) => void; errors: Errors; at: string; disabled?: boolean }

/** Who serves the zone: chosen by the name that people know, or a part of it. */
export function Provider({ value, onChange, errors, at, disabled }: Props) {
  const all = useProviders().data ?? []
  const chosen = String(value.provider ?? '')
  const data = all.map((p) => ({ value: p.name!, label: dnsProviders[p.name!]?.title ?? p.name! })).sort((a, b) => a.label.localeCompare(b.label))
  if (chosen && !data.some((d) => d.value === chosen)) data.push({ value: chosen, label: chosen })
  const { url } = dnsProviders[chosen] ?? {}
  const note = words.notes[chosen]
  return (
    <div>
      <Select
        label={words.provider}
        placeholder={words.choose}
        data={data}
        value={chosen || null}
        error={errors[join(at, 'provider')]}
        disabled={disabled}
        searchable
        nothingFoundMessage={words.noProvider}
        // The credentials of another provider are of no use to this one.
        onChange={(v) => v !== chosen && onChange({ ...value, provider: v ?? undefined, credentials: undefined })}
      />
      {(url || note) && (
        <p className="small" style={{ margin: '6px 0 0' }}>
          {note && `${note} `}
          {url && (
            <a href={url} target="_blank" rel="noreferrer">
              {words.where(dnsProviders[chosen]!.title)}
            </a>
          )}
        </p>
      )}
    </div>
  )
}

/** One field for each credential of the provider, masked where it is a secret. */
export function Credentials({ value, onChange, errors, at, disabled }: Props) {
  const provider = useProviders().data?.find((p) => p.name === value.provider)
  const set = (value.credentials ?? {}) as Record<string, string>
  if (!provider) return null
  const required = provider.required ?? []
  const optional = provider.optional ?? []
  const others = Object.keys(set).filter((k) => !required.includes(k) && !optional.includes(k))
  const change = (name: string, text: string) => {
    const { [name]: _, ...rest } = set
    const next = text === '' ? rest : { ...rest, [name]: text }
    onChange({ ...value, credentials: Object.keys(next).length ? next : undefined })
  }
  const one = (name: string, needed: boolean) => {
    const common = {
      label: label(name),
      value: set[name] ?? '',
      error: errors[join(join(at, 'credentials'), name)],
      disabled,
      required: needed,
      withAsterisk: needed,
      placeholder: needed ? '' : t.edit.optional,
      spellCheck: false,
    }
    // The key file of a service account is many lines long.
    if (name === 'service_account') return <Textarea key={name} {...common} autosize minRows={2} maxRows={6} autoComplete="off" onChange={(e) => change(name, e.currentTarget.value)} />
    return isOpen(name) ? (
      <TextInput key={name} {...common} autoComplete="off" onChange={(e) => change(name, e.currentTarget.value)} />
    ) : (
      <SecretInput key={name} {...common} onChange={(e) => change(name, e.currentTarget.value)} />
    )
  }
  return (
    <>
      {required.map((name) => one(name, true))}
      {optional.filter((name) => name !== 'endpoint' || set.endpoint !== undefined).map((name) => one(name, false))}
      {others.map((name) => one(name, false))}
      {errors[join(at, 'credentials')] && (
        <p role="alert" className="small" style={{ color: 'var(--bad)' }}>
          {errors[join(at, 'credentials')]}
        </p>
      )}
      {provider.name !== 'exec' && <CredentialTest {...{ value, at, errors, disabled }} />}
    </>
  )
}
