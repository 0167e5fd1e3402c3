import { t } from '@/text'
import type { Person } from './queries'

const words = t.access

/** What a person signs in with, in words. */
export function credentials(p: Person): string {
  return [p.passkeys?.length && words.passkeys(p.passkeys.length), p.password && words.password].filter(Boolean).join(', ')
}
