import { expect, it } from 'vitest'
import { draftOf, dropDraft, drafts, keepDraft } from './drafts'

const root = { properties: {}, $defs: {} }

it('keeps one draft of each object, the latest', () => {
  keepDraft({ kind: 'proxies', name: 'shop', value: { description: 'a' } }, root)
  keepDraft({ kind: 'proxies', name: 'wiki', value: { description: 'b' } }, root)
  keepDraft({ kind: 'proxies', name: 'shop', value: { description: 'c' } }, root)
  expect(draftOf(drafts.get(), 'proxies', 'shop')?.value).toEqual({ description: 'c' })
  expect(drafts.get()).toHaveLength(2)
  dropDraft('proxies', 'shop')
  expect(drafts.get().map((d) => d.name)).toEqual(['wiki'])
})
