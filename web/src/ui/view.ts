import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

/**
 * View state in the address: what is filtered, sorted, open. Links keep it, and Back
 * takes it back.
 */
export function useView(name: string, initial = ''): [string, (value: string) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const go = useNavigate()
  const value = search[name] === undefined ? initial : String(search[name])
  const set = useCallback(
    (v: string) => void go({ to: '.', replace: true, resetScroll: false, search: (old: Record<string, unknown>) => ({ ...old, [name]: v === initial ? undefined : v }) } as never),
    [go, name, initial],
  )
  return [value, set]
}
