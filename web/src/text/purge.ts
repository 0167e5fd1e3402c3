import { many } from './many'

const responses = (n: number) => many(n, 'response', 'responses')

/** Taking responses out of the cache. */
export const purge = {
  item: 'Purge its cache',
  title: (proxy: string) => `Purge the cache of ${proxy}`,
  lead: 'What is taken out is asked of the servers anew. No document is touched.',
  what: 'What',
  ways: { all: 'Everything', url: 'One address', prefix: 'Addresses that begin with', tag: 'Responses with a tag' },
  help: {
    url: 'A whole URL, such as https://shop.example.com/logo.png. It is meant over http too.',
    prefix: 'Such as https://shop.example.com/images/. They are meant over http too.',
    tag: 'A word in Cache-Tag or Surrogate-Key of the responses.',
  },
  missing: 'Say which.',
  soft: 'Make stale only',
  softHelp: 'They stay, and are checked with the server when they are next asked for.',
  countFirst: 'Count them first',
  count: (n: number) => `${responses(n)} now.`,
  go: 'Purge',
  done: (n: number, soft: boolean) => (soft ? `${responses(n)} made stale.` : `${responses(n)} taken out.`),
}
