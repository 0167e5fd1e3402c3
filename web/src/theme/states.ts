/**
 * What a state means to a person. The word is the API's; the mark and the colour say the
 * same twice, so that nobody needs the colour.
 */
export type Meaning = 'good' | 'warn' | 'bad' | 'calm' | 'info'

const meanings: Record<string, Meaning> = {
  active: 'good',
  serving: 'good',
  listening: 'good',
  healthy: 'good',
  valid: 'good',
  running: 'good',
  connected: 'good',
  applied: 'good',
  confirmed: 'good',
  added: 'good',
  ready: 'good',
  degraded: 'warn',
  stopping: 'warn',
  waiting: 'warn',
  draining: 'warn',
  slow_start: 'warn',
  failing_open: 'warn',
  connecting: 'warn',
  expiring: 'warn',
  retrying: 'warn',
  pending: 'warn',
  maintenance: 'warn',
  ejected: 'warn',
  changed: 'warn',
  warning: 'warn',
  stale: 'warn',
  moved: 'warn',
  down: 'bad',
  conflict: 'bad',
  permission_denied: 'bad',
  revoked: 'bad',
  unhealthy: 'bad',
  failed: 'bad',
  expired: 'bad',
  error: 'bad',
  refused: 'bad',
  lost: 'bad',
  removed: 'bad',
  missing: 'bad',
  inactive: 'calm',
  closed: 'calm',
  draft: 'calm',
  unknown: 'calm',
  rolled_back: 'calm',
  drained: 'calm',
  unchecked: 'calm',
  disabled: 'calm',
  blocked: 'bad',
  idle: 'calm',
  preflight: 'info',
  processing: 'info',
  self_signed: 'warn',
  info: 'info',
  added_by: 'info',
  ordering: 'info',
  starting: 'info',
}

export const meaningOf = (state: string): Meaning => meanings[state] ?? 'calm'

/** Marks differ in form, not in colour alone. */
export const marks: Record<Meaning, string> = { good: '●', warn: '▲', bad: '■', calm: '○', info: '◆' }
