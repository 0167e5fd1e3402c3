import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { Problem } from '@/api/problem'
import { all } from '@/api/queries'
import type { components } from '@/api/schema'

type NodeBody = components['schemas']['nodeBody']
/** A machine; these fields are always there. */
export type Node = NodeBody & Required<Pick<NodeBody, 'name' | 'state' | 'revision' | 'latest_revision' | 'clock_offset'>>
export type Pair = components['schemas']['pairBody']

/** The machines that share their state; only this one where nothing is shared. */
export const nodes = queryOptions({ queryKey: ['nodes'], queryFn: ({ signal }) => all<Node>('/nodes', signal).then((p) => p.value), refetchInterval: 5_000 })

export type Traffic = components['schemas']['nodeTraffic']

/** The traffic of each machine in the last minute, by name: one question to all of them. */
export const traffic = (several: boolean) =>
  queryOptions({
    queryKey: ['traffic'],
    queryFn: ({ signal }) => all<Traffic>('/traffic', signal).then((p) => new Map(p.value.map((x) => [x.node, x]))),
    enabled: several,
    refetchInterval: 10_000,
  })

/** The state of this machine in its pair; null if it is in none. */
export const pair = queryOptions({
  queryKey: ['pair'],
  queryFn: ({ signal }) =>
    call<Pair>('GET', '/pair', { signal }).then(
      (p) => p.value,
      (e: unknown) => {
        if (e instanceof Problem && e.status === 409) return null
        throw e
      },
    ),
  refetchInterval: (q) => (q.state.data ? 5_000 : false),
  staleTime: 5_000,
})

/** Whether this machine shares a database with others. */
export const shared = queryOptions({
  queryKey: ['store'],
  queryFn: ({ signal }) => call<components['schemas']['storeBody']>('GET', '/store', { signal }).then((p) => p.value.shared),
  staleTime: 60_000,
})
