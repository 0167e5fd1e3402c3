import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { all, type Whole } from '@/api/queries'
import type { components } from '@/api/schema'

type S = components['schemas']
export type Access = Whole<S['accessBody']>
export type Gate = Whole<S['gateBody']>
export type Opening = S['Opening']
export type Person = S['personBody']
export type Session = S['personSession']
export type Token = S['gateTokenBody']
export type ShareLink = S['gateLinkBody']

// The first part of each key is access, so that one event makes all of them old.
const list = <T>(name: string, path: string) => queryOptions({ queryKey: ['access', name], queryFn: ({ signal }) => all<T>(path, signal).then((p) => p.value) })

export const access = queryOptions({ queryKey: ['access', 'state'], queryFn: ({ signal }) => call<Access>('GET', '/gate', { signal }).then((p) => p.value) })
export const openings = queryOptions({ ...list<Opening>('openings', '/gate/openings'), refetchInterval: 30_000 })
export const people = list<Person>('people', '/people')
export const groups = list<S['groupBody']>('groups', '/gate/groups')
export const sessions = queryOptions({ ...list<Session>('sessions', '/gate/sessions'), refetchInterval: 30_000 })
export const tokens = list<Token>('tokens', '/gate/tokens')
export const links = list<ShareLink>('links', '/gate/links')

/** When something ends that was chosen as a number of days; '' is never. */
export const inDays = (days: string) => (days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : undefined)

/** The choices of a table of texts. */
export const choices = (texts: Record<string, string>) => Object.entries(texts).map(([value, label]) => ({ value, label }))
