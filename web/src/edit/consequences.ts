import type { Change } from '@/api/queries'
import type { Edit } from './basket'

type Said = { text: string; remedy?: string }

/**
 * What a plan warns of, the dangers apart: what becomes of objects, and notes about the
 * configuration, each once.
 */
export function warningsOf(change: Change): { danger: Said[]; warnings: Said[] } {
  const danger: Said[] = []
  const warnings: Said[] = []
  const seen = new Set<string>()
  for (const o of change.plan?.objects ?? [])
    for (const s of o.sentences ?? []) {
      if (s.severity === 'info' || !s.text || seen.has(s.text)) continue
      seen.add(s.text)
      ;(s.severity === 'danger' ? danger : warnings).push({ text: s.text, remedy: s.remedy })
    }
  for (const n of change.notes ?? []) {
    const text = n.object ? `${n.object}: ${n.what}` : (n.what ?? '')
    // The plan tells notes in its own words, with the object before them.
    if ([...seen].some((x) => x.endsWith(n.what ?? ''))) continue
    seen.add(text)
    warnings.push({ text, remedy: n.remedy })
  }
  return { danger, warnings }
}

/** What changes for visitors, a sentence for each feature. */
export const visitorsOf = (change: Change): string[] => (change.plan?.objects ?? []).flatMap((o) => (o.sentences ?? []).flatMap((s) => (s.code === 'visitor' && s.text ? [s.text] : [])))

/** How many hosts are named one by one. */
const most = 24

/** The hosts that a change is about: those that the plan names, and those of the edits, before and after. */
export function hostsOf(change: Change, edits: Edit[] = []): { names: string[]; more: number } {
  const hosts = new Set<string>()
  for (const c of change.changes ?? []) {
    const e = edits.find((e) => e.kind === c.kind && e.name === c.name)
    if (c.kind !== 'proxies' || !e) continue
    for (const h of [...((e.base?.virtual_hosts as string[]) ?? []), ...((e.value?.virtual_hosts as string[]) ?? [])]) hosts.add(h)
  }
  for (const o of change.plan?.objects ?? []) for (const h of o.hosts ?? []) hosts.add(h)
  const names = [...hosts]
  const all = Math.max(names.length, change.plan?.impact?.hosts ?? 0)
  return { names: names.slice(0, most), more: all - Math.min(names.length, most) }
}

const counted = ['refused', 'password', 'allowed', 'proxy', 'route', 'servers', 'answer'] as const

/** The counts of what would become of recent requests, without those that are nothing. */
export const whatIfCounts = (it: NonNullable<Change['what_if']>): [(typeof counted)[number], number][] => counted.filter((name) => it[name]).map((name) => [name, it[name]!])
