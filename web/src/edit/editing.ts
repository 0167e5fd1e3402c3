import { useView } from '@/ui/view'

/**
 * Which object of a kind is edited in a drawer: it is in the address, and a step of the
 * history. Undefined is none; a single object has the name ''.
 */
export function useEditing(kind: string): [string | undefined, (name: string | undefined) => void] {
  const [value, set] = useView('edit', '', true)
  const mine = value.startsWith(kind + ':')
  return [mine ? value.slice(kind.length + 1) : undefined, (name) => set(name === undefined ? '' : `${kind}:${name}`)]
}
