import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'

/**
 * View state in the address: what is filtered, sorted, open. Links keep it, and Back
 * restores it. With `step`, opening is a step of the history: Back closes it again.
 */
export function useView(name: string, initial = '', step = false): [string, (value: string) => void] {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const go = useNavigate()
  const router = useRouter()
  const value = search[name] === undefined ? initial : String(search[name])
  const open = value !== initial
  const set = useCallback(
    (v: string) => {
      const opened = (router.state.location.state as { opened?: string }).opened
      if (step && open && v === initial && opened === name) return router.history.back()
      const push = step && !open && v !== initial
      void go({
        to: '.',
        replace: !push,
        resetScroll: false,
        state: (old: object) => ({ ...old, opened: push ? name : opened }),
        search: (old: Record<string, unknown>) => ({ ...old, [name]: v === initial ? undefined : v }),
      } as never)
    },
    [go, router, name, initial, step, open],
  )
  return [value, set]
}
