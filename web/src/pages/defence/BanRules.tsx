import { Button } from '@mantine/core'
import { readNow, type AnyObject } from '@/api/queries'
import type { components } from '@/api/schema'
import { WouldList } from '@/edit/BanTrial'
import { put, reviewing } from '@/edit/basket'
import { Entries } from '@/edit/Entries'
import { written, type Value } from '@/edit/object'
import { Ago, StateBadge } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'

type State = components['schemas']['RuleState']
type Condition = { reason?: string; path?: string[]; status?: number[]; count?: number }
const words = t.bans

/** What a new rule begins with: what only scanners do, and passwords that are guessed. It observes. */
const initial: Value = {
  when: [
    { path: ['/.env', '/wp-login.php', '/.git/*'], count: 3 },
    { reason: 'no_route', count: 20 },
    { status: [401, 403], count: 10 },
  ],
  within: '10m',
  mode: 'observe',
}

/** The rules, each with what it has done since it was written. */
export function BanRules({ states, may }: { states: State[]; may: boolean }) {
  const { act, busy } = useAct()
  /** Puts a rule that enforces into the changes, whose review follows. */
  async function enforce(o: AnyObject) {
    await act(o.name!, async () => {
      const now = await readNow('bans', o.name!)
      put({ kind: 'bans', name: o.name!, op: 'set', base: now, value: { ...written('bans', now), mode: 'enforce' } })
      reviewing.set(true)
    })
  }
  const stateOf = (o: AnyObject) => states.find((s) => s.name === o.name)
  return (
    <Entries
      kind="bans"
      title={words.rules}
      emptyTitle={words.noRulesTitle}
      empty={words.noRulesText}
      initial={initial}
      mark={(o) => <Mode mode={String(o.mode ?? 'observe')} />}
      line={(o) => <Done rule={o} state={stateOf(o)} />}
      actions={(o) =>
        may &&
        !o.read_only &&
        o.mode !== 'enforce' && (
          <Button size="compact-sm" variant="default" loading={busy === o.name} aria-label={words.enforceOf(o.name!)} onClick={() => void enforce(o)}>
            {words.enforce}
          </Button>
        )
      }
    />
  )
}

const Mode = ({ mode }: { mode: string }) => (
  <StateBadge state={mode} meaning={mode === 'enforce' ? 'good' : 'info'}>
    {words.modes[mode] ?? mode}
  </StateBadge>
)

/** What a rule counts, what it has done, and whom it would have banned. */
function Done({ rule, state: s }: { rule: AnyObject; state?: State }) {
  const conditions = ((rule.when as Condition[]) ?? []).map((c) => words.condition(c.count ?? 0, whatOf(c)))
  const would = s?.would ?? []
  return (
    <>
      {words.conditions(conditions.join(words.any), String(rule.within ?? '10m'))}
      {s && (
        <span className="block">
          {words.sinceWritten} <Ago time={s.since!} />: {s.mode === 'observe' ? words.observed(s.requests ?? 0, s.addresses ?? 0, s.signed_in ?? 0) : words.enforced(s.bans ?? 0)}
        </span>
      )}
      {would.length > 0 && (
        <details>
          <summary>{words.would(s?.addresses ?? would.length)}</summary>
          <WouldList list={would} />
        </details>
      )}
    </>
  )
}

const whatOf = (c: Condition) => [c.reason, c.path?.join(', '), c.status?.length && words.status(c.status.join(', '))].filter(Boolean).join(' + ')
