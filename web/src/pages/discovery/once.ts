import type { components } from '@/api/schema'

export type Provider = components['schemas']['providerBody']
export type Issue = NonNullable<Provider['issues']>[number]

/**
 * A host that two want is reported at both of them: once is enough in a list. The one with the
 * label stays, since it says what to change.
 */
export const once = (issues: Issue[]): Issue[] => issues.filter((x) => x.label || !issues.some((y) => y !== x && y.label && y.code === x.code && y.container === x.container))
