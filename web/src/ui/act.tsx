import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Problem, sentence } from '@/api/problem'

/** Does something at once, shows how it ended, and makes queries old. */
export function useAct(...keys: string[]) {
  const queries = useQueryClient()
  const [busy, setBusy] = useState('')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  async function act<T>(name: string, what: () => Promise<T>, done?: string): Promise<T | undefined> {
    setBusy(name)
    setWrong({})
    try {
      const value = await what()
      if (done) notifications.show({ message: done, color: 'teal' })
      return value
    } catch (e) {
      const at = e instanceof Problem ? Object.fromEntries(e.mistakes.map((m) => [m.pointer.replace(/^\//, '').split('/')[0]!, [m.detail, m.remedy].filter(Boolean).join('; ')])) : {}
      setWrong(Object.keys(at).some(Boolean) ? at : { '': sentence(e) })
      if (!name) notifications.show({ message: sentence(e), color: 'red' })
      return undefined
    } finally {
      setBusy('')
      for (const key of keys) void queries.invalidateQueries({ queryKey: [key] })
    }
  }
  return { act, busy, wrong, setWrong }
}

/** What is wrong and has no field of its own in a form. */
export function Wrong({ wrong, fields }: { wrong: Record<string, string>; fields: string[] }) {
  const rest = Object.entries(wrong).filter(([f]) => !fields.includes(f))
  if (rest.length === 0) return null
  return (
    <p role="alert" className="lead" style={{ color: 'var(--bad)' }}>
      {rest.map(([f, x]) => (f ? `${f}: ${x}` : x)).join('. ')}
    </p>
  )
}
